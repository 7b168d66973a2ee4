"""The drawing of a host: every device is on it or counted, nothing lies over anything else, and lines are where the
facts say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.host_facts import Facts, scan
from advisor.facts.processors.numa import Node, Numa
from advisor.facts.system.services import Service
from advisor.report.html import Anchor, Badge, Box, Label, Line, Mark, Picture, is_bold, text_width
from advisor.report.picture.content import host_picture
from advisor.report.picture.drawing import MOST_EMPTY, Sheet, draw_sheet
from advisor.report.picture.page import PHONE_WIDTH, SCREEN_WIDTH
from advisor.report.picture.page import SHEETS as PAGE_SHEETS
from advisor.report.picture.scene import HostPicture, PictureBlock
from advisor.rules.judged import judge
from advisor.snapshot.archive import open_snapshot
from tests import captured
from tests.report.pictures import HOSTS, device_names, drive, infiniband, judged, over, service
from tests.rules import build

SHEETS = (*PAGE_SHEETS, Sheet("alone", SCREEN_WIDTH, whole=True))
SLACK = 0.01
FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURED = (*(f"hwloc/{name}" for name in captured.HWLOC_HOSTS), *(f"pepc/{name}" for name in captured.PEPC_HOSTS))


@cache
def picture_of(name: str) -> HostPicture:
    return host_picture(*judged(HOSTS[name]()))


# -- what is drawn ---------------------------------------------------------------------------------------------------


def blocks_of(picture: HostPicture) -> Iterator[PictureBlock]:
    for panel in picture.panels:
        yield from panel.blocks


def names_in(picture: HostPicture) -> set[str]:
    """Every name that the picture shows or counts."""
    found = {name for block in blocks_of(picture) for name in block.names}
    return found | {name for one in picture.crossings for name in one.names} | {*picture.loose_names}


def assert_complete(facts: Facts, services: Sequence[Service], picture: HostPicture) -> None:
    assert {*device_names(facts), *(one.unit for one in services)} <= names_in(picture)


@pytest.mark.parametrize("name", HOSTS)
def test_every_device_and_service_is_drawn_or_counted(name: str) -> None:
    facts, services = HOSTS[name]()
    assert_complete(facts, services, picture_of(name))


@pytest.mark.parametrize("name", HOSTS)
def test_a_name_that_is_drawn_can_be_read_unless_it_is_folded(name: str) -> None:
    facts, _ = HOSTS[name]()
    ours = {*device_names(facts)}
    for block in blocks_of(picture_of(name)):
        words = " ".join([block.title, *(tile.name for tile in block.tiles)])
        unread = {name for name in ours & {*block.names} if name not in words}
        assert not unread or block.folded or "…" in block.title


def test_each_device_is_on_the_panel_of_its_node() -> None:
    facts, _ = HOSTS["large"]()
    of = {name: panel.place for panel in picture_of("large").panels for block in panel.blocks for name in block.names}
    for disk in facts.disks:
        assert of[disk.name] == ("unknown" if disk.numa_node is None else disk.numa_node)
    for link in facts.links:
        assert of.get(link.name) == link.numa_node


def test_a_node_that_is_not_told_is_never_node_0() -> None:
    facts = build.facts(numa=build.numa(2), disks=(build.disk("nvme0n1", numa_node=None),), links=())
    (zero, one, unknown) = host_picture(facts, ()).panels
    assert (zero.blocks, one.blocks) == ((), ())
    assert [block.title for block in unknown.blocks] == ["nvme0n1"]
    assert unknown.title == "Node unknown"


def test_a_node_that_is_not_online_is_as_unknown_as_none() -> None:
    facts = build.facts(numa=build.numa(2), disks=(build.disk("nvme0n1", numa_node=7),), links=())
    assert host_picture(facts, ()).panels[-1].place == "unknown"


def test_a_host_of_one_node_has_one_panel() -> None:
    (panel,) = picture_of("laptop").panels
    assert panel.note == "the only node"
    assert {"enp0s31f6", "wlp0s20f3", "nvme0n1"} <= {name for block in panel.blocks for name in block.names}


def test_a_kernel_without_nodes_has_a_panel_of_its_host() -> None:
    (panel,) = host_picture(build.facts(numa=Numa((), None, None)), ()).panels
    assert panel.title == "Host"
    assert [chip.value for chip in panel.chips] == ["0-3", "64 GiB"]


def test_nothing_known_is_drawn_too() -> None:
    picture = host_picture(build.nothing_known(), ())
    assert [chip.value for chip in picture.panels[0].chips] == ["unknown", "unknown"]
    assert_laid_out(draw_sheet(picture, SHEETS[3]))


def test_many_alike_links_are_one_block_with_their_number() -> None:
    ports = tuple(build.link(f"eth0v{at}", pci=f"0000:3b:02.{at}") for at in range(32))
    (block,) = host_picture(build.facts(links=ports), ()).panels[0].blocks
    assert block.title == "eth0v0 … eth0v31"
    assert block.aside == "32 × 25 Gbit/s up"


def test_a_link_that_a_finding_names_is_not_folded() -> None:
    ports = tuple(build.link(f"eth{at}", pci=f"0000:3b:02.{at}") for at in range(8))
    odd = build.replaced(ports[5], {"pcie": build.pcie(8.0, 4, width_max=8)})
    facts = build.facts(links=(*ports[:5], odd, *ports[6:]), host=build.identity(virtualization="none"))
    picture = host_picture(facts, judge(facts))
    (block,) = (block for block in blocks_of(picture) if block.names == ("eth5",))
    assert block.marks
    assert block.look == "advice"


def test_hundreds_of_different_devices_are_bounded() -> None:
    links = tuple(build.link(f"eth{at}", mtu=1500 + at, pci=f"0000:3b:{at % 32:02x}.0") for at in range(300))
    disks = tuple(build.disk(f"nvme{at}n1", size_bytes=10**12 + at, numa_node=0) for at in range(300))
    facts = build.facts(links=links, disks=disks, numa=build.numa(2))
    picture = host_picture(facts, ())
    assert_complete(facts, (), picture)
    assert sum(1 for _ in blocks_of(picture)) < 60
    assert_laid_out(draw_sheet(picture, SHEETS[1]))


def test_the_drives_of_a_large_array_end_in_a_count() -> None:
    disks = tuple(drive(at, 0) for at in range(90))
    array = over("md0", "raid6", *range(90))
    (block,) = host_picture(build.facts(disks=disks, arrays=(array,), links=()), ()).panels[0].blocks
    assert len(block.tiles) == 24
    assert block.tiles[-1].name == "+ 67 more"
    assert len(block.names) == 91


def test_arrays_of_arrays_stand_above_what_they_rest_on() -> None:
    blocks = picture_of("beegfs").panels[0].blocks
    titles = [(block.title, block.depth) for block in blocks if block.title.startswith("md")]
    assert titles == [("md100", 0), ("md2", 1), ("md3", 1), ("md4", 1), ("md5", 1), ("md0", 0), ("md9", 0)]


def test_failed_spare_and_narrow_drives_say_so() -> None:
    array = over("md0", "raid5", 0, 1, 2, 3, failed=("nvme1n1",), spares=("nvme2n1",), state="degraded")
    disks = (drive(0, 0), drive(1, 0), drive(2, 0), drive(3, 0, pcie=build.pcie(8.0, 2, width_max=4)))
    facts = build.facts(disks=disks, arrays=(array,), links=(), host=build.identity(virtualization="none"))
    (block,) = host_picture(facts, ()).panels[0].blocks
    assert [tile.state for tile in block.tiles] == ["", "failed", "spare", "x2 of x4"]
    assert block.look == "warning"
    assert "below maximum" in [piece for line in block.lines for piece in line.pieces]


def test_a_virtual_machines_pcie_is_not_called_too_low() -> None:
    low = build.link("eth0", pcie=build.pcie(2.5, 1, width_max=8))
    facts = build.facts(links=(low,), host=build.identity(virtualization="kvm"))
    (block,) = host_picture(facts, ()).panels[0].blocks
    assert (block.look, block.is_below) == ("", False)


def test_llt_is_told_at_its_link() -> None:
    lines = {block.title: [line.pieces for line in block.lines] for block in blocks_of(picture_of("large"))}
    assert ("LLT link1",) in lines["ens2"]
    assert ("LLT link2 (low priority)",) in lines["ens6"]
    assert not any("LLT" in piece for pieces in lines["ens0"] for piece in pieces)


def test_long_lists_of_cpus_are_told_by_their_step() -> None:
    assert [panel.chips[0].value for panel in picture_of("large").panels[:2]] == ["0, 8, 16 … 568", "1, 9, 17 … 569"]


# -- what crosses nodes ----------------------------------------------------------------------------------------------


def test_crossings_are_those_of_the_facts() -> None:
    assert [(one.kind, one.title) for one in picture_of("beegfs").crossings] == [
        ("link", "bond0 crosses nodes 0 and 1"),
        ("array", "md9 crosses nodes 0 and 1"),
        ("service", "beegfs-mgmtd may run on nodes 0 and 1"),
        ("service", "beegfs-storage@numa1 crosses nodes 0 and 1"),
    ]
    assert not picture_of("laptop").crossings


@pytest.mark.parametrize("name", ["beegfs", "large"])
def test_each_line_ends_at_what_it_connects(name: str) -> None:
    picture = picture_of(name)
    drawing = draw_sheet(picture, SHEETS[1])
    for number, crossing in enumerate(picture.crossings):
        wires = [one for one in drawing.shapes if isinstance(one, Line) and one.key == f"crossing:{number}"]
        starts = {(wire.x1, wire.y1) for wire in wires}
        dots = {one.key: (one.x, one.y) for one in drawing.shapes if isinstance(one, Mark) and one.key}
        for end in crossing.ends:
            assert dots[f"{end.place}|{end.block or ''}"] in starts
        assert len(wires) == 1 + len({wire.x2 for wire in wires if wire.y1 != wire.y2}) + len(crossing.ends)


def test_a_service_beside_its_devices_crosses_nothing() -> None:
    near = service("near", "0-3", "0", "ib0")
    far = service("far", "4-7", "1", "ib0")
    facts = build.facts(numa=build.numa(2), links=(infiniband("ib0", 0, 1),))
    picture = host_picture(facts, (), (near, far))
    assert [one.title for one in picture.crossings] == ["far crosses nodes 0 and 1"]
    lines = {block.title: [line.pieces for line in block.lines] for block in blocks_of(picture)}
    assert ("crosses to node 0: ib0",) in lines["far"]
    assert ("uses ib0",) in lines["near"]


def test_a_service_that_does_not_run_is_named_and_not_placed() -> None:
    idle = Service("nfs-server.service", None, None, None, None, None, None)
    picture = host_picture(build.facts(numa=build.numa(2), links=()), (), (idle,))
    assert not list(blocks_of(picture))
    assert picture.loose[0].pieces == ("1 service not running:", "nfs-server")


def test_more_crossings_than_lines_become_one() -> None:
    disks = (*(drive(at, 0) for at in range(30)), *(drive(at, 1) for at in range(30, 60)))
    arrays = tuple(over(f"md{at}", "raid1", at, 30 + at, nodes=(0, 1)) for at in range(30))
    facts = build.facts(numa=build.numa(2), disks=disks, arrays=arrays, links=())
    picture = host_picture(facts, ())
    assert len(picture.crossings) == 10
    assert picture.crossings[-1].title == "21 more cross nodes"
    assert_complete(facts, (), picture)
    for sheet in SHEETS:
        assert_laid_out(draw_sheet(picture, sheet))


# -- where it is drawn -----------------------------------------------------------------------------------------------


def span(shape: Label) -> tuple[float, float]:
    """Where a text begins and ends at most."""
    width = text_width(shape.text, shape.size, bold=is_bold(shape.look))
    left: dict[Anchor, float] = {"start": shape.x, "middle": shape.x - width / 2, "end": shape.x - width}
    return left[shape.anchor], left[shape.anchor] + width


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two boxes (left, top, right, bottom) share more than an edge."""
    return (
        one[0] < other[2] - SLACK
        and other[0] < one[2] - SLACK
        and one[1] < other[3] - SLACK
        and other[1] < one[3] - SLACK
    )


