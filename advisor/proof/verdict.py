"""From a session to a verdict. Pure: the same session gives the same proof, now and when it is analysed again.

The rules, in order of precedence:

==============  ==============================================================================================
invalid         control moved, or a fault (read-back failed, fio error)
indicative      tunables that cannot be toggled (T3), interrupted, order effect, under 6 pairs; a gain before the
                control has 6 pairs, or not shown to be larger than what it shows; a gain or none under live traffic
                where a pair has a figure in one arm only
gain, loss      Holm-adjusted p at most alpha and the interval excludes no difference, and the arms, once held, show the
                same direction; where pairs were repeated for what one arm saw, also among all attempts that do not
                stand out when the arms are not known. Contamination alone widens intervals, and no more
gain-with-cost  a gain, but a guardrail is broken, or another claim is a loss
no-difference   90 % interval inside the margin (two one-sided tests), 16 pairs or more, and no effect that comes late
inconclusive    everything else; the summary says what could have been seen and how many pairs it would take
==============  ==============================================================================================

A guardrail is *kept* where its worsening is shown to be below its limit (one-sided, 5 % over all looks), *broken* where
it is significantly worse (two-sided, at the level of a single claim) and its estimate is beyond the limit, else
*undecided*. A session settles only when every claim and every guardrail is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from advisor.host.numbers import count_noun
from advisor.proof.covariates import stand_out
from advisor.proof.live_source import HARM_LEVEL, ONE_SIDED, compare_figures, estimated_share, shown_share
from advisor.proof.metrics import METRICS, Metric, MetricName
from advisor.proof.own_command import OWN_WORKLOADS
from advisor.proof.records import (
    Arm,
    Claim,
    Cost,
    FioRun,
    Guardrail,
    Pair,
    Proof,
    Session,
    Summary,
    Switchback,
    Verdict,
    measured_workloads,
)
from advisor.proof.schedule import EQUIVALENCE_PAIRS
from advisor.proof.statistics import (
    MINIMUM_PAIRS,
    POCOCK,
    POCOCK_ONE_SIDED,
    Interval,
    hodges_lehmann,
    holm,
    is_equivalent,
    limit_status,
    median,
    minimum_detectable_effect,
    needed_pairs,
    rank_sum,
    robust_spread,
    sign_test,
    signed_rank,
    step_down,
)
from advisor.proof.workloads import get_workload

CARRY_OVER_LEVEL = 0.01
CARRY_OVER_DOUBT_LEVEL = 0.05
"""Up to here an effect of the order is no reason against a verdict, but not to be called unseen either."""
CONTROL_LEVEL = 0.05
LEANING_LEVEL = 0.5
"""Sign test below which contamination leans to an arm: low enough that two pairs of arm B alone count."""
HOLD_RUNS = 3
"""Runs of each claimed workload below which a held arm has no start and no end."""
HOLD_ERRORS = 3.0
"""How many standard errors a drift of a held arm must exceed, besides the margin."""
MAX_NEEDED_PAIRS = 10_000
HOPELESS = 6
"""A guardrail that needs so many times the pairs of a session is decided in less than a fifth of sessions: none goes on
for it."""


class PairedSample(msgspec.Struct, frozen=True):
    """One metric of one workload, pair by pair. ``effects`` are ln ratios B over A, plus is better."""

    before: tuple[float, ...]
    after: tuple[float, ...]
    effects: tuple[float, ...]
    orders: tuple[str, ...]


def counted_pairs(session: Session) -> tuple[Pair, ...]:
    """The pairs that enter the statistics: whole, and not repeated because of contamination."""
    return tuple(pair for pair in session.pairs if pair.whole and not pair.superseded)


def make_sample(pairs: Sequence[Pair], workload: str, metric: Metric, *, control: bool = False) -> PairedSample:
    """A metric's values over the pairs that have it; pairs with a value of zero or less are left out."""
    rows = []
    for pair in pairs:
        runs = [run for run in (pair.control_runs if control else pair.runs) if run.workload == workload]
        before, after = _arm_value(runs, "A", metric.name), _arm_value(runs, "B", metric.name)
        if before is not None and after is not None:
            rows.append((before, after, metric.sign * math.log(after / before), pair.order))
    before_all, after_all, effects, orders = zip(*rows, strict=True) if rows else ((), (), (), ())
    return PairedSample(before_all, after_all, effects, orders)


