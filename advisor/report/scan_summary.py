"""The first page of a scan: whose it is and of when, how many findings, a line for each, a line for each node.

It fits a window of 80 columns and 24 lines on any host; ``advisor scan --all`` prints the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from advisor.facts.cpulist import parse_list
from advisor.facts.host_facts import Facts
from advisor.host.patterns import lazy_regex
from advisor.host.provenance import Provenance
from advisor.i18n import english_page
from advisor.report.devices import Shelf, list_shelves
from advisor.report.finding_lines import counts_text, finding_lines, finding_text, is_settable, shortened
from advisor.report.format import clean, format_minute
from advisor.report.layout import COMMAND, HEADING, QUIET, UNKNOWN, Span, columns, emit_line
from advisor.report.units import format_binary, times
from advisor.rules.finding import Finding
from advisor.rules.numbering import NumberedFindings, number_findings

MOST_FINDINGS: Final = 12
MOST_NODES: Final = 3
MOST_LINES: Final = 23
"""Of a window of 24, in which the next prompt has the last one."""
_GAP: Final = 2
_LEAST_NAME: Final = 16
_CODE_NAME = lazy_regex(r" *\([^()]*\)")


class ScanSummary(msgspec.Struct, frozen=True):
    """What the page is made of. ``muted`` counts findings, ``notes`` are lines that must not be missed."""

    facts: Facts
    findings: tuple[Finding, ...]
    provenance: Provenance
    muted: int = 0
    notes: tuple[str, ...] = ()

    @property
    def numbered(self) -> tuple[NumberedFindings, ...]:
        """The findings as they are counted."""
        return number_findings(self.findings)


@english_page
def summary_text(summary: ScanSummary, *, width: int, color: bool) -> str:
    """The default page of ``advisor scan``. ``width`` in columns."""
    lines = [
        *write_headline(summary.facts, summary.provenance, width),
        *_list_lines(summary, width, most=MOST_FINDINGS),
    ]
    room = MOST_LINES - len(lines) - 2
    lines += [[], *_node_lines(summary.facts, width, room), *_footer(summary)]
    return "\n".join(emit_line(line, color=color) for line in lines) + "\n"


@english_page
def list_text(summary: ScanSummary, *, width: int, color: bool) -> str:
    """The counts and every finding's line: what stands below the whole page on a terminal."""
    lines = [[], *_list_lines(summary, width, most=None), *_footer(summary)]
    return "\n".join(emit_line(line, color=color) for line in lines) + "\n"


@english_page
def brief_text(summary: ScanSummary) -> str:
    """One line: host, counts, the gravest finding, time and provenance."""
    numbered = summary.numbered
    name = summary.facts.host.hostname or "host of unknown name"
    worst = f": {finding_text(numbered[0])}" if numbered and numbered[0].severity in ("critical", "warning") else ""
    return (
        clean(f"{name}: {counts_text(numbered, summary.muted)}{worst} ({provenance_text(summary.provenance)})") + "\n"
    )


def provenance_text(provenance: Provenance, size: int = 1000) -> str:
    """When and of what the scan is; a directory is cut at its beginning to fit into ``size`` columns."""
    read = format_minute(provenance.scanned_at) or UNKNOWN
    if provenance.source == "live":
        return f"{read} · live"
    if provenance.source == "snapshot":
        taken = format_minute(provenance.captured_at)
        if taken:
            return f"snapshot of {taken}"
        return f"snapshot without a date · read {read}"
    head, place = f"{read} · --root ", clean(provenance.place)
    cut = columns(head) + columns(place) - size
    return head + (f"…{place[cut + 1 :]}" if cut > 0 else place)


def write_headline(facts: Facts, provenance: Provenance, width: int) -> Iterator[Sequence[Span]]:
    """Host, system, machine and role, with time and provenance at the right; what has no room is on a second line."""
    right = provenance_text(provenance, max(width - _LEAST_NAME - _GAP, _LEAST_NAME))
    room = max(width - columns(right) - _GAP, 1)
    parts = [clean(part) for part in _host_parts(facts)]
    first = [shortened(parts[0], room)]
    while len(first) < len(parts) and columns(" · ".join([*first, parts[len(first)]])) <= room:
        first.append(parts[len(first)])
    left = " · ".join(first)
    yield [
        Span(first[0], HEADING),
        Span(left[len(first[0]) :]),
        Span(" " * max(width - columns(left) - columns(right), 1)),
        Span(right, QUIET),
    ]
    rest = parts[len(first) :]
    if rest:
        yield [Span(shortened(" · ".join(rest), width))]