def box(shape: Box | Label | Badge) -> tuple[float, float, float, float]:
    match shape:
        case Box():
            return shape.x, shape.y, shape.x + shape.width, shape.y + shape.height
        case Badge():
            return shape.x, shape.y - 7, shape.x + shape.width, shape.y + 7
    begin, end = span(shape)
    return begin, shape.y - shape.size * 0.78, end, shape.y + shape.size * 0.2


def holds(outer: tuple[float, ...], inner: tuple[float, ...]) -> bool:
    return (
        outer[0] <= inner[0] + SLACK
        and outer[1] <= inner[1] + SLACK
        and inner[2] <= outer[2] + SLACK
        and inner[3] <= outer[3] + SLACK
    )


def touching(places: Sequence[tuple[float, ...]]) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """Pairs of boxes that overlap, found from top to bottom."""
    above: list[tuple[float, ...]] = []
    for place in sorted(places, key=lambda place: place[1]):
        above = [one for one in above if one[3] > place[1]]
        yield from ((one, place) for one in above if overlap(one, place))
        above.append(place)


def assert_laid_out(drawing: Picture, *, is_even: bool = True) -> None:
    """Everything on the sheet; frames apart or one inside the other; texts apart and never across a frame's edge.

    A host of chance may have blocks that no columns part evenly: then ``is_even`` is false.
    """
    sheet = (0.0, 0.0, drawing.width, drawing.height)
    frames = [box(shape) for shape in drawing.shapes if isinstance(shape, Box)]
    words = {box(shape) for shape in drawing.shapes if isinstance(shape, Label | Badge)}
    for place in (*frames, *words):
        assert holds(sheet, place), place
    for shape in drawing.shapes:
        if isinstance(shape, Label) and shape.text != "…":
            begin, end = span(shape)
            assert end - begin <= shape.room + SLACK, shape
    for one, other in touching([*frames, *words]):
        if one in words and other in words:
            raise AssertionError((one, other))
        assert holds(one, other) or holds(other, one), (one, other)
    assert_lines_are_free(drawing, frames, words)
    if is_even:
        assert_columns_end_together(drawing)


