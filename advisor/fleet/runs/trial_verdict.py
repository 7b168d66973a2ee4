"""The verdict of a trial with hosts as units, out of its two phases. Pure."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from advisor.fleet.runs.trial_figures import level_of
from advisor.fleet.runs.trial_records import MetricEffect, PhaseMeasured, TrialJudged, TrialTerms, TrialVerdict
from advisor.proof.host_units import LEVEL, Design, UnitTest, bound_missing, estimate_effect, judge_units
from advisor.proof.own_command import CommandMetric


def judge_trial(
    terms: TrialTerms,
    design: Design,
    treated: Sequence[str],
    phases: tuple[PhaseMeasured, PhaseMeasured],
    not_held: Mapping[str, str],
) -> TrialJudged:
    """Every host counts as it was tossed: also one on which the values did not last, and one that is gone."""
    found = [_measure_effect(terms, metric, design, treated, phases) for metric in terms.metrics]
    (claim, test), guardrails = found[0], found[1:]
    missing = tuple(name for name, change in claim.changes.items() if change is None)
    reasons: list[str] = []
    if missing:
        verdict = _judge_bounds(claim, terms, design, treated, missing, reasons)
    else:
        assert test is not None
        verdict = _judge_test(claim, test, terms.margin, reasons)
    costs = [one.name for one, _ in guardrails if _is_cost(one, terms, design, treated)]
    if verdict == "gain" and costs:
        verdict = "gain-with-cost"
        reasons.append(f"{', '.join(costs)} got worse")
    reasons += [f"{name}: the values did not last ({why}); it counts as treated" for name, why in not_held.items()]
    reasons += [
        f"{', '.join(gone)}: no figure of {one.name}"
        for one, _ in guardrails
        if (gone := [name for name, change in one.changes.items() if change is None])
    ]
    counted = test.assignments if test is not None else design.assignments
    return TrialJudged(
        time.time(),
        verdict,
        tuple(one for one, _ in found),
        tuple(reasons),
        counted,
        test.is_exact if test is not None else counted == design.assignments,
        missing,
        not_held,
    )


def host_changes(
    terms: TrialTerms, metric: CommandMetric, design: Design, phases: tuple[PhaseMeasured, PhaseMeasured]
) -> dict[str, float | None]:
    """How far each host went from before to after, in logarithms, plus is better; None without a figure."""
    changes: dict[str, float | None] = {}
    for name in design.hosts:
        before, after = (level_of(phase.figures[metric.name].get(name, ()), terms.rounds) for phase in phases)
        changes[name] = None if before is None or after is None else metric.described.sign * (after - before)
    return changes


def _measure_effect(
    terms: TrialTerms,
    metric: CommandMetric,
    design: Design,
    treated: Sequence[str],
    phases: tuple[PhaseMeasured, PhaseMeasured],
) -> tuple[MetricEffect, UnitTest | None]:
    changes = host_changes(terms, metric, design, phases)
    whole = {name: change for name, change in changes.items() if change is not None}
    test = judge_units(design, treated, whole, terms.seed) if len(whole) == len(changes) else None
    if test is not None:
        p_value = test.p_value
    else:
        bounds = bound_missing(design, treated, changes, terms.seed)
        p_value = min(1.0, 2 * min(bounds.p_gain, bounds.p_loss))
    interval = test.interval if test is not None else None
    effect = MetricEffect(
        metric.name,
        metric.unit,
        metric.better,
        metric is not terms.metrics[0],
        math.expm1(estimate_effect(design, treated, whole)),
        _ratio(interval.low) if interval is not None else None,
        _ratio(interval.high) if interval is not None else None,
        p_value,
        {name: None if change is None else math.expm1(change) for name, change in changes.items()},
    )
    return effect, test


def _ratio(shift: float) -> float | None:
    """A ratio minus one; None for an end that is open."""
    return math.expm1(shift) if math.isfinite(shift) else None


def _judge_test(claim: MetricEffect, test: UnitTest, margin: float, reasons: list[str]) -> TrialVerdict:
    if test.p_value <= LEVEL:
        return "gain" if test.p_gain < test.p_loss else "loss"
    if test.equivalence.lies_within(math.log1p(margin)):
        reasons.append(f"the 90 % interval of {claim.name} lies within {margin:.0%} on both sides")
        return "no-difference"
    reasons.append(f"p = {test.p_value:.3f}, and a claim needs {LEVEL:g}")
    return "inconclusive"


def _judge_bounds(
    claim: MetricEffect,
    terms: TrialTerms,
    design: Design,
    treated: Sequence[str],
    missing: Sequence[str],
    reasons: list[str],
) -> TrialVerdict:
    bounds = bound_missing(design, treated, _logarithms(claim), terms.seed)
    lost = [f"{name} ({'treated' if name in treated else 'not treated'})" for name in missing]
    if bounds.p_gain <= LEVEL / 2:
        reasons.append(f"{', '.join(lost)} gave no figure; the gain stands whatever they would have shown")
        return "gain"
    if bounds.p_loss <= LEVEL / 2:
        reasons.append(f"{', '.join(lost)} gave no figure; the loss stands whatever they would have shown")
        return "loss"
    reasons.append(f"undecided: {', '.join(lost)} gave no figure, and may have done worst or best of all")
    return "inconclusive"


def _is_cost(one: MetricEffect, terms: TrialTerms, design: Design, treated: Sequence[str]) -> bool:
    """Whether a guardrail got worse, one-sided at 5 %; hosts without a figure are taken for the worst."""
    changes = _logarithms(one)
    if None in changes.values():
        return bound_missing(design, treated, changes, terms.seed).p_cost <= LEVEL
    whole = {name: change for name, change in changes.items() if change is not None}
    return judge_units(design, treated, whole, terms.seed).p_loss <= LEVEL


def _logarithms(one: MetricEffect) -> dict[str, float | None]:
    return {name: None if change is None else math.log1p(change) for name, change in one.changes.items()}
