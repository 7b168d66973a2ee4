"""The paths between the nodes of a fleet, for a terminal: all of a few nodes, of many what is not as it should be."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from advisor.fleet.paths.matrix import Matrix, MatrixCell
from advisor.host.grouping import group_pairs
from advisor.report.format import natural
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, listed, padded

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
        return ("x", "red") if cell.sent else ("", "dim")
    middle = cell.rtt_us[1]
    shown = (
        f"{middle:.0f}"
        if middle < 999.5
        else f"{min(middle / 1000, 9999):.2g}m"
        if middle < 9950
        else (f"{min(middle / 1000, 999):.0f}m")
    )
    if cell.carries is False:
        return f"{shown}!", "red"
    return (f"{shown}?", "yellow") if cell.carries is None else (shown, "green")


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
