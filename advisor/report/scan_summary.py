"""The first page of a scan: whose it is and of when, how many findings, a line for each, a line for each node.

It fits a window of 80 columns and 24 lines on any host; ``advisor scan --all`` prints the rest.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from textwrap import wrap

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.processors.cpulist import parse_list
from advisor.host.patterns import lazy_regex
from advisor.host.provenance import Provenance
from advisor.report.devices import list_shelves
from advisor.report.findings import counts_text, finding_lines, finding_text, fitted, is_settable, shortened
from advisor.report.format import clean, format_minute
from advisor.report.layout import COMMAND, HEADING, QUIET, UNKNOWN, Span, columns, emit_line, listed, width_of
from advisor.report.severities import paint_counts
from advisor.report.units import format_binary, times
from advisor.rules.judged import Judged, NumberedFindings, count_judged, number_findings
from advisor.rules.queries import is_physical
from advisor.rules.rule import Finding
from advisor.shell.quote import trial_command

MOST_FINDINGS = 12
MOST_NODES = 3
MOST_LINES = 23
"""Of a window of 24, in which the next prompt has the last one."""
CONTAINER_NOTE = "In a container: kernel and device values are its host's, and are set there."
_GAP = 2
_LEAST_NAME = 16
_WINDOW = 80
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
        """The findings as they are counted, those worth knowing last."""
        return number_findings(self.findings)

    @property
    def judged(self) -> Judged:
        """How many rules had their facts."""
        return count_judged(self.facts, self.findings)


def summary_text(summary: ScanSummary, *, width: int, color: bool) -> str:
    """The default page of ``advisor scan``. ``width`` in columns."""
    head = list(write_headline(summary.facts, summary.provenance, width))
    footer = list(_footer(summary, width))
    room = MOST_LINES - len(head) - 1 - len(footer)
    least = len(list(_list_lines(summary, width, most=MOST_FINDINGS, spare=0)))
    spare = room - least - len(list(_node_lines(summary.facts, width, 0)))
    listed = list(_list_lines(summary, width, most=MOST_FINDINGS, spare=max(spare, 0)))
    lines = [*head, *listed, [], *_node_lines(summary.facts, width, room - len(listed)), *footer]
    return "\n".join(emit_line(line, color=color) for line in lines) + "\n"


def list_text(summary: ScanSummary, *, width: int, color: bool) -> str:
    """The counts and every finding's line: what stands below the whole page on a terminal."""
    lines = [[], *_list_lines(summary, width, most=None), *_footer(summary, width)]
    return "\n".join(emit_line(line, color=color) for line in lines) + "\n"


def brief_text(summary: ScanSummary) -> str:
    """One line: host, counts, the gravest finding, time and provenance."""
    numbered = [one for one in summary.numbered if not one.is_maxim]
    name = summary.facts.host.hostname or "host of unknown name"
    counts = counts_text(numbered, summary.judged, summary.muted, folded=len(summary.numbered) - len(numbered))
    worst = f": {finding_text(numbered[0])}" if numbered else ""
    return clean(f"{name}: {counts}{worst} ({provenance_text(summary.provenance)})") + "\n"


def provenance_text(provenance: Provenance, size: int = 1000) -> str:
    """When and of what the scan is; a directory is cut at its beginning to fit into ``size`` columns."""
    read = format_minute(provenance.scanned_at) or UNKNOWN
    if provenance.source == "live":
        return f"{read} · live"
    if provenance.source == "snapshot":
        taken, origin = format_minute(provenance.captured_at), provenance.origin
        kind, user = (origin.title, origin.as_whom) if origin else ("snapshot", "")
        return clean(f"{kind} of {taken}{user}" if taken else f"{kind} without a date{user} · read {read}")
    head, place = f"read {read} · --root ", clean(provenance.place)
    cut = columns(head) + columns(place) - size
    return head + (f"…{place[cut + 1 :]}" if cut > 0 else place)


