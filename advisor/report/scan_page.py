"""The page of ``advisor scan --all``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.clusters.llt import LltLink, Llttab
from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import format_list
from advisor.facts.processors.numa import Node
from advisor.facts.settings import SETTINGS, find_setting
from advisor.facts.system.identity import Container
from advisor.host.numbers import is_count
from advisor.host.provenance import Provenance
from advisor.report.devices import Shelf, add_arrays, add_disks, add_links, list_shelves, named_by
from advisor.report.findings import add_findings, finding_text, judged_words, shortened, wrapped
from advisor.report.format import format_minute, natural
from advisor.report.layout import (
    HEADING,
    QUIET,
    UNKNOWN,
    Cell,
    Page,
    Piece,
    Span,
    Style,
    columns,
    counted,
    emit_line,
    join_parts,
    padded,
    width_of,
)
from advisor.report.scan_summary import (
    ScanSummary,
    archive_lines,
    host_roles,
    provenance_text,
    whose_commands,
    write_headline,
)
from advisor.report.severities import severity_span
from advisor.report.units import cpu_text, format_binary, times
from advisor.rules.judged import NumberedFindings, ScanDifference, count_judged, number_findings
from advisor.rules.processors.locality_score import Kind, Locality, locality
from advisor.rules.queries import split_ids
from advisor.rules.rule import Finding

_BUFFERS = tuple(one.key for one in SETTINGS.values() if one.is_buffer)
_KINDS: Mapping[Kind, str] = {
    "links": "links",
    "disks": "disks",
    "arrays": "arrays",
    "services": "services",
    "interrupts": "interrupts",
}


_NEAR = 0.01
LINKS_SHOWN = 24
"""Links that are shown per node before the rest is counted; one that a finding names is always shown."""


def scan_text(
    facts: Facts, findings: tuple[Finding, ...], *, width: int, color: bool, provenance: Provenance | None = None
) -> str:
    """The page of ``advisor scan --all``: the host, each node, sysctls, LLT, what is unknown, findings.

    ``width`` in columns. Without ``color`` the text holds no escape codes at all, in either case none of the host's.
    """
    page = Page(width, color=color)
    _add_host(page, facts, provenance)
    never = named_by(findings)
    was_empty = False
    for shelf in list_shelves(facts):
        page.section(shelf.title, _shelf_note(shelf), is_apart=not was_empty or shelf.has_devices)
        add_links(page, facts, shelf.links, shown=LINKS_SHOWN, never=never)
        add_disks(page, facts, shelf.disks)
        add_arrays(page, facts, shelf.arrays)
        was_empty = not shelf.has_devices
    buffers = [key for key in _BUFFERS if key in facts.sysctl]
    if buffers:
        page.section("Network buffers", [])
        page.table([(key, _human(facts.sysctl[key]), Span(facts.sysctl[key], QUIET)) for key in buffers])
    others = sorted(key for key in facts.sysctl if key not in _BUFFERS and _is_of_interest(facts, key))
    if others:
        rest = len(facts.sysctl) - len(others) - len(buffers)
        page.section("Other sysctls", [f"{rest} more with --json"] if rest else [])
        page.add(*join_parts(join_parts([Span(key, QUIET), facts.sysctl[key]], " ") for key in others), indent=2)
    if facts.llt is not None:
        llt = facts.llt
        state = {True: "running", False: "not running", None: "whether it runs is unknown"}[llt.running]
        flow = [f"{name} {value}" for name, value in sorted(llt.flow_control.items())]
        settings = [f"set-flow {name}:{value}" for name, value in sorted(llt.llttab.flow.items())] if llt.llttab else []
        if llt.llttab:
            settings += [f"set-timer {name}:{value}" for name, value in sorted(llt.llttab.timers.items())]
        page.section("LLT", join_parts([state, *(_llt_names(llt.llttab) if llt.llttab else ())]))
        page.table([_llt_link(link) for link in llt.links])
        page.labelled(
            _with_words(
                ("flow control", join_parts(flow) if flow else [UNKNOWN]), ("/etc/llttab", join_parts(settings))
            )
        )
    if facts.unknown:
        # Every fact that is unknown, those of one reason together.
        names: dict[tuple[str, str], list[str]] = {}
        for entry in facts.unknown:
            names.setdefault((entry.fact.partition(".")[0], entry.why), []).append(entry.fact)
        is_denied = any("ermission" in entry.why or "not permitted" in entry.why for entry in facts.unknown)
        note = [times(len(facts.unknown), "fact"), "root would see more" if is_denied else ""]
        page.section("Unknown", join_parts(note))
        for reason in sorted(names, key=lambda one: (-len(names[one]), one)):
            listed = sorted({*names[reason]}, key=lambda fact: [natural(part) for part in fact.split(".")])
            page.add(", ".join(listed), ": ", Span(reason[1], QUIET), indent=2, hang=2)
    judged = count_judged(facts, findings)
    notes = (
        whose_commands(provenance, width) if provenance and findings else "",
        judged_words(judged) if judged.unread else "",
    )
    add_findings(page, findings, notes)
    lines = archive_lines(provenance, width) if provenance else []
    if lines:
        page.blank()
    for line in lines:
        page.add(Span(line, QUIET))
    return page.text


def _add_host(page: Page, facts: Facts, provenance: Provenance | None) -> None:
    host, cloud = facts.host, facts.host.cloud
    machine = (host.vendor, host.product, host.virtualization if host.virtualization != "none" else None)
    page.add(Span(host.hostname or "host of unknown name", "bold"))
    # How the clocks of the CPUs are chosen, in the kernel's words.
    clocks: list[str] = []
    power = facts.cpu.power
    for group in facts.cpu.frequency.groups if facts.cpu.frequency else ():
        words = (group.governor, group.energy_performance_preference)
        clocks.append(f"governor {' '.join(filter(None, words))}" if any(words) else "")
    if power is not None:
        clocks.append("" if power.turbo is None else "turbo on" if power.turbo else "turbo off")
        clocks.append(f"SMT {power.smt}" if power.smt in ("on", "off", "forceoff") else "")
        clocks.append(f"clock source {power.clock_source}" if power.clock_source else "")
    page.labelled(
        _with_words(
            ("scanned", [provenance_text(provenance)] if provenance else []),
            ("kernel", join_parts([host.kernel or UNKNOWN, host.architecture or ""])),
            ("system", [host.os or UNKNOWN]),
            ("machine", join_parts(part for part in machine if part)),
            ("container", join_parts(_container(facts.container))),
            ("cloud", join_parts([cloud.provider, cloud.instance_type or "instance type unknown"]) if cloud else []),
            ("cpu", join_parts(_cpu(facts))),
            ("clocks", join_parts(clocks)),
            ("memory", join_parts(_memory(facts))),
            ("serves", join_parts(host_roles(facts))),
            ("managed by", join_parts(_owners(facts))),
            ("locality", join_parts(_locality(locality(facts)))),
        )
    )


def _container(found: Container) -> Iterator[str]:
    """Its manager, which namespaces are its own and what is read-only."""
    if not found.is_inside:
        return
    own = [name for name, whose in found.namespaces.items() if whose == "own"]
    yield found.words.removeprefix("a ")
    yield f"namespaces of its own: {', '.join(own) or 'none that could be read'}"
    yield from (f"{place} is read-only" for place in found.read_only)


def _with_words(*rows: tuple[str, list[Piece]]) -> list[tuple[str, list[Piece]]]:
    return [row for row in rows if width_of(row[1])]


def _cpu(facts: Facts) -> Iterator[str]:
    cpu = facts.cpu
    yield cpu.model or ""
    counts = ((cpu.packages, "package"), (cpu.cores, "core"), (cpu.threads, "thread"))
    yield ", ".join(times(count, what) for count, what in counts if count is not None) or UNKNOWN
    # The kernel lists ids up to its bound as offline; those that no CPU has are nothing that is switched off.
    there = format_list(split_ids(cpu.offline) & split_ids(cpu.present)) if cpu.present else cpu.offline
    yield f"offline {cpu_text(there)}" if there else ""


def _memory(facts: Facts) -> Iterator[str]:
    memory = facts.memory
    yield format_binary(memory.total_bytes) if memory.total_bytes is not None else UNKNOWN
    sizes = [node.memory_bytes for node in facts.numa.nodes]
    on_nodes = sum(size for size in sizes if size is not None)
    # Memory of a balloon or a container's limit is counted in one of the two alone.
    if memory.total_bytes and on_nodes and None not in sizes and abs(on_nodes / memory.total_bytes - 1) > _NEAR:
        yield f"{format_binary(on_nodes)} on nodes"
    if memory.available_bytes is not None:
        yield f"{format_binary(memory.available_bytes)} available"
    for pool in memory.hugepages:
        # As the kernel's own name for it, in the plural for one, too.
        text = "{count} huge pages of {size}"
        yield text.format(count=pool.total, size=format_binary(pool.size_bytes)) if pool.total else ""
    yield f"transparent huge pages {memory.thp_enabled}" if memory.thp_enabled else ""


def _owners(facts: Facts) -> Iterator[str]:
    owners = facts.owners
    yield from owners.network_managers
    yield f"TuneD profile {owners.tuned_profile}" if owners.tuned_profile else ""
    yield f"saptune, {counted(len(owners.saptune_notes), 'note')}" if owners.saptune_notes else ""
    yield "irqbalance" if owners.irqbalance else ""
    yield "power-profiles-daemon" if owners.power_profiles_daemon else ""
    yield from dict.fromkeys(owners.agents)


def _locality(found: Locality) -> Iterator[str]:
    """The score and what loses most by it; nothing where there is nothing to lose or nothing known."""
    if found.score is None:
        return
    yield f"{found.score} of 100"
    kinds = (one for one in found.kinds if one.losing)
    yield from (f"{one.losing} of {one.counted} {_KINDS[one.kind]} off their node" for one in kinds)


def _shelf_note(shelf: Shelf) -> list[Piece]:
    if shelf.node is not None:
        return join_parts(_node(shelf.node))
    return [] if shelf.has_devices else ["none known"]


def _node(node: Node) -> Iterator[str]:
    cpus = "CPUs unknown" if node.cpus is None else "no CPUs"
    yield f"CPUs {cpu_text(node.cpus)}" if node.cpus else cpus
    memory = [format_binary(node.memory_bytes) if node.memory_bytes is not None else "memory unknown"]
    memory += [] if node.free_bytes is None else [f"{format_binary(node.free_bytes)} free"]
    yield ", ".join(memory)
    distances = " ".join(map(str, node.distances))
    yield f"distances {distances}" if len(node.distances) > 1 else ""


def _is_of_interest(facts: Facts, key: str) -> bool:
    origin = facts.sysctl_origin.get(key)
    setting = find_setting(key)
    return (setting is not None and setting.is_shown) or (origin is not None and origin.winner.path.startswith("/etc/"))


def _human(value: str) -> str:
    words = value.split()
    is_size = all(is_count(word) and len(word) < 20 for word in words)
    return " / ".join(format_binary(int(word)) for word in words) if is_size else UNKNOWN


def _llt_names(table: Llttab) -> Iterator[str]:
    yield f"node {table.node}" if table.node else ""
    yield f"cluster {table.cluster}" if table.cluster else ""


def _llt_link(link: LltLink) -> list[Cell]:
    carrier = f"over {link.link}" if link.link else "kernel link unknown"
    port = f"port {link.port}" if link.port else ""
    details = [port, f"MTU {link.mtu}" if link.mtu else "default MTU", link.address or ""]
    kind = ", ".join((link.type, "low priority")) if link.low_priority else link.type
    return [link.tag, kind, carrier, join_parts(details)]


# What has changed since an earlier scan, and what is muted: further pages of ``advisor scan``.


def since_text(summary: ScanSummary, difference: ScanDifference, *, width: int, color: bool) -> str:
    """The page of ``advisor scan --since``: new, worse and gone, each finding in a line. ``width`` in columns."""
    numbers = {id(one): group.number for group in summary.numbered for one in group.findings}
    lines: list[Sequence[Span]] = [*write_headline(summary.facts, summary.provenance, width)]
    lists = ((difference.new, "new"), (difference.worse, "worse"), (difference.gone, "gone"))
    counts = [(len(_grouped(findings)), word) for findings, word in lists]
    words = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing is new, worse or gone"
    when = format_minute(difference.earlier.time)
    lines.append([Span(shortened(f"since {when or 'a scan without a date'}: {words}", width), HEADING)])
    earlier = difference.earlier
    if earlier.hostname and earlier.hostname != summary.facts.host.hostname:
        lines.append([Span(shortened(f"the earlier scan is of another host: {earlier.hostname}", width), "yellow")])
    for title, findings in (("New", difference.new), ("Worse", difference.worse), ("Gone", difference.gone)):
        if findings:
            lines += [[], [Span(title, HEADING)], *_lines(findings, numbers, width)]
    return "\n".join(emit_line(line, color=color) for line in lines) + "\n"


def _grouped(findings: Iterable[Finding]) -> tuple[NumberedFindings, ...]:
    return number_findings(msgspec.structs.replace(one, muted=None) for one in findings)


def _lines(findings: Iterable[Finding], numbers: dict[int, int], width: int) -> Iterator[Sequence[Span]]:
    for group in _grouped(findings):
        # Numbers are those of the page of today; what is gone, or muted, has none.
        number = next((numbers[id(one)] for one in findings if one.id == group.id and id(one) in numbers), None)
        head = f"  {'' if number is None else number:>2} "
        size = max(width - columns(head) - 10, 1)
        first, *more = wrapped(finding_text(group, size), size)
        yield [Span(head), padded(severity_span(group.severity), 8), Span(f"  {first}")]
        yield from ([Span(" " * (columns(head) + 10) + part)] for part in more)


class MutingRow(msgspec.Struct, frozen=True):
    """One accepted finding: what it is bound to, why, until when, and what became of it in this scan. One that
    ``is_elsewhere`` is for other hosts than the scanned one. ``unknown`` are ids like its own where no rule has it."""

    label: str
    reason: str
    until: str | None
    is_expired: bool
    titles: tuple[str, ...]
    is_elsewhere: bool = False
    unknown: tuple[str, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Whether it mutes a finding of this scan."""
        return bool(self.titles) and not self.is_expired and not self.is_elsewhere


