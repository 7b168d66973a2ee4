"""Facts, findings and services → what there is to draw. Pure; the same facts give the same record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.limits.host_records import HostCeiling
from advisor.report.finding_lines import counts_text, finding_text
from advisor.report.format import clean, natural
from advisor.report.host_ceiling import members_words, stage_words
from advisor.report.picture.drives import array_crossings, drive_blocks, usual_words
from advisor.report.picture.links import accelerator_blocks, link_blocks, link_crossings
from advisor.report.picture.records import (
    UNKNOWN_KEY,
    CeilingBar,
    CeilingPicture,
    Chip,
    End,
    HostPicture,
    Panel,
    PictureBlock,
    PictureNote,
    PictureSection,
    Place,
    Words,
)
from advisor.report.picture.scene import Scene, bound_crossings, cpu_ids, cpu_words, first_names
from advisor.report.picture.services import Seats, all_services, short_name
from advisor.report.units import format_binary, times
from advisor.rules.finding import Finding
from advisor.rules.judged import count_judged


def host_picture(
    facts: Facts, findings: Sequence[Finding], services: Sequence[Service] = (), ceiling: HostCeiling | None = None
) -> HostPicture:
    """Return what there is to draw of a host. ``findings`` have the numbers of the scan page."""
    scene = Scene(facts, findings)
    every = all_services(facts, services)
    idle = [service.unit for service in every if service.main_pid is None]
    seats = Seats(scene, [service for service in every if service.main_pid is not None])
    panels = tuple(
        panel
        for place in scene.places
        if (panel := _make_panel(scene, seats, place)).place != UNKNOWN_KEY or panel.sections
    )
    # A line to a block that was folded away ends at its panel.
    blocks = {(panel.place, block.key) for panel in panels for block in panel.blocks}
    crossings = [
        msgspec.structs.replace(
            crossing,
            ends=tuple(
                dict.fromkeys(
                    end if (end.place, end.block) in blocks else End(end.place, None) for end in crossing.ends
                )
            ),
        )
        for crossing in (*link_crossings(scene), *array_crossings(scene), *seats.crossings())
    ]
    loose = [link.name for link in facts.links if not scene.link_places(link)]
    unseen = [one.tag for one in (facts.llt.links if facts.llt else ()) if one.link is None]
    idle_names = ", ".join(first_names([short_name(unit) for unit in idle], 12))
    lines = (
        (loose, f"{times(len(loose), 'link')} on no device:", ", ".join(first_names(sorted(loose, key=natural), 12))),
        (unseen, f"LLT {', '.join(first_names(unseen, 12))}:", "kernel link unknown"),
        (idle, f"{times(len(idle), 'service')} not running:", idle_names),
    )
    return HostPicture(
        facts.host.hostname or "host of unknown name",
        tuple(_about(facts)),
        counts_text(scene.numbered, count_judged(facts, findings)),
        panels,
        bound_crossings(crossings),
        tuple(Words((title, text), "quiet") for names, title, text in lines if names),
        (*loose, *idle),
        tuple(PictureNote(one.number, one.severity, finding_text(one)) for one in scene.numbered),
        ceiling_picture(ceiling) if ceiling and ceiling.stages else None,
    )


def _about(facts: Facts) -> Iterator[str]:
    """Return the lines below the name of the host."""
    host, cpu = facts.host, facts.cpu
    counts = ((cpu.packages, "package"), (cpu.cores, "core"), (cpu.threads, "thread"))
    yield from filter(
        None,
        (
            host.os,
            host.kernel,
            " ".join(filter(None, (host.vendor, host.product))),
            cpu.model,
            ", ".join(times(count, noun) for count, noun in counts if count is not None),
            "" if facts.memory.total_bytes is None else format_binary(facts.memory.total_bytes),
        ),
    )
    if facts.container.is_inside:
        yield f"{facts.container.words.removeprefix('a ')}: what is drawn is its host"
    elif host.virtualization not in (None, "", "none"):
        yield f"virtual machine ({host.virtualization}): its PCIe links are make-believe"


def _make_panel(scene: Scene, seats: Seats, place: Place) -> Panel:
    sections = (
        PictureSection("links", "Links", link_blocks(scene, place)),
        PictureSection("accelerators", "Accelerators", accelerator_blocks(scene, place)),
        PictureSection("drives", "Drives and arrays", drive_blocks(scene, place), usual_words(scene, place)),
        PictureSection("services", "Services", seats.blocks(place)),
    )
    return Panel(place, *_panel_head(scene, place), tuple(section for section in sections if section.blocks))


def _size(size: int | None, noun: str = "") -> str:
    return f"{format_binary(size)}{noun}" if size is not None else "" if noun else "unknown"


def _panel_head(scene: Scene, place: Place) -> tuple[str, str, tuple[Chip, ...]]:
    if place == UNKNOWN_KEY:
        return "Node unknown", "not reported by the host", ()
    node = next((node for node in scene.facts.numa.nodes if node.id == place), None)
    if node is None:
        cpu, memory = scene.facts.cpu, scene.facts.memory
        online = cpu_words(cpu.online) if cpu.online else "unknown"
        cpus = Chip("CPUs", online, times(cpu.threads, "CPU") if cpu.threads is not None else "")
        free = _size(memory.available_bytes, " available")
        return "Host", "the kernel shows no NUMA nodes", (cpus, Chip("Memory", _size(memory.total_bytes), free))
    distances = " ".join(map(str, node.distances))
    note = "the only node" if scene.only is not None else f"distances {distances}" if distances else ""
    cpus = Chip("CPUs", "unknown", "") if node.cpus is None else Chip("CPUs", "none", "memory only")
    if node.cpus:
        cpus = Chip("CPUs", cpu_words(node.cpus), times(len(cpu_ids(node.cpus)), "CPU"))
    own = Chip("Memory", _size(node.memory_bytes), "" if node.memory_bytes is None else _size(node.free_bytes, " free"))
    if node.memory_bytes == 0:
        own = Chip("Memory", "none", "taken from other nodes", "warning" if node.cpus else "")
    return f"Node {node.id}", note, (cpus, own)


# -- the ceiling -------------------------------------------------------------------------------------------------------


def ceiling_picture(ceiling: HostCeiling) -> CeilingPicture:
    """Return the stages with a known sum, as bars to one scale; the others by name."""
    read_binds = ceiling.binds if ceiling.read_mb_s is not None else None
    ways = (("reads", ceiling.read_mb_s, read_binds), ("writes", ceiling.write_mb_s, ceiling.write_binds))
    sums = {stage.stage: (stage.read_mb_s, stage.write_mb_s) for stage in ceiling.stages}
    most = max((value for both in sums.values() for value in both if value), default=0.0)
    titles: list[str] = []
    for way, value, binding in ways:
        words = "unknown"
        if value is not None and binding is not None:
            words = f"{value:,.0f} MB/s, bound by {stage_words(binding.stage, ceiling.machine)}"
            words += f" ({clean(members_words(binding.members, 3))})"
        titles.append(f"{way} {words}")
    bars: list[CeilingBar] = []
    silent: list[str] = []
    for stage in ceiling.stages:
        title = stage_words(stage.stage, ceiling.machine)
        found = [
            CeilingBar(
                f"{title}, {way}",
                f"{value:,.0f} MB/s",
                value / most if most else 0.0,
                binding is not None and binding.stage == stage.stage,
            )
            for (way, _, binding), value in zip(ways, sums[stage.stage], strict=True)
            if value is not None
        ]
        # A single bar if reads and writes are alike and bound alike.
        if len({(bar.value, bar.is_binding) for bar in found}) < len(found):
            found = [msgspec.structs.replace(found[0], title=title)]
        bars += found
        silent += [title] if not found and stage.known in ("unknown", "partly") else []
    note = f"Unknown, and perhaps lower: {', '.join(silent)}." if silent else ""
    return CeilingPicture(f"Ceiling of the host: {'; '.join(titles)}", tuple(bars), note)


# -- use over a span ---------------------------------------------------------------------------------------------------

LEVELS = (0.1, 0.4, 0.7, 0.9)
"""The shares from which a device has the next colour."""


def load_level(share: float | None) -> int:
    """Return 0 for a share that is small or not known, up to 4."""
    return 0 if share is None else sum(share >= least for least in LEVELS)


def add_loads(picture: HostPicture, devices: Mapping[str, float], cpus: Mapping[Place, float]) -> HostPicture:
    """Return the picture with the use of its devices, by name, and of the CPUs of each panel: shares from 0 to 1."""
    replace = msgspec.structs.replace

    def loaded(block: PictureBlock) -> PictureBlock:
        # Tiles have their own share each; a block has that of its busiest device, and says which of several it is.
        tiles = tuple(
            tile
            if (share := devices.get(tile.name)) is None
            else replace(tile, state=tile.state or f"{share * 100:.0f} %", load=load_level(share))
            for tile in block.tiles
        )
        known = [name for name in block.names if name in devices]
        if not known:
            return replace(block, tiles=tiles)
        busiest = max(known, key=lambda name: devices[name])
        named = f" ({busiest})" if len({*known}) > 1 else ""
        words = Words((f"{devices[busiest] * 100:.0f} % used{named}",))
        return replace(
            block, tiles=tiles, lines=(*block.lines, words), load=0 if tiles else load_level(devices[busiest])
        )

    panels = []
    for panel in picture.panels:
        sections = tuple(replace(part, blocks=tuple(map(loaded, part.blocks))) for part in panel.sections)
        busy, chips = cpus.get(panel.place), panel.chips
        if chips and busy is not None:
            note = " · ".join(filter(None, (chips[0].note, f"{busy * 100:.0f} % busy")))
            chips = (replace(chips[0], note=note, load=load_level(busy)), *chips[1:])
        panels.append(replace(panel, sections=sections, chips=chips))
    return replace(picture, panels=tuple(panels))
