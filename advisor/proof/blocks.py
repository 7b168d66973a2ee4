"""Several arms in randomised blocks: the records of a session, and the comparisons that follow from them. Pure.

A block holds every arm once, in an order that was drawn; the first arm is ``none``, the host as it was. Each other arm
is compared with ``none`` of the same block, workload by workload: the exact Wilcoxon signed-rank test on ln ratios,
adjusted after Holm over all comparisons of the session (Holm, Scand. J. Statist. 6, 1979). A comparison's interval has
the level at which Holm's procedure tested it, so that it excludes "no change" exactly where a difference is called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from advisor.host.numbers import count_noun
from advisor.proof.covariates import CalmGate
from advisor.proof.identity import HostIdentity
from advisor.proof.metrics import METRICS, Metric, MetricName
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.records import (
    GUARDRAIL_LIMIT,
    Arm,
    ArmSetting,
    Claim,
    Cost,
    Ended,
    FioRun,
    Guardrail,
    Pair,
    ProofSubject,
    Session,
    Summary,
    ToggleClass,
    guardrails_of,
)
from advisor.proof.schedule import Schedule
from advisor.proof.statistics import (
    TOST_CONFIDENCE,
    Tested,
    hodges_lehmann,
    holm,
    median,
    minimum_detectable_effect,
    sign_test,
    signed_rank,
    step_down,
)
from advisor.proof.verdict import (
    PairedSample,
    cost_of,
    count_alone,
    counted_pairs,
    exceeds_control,
    judge_guardrails,
    leans_to_arm_b,
    make_sample,
    worst_case,
)
from advisor.proof.workloads import NULL_CONTROL, get_workload

NONE = "none"
"""The arm that sets nothing."""
ALPHA = 0.05
SINGLE_CONFIDENCE = 0.95
CONTROL_LEVEL = 0.05
ONE_SIDED_LEVEL = 0.05
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
    schema: Literal["advisor.arms/1"] = "advisor.arms/1"

    @property
    def has_gain(self) -> bool:
        """Whether a gain of any arm is proven, as large as the margin and at no cost."""
        return self.quality == "sound" and any(one.is_plain_gain for one in self.effects)


def kept_values(result: ArmsProof) -> tuple[str, ...]:
    """Of single values those with a gain in any workload; none of an invalid session. Two that gain together alone each
    show half of that gain."""
    gains = {one.arm for one in result.effects if one.call == "gain"} if result.quality != "invalid" else ()
    return tuple(name for name in result.arms[1:] if name in gains)


def smallest_blocks(comparisons: int, alpha: float = ALPHA) -> int:
    """Blocks below which no outcome could be significant after Holm: the smallest exact p is 2 / 2**n."""
    return math.ceil(1 + math.log2(comparisons / alpha))


def counted_blocks(session: ArmsSession) -> tuple[ArmBlock, ...]:
    """The blocks that enter the statistics: whole, and not repeated because of contamination."""
    return tuple(one for one in session.blocks if one.whole and not one.superseded)


def _pairs_of(session: ArmsSession, arm: str, workload: str) -> Session:
    """Return an arm and ``none`` of the same blocks as a session of two arms with one claim: with pairs A is without
    the arm, B with it."""
    pairs = []
    for block in session.blocks:
        sides: list[tuple[Arm, ArmTurn]] = [
            ("B" if is_under else "A", cell) for cell in block.cells if (is_under := cell.is_under(arm)) is not None
        ]
        runs = [msgspec.structs.replace(run, arm=side) for side, cell in sides for run in cell.runs]
        controls = [msgspec.structs.replace(cell.control, arm=side) for side, cell in sides if cell.control is not None]
        if {run.arm for run in runs} == {"A", "B"}:
            pairs.append(
                Pair(
                    block.index,
                    block.attempt,
                    "AB",
                    tuple(runs),
                    tuple(controls),
                    contaminated=block.contaminated,
                    superseded=block.superseded,
                    whole=block.whole,
                )
            )
    guardrails = tuple(Guardrail(workload, metric.name, limit) for metric, limit in session.guardrails_for(workload))
    claim = Claim(workload, session.metric_of(workload).name, margin=session.margin)
    control = NULL_CONTROL if any(pair.control_runs for pair in pairs) else None
    return Session(
        subject=ProofSubject(arm, (claim,), guardrails, control, command=session.command),
        schedule=msgspec.structs.replace(session.schedule, looks=(session.schedule.pairs,), alpha=ALPHA),
        toggle_class=session.toggle_class,
        seed=session.seed,
        target=session.target,
        file_system=session.file_system,
        device=session.device,
        fio_version=session.fio_version,
        started=session.started,
        pairs=tuple(pairs),
        judged_by="pair",
    )


def conclude_session(session: ArmsSession) -> ArmsProof:
    """What follows from a session; the same session gives the same result."""
    pairs = [_pairs_of(session, arm, workload) for arm in session.arms[1:] for workload in session.workloads]
    samples = [_sample_of(one) for one in pairs]
    levels = step_down([signed_rank(one.effects).p_value for one in samples], ALPHA)
    effects = tuple(
        _apply_guardrails(one, _judge_effect(one, sample, level), level)
        for one, sample, level in zip(pairs, samples, levels, strict=True)
    )
    controls = _judge_controls(pairs[:: len(session.workloads)])
    reasons = list(session.faults)
    reasons += [
        f"the negative control moved under {one.arm} (× {one.ratio:.3f}, p = {one.p_holm:.4f}): something else did, too"
        for one in controls
        if one.p_holm is not None and one.p_holm <= CONTROL_LEVEL
    ]
    share = _contaminated_share(session)
    if share > MAX_CONTAMINATED_SHARE:
        reasons.append(f"{share:.0%} of the blocks were contaminated by other activity")
    invalid, indicative = (reasons, [*_indicative_reasons(session, len(pairs)), *_list_doubts(pairs, effects)])
    left = sum(1 for one in counted_blocks(session) if one.contaminated)
    notes = [f"{left} contaminated blocks are included: there was no room to repeat them"] if left else []
    notes += [
        f"contamination fell on {arm} more often than on none: the blocks that were put aside count for its guardrails,"
        " and a gain of it must be there with them, too"
        for arm, one in zip(session.arms[1:], pairs[:: len(session.workloads)], strict=True)
        if leans_to_arm_b(one)
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
    )


def _sample_of(session: Session, metric: MetricName | None = None, *, with_repeated: bool = False) -> PairedSample:
    """Return the claim of two arms, or another metric of its workload, over the pairs that count, or over all."""
    (claim,) = session.subject.claims
    described = session.subject.metric_of(claim) if metric is None else METRICS[metric]
    pairs = [pair for pair in session.pairs if pair.whole] if with_repeated else counted_pairs(session)
    return make_sample(pairs, claim.workload, described)


def _judge_effect(session: Session, sample: PairedSample, level: Tested) -> Effect:
    (claim,) = session.subject.claims
    described, values = session.subject.metric_of(claim), sample.effects
    empty = Effect(
        session.subject.profile, claim.workload, described.name, described.unit, described.better, "inconclusive"
    )
    if not values:
        return empty
    interval, equivalence = hodges_lehmann(values, 1 - level.level, TOST_CONFIDENCE)
    bounds = sorted(math.exp(described.sign * bound) for bound in (interval.low, interval.high))
    alone = hodges_lehmann(values, SINGLE_CONFIDENCE)[0]
    single = sorted(math.exp(described.sign * bound) for bound in (alone.low, alone.high))
    is_same = len(values) >= EQUIVALENCE_BLOCKS and equivalence.lies_within(math.log1p(claim.margin or 0.0))
    call: Call = "no-difference" if is_same else "inconclusive"
    if level.is_significant and interval.excludes_zero:
        call = "gain" if interval.estimate > 0 else "loss"
    return msgspec.structs.replace(
        empty,
        call=call,
        blocks=len(values),
        before=median(sample.before),
        after=median(sample.after),
        ratio=math.exp(described.sign * interval.estimate),
        interval=(bounds[0], bounds[1]),
        confidence=interval.confidence,
        p_value=level.p_value,
        p_holm=level.p_holm,
        minimum_detectable_effect=minimum_detectable_effect(values, level.level),
        latency_p99_ratio=_median_ratio(session, "latency_p99"),
        cpu_ratio=_median_ratio(session, "cpu_per_io"),
        interval95=(single[0], single[1]),
    )


def _apply_guardrails(session: Session, one: Effect, level: Tested) -> Effect:
    """With what its guardrails say, and without a gain that is not there among all attempts where contamination leans
    to its arm: what disturbed that arm may be its values."""
    (claim,) = session.subject.claims
    call = one.call
    if call == "gain" and leans_to_arm_b(session):
        whole = hodges_lehmann(_sample_of(session, with_repeated=True).effects, 1 - level.level)[0]
        call = "gain" if whole.low > 0 else "inconclusive"
    sign = session.subject.metric_of(claim).sign
    is_small = call == "gain" and one.ratio is not None and sign * math.log(one.ratio) < math.log1p(claim.margin or 0.0)
    return msgspec.structs.replace(one, call=call, cost=cost_of(judge_guardrails(session)), below_margin=is_small)


def _list_doubts(pairs: Sequence[Session], effects: Sequence[Effect]) -> list[str]:
    """Why what the figures say may be no effect of the values: contamination of one arm alone, a gain that is not there
    in the worst case, a control that is not shown to move less."""
    found = []
    arms = {one.subject.profile: one for one in pairs}
    for arm, session in arms.items():
        alone = count_alone(session)
        p_value = sign_test(alone["A"], alone["B"])
        if p_value <= ONE_SIDED_LEVEL / len(arms):
            found.append(
                f"contamination fell on {arm} without none in {alone['B']} blocks and on none without {arm} in"
                f" {alone['A']} (p = {p_value:.4f}): what disturbed those runs may be an effect of the values, and they"
                " were put aside"
            )
    for session, one in zip(pairs, effects, strict=True):
        if one.call != "gain":
            continue
        margin = session.subject.claims[0].margin
        claim = Summary(
            one.workload, one.metric, one.unit, one.better, verdict="gain", margin=margin, below_margin=one.below_margin
        )
        worst = worst_case(session, (claim,))
        if worst is not None:
            found.append(f"{one.workload}: {worst.replace('arm B', one.arm).replace('arm A', NONE)}")
        if not exceeds_control(session):
            found.append(
                f"{one.workload}: the gain of {one.arm} is not shown to be larger than what the negative control does"
            )
    return found


def _median_ratio(session: Session, metric: MetricName) -> float | None:
    sample = _sample_of(session, metric)
    return median([after / before for before, after in zip(sample.before, sample.after, strict=True)] or [0.0]) or None


def _best_arm(effects: Sequence[Effect]) -> str | None:
    gains = [one for one in effects if one.is_plain_gain and one.ratio is not None]
    return max(gains, key=_gain_ratio).arm if gains else None


def _gain_ratio(one: Effect) -> float:
    ratio = one.ratio or 1.0
    return ratio if one.better == "higher" else 1 / ratio


def _judge_controls(pairs: Sequence[Session]) -> tuple[Control, ...]:
    samples = [make_sample(counted_pairs(one), NULL_CONTROL, METRICS["iops"], control=True).effects for one in pairs]
    adjusted = holm([signed_rank(one).p_value for one in samples])
    return tuple(
        Control(one.subject.profile, len(sample), *((math.exp(median(sample)), p_holm) if sample else (None, None)))
        for one, sample, p_holm in zip(pairs, samples, adjusted, strict=True)
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