def _host_parts(facts: Facts) -> Iterator[str]:
    host, cloud = facts.host, facts.host.cloud
    yield host.hostname or "host of unknown name"
    if host.os:
        yield _CODE_NAME.sub("", host.os).replace("GNU/Linux ", "")
    machine = ", ".join(_machine(facts))
    yield from [machine] if machine else []
    yield from [f"{cloud.provider} {cloud.instance_type or ''}".strip()] if cloud else []
    role = ", ".join(host_roles(facts))
    yield from [role] if role else []


def _machine(facts: Facts) -> Iterator[str]:
    cpu, total = facts.cpu, facts.memory.total_bytes
    yield from [times(cpu.packages, "socket")] if cpu.packages else []
    yield from [times(cpu.threads, "thread")] if cpu.threads else []
    yield from [format_binary(total)] if total is not None else []


def host_roles(facts: Facts) -> tuple[str, ...]:
    """What the host serves, as far as its own files say: ``BeeGFS storage``, ``IRIS``."""
    beegfs = sorted({one.kind for one in facts.beegfs.services}) if facts.beegfs else []
    named = {
        "BeeGFS " + "/".join(beegfs): bool(beegfs),
        "IRIS": bool(facts.iris),
        "InfoScale": facts.infoscale is not None,
        "LLT": facts.llt is not None and facts.infoscale is None,
        "iSCSI target": bool(facts.iscsi and facts.iscsi.targets),
        "iSCSI initiator": bool(facts.iscsi and facts.iscsi.sessions),
    }
    return tuple(name for name, is_there in named.items() if is_there)


def _list_lines(summary: ScanSummary, width: int, *, most: int | None) -> Iterator[Sequence[Span]]:
    numbered = summary.numbered
    yield [Span(counts_text(numbered, summary.muted), HEADING)]
    yield from ([Span(shortened(note, width), "yellow")] for note in summary.notes)
    if numbered:
        yield []
        yield from finding_lines(numbered[:most], width)
        if most is not None and len(numbered) > most:
            yield [Span(f"  … {len(numbered) - most} more: advisor scan --all", QUIET)]


def _node_lines(facts: Facts, width: int, room: int) -> Iterator[Sequence[Span]]:
    found = list_shelves(facts)
    rows = [_shelf_text(facts, one) for one in found]
    if len(found) > min(MOST_NODES, room - bool(facts.unknown)):
        rows = [f"{len(facts.numa.nodes)} nodes: {_devices_text(facts.links, facts.disks, facts.arrays)}"]
    unknown = len(facts.unknown)
    rows += [_unknown_text(facts)] if unknown else []
    yield from ([Span(shortened(row, width), QUIET)] for row in rows)


def _shelf_text(facts: Facts, shelf: Shelf) -> str:
    parts = [_devices_text(shelf.links, shelf.disks, shelf.arrays)]
    if shelf.node is not None and len(facts.numa.nodes) > 1:
        cpus = len(parse_list(shelf.node.cpus)) if shelf.node.cpus else 0
        memory = format_binary(shelf.node.memory_bytes) if shelf.node.memory_bytes is not None else "memory unknown"
        parts = [times(cpus, "CPU") if shelf.node.cpus is not None else "CPUs unknown", memory, *parts]
    return f"{shelf.title}: {', '.join(parts)}"


def _devices_text(links: Sequence[object], disks: Sequence[object], arrays: Sequence[object]) -> str:
    counts = ((len(links), "link"), (len(disks), "disk"), (len(arrays), "array"))
    return ", ".join(times(count, name) for count, name in counts if count) or "no devices"


def _unknown_text(facts: Facts) -> str:
    is_denied = any("ermission" in entry.why or "not permitted" in entry.why for entry in facts.unknown)
    hint = "root would see more" if is_denied else "advisor scan --all says why"
    return f"Unknown: {times(len(facts.unknown), 'fact')} ({hint})"


def _footer(summary: ScanSummary) -> Iterator[Sequence[Span]]:
    numbered = summary.numbered
    parts = [Span("Details: ", QUIET), Span("advisor scan --all", COMMAND)]
    if numbered:
        parts += [Span(" · ", QUIET), Span(f"advisor explain {numbered[0].number}", COMMAND)]
    fixable = next((one.number for one in numbered if is_settable(one)), None)
    if summary.provenance.source == "live":
        parts += [Span(" · Fix one: ", QUIET), Span(f"advisor fix {fixable}", COMMAND)] if fixable else []
    else:
        option = "--root" if summary.provenance.source == "root" else "--snapshot"
        parts.append(Span(f" (each with the same {option})", QUIET))
    yield parts
