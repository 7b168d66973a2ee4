"""The records of a session: what is claimed, what was run, and the result. All frozen, all with a JSON form.

A `Session` is everything that was measured and decided *before* looking at the figures; a `Proof` is what follows
from it. ``advisor.proof.verdict.decide_session`` leads from one to the other and nothing else does, so a saved session
always gives the same verdict again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.proof.covariates import CalmGate, Covariates
from advisor.proof.metrics import CLAIMABLE, METRICS, HostIdentity, Metric, MetricName, RunFigures
from advisor.proof.own_command import COMMAND_WORKLOAD, OWN_WORKLOADS, OwnCommand
from advisor.proof.schedule import Mode, Schedule
from advisor.proof.workloads import NULL_CONTROL, Pattern, command_pattern, get_measured, get_workload

Arm = str
"""``A`` and ``B`` where one change is measured, else ``none`` and the names of the others; where single values are
switched, digits that show which are on."""
ToggleClass = Literal["T0", "T1", "T2", "T3"]
Ended = Literal["complete", "settled", "budget", "interrupted", "fault", "io-pressure", "bytes", "harm", "limit"]
Verdict = Literal["gain", "loss", "gain-with-cost", "no-difference", "inconclusive", "invalid", "indicative"]

GuardrailStatus = Literal["kept", "undecided", "broken"]
Cost = Literal["none", "undecided", "shown"]

NONE = "none"
"""The arm that sets nothing, where there are several others."""
PAIRED = ("A", "B")
MAX_CLAIMS = 3
GUARDRAIL_LIMIT = 0.10
LOSS_LIMIT = 0.01
"""By how much the share of the datagrams that arrive may fall."""


class Claim(msgspec.Struct, frozen=True):
    """What a profile promises: a workload, the metric that gets better, and the smallest change that matters.

    Metric and margin default to the workload's and the mode's; ``direction`` may be given for readability.
    ``margin`` is a fraction: 0.05 means 5 %.
    """

    workload: str
    metric: MetricName | None = None
    direction: Literal["higher", "lower"] | None = None
    margin: float | None = None


class Guardrail(msgspec.Struct, frozen=True):
    """What must not get worse by more than ``limit`` (a fraction)."""

    workload: str
    metric: MetricName
    limit: float = GUARDRAIL_LIMIT


class ProofSubject(msgspec.Struct, frozen=True):
    """What is put to the test. ``path`` is where the effect can show: ``network`` needs a target behind a network.

    Without guardrails of its own each claimed workload is guarded by p99 and by CPU time for each I/O; one over the
    network by CPU time, and by the share of its datagrams that arrive.
    ``exploratory`` workloads are measured and shown, but never judged.
    """

    profile: str
    claims: tuple[Claim, ...]
    guardrails: tuple[Guardrail, ...] = ()
    control: str | None = NULL_CONTROL
    path: Literal["any", "network"] = "any"
    exploratory: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """What asks for the profile on a command line, where that is not its name: a file, values."""
    command: OwnCommand | None = None
    """What is run in place of fio; then the claim and the guardrails are of its metrics."""

    def metric_of(self, one: Claim | Guardrail) -> Metric:
        """What a claim or guardrail is judged by. Raises KeyError for a metric that there is not."""
        name = one.metric or get_workload(one.workload).metric
        if self.command is not None and one.workload in OWN_WORKLOADS:
            return self.command.metric(name)
        return METRICS[name]

    def pattern_of(self, workload: str) -> Pattern:
        """A workload of the session; a command with the metric that is claimed of it."""
        if self.command is None or workload not in OWN_WORKLOADS:
            return get_measured(workload)
        return command_pattern(self.command, workload)


class ArmSetting(msgspec.Struct, frozen=True):
    """One value that differs between the arms: a tunable in arm A and in arm B, and why that was wanted."""

    tunable: str
    before: str
    after: str
    why: str = ""


class UnswitchedTunable(msgspec.Struct, frozen=True):
    """A tunable of the profile that is not switched, and why."""

    tunable: str
    reason: str


class Ablation(msgspec.Struct, frozen=True):
    """What is switched where single values of one profile are the arms: ``units`` names the tunables of each, and
    ``words`` are the design's columns (`advisor.proof.blocks`)."""

    profile: str
    units: Mapping[str, tuple[str, ...]]
    words: tuple[int, ...]
    left_out: tuple[UnswitchedTunable, ...] = ()
    asked: tuple[str, ...] = ()
    """What asks for the profile on a command line."""