def _arm_value(runs: Sequence[FioRun], arm: Arm, metric: MetricName) -> float | None:
    """Geometric mean over an arm's runs in a pair: one run as a rule, two for A in an A-B-A sequence."""
    values = [run.figures.value(metric) for run in runs if run.arm == arm]
    if not values or min(values) <= 0:
        return None
    if len(values) == 1:
        return values[0]
    return math.exp(sum(math.log(value) for value in values) / len(values))


def summarise_metric(
    name: str, metric: Metric, data: PairedSample, *, is_tested: bool = True, confidence: float = 0.95
) -> Summary:
    """Medians, ratio, interval and, where it is tested, p of one metric, not judged yet."""
    empty = Summary(name, metric.name, metric.unit, metric.better)
    if not data.effects:
        return empty
    (interval,) = hodges_lehmann(data.effects, confidence)
    bounds = sorted(math.exp(metric.sign * bound) for bound in (interval.low, interval.high))
    return msgspec.structs.replace(
        empty,
        before=median(data.before),
        after=median(data.after),
        ratio=math.exp(metric.sign * interval.estimate),
        ci95=(bounds[0], bounds[1]) if len(data.effects) > 1 else None,
        confidence=interval.confidence if len(data.effects) > 1 else None,
        effect=math.expm1(interval.estimate),
        p_value=signed_rank(data.effects).p_value if is_tested else None,
        pairs=len(data.effects),
    )


class _Judged(msgspec.Struct, frozen=True):
    """A claim or guardrail with its data, its Holm-adjusted p, and what it says."""

    summary: Summary
    data: PairedSample
    interval: Interval | None
    direction: int
    """+1 significantly better, -1 significantly worse, 0 neither."""
    is_withheld: bool = False
    """Significant, but perhaps only by the choice of the pairs that were repeated: neither a difference nor none."""


def _judge_family(
    session: Session, named: Sequence[tuple[str, Metric]], pairs: Sequence[Pair], alpha: float
) -> list[_Judged]:
    """Test a family of (workload, metric) together: Holm over the family."""
    samples = [make_sample(pairs, name, metric) for name, metric in named]
    tested = step_down([signed_rank(data.effects).p_value for data in samples], alpha)
    judged = []
    for (name, metric), data, one in zip(named, samples, tested, strict=True):
        confidence = 1 - one.level
        summary = summarise_metric(name, metric, data, confidence=confidence)
        interval = hodges_lehmann(data.effects, confidence)[0] if data.effects else None
        significant = one.is_significant and interval is not None and interval.excludes_zero
        direction = 0 if not significant or interval is None else (1 if interval.low > 0 else -1)
        judged.append(_Judged(msgspec.structs.replace(summary, p_holm=one.p_holm), data, interval, direction))
    return judged


def judge_claims(session: Session) -> tuple[Summary, ...]:
    """Each claim with its own verdict, from the pairs so far."""
    claims = session.subject.claims
    share = session.schedule.alpha / len(claims)
    return tuple(
        _claim_summary(claim, found, share) for claim, found in zip(claims, _judged_claims(session), strict=True)
    )


def _judged_claims(session: Session) -> list[_Judged]:
    """Each claim, withheld where the arms, once held, do not show the direction that was switched: an effect that comes
    late counts for the next turn, and so for the other arm."""
    judged = _switched_claims(session)
    if not session.holds_all:
        return judged
    return [
        msgspec.structs.replace(one, direction=0, is_withheld=True)
        if one.direction and one.direction * (held_effect(session, claim) or 0.0) <= 0
        else one
        for claim, one in zip(session.subject.claims, judged, strict=True)
    ]


def is_held_back(session: Session) -> bool:
    """Whether a difference is withheld because the held arms do not show it."""
    return any(
        one.direction and not two.direction
        for one, two in zip(_switched_claims(session), _judged_claims(session), strict=True)
    )


