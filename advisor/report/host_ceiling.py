"""The ceiling of a host or a cluster as text: its stages, the one that binds, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.limits.host_records import Binding, HostCeiling, HostStage, IopsBinding, MeasuredShare, StageSum
from advisor.report.format import ranked, runs
from advisor.report.layout import Page, Piece, Span

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
