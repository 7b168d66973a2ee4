"""The picture as files: well formed, whole in themselves, readable by everybody, and nothing on them that can act."""

from __future__ import annotations

import re
from colorsys import rgb_to_hsv
from functools import cache
from xml.etree import ElementTree

import msgspec
import pytest

from advisor.facts.block.smart import DriveHealth
from advisor.facts.host_facts import Facts
from advisor.facts.system.services import Service
from advisor.facts.unknown import Unknown
from advisor.host.provenance import Provenance
from advisor.report.html import html_environment
from advisor.report.picture.page import evidence_rows, picture_page, picture_svg, picture_text
from advisor.report.severities import SEVERITY_STYLE
from advisor.rules.judged import judge, number_findings
from advisor.rules.rule import SEVERITIES, Finding, Muted
from tests import beegfs_server
from tests.report.pictures import HOSTS, device_names, judged
from tests.report.test_proof_page import Parsed
from tests.rules import build

replace = msgspec.structs.replace
SVG = "{http://www.w3.org/2000/svg}"
Judged = tuple[Facts, tuple[Finding, ...], tuple[Service, ...]]


@cache
def host_of(name: str) -> Judged:
    """One of the hosts, or a server of the Dell article, as a scan of its tree finds it."""
    return judged((beegfs_server.server(), ())) if name == "scanned" else judged(HOSTS[name]())


NAMES = (*HOSTS, "scanned")


@cache
def svg_of(name: str) -> str:
    return picture_svg(*host_of(name))


@cache
def page_of(name: str) -> str:
    return picture_page(*host_of(name))


# -- files that stand alone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_svg_is_well_formed_and_says_in_words_what_it_shows(name: str) -> None:
    root = ElementTree.fromstring(svg_of(name))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, text = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert text is not None
    assert root.get("aria-labelledby") == f"{title.get('id')} {text.get('id')}"
    facts = host_of(name)[0]
    for node in facts.numa.nodes:
        assert f"Node {node.id}:" in (text.text or "")
    left, top, width, height = (float(number) for number in (root.get("viewBox") or "").split())
    assert left == top == -14
    assert (str(root.get("width")), str(root.get("height"))) == (f"{width:g}", f"{height:g}")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_well_formed_and_so_is_each_picture(name: str) -> None:
    page = page_of(name)
    assert page.startswith("<!DOCTYPE html>\n")
    root = ElementTree.fromstring(page)
    assert root.get("lang") == "en"
    found = Parsed(page)
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    drawings = [attributes for tag, attributes in found.elements if tag == "svg"]
    assert [one["role"] for one in drawings] == ["img"] * len(drawings)
    assert len(drawings) == 3
    assert not re.search(r"\b(nan|inf|None|True|False)\b", found.text)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_fetched_and_nothing_is_run(name: str) -> None:
    for text in (svg_of(name), page_of(name)):
        bare = text.replace("<!DOCTYPE html>", "").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"<(script|link|img|image|iframe|object|base|use|foreignObject)\b", bare)
        assert not re.search(r"url\(|@import|https?:|\son\w+=|\sstyle=|\ssrc=", bare)
    found = Parsed(page_of(name))
    ids = {attributes.get("id") for _, attributes in found.elements}
    links = [attributes["href"] or "" for _, attributes in found.elements if "href" in attributes]
    assert {link.removeprefix("#") for link in links} <= ids
    assert len(links) == len(number_findings(host_of(name)[1]))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_host_gives_the_same_bytes(name: str) -> None:
    assert picture_svg(*host_of(name)) == svg_of(name)
    assert picture_page(*host_of(name)) == page_of(name)


def test_light_dark_paper_and_phone_have_their_rules() -> None:
    page = page_of("beegfs")
    for rule in ("prefers-color-scheme: dark", "@media print", "@media (min-width", "size: landscape"):
        assert rule in page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1"/>' in page
    assert "prefers-color-scheme: dark" in svg_of("beegfs")
    assert "var(" not in svg_of("beegfs"), "viewers of SVG files know no variables"


def test_pictures_have_no_fixed_colour_but_those_of_the_style_sheet() -> None:
    for text in (page_of("beegfs"), svg_of("beegfs")):
        bare = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        assert not re.search(r'\s(fill|stroke|color)="', bare)


# -- contrast --------------------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 counts it, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def palettes() -> list[dict[str, str]]:
    """Light, dark and paper."""
    made = html_environment()
    style = made.get_template("colours.css.j2").render()
    more = made.get_template("host.css.j2").render()
    found = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{([^}]*)\}", style)]
    edges = re.findall(r"--edge: (#\w{6})", more)
    return [palette | {"edge": edges[min(at, 1) if at < 2 else 0]} for at, palette in enumerate(found)]