def _did_you_mean(names: Sequence[str]) -> str:
    return f"; did you mean {', '.join(names)}?" if names else ""


def muted_text(rows: Sequence[MutingRow], place: str, *, muted: int, width: int, color: bool) -> str:
    """The page of ``advisor scan --muted``; ``muted`` counts findings."""
    page = Page(width, color=color)
    if not rows:
        page.add(f"Nothing is muted ({place}).")
        return page.text
    active = sum(row.is_active for row in rows)
    entries = counted(len(rows), "entry", "entries")
    by = f"{active} of {entries}" if active < len(rows) else entries
    counts = f"{counted(muted, 'finding')} muted{f' by {by}' if muted else f', {entries}'}"
    page.add(Span(counts, HEADING), Span(" · ", QUIET), place)
    for number, row in enumerate(rows, 1):
        end = f"until {row.until}" if row.until else "without an end"
        state = f"expired on {row.until}" if row.is_expired else end
        page.blank()
        style: Style = "yellow" if row.is_expired else QUIET
        page.add(f"{number} ", Span(row.label, HEADING), "  ", Span(state, style), indent=2, hang=2)
        page.add(row.reason, indent=6)
        nothing = "not for this host: mutes nothing here" if row.is_elsewhere else "no finding of this scan"
        if row.unknown is not None:
            nothing = f"no rule has this id: mutes nothing{_did_you_mean(row.unknown)}"
        for title in row.titles or (nothing,):
            page.add(Span(title, QUIET), indent=6, hang=2)
    page.blank()
    several: list[Piece] = [", ", Span("advisor unmute 1 2", "cyan"), " several at once"] if len(rows) > 1 else []
    page.add(Span("advisor unmute N", "cyan"), " shows a finding again", *several, ".")
    return page.text