def assert_columns_end_together(drawing: Picture) -> None:
    """No column of panels, nor of blocks inside a panel, is much shorter than the tallest beside it."""
    boxes = [shape for shape in drawing.shapes if isinstance(shape, Box)]
    panels = [shape for shape in boxes if shape.look == "panel"]
    inside = ([one for one in boxes if one.look.startswith("block") and holds(box(at), box(one))] for at in panels)
    for group in (panels, *inside):
        ends: dict[float, float] = {}
        for shape in group:
            right = round(shape.x + shape.width)
            ends[right] = max(ends.get(right, 0), shape.y + shape.height)
        assert not ends or max(ends.values()) - min(ends.values()) <= MOST_EMPTY + SLACK, ends


def assert_lines_are_free(drawing: Picture, frames: Sequence[tuple[float, ...]], words: Set[tuple[float, ...]]) -> None:
    """No line between nodes runs over a word or through a block: only from a block's side to the gutter."""
    wires = [one for one in drawing.shapes if isinstance(one, Line) and one.look.startswith("cross")]
    inner = [box(one) for one in drawing.shapes if isinstance(one, Box) and one.look != "panel"]
    for wire in wires:
        line = (
            min(wire.x1, wire.x2) - 1,
            min(wire.y1, wire.y2) - 1,
            max(wire.x1, wire.x2) + 1,
            max(wire.y1, wire.y2) + 1,
        )
        assert holds((0, 0, drawing.width, drawing.height), line)
        assert not any(overlap(line, word) for word in words), wire
        beyond = (line[0] + 1 + SLACK, *line[1:])
        assert not any(overlap(beyond, frame) for frame in inner), wire
        if wire.x1 == wire.x2:
            assert not any(overlap(line, frame) for frame in frames), wire


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
@pytest.mark.parametrize("name", HOSTS)
def test_nothing_overlaps(name: str, sheet: Sheet) -> None:
    assert_laid_out(draw_sheet(picture_of(name), sheet))


