"""The ceiling of a host or a cluster as text: its stages, the one that binds, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.limits.records import (
    Binding,
    HostCeiling,
    HostStage,
    IopsBinding,
    MeasuredShare,
    PathChange,
    PathFigures,
    StageSum,
    WhatIf,
)
from advisor.report.format import ranked, runs
from advisor.report.layout import Page, Piece, Span
from advisor.report.units import format_binary

STAGE_WORDS: dict[HostStage, str] = {
    "media": "drives and volumes",
    "pcie": "PCI Express",
    "instance": "cloud machine",
    "quota": "account quota",
    "network": "links",
    "clients": "links of the clients",
    "memory": "memory",
    "processor": "processors",
}
_SAME = 0.005
"""Figures that differ by less are one."""


def add_ceiling(page: Page, ceiling: HostCeiling, title: str) -> None:
    """A heading, the stages with their sums, what binds, what was measured, and what the figures rest on."""
    page.heading(title)
    page.add("All data paths at once; what they share counts once. Unknown stages may lie lower.", indent=2)
    head = tuple(Span(word, "dim") for word in ("stage", "reads MB/s", "writes MB/s", "what was added up"))
    shown = [one for one in ceiling.stages if one.known != "unknown"]
    rows = [_ceiling_row(one, _stage_mark(one.stage, ceiling), ceiling.machine) for one in shown]
    if rows:
        page.table([head, *rows], indent=2)
    unknown = [
        (f"{stage_words(one.stage, ceiling.machine)} ?", (_why_words(one),))
        for one in ceiling.stages
        if one.known == "unknown"
    ]
    page.labelled([*unknown, *ceiling_rows(ceiling)], indent=2)
    for note in ceiling.notes:
        page.add(note, indent=2, hang=2)


def ceiling_rows(ceiling: HostCeiling) -> list[tuple[str, tuple[Piece, ...]]]:
    """What binds reads and writes, the IOPS, and what was measured, each with its label."""
    rows: list[tuple[str, tuple[Piece, ...]]] = []
    one, other = ceiling.binds, ceiling.write_binds
    if ceiling.read_mb_s is None and ceiling.write_mb_s is None:
        rows.append(("ceiling", ("unknown: no stage is known of every path",)))
    elif ceiling.read_mb_s == ceiling.write_mb_s and one and other and _next_stage(one) == _next_stage(other):
        rows.append(("ceiling", (binding_words(ceiling.read_mb_s, one, ceiling.machine),)))
    else:
        reads = one if ceiling.read_mb_s is not None else None
        rows.append(("reads", (binding_words(ceiling.read_mb_s, reads, ceiling.machine),)))
        rows.append(("writes", (binding_words(ceiling.write_mb_s, other, ceiling.machine),)))
    rows += _iops_rows(ceiling)
    for measured in ceiling.measured:
        rows.append(("measured", (measured_words(measured),)))
    return rows


def _stage_mark(stage: HostStage, ceiling: HostCeiling) -> str | None:
    """What a stage binds: all, one way, or a part where different stages bind different paths or hosts."""
    ways = [
        ("binds reads", "binds reads in part", ceiling.binds if ceiling.read_mb_s is not None else None),
        ("binds writes", "binds writes in part", ceiling.write_binds),
    ]
    known = [way for way in ways if way[2] is not None]
    mine = [(all_of, part) for all_of, part, one in known if one and stage in _sharing_stages(one)]
    is_part = any(one and stage in (shares := _sharing_stages(one)) and len(shares) > 1 for _all, _part, one in known)
    if not mine:
        return None
    if len(mine) == len(known):
        return "binds in part" if is_part else "binds"
    return mine[0][1] if is_part else mine[0][0]


def _sharing_stages(one: Binding) -> set[HostStage]:
    return {share.stage for share in one.shares} or {one.stage}


def _ceiling_row(one: StageSum, mark: str | None, machine: str | None) -> tuple[Piece, ...]:
    name = stage_words(one.stage, machine)
    title = Span(f"{name} ({mark})", "bold") if mark else name
    why = _why_words(one)
    if one.known == "not-counted":
        return title, "-", "-", why
    if one.known == "known" and one.read_mb_s is None and one.write_mb_s is None and one.read_iops is not None:
        return title, "-", "-", f"{why}: {one.read_iops:,.0f} IOPS"
    return title, figure_piece(one.read_mb_s), figure_piece(one.write_mb_s), why


def _why_words(one: StageSum) -> str:
    return f"{members_words(one.members)}: {one.why}" if one.members else one.why


def stage_words(stage: HostStage, machine: str | None = None) -> str:
    """The words for a stage; ``machine`` is what the stage ``instance`` is on this host."""
    if stage == "instance" and machine:
        return machine
    return STAGE_WORDS[stage]


def members_words(members: Sequence[str], most: int = 6) -> str:
    """``nvme0n1-nvme23n1``: runs of names, and how many more there are."""
    parts = runs(members, ranked(members)).split(", ")
    if len(parts) <= most:
        return ", ".join(parts)
    return f"{', '.join(parts[:most])} and {len(parts) - most} more"


def figure_piece(value: float | None) -> Piece:
    """MB/s, or a question mark."""
    return Span("?", "yellow") if value is None else f"{value:,.0f}"


def _iops_rows(ceiling: HostCeiling) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """One row where reads and writes are alike."""
    reads = _iops_words(ceiling, ceiling.read_iops, ceiling.read_iops_at_most, ceiling.iops_binds)
    writes = _iops_words(ceiling, ceiling.write_iops, ceiling.write_iops_at_most, ceiling.write_iops_binds)
    if reads and reads == writes:
        yield "IOPS", (reads,)
    elif reads or writes:
        yield "IOPS (reads)", (reads or "?",)
        yield "IOPS (writes)", (writes or "?",)


def _iops_words(
    ceiling: HostCeiling, value: float | None, at_most: float | None, one: IopsBinding | None
) -> str | None:
    """``260,000, bound by EC2 instance (r5b.24xlarge); next: drives and volumes, 356,000 (37 % higher)``."""
    shown = at_most if value is None else value
    if shown is None:
        return (
            f"unknown: the IOPS of {_unknown_words(ceiling)} are not known" if bool(ceiling.iops_unknown_of) else None
        )
    if value is None:
        words = f"unknown: at most {shown:,.0f}, the IOPS of {_unknown_words(ceiling)} are not known"
        return f"{words} ({stage_words(one.stage, ceiling.machine)})" if one else words
    words = f"{shown:,.0f}"
    if one is None:
        return words
    bound = stage_words(one.stage, ceiling.machine)
    words = f"{words}, bound by {f'{bound} ({members_words(one.members)})' if one.members else bound}"
    if one.next_iops is not None and one.next_stage is not None and shown:
        words += "; " + (
            f"next: {stage_words(one.next_stage, ceiling.machine)}, {one.next_iops:,.0f} "
            f"({100 * (one.next_iops / shown - 1):.0f} % higher)"
        )
    return words


def _unknown_words(ceiling: HostCeiling) -> str:
    return members_words(ceiling.iops_unknown_of, 3)


def _next_stage(one: Binding) -> tuple[float | None, HostStage | None]:
    return one.next_mb_s, one.next_stage


def binding_words(value: float | None, one: Binding | None, machine: str | None = None) -> str:
    """``24,842 MB/s, bound by links (ib0, ib1); next: PCI Express, 31,504 MB/s (27 % higher)``."""
    if value is None or one is None:
        return "unknown: no stage is known of every path"
    shares = [
        f"{stage_words(share.stage, machine)} ({members_words(share.members)})"
        + (f" {share.mb_s:,.0f}" if len(one.shares) > 1 else "")
        for share in one.shares
    ]
    words = f"{value:,.0f} MB/s, bound by {' + '.join(shares)}"
    # Stages that each bind a part of the paths have no common next stage.
    if one.next_mb_s is not None and one.next_mb_s >= value:
        higher = f"{100 * (one.next_mb_s / value - 1):.0f} %" if value else "?"
        what = stage_words(one.next_stage, machine) if one.next_stage else "the other stages together"
        words += "; " + f"next: {what}, {one.next_mb_s:,.0f} MB/s ({higher} higher)"
    if one.lifted_mb_s is not None and one.next_mb_s is not None and one.lifted_mb_s < one.next_mb_s * (1 - _SAME):
        words += "; " + f"without the binding stage all others together carry {one.lifted_mb_s:,.0f} MB/s"
    return words


def measured_words(one: MeasuredShare) -> str:
    """``reads 132,000 MB/s: 97 % of 136,633``."""
    way = "reads" if one.direction == "read" else "writes"
    words = f"{way} {one.mb_s:,.0f} MB/s"
    if one.share is None or one.ceiling_mb_s is None:
        return f"{words}: no ceiling of it is known"
    words += ": " + f"{100 * one.share:.0f} % of {one.ceiling_mb_s:,.0f}"
    return words if one.share <= 1 else f"{words} (above the ceiling: a cache, a burst or a wrong figure)"


# ``limits --what-if`` as text: the host before and after, side by side.

Row = tuple[Piece, Piece, Piece, Piece]
_UNCHANGED_PART = 1e-6
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
    return "unchanged" if abs(part) < _UNCHANGED_PART else f"{100 * part:+.0f} %"