class FioRun(msgspec.Struct, frozen=True):
    """One fio run. ``number`` counts all runs of the session; ``lamps`` are the covariates that spoiled it."""

    number: int
    arm: Arm
    workload: str
    at_seconds: float
    figures: RunFigures
    covariates: Covariates
    lamps: tuple[str, ...] = ()


class Pair(msgspec.Struct, frozen=True):
    """The runs of every arm, as they were run: of two a pair with its ``order``, of several a block. A contaminated one
    that was repeated is ``superseded`` and kept."""

    index: int
    attempt: int
    order: str
    runs: tuple[FioRun, ...]
    control_runs: tuple[FioRun, ...] = ()
    contaminated: bool = False
    superseded: bool = False
    whole: bool = True


class Hold(msgspec.Struct, frozen=True):
    """One arm held for a longer time, with run after run of each claimed workload: shows an effect that comes late."""

    arm: Arm
    runs: tuple[FioRun, ...]


class Switchback(msgspec.Struct, frozen=True):
    """How a value was switched under live traffic: periods in seconds, and what of each was discarded.

    An effect is taken to appear within ``tau_seconds`` (to 63 %): given, measured on the ``probes`` (short pairs at the
    start, judged for harm alone), or assumed where none of them showed an effect. ``limits`` are the user's, as
    written; ``withdrawn`` says why the change was withdrawn early, ``harm`` is the largest E of the test for a loss.
    """

    period_seconds: float
    discard_seconds: float
    tau_seconds: float
    tau_from: Literal["given", "measured", "assumed"] = "assumed"
    limits: tuple[str, ...] = ()
    probes: tuple[Pair, ...] = ()
    harm: float = 1.0
    withdrawn: str | None = None


