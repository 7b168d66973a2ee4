"""Facts, findings and services → what there is to draw. Pure; the same facts give the same record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.limits.host_records import HostCeiling
from advisor.report.finding_lines import counts_text, finding_text
from advisor.report.format import natural
from advisor.report.picture.accelerators import accelerator_blocks
from advisor.report.picture.arrays import Stacking, stack_arrays
from advisor.report.picture.ceiling import ceiling_picture
from advisor.report.picture.crossings import array_crossings, bounded_crossings
from advisor.report.picture.drives import drive_blocks, usual_words
from advisor.report.picture.links import link_blocks, link_crossings
from advisor.report.picture.places import PictureFacts, make_picture_facts
from advisor.report.picture.records import (
    UNKNOWN_KEY,
    Chip,
    End,
    HostPicture,
    Panel,
    PictureNote,
    PictureSection,
    Place,
    Words,
)
from advisor.report.picture.services import all_services, seat_services, service_blocks, service_crossings, short_name
from advisor.report.picture.wording import cpu_count, cpu_words, first_names
from advisor.report.units import format_binary, times
from advisor.rules.finding import Finding
from advisor.rules.numbering import number_findings

_MAX_LOOSE: Final = 12


def host_picture(
    facts: Facts, findings: Sequence[Finding], services: Sequence[Service] = (), ceiling: HostCeiling | None = None
) -> HostPicture:
    """What there is to draw of a host. ``findings`` have the numbers of the scan page."""
    around = make_picture_facts(facts, findings)
    every = all_services(facts, services)
    running = [one for one in every if one.main_pid is not None]
    idle = [one.unit for one in every if one.main_pid is None]
    stack = stack_arrays(around)
    places: tuple[Place, ...] = _list_nodes(around) if around.only is not None else (*_list_nodes(around), UNKNOWN_KEY)
    seated = seat_services(around, stack, places)
    panels = tuple(
        panel
        for place in places
        if (panel := _make_panel(around, stack, running, seated, place)).place != UNKNOWN_KEY or panel.sections
    )
    crossings = (*link_crossings(around), *array_crossings(around, stack), *service_crossings(around, running, seated))
    loose = [link.name for link in facts.links if not around.link_places(link)]
    host_lines: list[str] = []
    host, cpu = facts.host, facts.cpu
    host_lines += (one for one in (host.os, host.kernel) if one)
    machine = " ".join(one for one in (host.vendor, host.product) if one)
    host_lines += (one for one in (machine, cpu.model) if one)
    counts = ((cpu.packages, "package"), (cpu.cores, "core"), (cpu.threads, "thread"))
    parts = ", ".join(times(count, noun) for count, noun in counts if count is not None)
    host_lines += [parts] if parts else []
    host_lines += [format_binary(facts.memory.total_bytes)] if facts.memory.total_bytes is not None else []
    if facts.container.is_inside:
        host_lines.append(f"{facts.container.words.removeprefix('a ')}: what is drawn is its host")
    elif host.virtualization not in (None, "", "none"):
        host_lines.append(f"virtual machine ({host.virtualization}): its PCIe links are make-believe")
    return HostPicture(
        title=facts.host.hostname or "host of unknown name",
        about=tuple(host_lines),
        summary=summarize_findings(findings),
        panels=panels,
        crossings=bounded_crossings(crossings, panels),
        loose=tuple(_loose_lines(facts, loose, idle)),
        loose_names=(*loose, *idle),
        notes=tuple(PictureNote(one.number, one.severity, finding_text(one)) for one in number_findings(findings)),
        ceiling=ceiling_picture(ceiling) if ceiling and ceiling.stages else None,
    )


def summarize_findings(findings: Sequence[Finding]) -> str:
    """``1 critical, 2 warnings, 3 info``: as many as there are lines."""
    return counts_text(number_findings(findings))


def _list_nodes(around: PictureFacts) -> tuple[int, ...]:
    return (around.only,) if around.only is not None else tuple(node.id for node in around.facts.numa.nodes)


def _make_panel(
    around: PictureFacts,
    stack: Stacking,
    services: Sequence[Service],
    seated: Mapping[str, tuple[End, ...]],
    place: Place,
) -> Panel:
    sections = (
        PictureSection("links", "Links", link_blocks(around, place)),
        PictureSection("accelerators", "Accelerators", accelerator_blocks(around, place)),
        PictureSection("drives", "Drives and arrays", drive_blocks(around, stack, place), usual_words(around, place)),
        PictureSection("services", "Services", service_blocks(around, services, seated, place)),
    )
    title, note, chips = _panel_head(around, place)
    return Panel(place, title, note, chips, tuple(one for one in sections if one.blocks))


def _panel_head(around: PictureFacts, place: Place) -> tuple[str, str, tuple[Chip, ...]]:
    if place == UNKNOWN_KEY:
        return "Node unknown", "not reported by the host", ()
    node = next((node for node in around.facts.numa.nodes if node.id == place), None)
    if node is None:
        cpu, memory = around.facts.cpu, around.facts.memory
        online = cpu_words(cpu.online) if cpu.online else "unknown"
        total = format_binary(memory.total_bytes) if memory.total_bytes is not None else "unknown"
        free = f"{format_binary(memory.available_bytes)} available" if memory.available_bytes is not None else ""
        count = times(cpu.threads, "CPU") if cpu.threads is not None else ""
        return "Host", "the kernel shows no NUMA nodes", ((Chip("CPUs", online, count), Chip("Memory", total, free)))
    distances = " ".join(map(str, node.distances))
    note = "the only node" if around.only is not None else f"distances {distances}" if distances else ""
    node_chips: list[Chip] = []
    if node.cpus is None:
        node_chips.append(Chip("CPUs", "unknown", ""))
    elif not node.cpus:
        node_chips.append(Chip("CPUs", "none", "memory only"))
    else:
        node_chips.append(Chip("CPUs", cpu_words(node.cpus), times(cpu_count(node.cpus), "CPU")))
    if node.memory_bytes is None:
        node_chips.append(Chip("Memory", "unknown", ""))
    elif node.memory_bytes == 0:
        node_chips.append(Chip("Memory", "none", "taken from other nodes", "warn" if node.cpus else ""))
    else:
        free = "" if node.free_bytes is None else f"{format_binary(node.free_bytes)} free"
        node_chips.append(Chip("Memory", format_binary(node.memory_bytes), free))
    return f"Node {node.id}", note, tuple(node_chips)


def _loose_lines(facts: Facts, loose: Sequence[str], idle: Sequence[str]) -> Iterator[Words]:
    if loose:
        names = first_names(sorted(loose, key=natural), _MAX_LOOSE)
        yield Words((f"{times(len(loose), 'link')} on no device:", ", ".join(names)), "quiet")
    unseen = [one.tag for one in (facts.llt.links if facts.llt else ()) if one.link is None]
    if unseen:
        yield Words((f"LLT {', '.join(first_names(unseen, _MAX_LOOSE))}:", "kernel link unknown"), "quiet")
    if idle:
        names = first_names([short_name(unit) for unit in idle], _MAX_LOOSE)
        yield Words((f"{times(len(idle), 'service')} not running:", ", ".join(names)), "quiet")