def held_effect(session: Session, claim: Claim) -> float | None:
    """The ln ratio of a claim, plus is better, between the second halves of the held arms; None where an arm was not
    held for enough runs."""
    metric, means = session.subject.metric_of(claim), {}
    for arm in ("A", "B"):
        held = [_values_of(one.runs, claim.workload, metric.name) for one in session.holds if one.arm == arm]
        logs = [math.log(value) for values in held for value in values[2 * len(values) // 3 :] if value > 0]
        if not logs or min(map(len, held)) < HOLD_RUNS:
            return None
        means[arm] = sum(logs) / len(logs)
    return metric.sign * (means["B"] - means["A"])


def _values_of(runs: Sequence[FioRun], workload: str, metric: MetricName) -> list[float]:
    return [run.figures.value(metric) for run in runs if run.workload == workload]


def _switched_claims(session: Session) -> list[_Judged]:
    """Each claim on the pairs that count, withheld where the choice of those pairs alone may have made it.

    Where contamination fell on arm B more often than on arm A, a gain must also be there among all attempts: what
    disturbed arm B may be the change itself, and a gain without its bad runs is none.

    Where each run was called contaminated against its own arm, which pairs were repeated can lean to one arm by
    chance, and what is left then differs although nothing does. So a difference must also be there among all attempts,
    less those that stand out when the arms are not known: of these the coin alone decides the sign. Where pairs were
    judged as a whole, that holds of those that count.
    """
    claims = session.subject.claims
    alpha = session.schedule.alpha
    level = alpha / len(claims)
    attempts = [pair for pair in session.pairs if pair.whole]
    named = [(claim.workload, session.subject.metric_of(claim)) for claim in claims]
    judged = _judge_family(session, named, counted_pairs(session), alpha)
    if not any(pair.superseded for pair in attempts):
        return judged
    if session.judged_by == "pair":
        if not leans_to_arm_b(session):
            return judged
        whole = _judge_family(session, named, attempts, alpha)
        return [
            _confirm_blindly(one, other) if one.direction > 0 else one for one, other in zip(judged, whole, strict=True)
        ]
    return [
        _confirm_blindly(
            found, _judge_blindly(session, attempts, claim.workload, session.subject.metric_of(claim), level)
        )
        for claim, found in zip(claims, judged, strict=True)
    ]


def _judge_blindly(session: Session, attempts: Sequence[Pair], name: str, metric: Metric, alpha: float) -> _Judged:
    covariates = [[run.covariates for run in pair.runs if run.workload == name] for pair in attempts]
    calm = [pair for pair, is_out in zip(attempts, stand_out(covariates), strict=True) if not is_out]
    return _judge_family(session, [(name, metric)], calm, alpha)[0]


def _confirm_blindly(found: _Judged, whole: _Judged) -> _Judged:
    if found.direction in (0, whole.direction):
        return found
    return msgspec.structs.replace(found, direction=0, is_withheld=True)


def _claim_margin(claim: Claim) -> float:
    assert claim.margin is not None, "claims are resolved before a session begins"
    return claim.margin


def _claim_summary(claim: Claim, found: _Judged, level: float) -> Summary:
    margin = _claim_margin(claim)
    if claim.workload in OWN_WORKLOADS and len(set(found.data.before + found.data.after)) == 1:
        # A figure without any scatter is most likely not the one that was meant.
        return msgspec.structs.replace(found.summary, margin=margin, verdict="inconclusive", is_constant=True)
    sigma = robust_spread(found.data.effects)
    needed = None if sigma is None else needed_pairs(sigma, margin, level)
    if found.direction:
        verdict = "gain" if found.direction > 0 else "loss"
    elif found.is_withheld:
        verdict = "inconclusive"
    elif len(found.data.effects) >= EQUIVALENCE_PAIRS and is_equivalent(found.data.effects, margin):
        verdict = "no-difference"
    else:
        verdict = "inconclusive"
    return msgspec.structs.replace(
        found.summary,
        margin=margin,
        verdict=verdict,
        below_margin=(found.summary.effect or 0.0) < margin if found.direction > 0 else None,
        minimum_detectable_effect=minimum_detectable_effect(found.data.effects, level),
        # More pairs than anybody would run is no advice.
        needed_pairs=needed if needed is not None and needed <= MAX_NEEDED_PAIRS else None,
    )


def is_settled(session: Session) -> bool:
    """Whether a look may end the session: every claim is a gain or a loss already, and where one is a gain every
    guardrail is kept or broken (or needs far more pairs than there are), the control can be judged, the gain exceeds
    it, and contamination does not lean to arm B."""
    verdicts = [summary.verdict for summary in judge_claims(session)]
    if not all(verdict in ("gain", "loss") for verdict in verdicts):
        return False
    if "gain" not in verdicts:
        return True
    alone = count_alone(session)
    if alone["B"] > alone["A"]:
        return False
    control = _judge_control(session)
    is_judged = control is None or control.pairs >= MINIMUM_PAIRS
    most = HOPELESS * session.schedule.pairs
    open_ones = [one for one in judge_guardrails(session) if one.status == "undecided"]
    is_decided = is_judged and not any(one.pairs and (one.needed_pairs or 0) <= most for one in open_ones)
    return is_decided and exceeds_control(session)


def judge_guardrails(session: Session) -> tuple[Summary, ...]:
    """Each at its full level: a guardrail is no further chance of a gain, but of missing a cost."""
    pairs = counted_pairs(session)
    if leans_to_arm_b(session):
        pairs = tuple(pair for pair in session.pairs if pair.whole)
    subject = session.subject
    return tuple(_guardrail_summary(session, item, subject.metric_of(item), pairs) for item in subject.guardrails)


def _one_sided_level(session: Session) -> float:
    """Of each look, so that all together stay at 5 %."""
    return POCOCK_ONE_SIDED.get(len(session.schedule.looks), session.schedule.alpha)


def _guardrail_summary(session: Session, guardrail: Guardrail, metric: Metric, pairs: Sequence[Pair]) -> Summary:
    data = make_sample(pairs, guardrail.workload, metric)
    level = _one_sided_level(session)
    confidence = 1 - 2 * level
    found = summarise_metric(guardrail.workload, metric, data, confidence=confidence)
    # Its own level, whatever claims share the session's.
    status = limit_status(
        data.effects, guardrail.limit, level, POCOCK.get(len(session.schedule.looks), session.schedule.alpha)
    )
    verdict: Verdict | None = "loss" if status == "broken" else None
    sigma = robust_spread(data.effects) if status == "undecided" else None
    needed = None if sigma is None else needed_pairs(sigma, guardrail.limit, 2 * level)
    return msgspec.structs.replace(found, limit=guardrail.limit, verdict=verdict, status=status, needed_pairs=needed)


def cost_of(guardrails: Sequence[Summary]) -> Cost:
    """What the guardrails together say."""
    if any(one.status == "broken" for one in guardrails):
        return "shown"
    return "none" if all(one.status == "kept" for one in guardrails) else "undecided"


def _judge_control(session: Session) -> Summary | None:
    control = session.subject.control
    if control is None:
        return None
    metric = METRICS[get_workload(control).metric]
    data = make_sample(counted_pairs(session), control, metric, control=True)
    return summarise_metric(control, metric, data)


def has_moved(control: Summary, margin: float, arms: int = 2) -> bool:
    """Whether the negative control shows an effect: significant, and half the smallest claimed margin or more. Several
    arms share the level."""
    if control.p_value is None or control.effect is None or control.pairs < MINIMUM_PAIRS:
        return False
    return control.p_value <= CONTROL_LEVEL / (arms - 1) and abs(math.log1p(control.effect)) >= math.log1p(margin) / 2


def exceeds_control(session: Session, direction: int = 1) -> bool:
    """Whether every gain (or loss, ``direction`` -1) is shown to be larger than what the control did in the same pairs:
    a one-sided test on their differences, pair by pair, so that a control too noisy to be judged shows nothing. Where
    the control surely moved, the whole interval of the claim must lie beyond it."""
    control = _judge_control(session)
    if control is None:
        return True
    seen = direction * math.log1p(control.effect or 0.0)
    is_sure = control.p_value is not None and control.p_value <= CONTROL_LEVEL
    for claim, found in zip(session.subject.claims, _judged_claims(session), strict=True):
        if found.direction != direction or found.interval is None:
            continue
        # ln ratio of a claim less that of the control, of each pair that has both.
        excess_ratios = []
        for pair in counted_pairs(session):
            own = make_sample([pair], claim.workload, session.subject.metric_of(claim)).effects
            other = make_sample([pair], control.name, control.described, control=True).effects
            if own and other:
                excess_ratios.append(own[0] - other[0])
        excess = [direction * one for one in excess_ratios]
        confidence = 1 - 2 * _one_sided_level(session)
        if len(excess) < MINIMUM_PAIRS or hodges_lehmann(excess, confidence)[0].low <= 0:
            return False
        if is_sure and min(direction * found.interval.low, direction * found.interval.high) <= seen:
            return False
    return True


def count_alone(session: Session) -> dict[str, int]:
    """Pairs whose contamination fell on one arm alone, for each arm."""
    arms = [{run.arm for run in pair.runs if run.lamps} for pair in session.pairs if pair.whole and pair.contaminated]
    return {arm: sum(1 for found in arms if found == {arm}) for arm in ("A", "B")}


def leans_to_arm_b(session: Session) -> bool:
    """Whether contamination fell on arm B alone more often than on arm A alone, so that what was put aside counts."""
    alone = count_alone(session)
    return alone["B"] > alone["A"] and sign_test(alone["A"], alone["B"]) <= LEANING_LEVEL


def worst_case(session: Session, claims: Sequence[Summary]) -> str | None:
    """Why a gain does not survive the worst case: what was put aside fell on arm B more often, and counts as its own.

    Medians of pairs do not see what happens in a few of them, so totals over all attempts decide: the claim's total
    must still be a gain (as large as the margin, where it was), and a guardrail's mean within its limit.
    """
    alone = count_alone(session)
    if alone["B"] <= alone["A"]:
        return None
    attempts = [pair for pair in session.pairs if pair.whole]
    found = [
        f"{one.metric} of {one.name} is {effect:+.0%}"
        for one in claims
        if one.verdict == "gain"
        and (effect := _total_effect(attempts, one.name, Metric(one.metric, one.unit, one.better))) is not None
        and effect < (0.0 if one.below_margin else one.margin or 0.0)
    ]
    found += [
        f"{one.metric} of {one.workload} is {-effect:+.0%} worse (limit {one.limit:.0%})"
        for one in session.subject.guardrails
        if (effect := _total_effect(attempts, one.workload, session.subject.metric_of(one))) is not None
        and -effect > one.limit
    ]
    if not found:
        return None
    return (
        f"contamination fell on arm B alone in {alone['B']} pairs and on arm A alone in {alone['A']}; if the change"
        f" caused it, then over all pairs, those that were put aside included, {', '.join(found)}"
    )


def _total_effect(pairs: Sequence[Pair], workload: str, metric: Metric) -> float | None:
    """The sum of a metric over the runs of arm B over that of arm A, minus one, plus is better; None without runs."""
    data = make_sample(pairs, workload, metric)
    if not data.effects:
        return None
    ratio = sum(data.after) / sum(data.before)
    return (ratio - 1) if metric.sign > 0 else (1 - ratio)


def _is_held(session: Session) -> bool:
    """Whether each arm was held for enough runs of each claimed workload to compare its start with its end."""
    held = {one.arm: [run.workload for run in one.runs] for one in session.holds}
    names = [claim.workload for claim in session.subject.claims]
    return all(held.get(arm, []).count(name) >= HOLD_RUNS for arm in ("A", "B") for name in names)


def late_effect(session: Session) -> str | None:
    """What the held arms show: a claim whose arm B moves from the start of the hold to its end, and arm A does not."""
    held = {one.arm: one.runs for one in session.holds}
    if not {"A", "B"} <= held.keys():
        return None
    for claim, found in zip(session.subject.claims, _judged_claims(session), strict=True):
        name, metric = claim.workload, session.subject.metric_of(claim)
        trends = [_log_trend(held[arm], name, metric.name) for arm in ("A", "B")]
        first, second = trends
        if first is None or second is None:
            continue
        sigma = robust_spread(found.data.effects) or 0.0
        count = min(sum(run.workload == name for run in runs) for runs in held.values())
        # a third of the runs against another, in both arms; sigma is that of a difference of two runs
        error = sigma * math.sqrt(2 / max(1, count // 3))
        moved = metric.sign * (second - first)
        if session.holds_all and not found.direction:
            # what comes so soon that the start of the hold has it
            moved = max(moved, held_effect(session, claim) or 0.0, key=abs)
        if abs(moved) > max(math.log1p(_claim_margin(claim)), HOLD_ERRORS * error):
            seconds = sum(run.covariates.seconds for run in held["B"] if run.workload == name)
            return (
                f"{name} moved by {math.expm1(moved):+.0%} while arm B was held for {seconds:.0f} s: the effect comes"
                f" later than the pairs can see; try a settle time of {math.ceil(seconds)} s in a profile of your own"
            )
    return None


def _log_trend(runs: Sequence[FioRun], workload: str, metric: MetricName) -> float | None:
    """Mean logarithm of the last third of the runs less that of the first."""
    values = _values_of(runs, workload, metric)
    third = len(values) // 3
    if not third or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    return sum(logs[-third:]) / third - sum(logs[:third]) / third


def carry_over(session: Session) -> float | None:
    """Smallest Holm-adjusted p, over the claims, that pairs run AB and pairs run BA differ; ``None`` without both."""
    p_values = []
    for claim in session.subject.claims:
        data = make_sample(counted_pairs(session), claim.workload, session.subject.metric_of(claim))
        ab, ba = (
            [effect for effect, seen in zip(data.effects, data.orders, strict=True) if seen == order]
            for order in ("AB", "BA")
        )
        if ab and ba:
            p_values.append(rank_sum(ab, ba))
    return min(holm(p_values)) if p_values else None


def contaminated_share(session: Session) -> float:
    """Share of all attempts at a pair that were flagged."""
    whole = [pair for pair in session.pairs if pair.whole]
    return sum(pair.contaminated for pair in whole) / len(whole) if whole else 0.0


def _invalid_reasons(session: Session, control: Summary | None) -> list[str]:
    reasons = list(session.faults)
    margin = min(_claim_margin(claim) for claim in session.subject.claims)
    if control is not None and has_moved(control, margin, session.schedule.arms):
        reasons.append(
            f"the negative control {control.name} moved by {control.effect:+.0%} (p = {control.p_value:.3f})"
        )
    # For A-B-A: did the second A come back to the first? Otherwise something else changed between the blocks.
    drifts: list[float] = []
    for claim in session.subject.claims:
        name, metric = claim.workload, session.subject.metric_of(claim).name
        effects = []
        for pair in counted_pairs(session):
            values = [run.figures.value(metric) for run in pair.runs if run.arm == "A" and run.workload == name]
            if pair.order == "ABA" and len(values) == 2 and min(values) > 0:
                effects.append(math.log(values[1] / values[0]))
        if effects and abs(median(effects)) > math.log1p(_claim_margin(claim)):
            drifts.append(median(effects))
    returned = f"arm A did not return to its first value ({math.expm1(drifts[0]):+.0%})" if drifts else None
    if returned:
        reasons.append(returned)
    return reasons


def _indicative_reasons(
    session: Session, carry_over_p: float | None, control: Summary | None, tendency: Verdict, claims: Sequence[Summary]
) -> list[str]:
    reasons = []
    if tendency in ("gain", "gain-with-cost") and control is not None:
        if control.pairs < MINIMUM_PAIRS:
            reasons.append(f"control not judged ({control.pairs} of {MINIMUM_PAIRS} pairs): a gain does not count yet")
        elif not exceeds_control(session):
            reasons.append(
                f"the gain is not shown to be larger than what the negative control shows{_control_text(control)}"
            )
    if tendency == "loss" and control is not None and _has_fallen(control) and not exceeds_control(session, -1):
        reasons.append(
            f"the loss is not shown to be larger than what the negative control shows{_control_text(control)}"
        )
    if tendency in ("gain", "gain-with-cost", "no-difference") and session.live is not None:
        reasons += _one_sided_reasons(session)
    worst = worst_case(session, claims) if tendency in ("gain", "gain-with-cost") else None
    if worst:
        reasons.append(worst)
    if session.toggle_class == "T3":
        reasons.append("the change needs a reboot or a rebuild: it cannot be interleaved")
    if session.attempts > 1:
        reasons.append(f"the confirmation was started {session.attempts} times; the level holds for one")
    if session.ended == "interrupted":
        reasons.append("the session was interrupted")
    if session.ended == "limit" and session.live is not None:
        reasons.append(session.live.withdrawn or "a limit was exceeded")
    if len(counted_pairs(session)) < MINIMUM_PAIRS:
        reasons.append(
            f"{count_noun(len(counted_pairs(session)), 'pair')}; fewer than {MINIMUM_PAIRS} cannot be significant"
        )
    if carry_over_p is not None and carry_over_p < CARRY_OVER_LEVEL:
        reasons.append(
            f"the order within a pair matters (p = {carry_over_p:.3f}): an arm carries over into the next, which a"
            " longer settle time would end, or other load keeps time with the runs, or speed drifts steadily"
        )
    return reasons


def _withheld_reasons(session: Session) -> list[str]:
    """Why a difference that the pairs show is not called, for each claim of which it is not."""
    reasons = []
    for claim, one, two in zip(session.subject.claims, _switched_claims(session), _judged_claims(session), strict=True):
        held = held_effect(session, claim)
        if one.is_withheld:
            reasons.append(
                "a difference is not called: it is not there among all the pairs that ran, the repeated ones included"
                + (", that were calm when both arms are taken together" if session.judged_by == "run" else "")
            )
        elif one.direction and not two.direction and held is None:
            reasons.append(
                f"{claim.metric} of {claim.workload}: {one.summary.effect:+.0%} in pairs is not called: there was no"
                " room to hold each arm and see whether an effect comes late"
            )
        elif one.direction and not two.direction:
            seconds = math.ceil(session.schedule.hold_seconds)
            shown = f"{one.summary.effect:+.0%} in pairs, but {math.expm1(held or 0.0):+.0%}"
            reasons.append(
                f"{claim.metric} of {claim.workload}: {shown} while each arm was held for {seconds} s: the effect comes"
                f" later than a turn ends, and then counts for the other arm; try a settle time of {seconds} s in a"
                " profile of your own, or longer runs"
            )
    return reasons


def _one_sided_reasons(session: Session) -> list[str]:
    """Metrics that have a figure above 0 in one arm only of some pairs: the estimate leaves these pairs out. Of a
    guardrail, where arm B is the worse one."""
    reasons, subject, pairs = [], session.subject, counted_pairs(session)
    judged: tuple[Claim | Guardrail, ...] = (*subject.claims, *subject.guardrails)
    for one in judged:
        metric = subject.metric_of(one)
        found = []
        for pair in pairs:
            figures = {run.arm: run.figures.measures.get(metric.name) for run in pair.runs}
            found.append(compare_figures(figures.get("A"), figures.get("B"), metric.sign) or 0.0)
        count = found.count(-ONE_SIDED) + (found.count(ONE_SIDED) if isinstance(one, Claim) else 0)
        if count:
            reasons.append(
                f"{metric.name} has a figure above 0 in one arm only in {count} of "
                f"{count_noun(len(pairs), 'pair')}, which the estimate leaves out"
            )
    return reasons


def _has_fallen(control: Summary) -> bool:
    return control.p_value is not None and control.p_value <= CONTROL_LEVEL and (control.effect or 0.0) < 0


def _control_text(control: Summary) -> str:
    if control.effect is None or control.p_value is None:
        return ""
    return f" ({control.effect:+.1%}, p = {control.p_value:.4f})"


def _claims_tendency(claims: Sequence[Summary], guardrails: Sequence[Summary], *, is_late: bool) -> Verdict:
    verdicts = [summary.verdict for summary in claims]
    if "gain" in verdicts:
        has_cost = "loss" in verdicts or any(summary.verdict == "loss" for summary in guardrails)
        return "gain-with-cost" if has_cost else "gain"
    if "loss" in verdicts:
        return "loss"
    return (
        "no-difference" if all(verdict == "no-difference" for verdict in verdicts) and not is_late else "inconclusive"
    )


def decide_session(session: Session) -> Proof:
    """The proof that follows from a session."""
    claims = judge_claims(session)
    guardrails = judge_guardrails(session)
    control = _judge_control(session)
    carry_over_p = carry_over(session)
    late = late_effect(session)
    is_unheld = session.wants_hold and not _is_held(session)
    tendency = _claims_tendency(claims, guardrails, is_late=is_unheld or late is not None)
    invalid = _invalid_reasons(session, control)
    harm = [session.live.withdrawn or "harm was shown"] if session.live and session.ended == "harm" else []
    # The test for harm has a level of its own, and needs no number of pairs.
    tendency = "loss" if harm else tendency
    indicative = [] if harm else _indicative_reasons(session, carry_over_p, control, tendency, claims)
    gains = [one for one in claims if one.verdict == "gain"]
    verdict: Verdict = "invalid" if invalid else "indicative" if indicative else tendency
    # Every metric of every measured workload that is neither claimed nor guarded: shown without a p value.
    judged = {(claim.workload, session.subject.metric_of(claim).name) for claim in session.subject.claims}
    judged |= {(item.workload, item.metric) for item in session.subject.guardrails}
    pairs = counted_pairs(session)
    found = [
        summarise_metric(name, metric, make_sample(pairs, name, metric), is_tested=False)
        for name in measured_workloads(session.subject)
        for metric in (*METRICS.values(), *_own_metrics(session))
        if (name, metric.name) not in judged
    ]
    return Proof(
        profile=session.subject.profile,
        words=session.subject.words,
        verdict=verdict,
        workloads=claims,
        kept=session.kept,
        tendency=tendency,
        reasons=(*invalid, *harm, *indicative, *_withheld_reasons(session)),
        notes=(*session.notes, *_list_notes(session, control, tendency, claims, guardrails, late)),
        guardrails=guardrails,
        exploratory=tuple(summary for summary in found if summary.pairs),
        control=control,
        carry_over_p=carry_over_p,
        contaminated_share=contaminated_share(session),
        alpha=session.schedule.alpha,
        seed=session.seed,
        order=tuple(pair.order for pair in session.pairs),
        gate=session.gate,
        session=session,
        values=session.values,
        cost=cost_of(guardrails),
        below_margin=bool(gains) and all(one.below_margin for one in gains),
    )


def _own_metrics(session: Session) -> list[Metric]:
    return [] if session.subject.command is None else [one.described for one in session.subject.command.metrics]


def _live_notes(session: Session, live: Switchback) -> list[str]:
    """How much of an effect the periods can show, and what they cannot."""
    tau, period = live.tau_seconds, live.period_seconds
    kept = estimated_share(shown_share(tau, period, live.discard_seconds))
    how = {
        "given": f"an effect is taken to appear within {tau:g} s (given)",
        "measured": "the first switches showed the effect appear " + (f"within about {tau:g} s" if tau else "at once"),
        "assumed": f"no effect was large enough to see how soon it appears; {tau:g} s is assumed",
    }[live.tau_from]
    slow = estimated_share(shown_share(period / 4, period, live.discard_seconds))
    notes = (
        []
        if not session.pairs
        else [
            f"periods of {period:g} s, the first {live.discard_seconds:g} s not counted; {how}: the estimate holds"
            f" {kept:.1%} of the effect ({slow:.0%} if it took {period / 4:g} s); what takes minutes is not seen"
        ]
    )
    notes.append(
        f"nothing was run: the traffic that was there judged. Harm was looked for all the time, E reached"
        f" {live.harm:.1f} of {HARM_LEVEL:g}" + (f"; limits: {', '.join(live.limits)}" if live.limits else "")
    )
    pairs = counted_pairs(session)
    for claim in session.subject.claims:
        left = len(pairs) - len(make_sample(pairs, claim.workload, session.subject.metric_of(claim)).effects)
        if left:
            notes.append(f"{left} pairs have no figure of {claim.metric}: nothing happened in one of their periods")
    return notes


def _list_notes(
    session: Session,
    control: Summary | None,
    tendency: Verdict,
    claims: Sequence[Summary],
    guardrails: Sequence[Summary],
    late: str | None,
) -> list[str]:
    notes = [late] if late is not None else []
    if session.live is not None:
        notes += _live_notes(session, session.live)
    if control is not None and 0 < control.pairs < MINIMUM_PAIRS:
        notes.append(f"the negative control has {control.pairs} pairs: too few to judge it ({MINIMUM_PAIRS} needed)")
    if session.wants_hold and not _is_held(session) and all(one.verdict == "no-difference" for one in claims):
        notes.append(
            "no difference is not called: there was no room to hold each arm and see whether an effect comes late"
        )
    if leans_to_arm_b(session):
        alone = count_alone(session)
        notes.append(
            f"contamination fell on arm B alone in {alone['B']} pairs and on arm A alone in {alone['A']}: the pairs"
            " that were put aside count for the guardrails, and a gain must be there with them, too"
        )
    left = sum(1 for pair in counted_pairs(session) if pair.contaminated)
    if left:
        pairs = "1 contaminated pair is" if left == 1 else f"{left} contaminated pairs are"
        notes.append(f"{pairs} included: there was no room to repeat {'it' if left == 1 else 'them'}")
    for item in guardrails if session.ended == "settled" else ():
        if item.status == "undecided" and (item.needed_pairs or 0) > HOPELESS * session.schedule.pairs:
            notes.append(
                f"whether {item.metric} of {item.name} stays within {item.limit:.0%} takes about {item.needed_pairs}"
                " pairs to say: the session did not go on for it"
            )
    costs = [f"{item.metric} of {item.name} {(item.ratio or 1) - 1:+.0%}" for item in guardrails if item.verdict]
    if costs or tendency == "gain-with-cost":
        of = "false difference" if session.self_test else "cost"
        notes.append(f"{of}: {', '.join(costs) or 'another claim got worse'}")
    if len(session.schedule.looks) > 1:
        notes.append(
            f"the data may be looked at {count_noun(len(session.schedule.looks), 'time')}, so significance is judged at"
            f" {session.schedule.alpha:g} each time"
        )
    return notes
