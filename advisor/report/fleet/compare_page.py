"""A comparison of hosts as one HTML page that needs nothing else: no script, nothing from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from advisor.fleet.compare.comparison import AttributeDifference, FleetFinding, HostComparison
from advisor.fleet.compare.path_matrix import Matrix, MatrixCell
from advisor.host.numbers import group_pairs
from advisor.report.fleet.compare import (
    differing_hosts,
    format_duration_us,
    goes_with_words,
    in_trouble,
    names_words,
    network_words,
    odd_first,
    short_words,
    summary_words,
    unknown_words,
    verdict_words,
    worst_of,
)
from advisor.report.format import natural, ranked
from advisor.report.html import render_page
from advisor.report.layout import counted
from advisor.report.severities import LOOKS, SeverityLook

_MAX_GRID = 60
_MAX_COLUMNS = 14
_MAX_ROWS = 40
_MAX_PATHS = 24


def comparison_page(comparison: HostComparison) -> str:
    """The whole page. All text is escaped, and spelt out where it is not printable."""
    ranks = ranked(comparison.compared)
    numbers = {id(one): number for number, one in enumerate(comparison.findings, 1)}
    # Hosts that differ against what they differ in; a cell is the worst finding of its kind on its host.
    who = [] if comparison.pair else differing_hosts(comparison)
    topics = list(dict.fromkeys(short_words(one) for one in comparison.findings if one.differences))[:_MAX_COLUMNS]
    rows = []
    for host, some in who[:_MAX_GRID]:
        first = {short_words(one): one for one in reversed(some)}
        cells = [_hit_dict(first[topic], numbers) if topic in first else None for topic in topics]
        rows.append({"name": host.name, "cells": cells})
    return render_page(
        "fleet",
        "fleet",
        group_by=comparison.group_by,
        summary=summary_words(comparison),
        verdict=verdict_words(comparison),
        verdict_style=_verdict_style(comparison),
        grid={"columns": topics, "rows": rows, "more": max(0, len(who) - _MAX_GRID)},
        failed=[one for one in comparison.hosts if one.state == "failed"],
        groups=list(_severity_groups(comparison, numbers, ranks)),
        types=[
            {"label": one.label, "count": len(one.hosts), "hosts": names_words(one.hosts, ranks)}
            for one in comparison.types
        ],
        networks=[
            {
                "network": one.network,
                "count": one.hosts,
                "words": network_words(one, ranks),
                "is_odd": len(one.mtus) > 1,
            }
            for one in odd_first(comparison)
        ],
        paths=None if comparison.matrix is None else _paths_dict(comparison.matrix),
        unknown=[(names_words(one.hosts, ranks), unknown_words(one.attributes)) for one in comparison.unknown],
        hosts=[one for one in comparison.hosts if one.state == "compared"],
    )


def _verdict_style(comparison: HostComparison) -> str:
    if len(comparison.compared) < 2:
        return "warning"
    return comparison.findings[0].severity if comparison.findings else "green"


def _hit_dict(finding: FleetFinding, numbers: Mapping[int, int]) -> dict[str, object]:
    return {"number": numbers[id(finding)], "severity": finding.severity, "title": finding.title}


def _severity_groups(
    comparison: HostComparison, numbers: Mapping[int, int], ranks: Mapping[str, int]
) -> Iterator[tuple[SeverityLook, list[dict[str, object]]]]:
    shown: set[str] = set()
    for look in LOOKS:
        found = [one for one in comparison.findings if one.severity == look.name]
        if found:
            yield (
                look,
                [_about_finding(one, numbers[id(one)], ranks, is_first=_is_first(one, shown)) for one in found],
            )


def _is_first(finding: FleetFinding, shown: set[str]) -> bool:
    is_first = finding.id not in shown
    shown.add(finding.id)
    return is_first


def _about_finding(
    finding: FleetFinding, number: int, ranks: Mapping[str, int], *, is_first: bool
) -> dict[str, object]:
    rows = [row for one in finding.differences for row in _difference_rows(one, ranks)]
    return {
        "finding": finding,
        "number": number,
        "is_first": is_first,
        "rows": rows[:_MAX_ROWS],
        "more": max(0, len(rows) - _MAX_ROWS),
        "goes_with": goes_with_words(finding.goes_with),
    }


def _difference_rows(one: AttributeDifference, ranks: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """A line for each value that is not the usual one."""
    if one.has_majority:
        value = "not there" if one.majority is None else str(one.majority)
        usual = f"{value} on {counted(one.majority_count, 'other')}"
    else:
        usual = "no majority" if len(one.outliers) > 2 and len(one.groups) + bool(one.absent) > 1 else ""
    found = [(str(held.value), held.hosts) for held in one.groups]
    if one.absent:
        found.append(("not there", one.absent))
    if one.unknown:
        usual = f"{usual}; unknown on {names_words(one.unknown, ranks)}".removeprefix("; ")
    for number, (value, hosts) in enumerate(found):
        count = f"{len(hosts)}: " if len(hosts) > 3 else ""
        yield {
            "attribute": one.attribute if not number else "",
            "value": value,
            "hosts": count + names_words(hosts, ranks),
            "usual": usual if not number else "",
        }


def _paths_dict(matrix: Matrix) -> dict[str, object]:
    """The matrix as a table; of many hosts those alone that are in trouble."""
    worst = in_trouble(matrix)
    hosts = sorted({name for one in matrix.cells for name in (one.source, one.target)}, key=natural)
    if len(hosts) > _MAX_PATHS:
        named = {name for one in worst for name in (one.source, one.target)}
        hosts = [host for host in hosts if host in named][:_MAX_PATHS]
    cells = group_pairs(((one.source, one.target), one) for one in matrix.cells)
    rows = [{"name": one, "cells": [_path_dict(cells.get((one, other), ())) for other in hosts]} for one in hosts]
    return {
        "caption": f"{len(matrix.cells)} of {matrix.possible} directions asked, {len(worst)} in trouble. Median round "
        "trip, and the packet in bytes that came back whole; a ! where it is less than both links carry.",
        "targets": hosts,
        "rows": rows if matrix.cells else [],
        "notes": (
            *matrix.notes,
            *(
                f"{name} could not ask: {matrix.silent_hosts[name]}"
                for name in sorted(matrix.silent_hosts, key=lambda one: (natural(one), one))[:_MAX_PATHS]
            ),
        ),
    }


def _path_dict(cells: Sequence[MatrixCell]) -> dict[str, str]:
    """The worst of the links between two hosts."""
    if not cells:
        return {"words": "", "style": "path-none", "title": ""}
    worst = worst_of(cells)
    title = f"{worst.source} to {worst.target}, {worst.address} over {worst.link}: {worst.error or cell_words(worst)}"
    return {"words": cell_words(worst), "style": _path_style(worst), "title": title}


def _path_style(cell: MatrixCell) -> str:
    if cell.carries is False or (cell.sent and not cell.answered):
        return "hit warning"
    return "path-well" if cell.answered else "path-none"


def cell_words(cell: MatrixCell) -> str:
    """``210 us, 9000``, or why nothing came back."""
    if cell.rtt_us is None:
        return "no answer" if cell.sent else "not asked"
    size = "" if cell.carries is None else f", {cell.wanted}" if cell.carries else f", {cell.path_mtu or 'less'}!"
    return f"{format_duration_us(cell.rtt_us[1])}{size}"
