"""Several arms in randomised blocks: the records of a session, and the comparisons that follow from them. Pure.

A block holds every arm once, in an order that was drawn; the first arm is ``none``, the host as it was. Each other arm
is compared with ``none`` of the same block, workload by workload: the exact Wilcoxon signed-rank test on ln ratios,
adjusted after Holm over all comparisons of the session (Holm, Scand. J. Statist. 6, 1979). A comparison's interval has
the level at which Holm's procedure tested it, so that it excludes "no change" exactly where a difference is called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from advisor.host.numbers import count_noun
from advisor.proof.covariates import CalmGate
from advisor.proof.identity import HostIdentity
from advisor.proof.metrics import METRICS, Metric, MetricName
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.records import GUARDRAIL_LIMIT, ArmSetting, Cost, Ended, FioRun, ToggleClass, guardrails_of
from advisor.proof.schedule import Schedule
from advisor.proof.statistics import (
    MINIMUM_PAIRS,
    TOST_CONFIDENCE,
    Tested,
    hodges_lehmann,
    holm,
    limit_status,
    median,
    minimum_detectable_effect,
    sign_test,
    signed_rank,
    step_down,
)
from advisor.proof.workloads import NULL_CONTROL, get_workload

NONE = "none"
"""The arm that sets nothing."""
ALPHA = 0.05
SINGLE_CONFIDENCE = 0.95
CONTROL_LEVEL = 0.05
ONE_SIDED_LEVEL = 0.05
LEANING_LEVEL = 0.5
"""Sign test below which contamination leans to an arm, so that what was put aside counts for its guardrails."""
MAX_CONTAMINATED_SHARE = 0.5
EQUIVALENCE_BLOCKS = 16

Call = Literal["gain", "loss", "no-difference", "inconclusive"]
Quality = Literal["sound", "indicative", "invalid"]


class ArmTurn(msgspec.Struct, frozen=True):
    """One arm's turn in a block: a run of every workload, and one of the negative control. Where single values are
    switched, ``active`` are those that were, and ``arm`` shows them as digits."""

    arm: str
    runs: tuple[FioRun, ...]
    control: FioRun | None = None
    active: tuple[str, ...] | None = None

    def is_under(self, arm: str) -> bool | None:
        """Whether the arm was active, False where the host was without it; None for another arm's turn."""
        if self.active is not None:
            return arm in self.active
        return self.arm == arm if self.arm in (arm, NONE) else None


class ArmBlock(msgspec.Struct, frozen=True):
    """Every arm once, in the order in which they ran. A contaminated block that was repeated is ``superseded``."""

    index: int
    attempt: int
    cells: tuple[ArmTurn, ...]
    contaminated: bool = False
    superseded: bool = False
    whole: bool = True


class UnswitchedTunable(msgspec.Struct, frozen=True):
    """A tunable of the profile that is not switched, and why."""

    tunable: str
    reason: str


class Ablation(msgspec.Struct, frozen=True):
    """What is switched where single values of one profile are the arms: ``units`` names the tunables of each, and
    ``words`` are the design's columns (`advisor.proof.ablation`)."""

    profile: str
    units: Mapping[str, tuple[str, ...]]
    words: tuple[int, ...]
    left_out: tuple[UnswitchedTunable, ...] = ()
    asked: tuple[str, ...] = ()
    """What asks for the profile on a command line."""


