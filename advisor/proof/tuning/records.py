"""A race of anonymous arms in randomised blocks: which are dropped, and which one is ahead at the end. Pure.

Arms are numbers; 0 is the present state and is never dropped. Each block holds every surviving arm once, in an order
that was drawn. "The arms do nothing" makes the values of a block exchangeable among its arms, whatever the load does
meanwhile, as the order is drawn by chance. So the sum of an arm's aligned ranks has an exact distribution (Hodges and
Lehmann, Ann. Math. Statist. 33 (1962): each value less the mean of its block, all ranked together; Fisher, *The
Design of Experiments* (1935), for the reference). An arm is compared with the whole field, which shows more than its
difference from one other run of the block: what it is worth against the state before is left to a confirmation on
fresh data.

Dropping spends a level of 5 % over the looks, one after each block, by ``t ** 1.5`` (Lan and DeMets, Biometrika 70
(1983), for spending; the exponent is of Kim and DeMets, Biometrika 74 (1987)), and at each look Holm's procedure shares
it among the arms. Winning spends 4.5 % at half of the blocks and at the end; the rest of 5 % is for the survivors, who
were chosen by the same blocks. Simulated by ``python -m benchmarks.tuning``; docs/proof.md holds the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from advisor.proof.covariates import CalmGate
from advisor.proof.metrics import HostIdentity, Metric
from advisor.proof.own_command import OwnCommand
from advisor.proof.records import ArmSetting, Proof, Verdict
from advisor.proof.schedule import HOLD_SECONDS
from advisor.proof.statistics import doubled_midranks, level_ties, step_down

PRESENT = 0
"""The arm that is the state before."""
DROP_LEVEL = 0.05
WIN_LEVEL = 0.045
FIRST_DROP = 3
"""Blocks before which nothing is dropped."""
EXPONENT = 1.5

Block = Mapping[int, float]
"""One value for each arm that ran, on a log scale, plus is better."""


class Standing(msgspec.Struct, frozen=True):
    """One surviving arm against the field: how likely a rank sum as low, or as high, is without any effect.
    ``lead`` is the mean of its distances from the means of its blocks."""

    arm: int
    worse: float
    better: float
    lead: float


def rank_arms(blocks: Sequence[Block]) -> tuple[Standing, ...]:
    """The standing of every arm of the last block, in the order of their numbers; who was dropped is no part of it."""
    if not blocks:
        return ()
    blocks = [{arm: block[arm] for arm in blocks[-1]} for block in blocks]
    means = [sum(block.values()) / len(block) for block in blocks]
    aligned = [{arm: block[arm] - mean for arm in sorted(block)} for block, mean in zip(blocks, means, strict=True)]
    ranks = iter(_rank_values([value for block in aligned for value in block.values()]))
    scores = [{arm: next(ranks) for arm in block} for block in aligned]
    tail = _Tail([tuple(block.values()) for block in scores])
    found = []
    for arm in scores[-1]:
        total = sum(block[arm] for block in scores)
        lead = sum(block[arm] for block in aligned) / len(aligned)
        found.append(Standing(arm, tail.at_most(total), tail.at_least(total), lead))
    return tuple(found)


def _rank_values(values: Sequence[float]) -> list[int]:
    """Doubled mid-ranks; values that differ by rounding alone are ties."""
    shift = min(values, default=0.0)
    return doubled_midranks(level_ties([value - shift for value in values]))


class _Tail:
    """The distribution of a sum of one score of each block, each as likely as any other of its block."""

    def __init__(self, scores: Sequence[Sequence[int]]) -> None:
        self._outcomes = math.prod(map(len, scores))
        # Digits of one big integer, as in `advisor.proof.statistics`; each block counts from its lowest score, and
        # without ties every doubled rank is even, so that half of the digits would be empty.
        self._width = self._outcomes.bit_length() + 1
        self._lowest = sum(map(min, scores))
        self._unit = math.gcd(*(score - min(block) for block in scores for score in block)) or 1
        distribution = 1
        for block in scores:
            low = min(block)
            distribution = sum(distribution << (score - low) // self._unit * self._width for score in block)
        self._distribution = distribution

    def at_most(self, total: int) -> float:
        """The probability of a sum up to this one."""
        mask = (1 << ((total - self._lowest) // self._unit + 1) * self._width) - 1
        return float((self._distribution & mask) % ((1 << self._width) - 1) / self._outcomes)

    def at_least(self, total: int) -> float:
        """The probability of this sum or a larger one."""
        rest = self._distribution >> (total - self._lowest) // self._unit * self._width
        return float(rest % ((1 << self._width) - 1) / self._outcomes)


def spent_level(done: int, most: int, alpha: float) -> float:
    """Of a level for the whole race, what may be spent after so many blocks."""
    return float(alpha * min(1.0, done / most) ** EXPONENT)


def drop_arms(standings: Sequence[Standing], done: int, most: int) -> tuple[int, ...]:
    """The arms that are out after ``done`` of ``most`` blocks: shown to be below the field, and so not the best."""
    if done < FIRST_DROP:
        return ()
    before = spent_level(done - 1, most, DROP_LEVEL) if done > FIRST_DROP else 0.0
    level = spent_level(done, most, DROP_LEVEL) - before
    candidates = [one for one in standings if one.arm != PRESENT]
    tested = step_down([one.worse for one in candidates], level)
    return tuple(one.arm for one, test in zip(candidates, tested, strict=True) if test.is_significant)


def find_winner(
    standings: Sequence[Standing], started: int, done: int, most: int, *, is_last: bool = False
) -> int | None:
    """The arm that is shown to be above the field and is ahead of the present state, of ``started`` arms besides that;
    None where there is none, and between the looks at half of the blocks and at the end. ``is_last``: the time is up
    before the blocks were."""
    half = (most + 1) // 2
    is_last = is_last or done >= most or (len(standings) <= 2 and done > half)
    early = spent_level(half, most, WIN_LEVEL)
    level = early if done == half else (WIN_LEVEL - early if done > half else WIN_LEVEL) if is_last else 0.0
    present = next((one for one in standings if one.arm == PRESENT), None)
    candidates = [one for one in standings if one.arm != PRESENT]
    if not level or present is None or not candidates:
        return None
    best = max(candidates, key=lambda one: one.lead)
    # Holm's first step; who was dropped counts as tested.
    is_shown = best.better <= level / max(1, started)
    return best.arm if is_shown and best.lead > present.lead else None


# The records of a search over candidates (``advisor tune``): what raced, what was dropped, and what was confirmed.

PLACEBO = "placebo"
"""An arm that sets nothing, as the present state does."""
STATE_BEFORE = "present"
"""The first arm: the state before."""

TuneVerdict = Verdict | Literal["no-winner", "placebo-ahead", "unfinished"]


class TuneCandidate(msgspec.Struct, frozen=True):
    """One candidate: what asks for it on a command line, where it comes from, and what it sets here. ``settings`` are
    parameters of its profile."""

    name: str
    words: tuple[str, ...]
    source: str
    sources: tuple[str, ...]
    values: tuple[ArmSetting, ...]
    why: str = ""
    hurts_when: str = ""
    settings: tuple[tuple[str, str], ...] = ()


class TunePattern(msgspec.Struct, frozen=True):
    """A pattern of fio that a search is judged by: a workload's name or file, the directory of its scratch file, and
    what it is judged by. The rest are the options of the call, None where they were not given."""

    workload: str
    target: str
    metric: Metric
    seconds: float | None = None
    scratch_bytes: int | None = None
    byte_budget: int | None = None


class TuneAblation(msgspec.Struct, frozen=True):
    """Which of the winner's tunables are confirmed, and which are left out as no effect of them was shown.
    ``saved_to`` is the file with the figures. ``reason`` says why nothing was left out, or not examined."""

    kept: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    is_examined: bool = False
    reason: str = ""
    saved_to: str | None = None


class LeftOutCandidate(msgspec.Struct, frozen=True):
    """A candidate that is not measured, and why."""

    name: str
    source: str
    reason: str


class RaceRun(msgspec.Struct, frozen=True):
    """One run of the command under an arm, by the number of that."""

    arm: int
    measures: Mapping[str, float]
    seconds: float


class RaceBlock(msgspec.Struct, frozen=True):
    """Every surviving arm once, in the order in which they ran, and those that were dropped after it."""

    index: int
    runs: tuple[RaceRun, ...]
    dropped: tuple[int, ...] = ()


class Registration(msgspec.Struct, frozen=True):
    """What the confirmation compares, written before it starts: the candidate that won the race against the state
    before, by ``metric``; at most ``pairs`` pairs with looks at ``looks``, each at the two-sided level ``alpha``; only
    the verdict ``wanted`` is reported as a gain. ``attempts`` counts how often it was started: one that was
    interrupted starts again, its figures are not kept, and the result is indicative alone, as the level holds for
    one."""

    candidate: str
    metric: str
    pairs: int
    looks: tuple[int, ...]
    alpha: float
    margin: float
    seed: int
    registered: str
    wanted: Literal["gain"] = "gain"
    attempts: int = 0


class TuneSession(msgspec.Struct, frozen=True):
    """All that was measured, with the rules that were fixed beforehand. ``arms`` are names by the number of the arm:
    the present state, candidates and placebos, in an order that was drawn. ``blocks_planned`` is the length of the
    race, ``run_seconds`` what one run took in the trial before it."""

    id: str
    candidates: tuple[TuneCandidate, ...]
    left_out: tuple[LeftOutCandidate, ...]
    arms: tuple[str, ...]
    command: OwnCommand | None
    budget_seconds: float
    run_seconds: float
    blocks_planned: int
    seed: int
    started: str
    blocks: tuple[RaceBlock, ...] = ()
    winner: int | None = None
    is_raced: bool = False
    registration: Registration | None = None
    seconds: float = 0.0
    host: HostIdentity | None = None
    gate: CalmGate = CalmGate()
    forced: bool = False
    """Whether the host was busy when it began."""
    keep_if_gain: bool = False
    asked: tuple[str, ...] = ()
    """The words of ``--candidates``; ``options`` are the other options of the call, word by word."""
    options: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hold_seconds: float = HOLD_SECONDS
    """How long each arm of the confirmation is held before its verdict."""
    pattern: TunePattern | None = None
    """What is run in place of a command."""
    is_ablating: bool = False
    """Whether it is examined which of the winner's values did it."""
    ablation: TuneAblation | None = None
    schema: Literal["advisor.tune-session/1"] = "advisor.tune-session/1"

    @property
    def survivors(self) -> tuple[int, ...]:
        """The arms that were not dropped, the present state among them."""
        out = {arm for block in self.blocks for arm in block.dropped}
        return tuple(arm for arm in range(len(self.arms)) if arm not in out)

    def find_candidate(self, name: str) -> TuneCandidate | None:
        """The candidate of that name; None for the present state and for a placebo."""
        return next((one for one in self.candidates if one.name == name), None)


class Tuned(msgspec.Struct, frozen=True):
    """The result; its JSON is ``advisor.tune/1``. ``verdict`` is that of the confirmation, or why there was none;
    ``confirmation`` is the proof, whose interval is the only gain that is claimed. ``ablated`` says whether it was
    examined which of the winner's values did it."""

    verdict: TuneVerdict
    session: TuneSession
    winner: TuneCandidate | None = None
    confirmation: Proof | None = None
    ablated: bool = False
    kept: bool = False
    reasons: tuple[str, ...] = ()
    saved_to: str | None = None
    schema: Literal["advisor.tune/1"] = "advisor.tune/1"

    @property
    def is_gain(self) -> bool:
        """Whether the confirmation proved a gain as large as its margin that costs nothing."""
        return self.confirmation is not None and self.confirmation.is_gain
