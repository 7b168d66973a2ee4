"""The ceiling of a host or a cluster as text: its stages, the one that binds, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from advisor.ceilings.host_records import Binding, Ceiling, HostStage, MeasuredShare, StageSum
from advisor.report.layout import Page, Piece, Span
from advisor.report.words import ranked, runs
from advisor.words import N_, _

STAGE_WORDS: Final[dict[HostStage, str]] = {
    "media": N_("drives and volumes"),
    "pcie": N_("PCI Express"),
    "instance": N_("EC2 instance"),
    "quota": N_("account quota"),
    "network": N_("links"),
    "clients": N_("links of the clients"),
    "memory": N_("memory"),
    "processor": N_("processors"),
}
_SAME: Final = 0.005
"""Figures that differ by less are one."""


def add_ceiling(page: Page, ceiling: Ceiling, title: str) -> None:
    """A heading, the stages with their sums, what binds, what was measured, and what the figures rest on."""
    page.heading(title)
    page.add(_("All data paths at once; what they share counts once. Unknown stages may lie lower."), indent=2)
    binding = {one.stage for one in (ceiling.binds, ceiling.write_binds) if one}
    head = tuple(Span(word, "dim") for word in (_("stage"), _("reads MB/s"), _("writes MB/s"), _("what was added up")))
    page.table([head, *(_row(one, is_binding=one.stage in binding) for one in ceiling.stages)], indent=2)
    page.labelled(list(_rows(ceiling)), indent=2)
    for note in ceiling.notes:
        page.add(note, indent=2, hang=2)


def _row(one: StageSum, *, is_binding: bool) -> tuple[Piece, ...]:
    name = stage_words(one.stage)
    title = Span(f"{name} ({_('binds')})", "bold") if is_binding else name
    names = f"{members_words(one.members)}: " if one.members else ""
    why = f"{names}{one.why}"
    if one.known == "not-counted":
        return title, "-", "-", why
    return title, figure(one.read_mb_s), figure(one.write_mb_s), why


def stage_words(stage: HostStage) -> str:
    """The words for a stage."""
    return _(STAGE_WORDS[stage])


def members_words(members: Sequence[str], most: int = 6) -> str:
    """``nvme0n1-nvme23n1``: runs of names, and how many more there are."""
    parts = runs(members, ranked(members)).split(", ")
    if len(parts) <= most:
        return ", ".join(parts)
    return _("{item} and {count} more").format(item=", ".join(parts[:most]), count=len(parts) - most)


def figure(value: float | None) -> Piece:
    """MB/s, or a question mark."""
    return Span("?", "yellow") if value is None else f"{value:,.0f}"


def _rows(ceiling: Ceiling) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    one, other = ceiling.binds, ceiling.write_binds
    if ceiling.read_mb_s is None and ceiling.write_mb_s is None:
        yield _("ceiling"), (_("unknown: no stage is known of every path"),)
    elif ceiling.read_mb_s == ceiling.write_mb_s and one and other and _next(one) == _next(other):
        yield _("ceiling"), (binding_words(ceiling.read_mb_s, one),)
    else:
        yield _("reads"), (binding_words(ceiling.read_mb_s, one if ceiling.read_mb_s is not None else None),)
        yield _("writes"), (binding_words(ceiling.write_mb_s, other),)
    if ceiling.read_iops or ceiling.write_iops:
        reads, writes = (f"{value:,.0f}" if value else "?" for value in (ceiling.read_iops, ceiling.write_iops))
        yield "IOPS", (reads if reads == writes else f"{reads} / {writes}",)
    for measured in ceiling.measured:
        yield _("measured"), (measured_words(measured),)


def _next(one: Binding) -> tuple[float | None, HostStage | None]:
    return one.next_mb_s, one.next_stage


def binding_words(value: float | None, one: Binding | None) -> str:
    """``24,842 MB/s, bound by links (ib0, ib1); next: PCI Express, 31,504 MB/s (27 % higher)``."""
    if value is None or one is None:
        return _("unknown: no stage is known of every path")
    shares = [
        f"{stage_words(share.stage)} ({members_words(share.members)})"
        + (f" {share.mb_s:,.0f}" if len(one.shares) > 1 else "")
        for share in one.shares
    ]
    words = _("{value} MB/s, bound by {what}").format(value=f"{value:,.0f}", what=" + ".join(shares))
    if one.next_mb_s is not None:
        higher = f"{100 * (one.next_mb_s / value - 1):.0f} %" if value else "?"
        what = stage_words(one.next_stage) if one.next_stage else _("the other stages together")
        words += "; " + _("next: {what}, {value} MB/s ({share} higher)").format(
            what=what, value=f"{one.next_mb_s:,.0f}", share=higher
        )
    if one.lifted_mb_s is not None and one.next_mb_s is not None and one.lifted_mb_s < one.next_mb_s * (1 - _SAME):
        words += "; " + _("without the binding stage all others together carry {value} MB/s").format(
            value=f"{one.lifted_mb_s:,.0f}"
        )
    return words


def measured_words(one: MeasuredShare) -> str:
    """``reads 132,000 MB/s: 97 % of 136,633``."""
    way = _("reads") if one.direction == "read" else _("writes")
    words = f"{way} {one.mb_s:,.0f} MB/s"
    if one.share is None or one.ceiling_mb_s is None:
        return f"{words}: {_('no ceiling of it is known')}"
    words += ": " + _("{share} of {ceiling}").format(
        share=f"{100 * one.share:.0f} %", ceiling=f"{one.ceiling_mb_s:,.0f}"
    )
    return words if one.share <= 1 else f"{words} ({_('above the ceiling: a cache, a burst or a wrong figure')})"