class ArmsSession(msgspec.Struct, frozen=True):
    """All that was measured, with the rules that were fixed beforehand. ``arms`` begin with ``none``; ``values`` are
    what each of the others sets. ``schedule.pairs`` counts the blocks that were laid out, ``margin`` is the change
    (a fraction) that counts as none."""

    arms: tuple[str, ...]
    workloads: tuple[str, ...]
    schedule: Schedule
    margin: float
    toggle_class: ToggleClass
    seed: int
    target: str
    file_system: str
    device: str | None
    fio_version: str
    started: str
    values: Mapping[str, tuple[ArmSetting, ...]]
    host: HostIdentity | None = None
    gate: CalmGate = CalmGate()
    forced: bool = False
    warm_up: tuple[FioRun, ...] = ()
    blocks: tuple[ArmBlock, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ended: Ended = "complete"
    seconds: float = 0.0
    bytes_written: int = 0
    restored: bool = True
    peer_ssh: str | None = None
    peer_address: str | None = None
    options: tuple[str, ...] = ()
    """The other options of the call, word by word: with them it measures the same again."""
    command: OwnCommand | None = None
    """What was run in place of fio; the only workload is ``command`` then."""
    ablation: Ablation | None = None
    """Where the arms are values of one profile: each block has every combination of the design once."""

    def metric_of(self, workload: str) -> Metric:
        """What a workload is judged by."""
        if self.command is not None and workload == COMMAND_WORKLOAD:
            return self.command.metrics[0].described
        return METRICS[get_workload(workload).metric]

    def guardrails_for(self, workload: str) -> tuple[tuple[Metric, float], ...]:
        """What must not get worse, and by how much (a fraction)."""
        if self.command is not None and workload == COMMAND_WORKLOAD:
            return tuple((one.described, GUARDRAIL_LIMIT) for one in self.command.metrics[1:])
        found = guardrails_of(get_workload(workload))
        return tuple((METRICS[one.metric], one.limit) for one in found if one.metric != get_workload(workload).metric)


class Effect(msgspec.Struct, frozen=True):
    """One arm against ``none`` on one workload; of a single value, with it against without it, the other values on and
    off in turn.

    ``before`` and ``after`` are medians in ``unit``; ``ratio`` is after over before (Hodges-Lehmann) with ``interval``
    at the level ``confidence``. ``p_holm`` is adjusted over all comparisons of the session. ``latency_p99_ratio`` and
    ``cpu_ratio`` (CPU time for each I/O) are medians of the blocks' ratios. ``interval95`` is that of this comparison
    alone, at 95 %. ``cost`` is what the guardrails say (as in a proof of one profile), ``below_margin`` whether a gain
    is sure and smaller than the session's margin.
    """

    arm: str
    workload: str
    metric: MetricName
    unit: str
    better: Literal["higher", "lower"]
    call: Call
    blocks: int = 0
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    minimum_detectable_effect: float | None = None
    latency_p99_ratio: float | None = None
    cpu_ratio: float | None = None
    cost: Cost = "undecided"
    below_margin: bool = False
    interval95: tuple[float, float] | None = None

    @property
    def is_plain_gain(self) -> bool:
        """Whether it is a gain as large as the margin that costs nothing."""
        return self.call == "gain" and self.cost == "none" and not self.below_margin


class Interaction(msgspec.Struct, frozen=True):
    """Two values that together do other than each does alone: ``ratio`` is the effect of both over the product of the
    two effects. ``p_holm`` is adjusted over all pairs of values and workloads."""

    pair: tuple[str, str]
    workload: str
    ratio: float
    p_holm: float


class Control(msgspec.Struct, frozen=True):
    """The negative control of one arm: what no profile can move. ``p_holm`` is adjusted over the arms."""

    arm: str
    blocks: int
    ratio: float | None
    p_holm: float | None


class ArmsProof(msgspec.Struct, frozen=True):
    """The result; its JSON is ``advisor.arms/1``. ``best`` names for each workload the arm with the largest gain, of
    those as large as the margin at no cost; the arms are not compared with each other."""

    quality: Quality
    arms: tuple[str, ...]
    effects: tuple[Effect, ...]
    best: Mapping[str, str | None]
    controls: tuple[Control, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    alpha: float
    comparisons: int
    contaminated_share: float
    seed: int
    gate: CalmGate
    session: ArmsSession
    saved_to: str | None = None
    interactions: tuple[Interaction, ...] = ()
    """Pairs of values that are shown to act on each other."""
    schema: Literal["advisor.arms/1"] = "advisor.arms/1"

    @property
    def has_gain(self) -> bool:
        """Whether a gain of any arm is proven, as large as the margin and at no cost."""
        return self.quality == "sound" and any(one.is_plain_gain for one in self.effects)


def kept_values(result: ArmsProof) -> tuple[str, ...]:
    """Of single values those with a gain in any workload, and those that are shown to act on another one; none of an
    invalid session."""
    if result.quality == "invalid":
        return ()
    gains = {one.arm for one in result.effects if one.call == "gain"}
    pairs = {name for one in result.interactions for name in one.pair}
    losses = {one.arm for one in result.effects if one.call == "loss"} - gains
    return tuple(name for name in result.arms[1:] if name in (gains | pairs) - losses)


def smallest_blocks(comparisons: int, alpha: float = ALPHA) -> int:
    """Blocks below which no outcome could be significant after Holm: the smallest exact p is 2 / 2**n."""
    return math.ceil(1 + math.log2(comparisons / alpha))


def counted_blocks(session: ArmsSession) -> tuple[ArmBlock, ...]:
    """The blocks that enter the statistics: whole, and not repeated because of contamination."""
    return tuple(one for one in session.blocks if one.whole and not one.superseded)


def arm_ratios(blocks: Sequence[ArmBlock], arm: str, workload: str, metric: MetricName) -> list[tuple[float, float]]:
    """(none, arm) of each block that has both, values above zero; of several runs their geometric mean."""
    found = []
    for block in blocks:
        sides = [
            [_cell_value(cell, workload, metric) for cell in block.cells if cell.is_under(arm) is side]
            for side in (False, True)
        ]
        without, under = (geometric_mean(side) for side in sides)
        if without and under:
            found.append((without, under))
    return found


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """None where there is no value, or one that is none."""
    known = [value for value in values if value]
    if not known or len(known) < len(values):
        return None
    return known[0] if len(known) == 1 else math.exp(math.fsum(map(math.log, known)) / len(known))


def _cell_value(cell: ArmTurn, workload: str, metric: MetricName) -> float | None:
    if workload == NULL_CONTROL:
        return cell.control.figures.value(metric) if cell.control else None
    return next((run.figures.value(metric) for run in cell.runs if run.workload == workload), None)


def conclude_session(session: ArmsSession) -> ArmsProof:
    """What follows from a session; the same session gives the same result."""
    blocks = counted_blocks(session)
    pairs = [(arm, workload) for arm in session.arms[1:] for workload in session.workloads]
    samples = [_log_ratios(session, blocks, arm, workload) for arm, workload in pairs]
    levels = step_down([signed_rank(one).p_value for one in samples], ALPHA)
    effects = tuple(
        _apply_guardrails(session, _judge_effect(session, blocks, arm, workload, sample, level), level)
        for (arm, workload), sample, level in zip(pairs, samples, levels, strict=True)
    )
    controls = _judge_controls(blocks, session.arms[1:])
    reasons = list(session.faults)
    reasons += [
        f"the negative control moved under {one.arm} (× {one.ratio:.3f}, p = {one.p_holm:.4f}): something else did, too"
        for one in controls
        if one.p_holm is not None and one.p_holm <= CONTROL_LEVEL
    ]
    share = _contaminated_share(session)
    if share > MAX_CONTAMINATED_SHARE:
        reasons.append(f"{share:.0%} of the blocks were contaminated by other activity")
    invalid, indicative = (reasons, [*_indicative_reasons(session, len(pairs)), *_list_doubts(session, effects)])
    left = sum(1 for one in counted_blocks(session) if one.contaminated)
    notes = [f"{left} contaminated blocks are included: there was no room to repeat them"] if left else []
    notes += [
        f"contamination fell on {arm} more often than on none: the blocks that were put aside count for its guardrails,"
        " and a gain of it must be there with them, too"
        for arm in session.arms[1:]
        if _leans_to_arm(session, arm)
    ]
    return ArmsProof(
        quality="invalid" if invalid else "indicative" if indicative else "sound",
        arms=session.arms,
        effects=effects,
        best={name: _best_arm([one for one in effects if one.workload == name]) for name in session.workloads},
        controls=controls,
        reasons=(*invalid, *indicative),
        notes=(*session.notes, *notes),
        alpha=ALPHA,
        comparisons=len(pairs),
        contaminated_share=_contaminated_share(session),
        seed=session.seed,
        gate=session.gate,
        session=session,
        interactions=_find_interactions(session, blocks),
    )


def _log_ratios(session: ArmsSession, blocks: Sequence[ArmBlock], arm: str, workload: str) -> list[float]:
    """ln ratios over ``none``, plus is better."""
    return _metric_effects(blocks, arm, workload, session.metric_of(workload))


def _metric_effects(blocks: Sequence[ArmBlock], arm: str, workload: str, metric: Metric) -> list[float]:
    return [metric.sign * math.log(after / before) for before, after in arm_ratios(blocks, arm, workload, metric.name)]


def _judge_effect(
    session: ArmsSession, blocks: Sequence[ArmBlock], arm: str, workload: str, sample: Sequence[float], level: Tested
) -> Effect:
    described = session.metric_of(workload)
    empty = Effect(arm, workload, described.name, described.unit, described.better, "inconclusive")
    if not sample:
        return empty
    seen = arm_ratios(blocks, arm, workload, described.name)
    interval, equivalence = hodges_lehmann(sample, 1 - level.level, TOST_CONFIDENCE)
    bounds = sorted(math.exp(described.sign * bound) for bound in (interval.low, interval.high))
    alone = hodges_lehmann(sample, SINGLE_CONFIDENCE)[0]
    single = sorted(math.exp(described.sign * bound) for bound in (alone.low, alone.high))
    is_same = len(sample) >= EQUIVALENCE_BLOCKS and equivalence.lies_within(math.log1p(session.margin))
    call: Call = "no-difference" if is_same else "inconclusive"
    if level.is_significant and interval.excludes_zero:
        call = "gain" if interval.estimate > 0 else "loss"
    return msgspec.structs.replace(
        empty,
        call=call,
        blocks=len(sample),
        before=median([before for before, _ in seen]),
        after=median([after for _, after in seen]),
        ratio=math.exp(described.sign * interval.estimate),
        interval=(bounds[0], bounds[1]),
        confidence=interval.confidence,
        p_value=level.p_value,
        p_holm=level.p_holm,
        minimum_detectable_effect=minimum_detectable_effect(sample, level.level),
        latency_p99_ratio=_median_ratio(blocks, arm, workload, "latency_p99"),
        cpu_ratio=_median_ratio(blocks, arm, workload, "cpu_per_io"),
        interval95=(single[0], single[1]),
    )


def _apply_guardrails(session: ArmsSession, one: Effect, level: Tested) -> Effect:
    """With what its guardrails say, and without a gain that is not there among all attempts where contamination leans
    to its arm: what disturbed that arm may be its values."""
    leans = _leans_to_arm(session, one.arm)
    blocks = [each for each in session.blocks if each.whole] if leans else counted_blocks(session)
    call = one.call
    if leans and call == "gain":
        whole = hodges_lehmann(_log_ratios(session, blocks, one.arm, one.workload), 1 - level.level)[0]
        call = "gain" if whole.low > 0 else "inconclusive"
    found = {
        limit_status(_metric_effects(blocks, one.arm, one.workload, metric), limit, ONE_SIDED_LEVEL, ALPHA)
        for metric, limit in session.guardrails_for(one.workload)
    }
    cost: Cost = "shown" if "broken" in found else "undecided" if "undecided" in found else "none"
    sign = session.metric_of(one.workload).sign
    is_small = call == "gain" and one.ratio is not None and sign * math.log(one.ratio) < math.log1p(session.margin)
    return msgspec.structs.replace(one, call=call, cost=cost, below_margin=is_small)


def _count_alone(session: ArmsSession, arm: str) -> tuple[int, int]:
    """Contaminated blocks in which ``none`` was hit and not the arm, and the reverse."""
    hit = [
        {cell.is_under(arm) for cell in one.cells if any(run.lamps for run in cell.runs)}
        for one in session.blocks
        if one.whole and one.contaminated
    ]
    return sum(False in one and True not in one for one in hit), sum(True in one and False not in one for one in hit)


def _leans_to_arm(session: ArmsSession, arm: str) -> bool:
    bare, own = _count_alone(session, arm)
    return own > bare and sign_test(bare, own) <= LEANING_LEVEL


def _list_doubts(session: ArmsSession, effects: Sequence[Effect]) -> list[str]:
    """Why what the figures say may be no effect of the values: contamination of one arm alone, a control that is not
    shown to move less."""
    found = []
    for arm in session.arms[1:]:
        bare, own = _count_alone(session, arm)
        p_value = sign_test(bare, own)
        if p_value <= ONE_SIDED_LEVEL / (len(session.arms) - 1):
            found.append(
                f"contamination fell on {arm} without none in {own} blocks and on none without {arm} in {bare}"
                f" (p = {p_value:.4f}): what disturbed those runs may be an effect of the values, and they were put"
                " aside"
            )
    found += [words for one in effects if one.call == "gain" and (words := _worst_case(session, one)) is not None]
    found += [
        f"{one.workload}: the gain of {one.arm} is not shown to be larger than what the negative control does"
        for one in effects
        if one.call == "gain" and not _exceeds_control(session, one)
    ]
    return found


def _worst_case(session: ArmsSession, one: Effect) -> str | None:
    """Why a gain does not survive what was put aside, where that fell on its arm more often: totals over all blocks, as
    in `advisor.proof.verdict`."""
    bare, own = _count_alone(session, one.arm)
    if own <= bare:
        return None
    blocks = [each for each in session.blocks if each.whole]
    found = []
    total = _total_effect(blocks, one, session.metric_of(one.workload))
    if total is not None and total < (0.0 if one.below_margin else session.margin):
        found.append(f"{one.metric} is {total:+.0%}")
    for metric, limit in session.guardrails_for(one.workload):
        worse = _total_effect(blocks, one, metric)
        if worse is not None and -worse > limit:
            found.append(f"{metric.name} is {-worse:+.0%} worse (limit {limit:.0%})")
    if not found:
        return None
    return (
        f"{one.workload}: contamination fell on {one.arm} without none in {own} blocks and on none without {one.arm} in"
        f" {bare}; if its values caused it, then over all blocks, those that were put aside included,"
        f" {', '.join(found)}"
    )


def _total_effect(blocks: Sequence[ArmBlock], one: Effect, metric: Metric) -> float | None:
    seen = arm_ratios(blocks, one.arm, one.workload, metric.name)
    if not seen:
        return None
    ratio = sum(after for _, after in seen) / sum(before for before, _ in seen)
    return (ratio - 1) if metric.sign > 0 else (1 - ratio)


def _exceeds_control(session: ArmsSession, one: Effect) -> bool:
    """A one-sided test on the gain less what the control did in the same blocks."""
    excess = []
    for block in counted_blocks(session):
        own = _log_ratios(session, [block], one.arm, one.workload)
        control = arm_ratios([block], one.arm, NULL_CONTROL, "iops")
        if own and control:
            excess.append(own[0] - math.log(control[0][1] / control[0][0]))
    if not any(cell.control for block in session.blocks for cell in block.cells):
        return True
    return len(excess) >= MINIMUM_PAIRS and hodges_lehmann(excess, 1 - 2 * ONE_SIDED_LEVEL)[0].low > 0


def _median_ratio(blocks: Sequence[ArmBlock], arm: str, workload: str, metric: MetricName) -> float | None:
    found = [after / before for before, after in arm_ratios(blocks, arm, workload, metric)]
    return median(found) if found else None


def _find_interactions(session: ArmsSession, blocks: Sequence[ArmBlock]) -> tuple[Interaction, ...]:
    """The pairs of values whose interaction is shown, Holm over all of them."""
    if session.ablation is None:
        return ()
    asked = [(pair, name) for pair in combinations(session.arms[1:], 2) for name in session.workloads]
    samples = [_pair_contrasts(blocks, pair, name, session.metric_of(name)) for pair, name in asked]
    adjusted = holm([signed_rank(one).p_value for one in samples])
    return tuple(
        Interaction(pair, name, math.exp(session.metric_of(name).sign * 2 * median(sample)), p_holm)
        for (pair, name), sample, p_holm in zip(asked, samples, adjusted, strict=True)
        if sample and p_holm <= ALPHA
    )


def _pair_contrasts(blocks: Sequence[ArmBlock], pair: tuple[str, str], workload: str, metric: Metric) -> list[float]:
    """ln of the runs in which the two agree over those in which they differ, of each block; plus is better. Pairs that
    share a column of the design get signs of their own in each block, so that they cancel out over the session."""
    found = []
    for block in blocks:
        sides = [
            [
                _cell_value(cell, workload, metric.name)
                for cell in block.cells
                if (cell.is_under(pair[0]) is cell.is_under(pair[1])) is agree
            ]
            for agree in (False, True)
        ]
        differ, agree = (geometric_mean(side) for side in sides)
        if differ and agree:
            found.append(metric.sign * math.log(agree / differ))
    return found


def _best_arm(effects: Sequence[Effect]) -> str | None:
    gains = [one for one in effects if one.is_plain_gain and one.ratio is not None]
    return max(gains, key=_gain_ratio).arm if gains else None


def _gain_ratio(one: Effect) -> float:
    ratio = one.ratio or 1.0
    return ratio if one.better == "higher" else 1 / ratio


def _judge_controls(blocks: Sequence[ArmBlock], arms: Sequence[str]) -> tuple[Control, ...]:
    samples = [arm_ratios(blocks, arm, NULL_CONTROL, "iops") for arm in arms]
    logs = [[math.log(after / before) for before, after in one] for one in samples]
    adjusted = holm([signed_rank(one).p_value for one in logs])
    return tuple(
        Control(arm, len(one), math.exp(median(one)) if one else None, p_holm if one else None)
        for arm, one, p_holm in zip(arms, logs, adjusted, strict=True)
    )


def _contaminated_share(session: ArmsSession) -> float:
    whole = [one for one in session.blocks if one.whole]
    return sum(one.contaminated for one in whole) / len(whole) if whole else 0.0


def _indicative_reasons(session: ArmsSession, comparisons: int) -> list[str]:
    reasons = []
    if session.forced:
        reasons.append("measured on a busy host by --force")
    if session.ended == "interrupted":
        reasons.append("the session was interrupted")
    count, needed = len(counted_blocks(session)), smallest_blocks(comparisons)
    if count < needed:
        reasons.append(
            f"{count_noun(count, 'block')}: with {count_noun(comparisons, 'comparison')} no result of fewer "
            f"than {needed} blocks can be significant"
        )
    return reasons
