"""The records of a search over candidates (``advisor tune``): what raced, what was dropped, and what was confirmed.

A `TuneSession` is all that was measured and fixed beforehand; it is written to disk after every block, so that a search
that was killed goes on where it was. A `Tuned` is the result. The blocks of the race hold no claim: the one figure that
is reported is that of the confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.proof.covariates import CalmGate
from advisor.proof.identity import HostIdentity
from advisor.proof.metrics import Metric
from advisor.proof.own_command import OwnCommand
from advisor.proof.records import ArmSetting, Proof, Verdict
from advisor.proof.schedule import HOLD_SECONDS

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
