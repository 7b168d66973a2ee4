"""The rows of a proof's table, and the one axis on which their intervals stand. Shared by the text and the page.

The scale of the axis is the natural logarithm of after over before: a change stands at the tick of its figure, so where
less is better, better is to the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from advisor.proof.records import Proof, Summary
from advisor.proof.statistics import MINIMUM_PAIRS
from advisor.proof.verdict import has_moved
from advisor.report.format import clean
from advisor.report.intervals import Drawn, round_ends
from advisor.report.layout import Span
from advisor.report.proof_numbers import (
    change_words,
    figures_words,
    format_amount,
    format_amounts,
    interval_words,
    p_figure,
    p_of,
)
from advisor.report.proof_words import VERDICTS, arm_words, metric_words, unjudged_control


class MetricRow(NamedTuple):
    """One metric: its summary, what is said about it, and the band that counts as no change (on the axis' scale)."""

    summary: Summary
    says: Span
    band: tuple[float, float] | None = None


class RowGroup(NamedTuple):
    title: str
    note: str
    rows: tuple[MetricRow, ...]
    is_judged: bool = True


class Cells(NamedTuple):
    """A row as text, but for its drawing."""

    metric: str
    values: str
    change: str
    interval: str
    p: str
    pairs: str
    mde: str


_NOT_MEASURED = "not measured"
_VOIDED = "void"


def table_head() -> Cells:
    """The headings of the columns."""
    return Cells("", "before → after", "change", "interval", "p", "pairs", "MDE")


def rows_of(groups: Iterable[RowGroup]) -> list[MetricRow]:
    return [row for group in groups for row in group.rows]


def groups_of(proof: Proof) -> list[RowGroup]:
    """Claims, guardrails, control, explored; those without rows left out."""
    remarks = {"invalid": "; void, nothing follows from them", "indicative": "; indicative only"}
    remark = remarks.get(proof.verdict, "")
    margins = f"margin ±{format_amounts(claim.margin for claim in proof.workloads)}"
    most = format_amounts(item.limit for item in proof.guardrails)
    limits = f"what must not get worse by more than {most}"
    claims = [MetricRow(one, _claim_says(proof, one), band_of(one.margin, one.margin)) for one in proof.workloads]
    if not proof.session.is_paired:
        return _arm_groups(proof, margins + remark, limits)
    explored = [MetricRow(item, Span("not judged", "dim")) for item in proof.exploratory]
    groups = (
        RowGroup("Claims", margins + remark, tuple(claims)),
        RowGroup("Guardrails", limits, tuple(_guard_row(proof, item) for item in proof.guardrails)),
        RowGroup(
            "Control", "what the change cannot touch", _control_rows(proof), is_judged=not unjudged_control(proof)
        ),
        RowGroup("Explored", "not judged", tuple(explored), is_judged=False),
    )
    return [group for group in groups if group.rows]


def _arm_groups(proof: Proof, margins: str, limits: str) -> list[RowGroup]:
    """Every arm against the first, and of its guardrails and control what is not as it should be, or is not known."""
    arms = [MetricRow(one, Span(*arm_words(proof, one)), band_of(one.margin, one.margin)) for one in proof.workloads]
    title = "Arms" if proof.session.ablation is None else "Values"
    guards = [_named(_guard_row(proof, one)) for one in proof.guardrails if one.status == "broken"]
    controls = []
    for one in proof.controls:
        moved = _has_moved(one, proof.session.subject.claims[0].margin or 0.0, proof.session.schedule.arms)
        controls.append(_named(MetricRow(one, Span("moved", "red") if moved else Span("did not move", "green"))))
    groups = (
        RowGroup(title, margins, tuple(arms)),
        RowGroup("Guardrails", limits, tuple(guards)),
        RowGroup("Control", "what no arm can touch", tuple(controls), is_judged=False),
    )
    return [group for group in groups if group.rows]


def _named(row: MetricRow) -> MetricRow:
    """The row with the name of its arm, and of a guardrail with that of its metric as well."""
    item = row.summary
    name = item.arm if item.limit is None else f"{item.arm}: {metric_words(item)}"
    return row._replace(summary=msgspec.structs.replace(item, arm=name, cost="undecided"))


def _claim_says(proof: Proof, claim: Summary) -> Span:
    """The verdict on one claim; in brackets where the session as a whole proves nothing."""
    if not claim.pairs:
        return Span(_NOT_MEASURED, "dim")
    words, style = VERDICTS[claim.verdict or "inconclusive"]
    match proof.verdict:
        case "invalid":
            return Span(_VOIDED, "dim")
        case "indicative":
            return Span(f"({words})", "yellow")
    return Span(words, style)


def band_of(down: float | None, up: float | None) -> tuple[float, float] | None:
    """Fractions below and above no change, as verdicts compare them: -10 % stands as far from 0 as +10 %."""
    values = [None if value is None or not 0 <= value < math.inf else math.log1p(value) for value in (down, up)]
    return None if values[0] is None or values[1] is None else (-values[0], values[1])


def _guard_row(proof: Proof, item: Summary) -> MetricRow:
    says = Span("limit kept")
    if not item.pairs:
        says = Span(_NOT_MEASURED, "dim")
    elif proof.verdict == "invalid":
        says = Span(_VOIDED, "dim")
    elif item.verdict == "loss" and proof.session.self_test:
        says = Span("false difference", "red")
    elif item.verdict == "loss":
        says = Span(f"over {format_amount(item.limit)} worse", "red")
    elif item.status == "undecided":
        says = Span("undecided", "yellow")
    band = band_of(item.limit, 0.0) if item.better == "higher" else band_of(0.0, item.limit)
    return MetricRow(item, says, band)


def _control_rows(proof: Proof) -> tuple[MetricRow, ...]:
    if proof.control is None:
        return ()
    margin = min((claim.margin for claim in proof.workloads if claim.margin is not None), default=math.inf)
    if not proof.control.pairs:
        return (MetricRow(proof.control, Span(_NOT_MEASURED, "dim")),)
    if proof.control.pairs < MINIMUM_PAIRS:
        # An estimate from so few pairs invites a judgement that they do not carry: the medians alone are printed.
        bare = msgspec.structs.replace(
            proof.control, ratio=None, ci95=None, effect=None, p_value=None, minimum_detectable_effect=None
        )
        return (MetricRow(bare, Span(unjudged_control(proof) or "", "dim")),)
    says = Span("moved", "red") if _has_moved(proof.control, margin) else Span("did not move", "green")
    return (MetricRow(proof.control, says),)


def _has_moved(control: Summary, margin: float, arms: int = 2) -> bool:
    # A record from a file may hold what no measurement gives.
    return control.effect is not None and control.effect > -1 and has_moved(control, margin, arms)


def cells_of(row: MetricRow) -> Cells:
    """A row's figures in words."""
    item = row.summary
    return Cells(
        metric=metric_words(item),
        values=f"{figures_words(item.before, item.after)} {clean(item.unit)}" if item.pairs else "no figures",
        change=change_words(item),
        interval=interval_words(item),
        p=p_figure(p_of(item)),
        pairs=str(item.pairs),
        mde=format_amount(item.minimum_detectable_effect),
    )


def by_workload(rows: Sequence[MetricRow]) -> Iterable[tuple[str, list[MetricRow]]]:
    """The rows of each workload, in the order in which the workloads come."""
    for name in dict.fromkeys(row.summary.name for row in rows):
        yield name, [row for row in rows if row.summary.name == name]


FINEST_END = 0.10
"""The axis reaches this effect on both sides at least."""


def interval_of(item: Summary) -> Drawn | None:
    """The interval on the axis' scale; None where it was not measured, or holds what has no logarithm."""
    if item.ratio is None or item.ci95 is None:
        return None
    values = (item.ci95[0], item.ratio, item.ci95[1])
    if not all(0 < value < math.inf for value in values):
        return None
    return Drawn(*sorted(map(math.log, values)))


def axis_ends(rows: Iterable[MetricRow]) -> tuple[float, float]:
    """The axis from the first to the last round effect around all that is drawn."""
    reach: list[float] = []
    for row in rows:
        reach += [*(row.band or ()), *(interval_of(row.summary) or ())]
    return round_ends(reach, FINEST_END)


def safe_expm1(value: float) -> float:
    """`math.expm1`, infinite where that overflows."""
    try:
        return math.expm1(value)
    except OverflowError:
        return math.inf