@pytest.mark.captured
@pytest.mark.parametrize("name", CAPTURED)
def test_real_machines_are_drawn_whole(name: str) -> None:
    facts = scan(captured.host(name))
    picture = host_picture(facts, judge(facts))
    assert_complete(facts, (), picture)
    for sheet in SHEETS[::2]:
        assert_laid_out(draw_sheet(picture, sheet))


@pytest.mark.parametrize("name", ["root", "plain"])
def test_the_lab_host_is_drawn_whole(name: str) -> None:
    facts = scan(open_snapshot(FIXTURES / f"storage-host-{name}.tar.gz"))
    picture = host_picture(facts, judge(facts))
    assert_complete(facts, (), picture)
    assert "md1 crosses nodes 0 and 1" in [one.title for one in picture.crossings]
    for sheet in SHEETS:
        assert_laid_out(draw_sheet(picture, sheet))


@pytest.mark.parametrize("name", HOSTS)
def test_the_drawing_of_a_phone_is_no_wider_than_one(name: str) -> None:
    assert draw_sheet(picture_of(name), SHEETS[0]).width <= PHONE_WIDTH


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def topologies(pick: st.DrawFn) -> tuple[Facts, tuple[Service, ...]]:
    """Hosts of up to five nodes, with drives, arrays over any of them, links, bonds and services."""
    count = pick(st.integers(1, 5))
    nodes = st.one_of(st.none(), st.integers(0, count - 1))
    numa = Numa(
        tuple(
            Node(at, pick(st.sampled_from(["", f"{4 * at}-{4 * at + 3}"])), 1 << 34, None, ()) for at in range(count)
        ),
        None,
        None,
    )
    disks = tuple(
        drive(at, pick(nodes), size_bytes=pick(st.sampled_from([10**12, 2 * 10**12])))
        for at in range(pick(st.integers(0, 14)))
    )
    arrays = []
    for at in range(pick(st.integers(0, 4)) if disks else 0):
        some = pick(st.sets(st.integers(0, len(disks) - 1), min_size=1, max_size=6))
        on = tuple(sorted({node for one in some if (node := disks[one].numa_node) is not None}))
        arrays.append(over(f"md{at}{pick(st.sampled_from(['', 'x' * 40]))}", "raid0", *sorted(some), nodes=on))
    ports = tuple(
        build.link(
            f"eth{at}", numa_node=pick(nodes), pci=f"0000:{at:02x}:00.0", mtu=pick(st.sampled_from([1500, 9000]))
        )
        for at in range(pick(st.integers(0, 5)))
    )
    bonded = pick(st.sets(st.sampled_from([port.name for port in ports]), max_size=4)) if ports else set()
    links = [build.replaced(port, {"upper": ("bond0",)}) if port.name in bonded else port for port in ports]
    if bonded:
        links.append(build.virtual("bond0", "bond", lower=tuple(sorted(bonded)), detail={"mode": "802.3ad"}))
    used = [*(port.name for port in ports), *(disk.name for disk in disks), *(array.name for array in arrays)]
    services = tuple(
        service(
            f"s{at}",
            pick(st.sampled_from([f"0-{4 * count - 1}", "0-3", f"{4 * count - 4}-{4 * count - 1}"])),
            "0",
            *(pick(st.sets(st.sampled_from(used), max_size=3)) if used else ()),
        )
        for at in range(pick(st.integers(0, 3)))
    )
    facts = build.facts(numa=numa, disks=disks, arrays=tuple(arrays), links=tuple(links))
    return facts, services


@settings(max_examples=40, deadline=None)
@given(topologies(), st.sampled_from(SHEETS))
def test_no_topology_makes_things_overlap_or_vanish(host: tuple[Facts, tuple[Service, ...]], sheet: Sheet) -> None:
    facts, services = host
    picture = host_picture(facts, judge(facts), services)
    assert_complete(facts, services, picture)
    crossing = {name for one in picture.crossings for name in one.names}
    for array in facts.arrays:
        assert (len(array.numa_nodes) > 1 and len(facts.numa.nodes) > 1) == (array.name in crossing)
    assert_laid_out(draw_sheet(picture, sheet), is_even=False)


@settings(max_examples=25, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), st.sampled_from(SHEETS))
def test_no_name_makes_things_overlap(names: list[str], sheet: Sheet) -> None:
    links = tuple(build.link(name, pci=f"0000:{at:02x}:00.0", addresses=(name,)) for at, name in enumerate(names))
    disks = (build.disk("nvme0n1", model=names[0], mountpoints=tuple(names)),)
    facts = build.facts(host=build.identity(hostname=names[0]), links=links, disks=disks)
    assert_laid_out(draw_sheet(host_picture(facts, judge(facts)), sheet), is_even=False)