@pytest.mark.parametrize("at", range(3), ids=["light", "dark", "paper"])
def test_words_and_lines_can_be_told_from_their_ground(at: int) -> None:
    colours = palettes()[at]
    for words in ("ink", "quiet", "worse", "doubt", *SEVERITIES):
        for ground in ("paper", "faint"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
    for words in ("ink", "quiet", "warning"):
        assert contrast(colours[words], colours["band"]) >= 4.5, (words, "band")
    for sign in ("edge", "a", "warning"):
        for ground in ("paper", "faint"):
            assert contrast(colours[sign], colours[ground]) >= 3, (sign, ground)
    hues = {name: round(360 * rgb_to_hsv(*bytes.fromhex(colours[name][1:]))[0]) for name in SEVERITIES}
    assert [name for name, hue in hues.items() if min(hue, 360 - hue) < 30 or "red" in SEVERITY_STYLE[name]] == [
        "critical"
    ]
    assert len({*SEVERITY_STYLE.values()}) == len({hue // 15 for hue in hues.values()}) == len(SEVERITIES)


# -- what the page says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_is_told_whole(name: str) -> None:
    _, findings, _ = host_of(name)
    said = Parsed(page_of(name)).text
    for one in findings:
        wanted = [
            one.title,
            one.id,
            one.why,
            str(one.fix),
            *one.commands,
            one.hurts_when,
            *one.sources,
            *evidence_rows(one),
        ]
        assert [text for text in wanted if " ".join(text.split()) not in said] == []
    for group in number_findings(findings):
        assert page_of(name).count(f'id="finding-{group.number}"') == 1


@pytest.mark.parametrize("name", NAMES)
def test_what_the_picture_shows_is_told_in_words_too(name: str) -> None:
    facts, _, services = host_of(name)
    said = Parsed(page_of(name)).text
    reported = said[said.index("In words") :]
    folded = {one.name for one in facts.links if not one.upper and not one.addresses}
    for device in device_names(facts):
        assert device in reported or device in folded
    for unit in services:
        assert unit.unit.removesuffix(".service") in reported


def test_what_is_unknown_is_listed_with_its_reason() -> None:
    unknown = tuple(Unknown(f"links.eth{at}.rings", "Operation not permitted") for at in range(9))
    page = picture_page(build.facts(unknown=(*unknown, Unknown("disks.sda.serial", "not there"))), ())
    said = Parsed(page).text
    assert "10 facts could not be read" in said
    assert "links.eth0.rings, links.eth1.rings, links.eth2.rings and 6 more Operation not permitted" in said
    assert "disks.sda.serial not there" in said


def test_a_host_without_findings_says_so() -> None:
    for text in (picture_page(build.facts(), ()), picture_svg(build.facts(), ())):
        assert re.search(r"no findings: (\d+) of \1 rules could be judged", text)
    assert "Everything that a scan asks for was read." in picture_page(build.facts(), ())


def test_the_services_of_a_scanned_server_are_on_their_nodes() -> None:
    said = Parsed(page_of("scanned")).text
    reported = said[said.index("In words") :]
    first, second = reported.index("Node 0"), reported.index("Node 1")
    for number in range(6):
        place = reported.index(f"beegfs-storage@numa{number // 3}-storage{number}")
        assert first < place < second if number < 3 else second < place
    assert "Across nodes" not in reported


def test_services_that_are_bound_to_no_node_are_drawn_across() -> None:
    facts = beegfs_server.server(bound=False)
    said = Parsed(picture_page(facts, ())).text
    assert "may run on nodes 0 and 1" in said[said.index("Across nodes") :]


# -- the terminal ----------------------------------------------------------------------------------------------------


def columns_of(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


@pytest.mark.parametrize("width", [40, 80, 100, 160])
@pytest.mark.parametrize("name", NAMES)
def test_the_text_fits_the_terminal_and_names_everything(name: str, width: int) -> None:
    facts, findings, services = host_of(name)
    text = picture_text(facts, findings, services, width=width, color=False)
    assert columns_of(text) <= width
    for device in {*device_names(facts)} - {one.name for one in facts.links}:
        assert device in text
    for node in facts.numa.nodes:
        assert f" Node {node.id} " in text
    assert "\x1b" not in text


def test_two_nodes_stand_side_by_side_where_there_is_room() -> None:
    wide = picture_text(*host_of("beegfs"), width=160, color=False)
    assert any("Node 0" in line and "Node 1" in line for line in wide.split("\n"))
    narrow = picture_text(*host_of("beegfs"), width=60, color=False)
    assert not any("Node 0" in line and "Node 1" in line for line in narrow.split("\n"))


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_without_utf_8_gets_ascii(name: str) -> None:
    text = picture_text(*host_of(name), width=100, color=False, is_plain=True)
    assert text.isascii()
    assert columns_of(text) <= 100


def test_what_crosses_is_told_by_a_word_not_by_colour_alone() -> None:
    for text in (svg_of("beegfs"), page_of("beegfs"), picture_text(*host_of("beegfs"), width=80, color=False)):
        assert "crosses nodes 0 and 1" in re.sub(r"<[^>]*>", " ", text)


# -- what stands where -----------------------------------------------------------------------------------------------


def test_date_facts_and_findings_stand_above_the_picture() -> None:
    facts, findings, services = host_of("beegfs")
    muted = msgspec.structs.replace(findings[0], muted=Muted("the switch is <old>", "2027-01-31"))
    taken = Provenance("snapshot", 1_795_460_340, 1_795_200_000, "host.tar.gz")
    mended = msgspec.structs.replace(findings[1], fix="Set it.", commands=("sysctl -w vm.swappiness=10",))
    page = picture_page(facts, (mended, *findings[2:]), services, provenance=taken, muted=(muted,))
    places = [page.index(text) for text in ("snapshot of 2026-11-20", 'class="facts"', 'class="short"', "<svg")]
    assert places == sorted(places)
    assert "the switch is &lt;old&gt;" in page
    assert "2027-01-31" in page
    assert '<code class="command">sysctl -w vm.swappiness=10</code>' in page
    assert re.search(r"code\.command \{[^}]*user-select: all", page)


def test_arrays_of_one_shape_are_one_block_though_a_finding_names_them() -> None:
    names = [f"sd{first}{second}" for first in "abcdefghij" for second in "abcdefghijklmnopqrstuvwx"]
    drives = tuple(build.disk(name, kind="scsi", rotational=True, numa_node=0) for name in names)
    arrays = tuple(
        build.array(f"md{at}", *names[8 * at : 8 * at + 8], level="raid6", disks=tuple(names[8 * at : 8 * at + 8]))
        for at in range(30)
    )
    facts = build.facts(numa=build.numa(1), disks=drives, arrays=arrays)
    page = picture_page(facts, judge(facts))
    assert "md0 … md29" in page
    heights = [float(box.split()[3]) for box in re.findall(r'viewBox="([^"]+)"', page)]
    assert max(heights) < 1500
    poor = build.facts(
        numa=build.numa(1),
        disks=drives,
        arrays=(build.replaced(arrays[0], {"state": "degraded", "missing": 1, "failed": (names[0],)}), *arrays[1:]),
    )
    assert "md1 … md29" in picture_page(poor, judge(poor)), "one that is degraded is drawn by itself"


def drives_in_arrays(count: int, each: int) -> Facts:
    """Rotating drives in raid6 arrays, each with a mount point of its own."""
    names = [f"sd{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(count)]
    groups = [tuple(names[at : at + each]) for at in range(0, count, each)]
    arrays = tuple(
        build.array(f"md{at}", *group, level="raid6", disks=group, mountpoints=(f"/data/ost{at}",))
        for at, group in enumerate(groups)
    )
    disks = tuple(build.disk(name, kind="scsi", rotational=True, pci=None) for name in names)
    return build.facts(disks=disks, arrays=arrays)


def test_arrays_whose_mount_points_differ_by_a_number_are_one_block() -> None:
    page = picture_page(drives_in_arrays(240, 12), ())
    root = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", page, re.DOTALL)[0])
    words = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert [one for one in words if one.startswith("md")] == ["md0 … md19"]
    assert "/data/ost0-19" in words
    assert float(root.get("height") or "") < 600


def test_a_drive_that_fails_is_marked() -> None:
    facts = drives_in_arrays(4, 4)
    failing = replace(facts.disks[1], health=DriveHealth(protocol="ATA", passed=False))
    page = picture_page(replace(facts, disks=(facts.disks[0], failing, *facts.disks[2:])), ())
    assert page.count(">failing</text>") == len(re.findall("<svg", page))


_MEDIA = re.compile(r"@media ([^{]*)\{((?:[^{}]*\{[^{}]*\})*[^{}]*)\}")
_HIDES = re.compile(r"svg\.(host|narrow|medium|wide)\S* \{ display: (none|block);")


@pytest.mark.parametrize("rem", [25, 50, 80])
@pytest.mark.parametrize("name", NAMES)
def test_one_picture_is_shown_at_every_width(name: str, rem: int) -> None:
    page = page_of(name)
    style = page[page.index("<style>") : page.index("</style>")]
    shown = dict.fromkeys(re.findall(r'class="host (\w+)"', page), True)
    # Rules for all, then those of widths, in their order; those of paper are not asked.
    for condition, rules in [("", _MEDIA.sub("", style)), *_MEDIA.findall(style)]:
        least = re.search(r"min-width: (\d+)rem", condition)
        if condition and (least is None or rem < int(least[1])):
            continue
        for which, display in _HIDES.findall(rules):
            shown |= {one: display == "block" for one in shown if which in ("host", one)}
    assert list(shown.values()).count(True) == 1


def test_the_page_counts_what_the_terminal_counts_and_sets_commands_apart() -> None:
    links = (build.link("eth0"), build.virtual("lo", "loopback"))
    facts = build.facts(links=links, disks=build.disks(2))
    page = picture_page(facts, (), (), provenance=Provenance("root", 1_795_460_340, None, "/srv/captures/one"))
    assert "<bdi>1 link, 2 disks</bdi>" in page
    assert "<code>--root /srv/captures/one</code>" in page
    assert "code.command { white-space: pre-wrap" in page.partition("@media print")[2]
