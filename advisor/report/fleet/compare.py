"""A comparison of hosts: the page for a terminal, and its document. First the differences, worst first, then who has
them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.fleet.compare.comparison import (
    AttributeDifference,
    FleetFinding,
    HeldValue,
    HostComparison,
    HostLine,
    Network,
)
from advisor.fleet.compare.path_matrix import Matrix, MatrixCell
from advisor.host.numbers import group_pairs
from advisor.report.encode import encode_document
from advisor.report.format import natural, ranked, runs
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, listed, padded
from advisor.report.severities import count_severities, paint_counts, severity_span
from advisor.report.units import format_speed
from advisor.rules.rule import SEVERITIES

MAX_GRID = 12
"""Nodes of a network that stand in one table: as many as 80 columns have room for."""
MAX_ROWS = 40
_CELL = 6
_LEGEND = (
    "From row to column: median round trip in microseconds (m: milliseconds)",
    "! less passes than both links carry · ? path MTU unknown · x no answer",
)


def add_rows(page: Page, rows: Sequence[Sequence[Piece]], most: int) -> None:
    """A table of the first rows, and how many more the document lists."""
    page.table(rows[:most])
    if len(rows) > most:
        page.add(f"… and {len(rows) - most} more; --json lists all", indent=2)


def in_trouble(matrix: Matrix) -> list[MatrixCell]:
    """Directions that were asked and have no answer, or that carry less than both links."""
    return [one for one in matrix.cells if one.carries is False or (one.sent and not one.answered)]


def worst_of(cells: Iterable[MatrixCell]) -> MatrixCell:
    """Of several links between two nodes the one to look at first."""
    return min(cells, key=lambda one: (one.answered, one.carries is not False, -one.rtt_us[1] if one.rtt_us else 0.0))


def add_matrix(page: Page, matrix: Matrix) -> None:
    """A heading and a table for each network, who could not ask, and what is left out."""
    networks = group_pairs((cell.network, cell) for cell in matrix.cells)
    for network, cells in networks.items():
        roles = listed(sorted({cell.role for cell in cells}, key=natural)[:4])
        page.heading(f"Paths in {network}", f" ({roles}): {_summary_words(cells)}")
        hosts = sorted(
            {name for cell in cells for name in (cell.source, cell.target)}, key=lambda name: (natural(name), name)
        )
        if len(hosts) <= MAX_GRID:
            _add_grid(page, hosts, cells)
        else:
            odd = [cell for cell in cells if cell.carries is False or not cell.answered or cell.received < cell.sent]
            if not odd:
                page.add("All of them answer, and none is known to carry less than both links.", indent=2)
            else:
                page.add(f"Not as they should be: {len(odd)} of {counted(len(cells), 'direction')}.", indent=2)
                rows = [(Span(f"{cell.source} → {cell.target}", "bold"), cell_sentence(cell)) for cell in odd]
                add_rows(page, rows, MAX_ROWS)
    silent = matrix.silent_hosts
    if silent:
        page.heading(f"Could not ask: {counted(len(silent), 'host')}")
        hosts = sorted(silent, key=natural)
        add_rows(page, [(Span(host, "bold"), silent[host]) for host in hosts], MAX_ROWS)
    for note in matrix.notes:
        page.add(note, indent=2, hang=2)


def _summary_words(cells: Sequence[MatrixCell]) -> str:
    """``12 directions, 36 us in the middle, 90 us at most; path MTU 9000 in 8, 1500 in 4``."""
    times = [cell.rtt_us[1] for cell in cells if cell.rtt_us]
    parts = [counted(len(cells), "direction")]
    if times:
        parts.append(
            f"{format_duration_us(statistics.median(times))} in the middle, {format_duration_us(max(times))} at most"
        )
    sizes = Counter(cell.path_mtu for cell in cells if cell.path_mtu)
    listed = ", ".join(f"{size} in {count}" for size, count in sorted(sizes.items(), reverse=True)[:4])
    return ", ".join(parts) + (f"; path MTU {listed}" if listed else "; no path MTU is known")


def format_duration_us(microseconds: float) -> str:
    """``36 us``, ``1.2 ms``."""
    return f"{microseconds:.0f} us" if microseconds < 1000 else f"{microseconds / 1000:.3g} ms"


def _add_grid(page: Page, hosts: Sequence[str], cells: Sequence[MatrixCell]) -> None:
    by_pair = group_pairs(((cell.source, cell.target), cell) for cell in cells)
    room = page.width - 2 - 4 - _CELL * len(hosts)
    widest = max(map(columns, hosts))
    names = hosts if widest <= room else ["" for _ in hosts]
    size = max(map(columns, names))
    page.row(" " * (2 + 3 + size + 1), *(Span(f"{number:>{_CELL}}", "dim") for number in range(1, len(hosts) + 1)))
    for number, (host, name) in enumerate(zip(hosts, names, strict=True), 1):
        row = [_cell_piece(by_pair.get((host, other), ()), is_self=other == host) for other in hosts]
        page.row("  ", Span(f"{number:>2} ", "dim"), padded(Span(name, "bold"), size + 1), *row)
    if widest > room:
        page.add(", ".join(f"{number} {host}" for number, host in enumerate(hosts, 1)), indent=2, hang=2)
    for line in _LEGEND:
        page.add(Span(line, "dim"), indent=2, hang=2)


def _cell_piece(cells: Sequence[MatrixCell], *, is_self: bool) -> Piece:
    if not cells:
        return Span(f"{'·' if is_self else '':>{_CELL}}", "dim")
    words, style = cell_words(worst_of(cells))
    return Span(f"{words:>{_CELL}}", style)


def cell_words(cell: MatrixCell) -> tuple[str, Style]:
    """At most five characters: ``36``, ``1.2m``, ``36!``, ``36?``, ``x``; nothing where nobody asked."""
    if cell.rtt_us is None:
        return ("x", "yellow") if cell.sent else ("", "dim")
    middle = cell.rtt_us[1]
    shown = (
        f"{middle:.0f}"
        if middle < 999.5
        else f"{min(middle / 1000, 9999):.2g}m"
        if middle < 9950
        else (f"{min(middle / 1000, 999):.0f}m")
    )
    if cell.carries is False:
        return f"{shown}!", "yellow"
    return (f"{shown}?", "dim") if cell.carries is None else (shown, "green")


def cell_sentence(cell: MatrixCell) -> str:
    """What is known of a direction, in words."""
    over = f"{cell.address} over {cell.link}: "
    if cell.rtt_us is None:
        return over + (cell.error or "no answer")
    parts = [format_duration_us(cell.rtt_us[1])]
    if cell.received < cell.sent:
        parts.append(f"{cell.sent - cell.received} of {cell.sent} lost")
    if cell.carries is False:
        end = {
            "silent": "more vanishes",
            "too-big": f"more is too big{f', says {cell.limited_by}' if cell.limited_by else ''}",
        }
        size = "less" if cell.path_mtu is None else str(cell.path_mtu)
        parts.append(f"{size} of {cell.wanted} bytes ({end.get(cell.limit, 'its own link refuses more')})")
    elif cell.carries is None:
        parts.append(f"path MTU unknown ({cell.error or 'no reason given'})")
    else:
        parts.append(f"{cell.path_mtu} bytes")
    return over + ", ".join(parts)


SCHEMA = "advisor.fleet-comparison/1"
MAX_NAMES = 12
_MAX_ROWS = 8
_MAX_HOSTS = 20


def comparison_document(comparison: HostComparison) -> bytes:
    """``advisor.fleet-comparison/1``."""
    whole = {name: getattr(comparison, name) for name in comparison.__struct_fields__ if name != "hosts"}
    hosts = [msgspec.structs.asdict(one) for one in comparison.hosts]
    return encode_document({"schema": SCHEMA, "hosts": hosts, "failed": list(comparison.failed), **whole})


def comparison_text(comparison: HostComparison, *, width: int, color: bool) -> str:
    """The page. All names are spelt out where they are not printable. What findings of one kind have in common (why,
    when it hurts, who says so) is printed with the first of them."""
    page = Page(width, color=color)
    ranks = ranked(comparison.compared)
    page.add(*summary_pieces(comparison))
    shown: set[str] = set()
    for finding in comparison.findings:
        page.blank()
        label = padded(severity_span(finding.severity), 9)
        page.add_cells((label,), (Span(finding.title, "bold"), " ", Span(finding.id, "dim")), indent=0)
        page.labelled(_finding_rows(finding, ranks, is_first=finding.id not in shown), indent=4)
        shown.add(finding.id)
        for command in finding.commands:
            page.command(command, indent=6)
    _add_who(page, comparison)
    failed = [one for one in comparison.hosts if one.state == "failed"]
    if failed:
        page.heading(f"Not compared: {counted(len(failed), 'host')}")
        page.table([(Span(one.name, "bold"), one.message or "nothing is known of it") for one in failed])
    if len(comparison.types) > 1:
        page.heading("Types of hardware")
        page.table([(str(len(one.hosts)), f"{one.label}: {names_words(one.hosts, ranks)}") for one in comparison.types])
    _add_networks(page, comparison, ranks)
    if comparison.matrix is not None:
        add_matrix(page, comparison.matrix)
    if comparison.unknown:
        page.heading("Unknown, and so not compared")
        rows = [(names_words(one.hosts, ranks), unknown_words(one.attributes)) for one in comparison.unknown]
        page.table(rows[:_MAX_HOSTS])
    return page.text


def summary_words(comparison: HostComparison) -> str:
    """``12 hosts compared, 1 failed``."""
    failed = f", {len(comparison.failed)} failed" if comparison.failed else ""
    if comparison.pair:
        return f"{comparison.pair[0]} against {comparison.pair[1]}"
    return f"{counted(len(comparison.compared), 'host')} compared{failed}"


def verdict_words(comparison: HostComparison) -> str:
    """What came of it in one sentence; that all are alike is said about what is known alone."""
    if len(comparison.compared) < 2:
        return "nothing to compare: there are not two hosts that could be read"
    counts = [text for _severity, text in count_severities(one.severity for one in comparison.findings)]
    alike = f"alike in {comparison.alike} of {comparison.attributes} attributes"
    return f"{alike}; {', '.join(counts)}" if counts else f"{alike}: no host differs, as far as is known"


def summary_pieces(comparison: HostComparison) -> Sequence[Piece]:
    return (Span(summary_words(comparison), "bold"), " · ", *paint_counts(verdict_words(comparison)))


def differing_hosts(comparison: HostComparison) -> list[tuple[HostLine, list[FleetFinding]]]:
    """Hosts that are outliers among others, the worst first; where nobody is in the majority, nobody is called one."""
    found = [(host, [one for one in comparison.findings if host.name in singled_out(one)]) for host in comparison.hosts]
    ranks = ranked(comparison.compared)
    return sorted(
        ((host, some) for host, some in found if some),
        key=lambda item: (*_rank_badness(item[1]), ranks.get(item[0].name, 0)),
    )


def singled_out(finding: FleetFinding) -> frozenset[str]:
    """The hosts of a finding that are not as most are, or have what must be there once."""
    hosts = {host for one in finding.differences if one.has_majority or len(one.groups) == 1 for host in one.outliers}
    return frozenset(hosts)


def _rank_badness(findings: Sequence[FleetFinding]) -> tuple[int, ...]:
    return tuple(-sum(one.severity == severity for one in findings) for severity in reversed(SEVERITIES))


def _add_who(page: Page, comparison: HostComparison) -> None:
    who = [(host, some) for host, some in differing_hosts(comparison) if any(one.severity != "info" for one in some)]
    if not who or comparison.pair:
        return
    page.heading("Who differs")
    rows = []
    for host, some in who[:_MAX_HOSTS]:
        worst = some[0].severity
        rows.append((Span(host.name, "bold"), severity_span(worst), ", ".join(dict.fromkeys(map(short_words, some)))))
    page.table(rows)
    if len(who) > _MAX_HOSTS:
        page.add(f"… and {counted(len(who) - _MAX_HOSTS, 'more host')}", indent=2)


def short_words(finding: FleetFinding) -> str:
    """What it is about, in a word or two: ``mtu in network``."""
    return finding.id.rpartition(".")[2].replace("-", " ")


def names_words(names: Sequence[str], ranks: Mapping[str, int], *, of: int | None = None) -> str:
    """Names in natural order, runs drawn together, and no more than fit; ``all`` where it is every host."""
    if of is not None and len(names) == of > 1:
        return f"all {of} hosts"
    if len(names) <= MAX_NAMES:
        return runs(names, ranks)
    text = runs(names, ranks)
    if text.count(",") < MAX_NAMES:
        return text
    first = sorted(names, key=lambda name: ranks.get(name, 0))[:MAX_NAMES]
    return f"{runs(first, ranks)} and {len(names) - MAX_NAMES} more"


def _finding_rows(
    finding: FleetFinding, ranks: Mapping[str, int], *, is_first: bool
) -> Iterator[tuple[str, Sequence[Piece]]]:
    if finding.scope:
        yield "within", (finding.scope,)
    for number, one in enumerate(finding.differences[:_MAX_ROWS]):
        yield ("seen" if not number else ""), (Span(one.attribute, "cyan"), "  ", difference_words(one, ranks))
    if len(finding.differences) > _MAX_ROWS:
        yield "", (Span(f"… and {len(finding.differences) - _MAX_ROWS} more; --json lists all", "dim"),)
    for number, line in enumerate(finding.seen[:_MAX_ROWS]):
        yield ("seen" if not number else ""), (line,)
    if finding.goes_with:
        yield "with it", (goes_with_words(finding.goes_with),)
    if is_first:
        yield "why", (finding.why,)
        yield "hurts when", (finding.hurts_when,)
        yield "source", (Span("; ".join(finding.sources), "dim"),)
    yield "do", (finding.advice,)


def goes_with_words(names: Sequence[str]) -> str:
    """What differs as a consequence, by name as far as it is few."""
    shown = ", ".join(names[:_MAX_ROWS])
    return f"{shown} and {len(names) - _MAX_ROWS} more" if len(names) > _MAX_ROWS else shown


def difference_words(one: AttributeDifference, ranks: Mapping[str, int]) -> str:
    """``1500 on n3 · 9000 on 11 others``; without a majority every value with its hosts."""
    parts = []
    for held in one.groups:
        count = f"{len(held.hosts)} hosts " if len(held.hosts) > 3 else ""
        parts.append(f"{held.value} on {count}{names_words(held.hosts, ranks)}")
    if one.absent:
        parts.append(f"not there on {names_words(one.absent, ranks)}")
    if one.has_majority:
        usual = "not there" if one.majority is None else str(one.majority)
        parts.append(f"{usual} on {counted(one.majority_count, 'other')}")
    elif len(one.groups) + bool(one.absent) > 1 and len(one.outliers) > 2:
        parts.insert(0, "no majority:")
        parts[:2] = [" ".join(parts[:2])]
    if one.unknown:
        parts.append(f"unknown on {names_words(one.unknown, ranks)}")
    return " · ".join(parts)


def _add_networks(page: Page, comparison: HostComparison, ranks: Mapping[str, int]) -> None:
    if not comparison.networks:
        return
    page.heading("Networks")
    rows = [(one.network, counted(one.hosts, "host"), network_words(one, ranks)) for one in odd_first(comparison)]
    add_rows(page, rows, _MAX_HOSTS)


def odd_first(comparison: HostComparison) -> list[Network]:
    """Networks, those with several MTUs or speeds first."""
    return sorted(comparison.networks, key=lambda one: (len(one.mtus) < 2, len(one.speeds) < 2))


def network_words(one: Network, ranks: Mapping[str, int]) -> str:
    """``MTU 9000 · 25 Gbit/s``, and whose it is where there are several."""
    parts = [one.scope] if one.scope else []
    parts.append(f"MTU {_values_words(one.mtus, ranks, str)}" if one.mtus else "MTU unknown")
    if one.speeds:
        parts.append(_values_words(one.speeds, ranks, format_speed))
    return " · ".join(parts)


def _values_words(groups: Sequence[HeldValue], ranks: Mapping[str, int], shown: Callable[[int], str]) -> str:
    said = [(shown(int(one.value)), one.hosts) for one in groups]
    if len(said) == 1:
        return said[0][0]
    first, *rest = said
    return ", ".join(
        [f"{first[0]} ({len(first[1])})", *(f"{value} ({names_words(some, ranks)})" for value, some in rest)]
    )


def unknown_words(attributes: Iterable[str]) -> str:
    """The attributes by topic, as they may be many."""
    topics = group_pairs((name.partition(".")[0], name) for name in attributes)
    return listed(
        [names[0] if len(names) == 1 else f"{len(names)} of {topic}" for topic, names in sorted(topics.items())]
    )
