"""``limits --what-if`` as text: the host before and after, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.limits.host_records import Binding, HostCeiling, HostStage, PathChange, PathFigures, StageSum, WhatIf
from advisor.report.host_ceiling import binding_words, figure_piece, measured_words, members_words, stage_words
from advisor.report.layout import Page, Piece, Span
from advisor.report.units import format_binary

Row = tuple[Piece, Piece, Piece, Piece]
_SAME = 1e-6
_MOST_PATHS = 12


def add_what_if(page: Page, before: HostCeiling, found: WhatIf) -> None:
    """What was given, whether it changes the ceiling, and each figure before and after."""
    page.heading("What if")
    for given in found.given:
        page.bullet(given)
    after = found.host
    if not found.changes_ceiling:
        is_known = before.read_mb_s is not None or before.write_mb_s is not None
        same = "The ceiling of the host does not change."
        page.add(Span(same if is_known else "The ceiling of the host is unknown before and after.", "bold"), indent=2)
        if after.binds:
            words = binding_words(after.read_mb_s or after.write_mb_s, after.binds, after.machine)
            page.add(words, indent=2, hang=2)
    head = ("before", "after", "change", "what")
    page.table([tuple(Span(word, "dim") for word in head), *_change_rows(before, found)], indent=2)
    page.labelled(list(_binding_rows(before, after)), indent=2)
    for measured in after.measured:
        page.add(f"measured: {measured_words(measured)} (after)", indent=2, hang=2)
    for note in found.notes:
        page.add(note, indent=2, hang=2)


def _change_rows(before: HostCeiling, found: WhatIf) -> Iterator[Row]:
    after = found.host
    yield _figures_row(Span("ceiling: reads MB/s", "bold"), before.read_mb_s, after.read_mb_s)
    yield _figures_row(Span("ceiling: writes MB/s", "bold"), before.write_mb_s, after.write_mb_s)
    for name, old, new in (
        ("IOPS (" + "reads" + ")", before.read_iops, after.read_iops),
        ("IOPS (" + "writes" + ")", before.write_iops, after.write_iops),
    ):
        if old is not None or new is not None or before.iops_unknown_of or after.iops_unknown_of:
            yield _figures_row(f"ceiling: {name}", old, new)
    for name, old, new in (
        ("IOPS (" + "reads" + ")", before.read_iops_at_most, after.read_iops_at_most),
        ("IOPS (" + "writes" + ")", before.write_iops_at_most, after.write_iops_at_most),
    ):
        if old is not None or new is not None:
            yield _figures_row(f"without the machine, whose IOPS are not known: {name}", old, new)
    machine = after.machine or before.machine
    for stage in dict.fromkeys(one.stage for one in (*before.stages, *after.stages)):
        yield from _stage_rows(stage, before.stages, after.stages, machine)
    for paths in list(_alike_changes(found.paths))[:_MOST_PATHS]:
        names = tuple(path.name for path in paths)
        yield from _path_rows(members_words(names), paths[0])


def _alike_changes(paths: Sequence[PathChange]) -> Iterator[tuple[PathChange, ...]]:
    """Paths with the same figures before and after, together."""
    groups: dict[tuple[PathFigures | None, PathFigures | None], list[PathChange]] = {}
    for path in paths:
        groups.setdefault((path.before, path.after), []).append(path)
    yield from map(tuple, groups.values())


def _binding_rows(before: HostCeiling, after: HostCeiling) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    for name, old, new in (
        ("binds reads", before.binds, after.binds),
        ("binds writes", before.write_binds, after.write_binds),
    ):
        words = (_bound_words(old, before.machine), _bound_words(new, after.machine))
        yield name, (words[0] if words[0] == words[1] else f"{words[0]} → {words[1]}",)


def _bound_words(one: Binding | None, machine: str | None) -> str:
    return f"{stage_words(one.stage, machine)} ({members_words(one.members, 3)})" if one else "?"


def _stage_rows(
    stage: HostStage, before: Sequence[StageSum], after: Sequence[StageSum], machine: str | None
) -> Iterator[Row]:
    old, new = (next((one for one in stages if one.stage == stage), None) for stages in (before, after))
    for way, name in (("read_mb_s", "reads MB/s"), ("write_mb_s", "writes MB/s")):
        values = [getattr(one, way) if one else None for one in (old, new)]
        if any(value is not None for value in values):
            yield _figures_row(f"{stage_words(stage, machine)}: {name}", *values)


def _path_rows(name: str, path: PathChange) -> Iterator[Row]:
    names = (
        ("read_mb_s", "reads MB/s"),
        ("write_mb_s", "writes MB/s"),
        ("read_iops", "IOPS (" + "reads" + ")"),
        ("write_iops", "IOPS (" + "writes" + ")"),
    )
    for field, unit in names:
        old, new = _read_field(path.before, field), _read_field(path.after, field)
        if old != new:
            yield _figures_row(f"{name}: {unit}", old, new)
    old, new = _read_field(path.before, "usable_bytes"), _read_field(path.after, "usable_bytes")
    if old != new:
        shown = ["?" if value is None else format_binary(round(value)) for value in (old, new)]
        yield shown[0], shown[1], _change_words(old, new), f"{name}: usable capacity"


def _read_field(figures: PathFigures | None, field: str) -> float | None:
    value: float | None = getattr(figures, field) if figures else None
    return value


def _figures_row(name: Piece, old: float | None, new: float | None) -> Row:
    return figure_piece(old), figure_piece(new), _change_words(old, new), name


def _change_words(old: float | None, new: float | None) -> str:
    if old is None or new is None or not old:
        return ""
    part = new / old - 1
    return "unchanged" if abs(part) < _SAME else f"{100 * part:+.0f} %"