def write_headline(facts: Facts, provenance: Provenance, width: int) -> Iterator[Sequence[Span]]:
    """Host, system, machine and role, with time and provenance at the right; what has no room is on a second line."""
    host_parts: list[str] = []
    host, cloud = facts.host, facts.host.cloud
    host_parts.append(host.hostname or "host of unknown name")
    if host.os:
        host_parts.append(_CODE_NAME.sub("", host.os).replace("GNU/Linux ", ""))
    machine = ", ".join(_machine(facts))
    host_parts += [machine] if machine else []
    host_parts += [facts.container.words.removeprefix("a ")] if facts.container.is_inside else []
    host_parts += [f"{cloud.provider} {cloud.instance_type or ''}".strip()] if cloud else []
    role = ", ".join(host_roles(facts))
    host_parts += [role] if role else []
    parts = [clean(part) for part in host_parts]
    place = max(width - max(_LEAST_NAME, columns(parts[0])) - _GAP, _LEAST_NAME)
    right = provenance_text(provenance, place)
    room = width - columns(right) - _GAP
    if columns(parts[0]) > room and width >= _WINDOW:
        # A domain has its rest on the page of --all; a name is never cut, and the first line has the time of the scan.
        short = _without_domain(parts[0], room)
        parts[0] = short or parts[0]
        if not short:
            yield [Span(provenance_text(provenance, width), QUIET)]
            right, room = "", width
    is_apart = room < min(columns(parts[0]), width // 2)
    first = [shortened(parts[0], width if is_apart else room)]
    while len(first) < len(parts) and columns(" · ".join([*first, parts[len(first)]])) <= (width if is_apart else room):
        first.append(parts[len(first)])
    left = " · ".join(first)
    line = [Span(first[0], HEADING), Span(left[len(first[0]) :])]
    if is_apart:
        # A name that is cut names no host: when and of what stands below it.
        yield line
        yield from ([Span(part, QUIET)] for part in wrap(provenance_text(provenance, width), width))
    elif right:
        right = provenance_text(provenance, max(width - columns(left) - _GAP, columns(right)))
        yield [*line, Span(" " * max(width - columns(left) - columns(right), 1)), Span(right, QUIET)]
    else:
        yield line
    rest = parts[len(first) :]
    if rest:
        yield from ([Span(line)] for line in fitted(" · ".join(rest), width))


def _without_domain(name: str, room: int) -> str:
    """The name with as many labels of its domain as fit into ``room`` columns; empty where not even the first does."""
    labels = name.split(".")
    for count in range(len(labels) - 1, 0, -1):
        short = f"{'.'.join(labels[:count])}.…"
        if columns(short) <= room:
            return short
    return ""


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
    return (*(name for name, is_there in named.items() if is_there), *_service_names(facts))


def _service_names(facts: Facts) -> Iterator[str]:
    """``PostgreSQL``, ``NFS server``: the software by units that run, mounts and threads, and what is installed."""
    if facts.roles:
        from advisor.rules.roles import ROLE_NAMES

        names = (ROLE_NAMES[role] for role in facts.roles if role in ROLE_NAMES)
        yield from (name.removeprefix("An ").removeprefix("A ") for name in names)
    if facts.software is not None:
        yield from ["IBM Storage Scale"] if facts.software.declustered_raid else []
        yield from ["Cassandra"] if facts.software.cassandra else []


def _list_lines(
    summary: ScanSummary, width: int, *, most: int | None, spare: int | None = None
) -> Iterator[Sequence[Span]]:
    numbered = summary.numbered
    shown = [one for one in numbered if most is None or not one.is_maxim]
    folded = len(numbered) - len(shown)
    yield from _wrapped(counts_text(shown, summary.judged, summary.muted, folded=folded), width)
    notes = [CONTAINER_NOTE, *summary.notes] if summary.facts.container.is_inside else summary.notes
    yield from ([Span(shortened(note, width), "yellow")] for note in notes)
    whose = whose_commands(summary.provenance, width)
    yield from ([Span(line, QUIET)] for line in wrap(whose, max(width, 1), break_on_hyphens=False))
    if shown:
        yield []
    if numbered:
        yield from finding_lines(shown[:most], width, spare=spare)
        if most is not None and len(shown) > most:
            yield [Span(f"  … {len(shown) - most} more: advisor scan --all", QUIET)]
        known = numbered[len(shown) :]
        if known:
            first, last = known[0].number, known[-1].number
            head = f"Worth knowing, {first if first == last else f'{first} to {last}'}: "
            text = head + "; ".join(finding_text(one, 0) for one in known)
            yield from ([Span(line, QUIET)] for line in fitted(text, width))


def _wrapped(text: str, width: int) -> Iterator[Sequence[Span]]:
    """The heading of the list; what has no room goes on below it, in as many lines as it needs."""
    yield from (paint_counts(line, HEADING) for line in wrap(text, width, break_on_hyphens=False))


NEED = "advisor's commands need"


def whose_commands(provenance: Provenance, width: int) -> str:
    """What advisor's commands need to mean the findings by the same numbers: the option that makes them look at a
    captured host from here, and what was declared of it; empty for this machine as it is."""
    is_live = provenance.source == "live"
    words = [*(() if is_live else (f"--{provenance.source}", provenance.place)), *provenance.options]
    if not words:
        return ""
    head = "Declared" if is_live else "This host as a tree" if provenance.is_this_host else "Captured host"
    text = f"{head}: {NEED} {' '.join(shlex.quote(clean(word)) for word in words)}"
    if columns(text) <= width and all(words):
        return text
    return f"{head}: {NEED} the same {' and '.join(words[::2])}"


def _node_lines(facts: Facts, width: int, room: int) -> Iterator[Sequence[Span]]:
    found = list_shelves(facts)
    rows: list[str] = []
    missing = {one.fact for one in facts.unknown}
    unread = tuple(kind for kind in ("links", "disks") if kind in missing)
    for one in found:
        parts = [devices_text(one.links, one.disks, one.arrays, unread)]
        if one.node is not None and len(facts.numa.nodes) > 1:
            cpus = len(parse_list(one.node.cpus)) if one.node.cpus else 0
            memory = format_binary(one.node.memory_bytes) if one.node.memory_bytes is not None else "memory unknown"
            parts = [times(cpus, "CPU") if one.node.cpus is not None else "CPUs unknown", memory, *parts]
        if one.node is None and not one.has_devices:
            rows.append(f"{listed(unread).capitalize()} are unknown" if unread else "No links, disks or arrays found")
        else:
            rows.append(f"{one.title}: {', '.join(parts)}")
    if len(found) > min(MOST_NODES, room - bool(facts.unknown)):
        rows = [
            f"{times(len(facts.numa.nodes), 'node')}: {devices_text(facts.links, facts.disks, facts.arrays, unread)}"
        ]
    unknown = len(facts.unknown)
    rows += [_unknown_text(facts)] if unknown else []
    yield from ([Span(line, QUIET)] for row in rows for line in fitted(row, width))


def devices_text(
    links: Sequence[Link],
    disks: Sequence[object],
    arrays: Sequence[object],
    unread: Sequence[str] = (),
    accelerators: Sequence[object] = (),
) -> str:
    """``2 links, 24 disks``, without what there is none of; ``unread`` are kinds of which it is not known."""
    # What a person would count: neither the loopback link nor virtual ones that nobody has brought up.
    in_use = [one for one in links if is_physical(one) or (one.name != "lo" and one.state != "down")]
    counts = ((len(in_use), "link"), (len(disks), "disk"), (len(arrays), "array"), (len(accelerators), "accelerator"))
    known = [times(count, name) for count, name in counts if count]
    unknown = [f"{kind} unknown" for kind in unread]
    return ", ".join((*known, *unknown)) or "no devices"


def _unknown_text(facts: Facts) -> str:
    is_denied = any("ermission" in entry.why or "not permitted" in entry.why for entry in facts.unknown)
    hint = "root would see more" if is_denied else "advisor scan --all says why"
    return f"Unknown: {times(len(facts.unknown), 'fact')} ({hint})"


def _footer(summary: ScanSummary, width: int) -> Iterator[Sequence[Span]]:
    """The commands that go on from here, on one line, or on two where it has no room for both."""
    numbered = [one for one in summary.numbered if not one.is_maxim]
    details = [Span("Details: ", QUIET), Span("advisor scan --all", COMMAND)]
    if numbered:
        details += [Span(" · ", QUIET), Span(f"advisor explain {numbered[0].number}", COMMAND)]
    fixable = next((one.number for one in numbered if is_settable(one)), None)
    more = [Span("Fix one: ", QUIET), Span(f"advisor fix {fixable}", COMMAND)] if fixable else []
    line = [*details, Span(" · ", QUIET), *more] if more else details
    if width_of(line) <= width:
        yield line
    else:
        # In a narrow window each command has a line of its own.
        yield from (details,) if width_of(details) <= width else (details[:2], details[3:])
        yield from (more,) if more else ()
    if more:
        head, call = Span("Keep what helps: ", QUIET), Span(trial_command(), COMMAND)
        yield from ([head, call],) if width_of([head, call]) <= width else ([head], [call])
    yield from ([Span(line, QUIET)] for line in archive_lines(summary.provenance, width))


def archive_lines(provenance: Provenance, width: int) -> list[str]:
    """Remarks on a support archive: what was done to it, and what its owner may be asked for."""
    origin = provenance.origin
    if origin is None:
        return []
    asked = origin.ask()
    texts = (origin.note, f"ask for: {asked}" if asked else "")
    return [line for text in texts if text for line in wrap(text, width, break_on_hyphens=False)]