class Session(msgspec.Struct, frozen=True):
    """All that was measured, with the rules that were fixed beforehand. Claims carry their resolved margins.

    ``values`` are what differs between the arms, none in a self-test; ``None`` where that was not recorded.
    Contamination was ``judged_by`` the pair, both arms taken together, or in old records by the run, against its own
    arm.
    """

    subject: ProofSubject
    schedule: Schedule
    toggle_class: ToggleClass
    seed: int
    target: str
    file_system: str
    device: str | None
    fio_version: str
    started: str
    gate: CalmGate = CalmGate()
    forced: bool = False
    self_test: bool = False
    warm_up: tuple[FioRun, ...] = ()
    pairs: tuple[Pair, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ended: Ended = "complete"
    seconds: float = 0.0
    bytes_written: int = 0
    kept: bool = False
    restored: bool = True
    peer_ssh: str | None = None
    peer_address: str | None = None
    host: HostIdentity | None = None
    values: tuple[ArmSetting, ...] | None = None
    judged_by: Literal["run", "pair"] = "run"
    holds: tuple[Hold, ...] = ()
    wants_hold: bool = False
    """Whether "no difference" needs the arms to be held first; False in records from before that rule."""
    holds_all: bool = False
    """Whether a difference needs that as well; False in records from before that rule."""
    options: tuple[str, ...] = ()
    """The other options of the call, word by word: with them it measures the same again."""
    live: Switchback | None = None
    """Where nothing was run and the traffic that was there was measured; then a run is a period."""
    attempts: int = 1
    """How often this comparison was started, with this one: those before were cut off."""
    arms: tuple[str, ...] = PAIRED
    """The first is the host as it was."""
    arm_values: Mapping[str, tuple[ArmSetting, ...]] = {}
    """Where there are several arms: the values that each sets."""
    ablation: Ablation | None = None
    """Where the arms are values of one profile: each block has every combination of the design once."""

    @property
    def is_paired(self) -> bool:
        """Whether one change is measured, in pairs; False of several arms, in blocks."""
        return self.arms == PAIRED

    def is_under(self, arm: str, turn: str) -> bool | None:
        """Whether ``arm`` was active in a turn, False where the host was without it; None for another arm's turn."""
        if self.ablation is not None:
            return turn != NONE and turn[self.arms.index(arm) - 1] == "1"
        return turn == arm if turn in (arm, self.arms[0]) else None


class Summary(msgspec.Struct, frozen=True):
    """One metric of one workload over all pairs that count.

    ``ratio`` is after over before (Hodges-Lehmann), ``ci95`` its interval with the level ``confidence`` really
    achieved: that of the test that the verdict rests on, so that it pays for every look and every claim. ``effect`` is
    the same as a fraction in the direction of better: +0.2 is 20 % more IOPS or 1/1.2 of the latency. ``status`` is
    whether a guardrail is shown to be kept or broken; ``below_margin`` a gain that is sure and smaller than the claim's
    margin; ``is_constant`` a claim on a command's figure that was the same in every run, from which nothing follows.
    ``minimum_detectable_effect`` and ``margin`` are fractions. ``p_value`` is not adjusted, ``p_holm`` is.
    """

    name: str
    metric: MetricName
    unit: str
    better: Literal["higher", "lower"]
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    ci95: tuple[float, float] | None = None
    confidence: float | None = None
    effect: float | None = None
    p_value: float | None = None
    pairs: int = 0
    minimum_detectable_effect: float | None = None
    needed_pairs: int | None = None
    p_holm: float | None = None
    margin: float | None = None
    limit: float | None = None
    verdict: Verdict | None = None
    status: GuardrailStatus | None = None
    below_margin: bool | None = None
    is_constant: bool = False
    arm: str = "B"
    """The arm that is compared with the first one."""
    interval95: tuple[float, float] | None = None
    """Where there are several arms: the interval of this comparison alone, at 95 %."""
    cost: Cost | None = None
    """Where there are several arms: what the guardrails of this arm and workload say."""

    @property
    def described(self) -> Metric:
        """Its metric, with unit and direction."""
        return Metric(self.metric, self.unit, self.better)

    @property
    def is_plain_gain(self) -> bool:
        """Whether it is a gain of an arm, as large as the margin, that costs nothing."""
        return self.verdict == "gain" and self.cost == "none" and not self.below_margin


class Proof(msgspec.Struct, frozen=True):
    """The result; its JSON is ``advisor.proof/1`` of the contract. ``tendency`` is the verdict that the claims
    alone would have given, ``reasons`` why the verdict is not that one, ``saved_to`` the file that holds every run,
    ``values`` what differs between the arms. ``cost`` is ``none`` where every guardrail is shown to be kept, ``shown``
    where one is broken; ``below_margin`` where a gain is sure and smaller than was asked for."""

    profile: str
    verdict: Verdict
    workloads: tuple[Summary, ...]
    kept: bool
    tendency: Verdict
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    guardrails: tuple[Summary, ...]
    exploratory: tuple[Summary, ...]
    control: Summary | None
    carry_over_p: float | None
    contaminated_share: float
    alpha: float
    seed: int
    order: tuple[str, ...]
    gate: CalmGate
    session: Session
    saved_to: str | None = None
    values: tuple[ArmSetting, ...] | None = None
    cost: Cost = "undecided"
    below_margin: bool = False
    words: tuple[str, ...] = ()
    """What asks for the profile on a command line, where that is not its name: a file, values."""
    controls: tuple[Summary, ...] = ()
    """Where there are several arms: the control of each."""
    best: Mapping[str, str | None] = {}
    """Where there are several arms: for each workload the arm with the largest gain, of those as large as the margin at
    no cost; the arms are not compared with each other."""
    schema: Literal["advisor.proof/1"] = "advisor.proof/1"

    @property
    def is_gain(self) -> bool:
        """Whether a gain as large as was asked for is proven, and that it costs nothing."""
        return self.verdict == "gain" and self.cost == "none" and not self.below_margin


def claims_for(workloads: Iterable[str]) -> tuple[Claim, ...]:
    """One claim for each named workload, in its default metric. Raises UsageError above three, as all claims share
    one error rate, and UnknownWorkloadError."""
    claims = tuple(Claim(get_workload(name).name) for name in dict.fromkeys(workloads))
    if len(claims) > MAX_CLAIMS:
        raise UsageError(
            f"{len(claims)} workloads cannot all be claims: at most {MAX_CLAIMS}",
            hint="name the ones that matter; the rest can be measured as exploratory",
        )
    return claims


def command_subject(
    profile: str,
    command: OwnCommand,
    words: tuple[str, ...] = (),
    *,
    judged: int | None = None,
    workload: str = COMMAND_WORKLOAD,
) -> ProofSubject:
    """A profile (or the self-test) judged by a command of the user's own, or by live traffic: of the first ``judged``
    metrics (all) one is claimed and the others must not get worse, what follows is shown. There is no negative control,
    as nothing is known that the change cannot touch."""
    first, *others = command.metrics[:judged]
    return ProofSubject(
        profile=profile,
        words=words,
        claims=(Claim(workload, first.name),),
        guardrails=tuple(Guardrail(workload, one.name) for one in others),
        control=None,
        command=command,
    )


def resolve_subject(subject: ProofSubject, mode: Mode, *, most: int = MAX_CLAIMS) -> ProofSubject:
    """The subject with every default filled in. Raises InvalidInputError or UnknownWorkloadError.

    A quick session cannot resolve less than its own margin, so it widens narrower ones.
    """
    if not 1 <= len(subject.claims) <= most:
        raise InvalidInputError(f"{subject.profile}: {len(subject.claims)} claims; there must be 1 to {most}")
    _check_command(subject)
    claims = tuple(_resolve_claim(subject, claim, mode) for claim in subject.claims)
    if len({(claim.workload, claim.metric) for claim in claims}) < len(claims):
        raise InvalidInputError(f"{subject.profile}: the same workload and metric are claimed twice")
    for name in (*subject.exploratory, *([subject.control] if subject.control else [])):
        get_workload(name)
    guardrails = subject.guardrails or (() if subject.command else tuple(_default_guardrails(claims)))
    for guardrail in guardrails:
        subject.pattern_of(guardrail.workload)
        if guardrail.limit <= 0:
            raise InvalidInputError(f"{subject.profile}: guardrail {guardrail.workload}: limit must be above 0")
    return msgspec.structs.replace(subject, claims=claims, guardrails=guardrails)


def _check_command(subject: ProofSubject) -> None:
    """Raise InvalidInputError where a record names metrics that its command has not, or the same one twice."""
    command = subject.command
    judged: list[Claim | Guardrail] = [*subject.claims, *subject.guardrails]
    named = [one.metric for one in judged if one.workload in OWN_WORKLOADS]
    known = [one.name for one in command.metrics] if command is not None else []
    if len(set(known)) < len(known) or (command is not None and not known) or not set(named) <= set(known):
        raise InvalidInputError(f"{subject.profile}: its metrics are not those of its command")


def _resolve_claim(subject: ProofSubject, claim: Claim, mode: Mode) -> Claim:
    profile = subject.profile
    metric = claim.metric or get_workload(claim.workload).metric
    if metric not in CLAIMABLE and claim.workload not in OWN_WORKLOADS:
        raise InvalidInputError(f"{profile}: claim {claim.workload}: no claim can be made on {metric}")
    better = subject.metric_of(claim).better
    if claim.direction not in (None, better):
        raise InvalidInputError(f"{profile}: claim {claim.workload}: a {claim.direction} {metric} is no gain")
    margin = claim.margin if claim.margin is not None else mode.margin
    if not (math.isfinite(margin) and 0 < margin < 1):
        raise InvalidInputError(f"{profile}: claim {claim.workload}: margin must lie between 0 and 1")
    margin = max(margin, mode.margin) if mode.name == "quick" else margin
    return Claim(claim.workload, metric, better, margin)


def _default_guardrails(claims: Sequence[Claim]) -> Iterable[Guardrail]:
    for workload in dict.fromkeys(claim.workload for claim in claims):
        for guardrail in guardrails_of(get_workload(workload)):
            if (workload, guardrail.metric) not in {(claim.workload, claim.metric) for claim in claims}:
                yield guardrail


def guardrails_of(workload: Pattern) -> Iterable[Guardrail]:
    """What must not get worse where a workload gets faster."""
    if not workload.is_network:
        yield Guardrail(workload.name, "latency_p99")
    elif any(section.protocol == "udp" for section in workload.sections):
        # more that arrives is no gain where more is lost on the way as well
        yield Guardrail(workload.name, "delivered", LOSS_LIMIT)
    yield Guardrail(workload.name, "cpu_per_io")


def measured_workloads(subject: ProofSubject) -> tuple[str, ...]:
    """The workloads that every pair runs, in order: claims, guardrails, exploratory; the control is apart."""
    claimed = [claim.workload for claim in subject.claims]
    guarded = [guardrail.workload for guardrail in subject.guardrails]
    return tuple(dict.fromkeys([*claimed, *guarded, *subject.exploratory]))
