"""How a session is laid out before it starts: pairs (or rounds of one arm), looks, significance level, bytes. Pure.

Everything that bears on the error rate is fixed here, before the first figure is seen: the number of looks
follows from the pairs that fit into the budget, and the level from the number of looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.proof.own_command import OWN_WORKLOADS
from advisor.proof.scratch import GIB, MIB, MINIMUM_SCRATCH_BYTES
from advisor.proof.statistics import POCOCK
from advisor.proof.workloads import Pattern

# Budgets of time as ``--budget`` takes them.

_STEP_SECONDS = 5
_SECONDS_BELOW = 120


def write_budget(seconds: float) -> str:
    """The time as it is typed: ``90s``, ``30m`` or ``2h``."""
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds / 3600:.0f}h"
    if seconds >= _SECONDS_BELOW and seconds % 60 == 0:
        return f"{seconds / 60:.0f}m"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def enough_budget(seconds: float) -> str:
    """The same, rounded up to 5 s, from two minutes on to minutes: a budget of so much has room for ``seconds``."""
    step = _STEP_SECONDS if seconds <= _SECONDS_BELOW - _STEP_SECONDS else 60
    # what is just enough might not be, in the last digit
    rounded = math.ceil((seconds + 0.001) / step) * step
    return f"{rounded // 60}m" if step == 60 else f"{rounded}s"


ModeName = Literal["quick", "default", "deep"]

WARM_UP_RUNS = 3
CONTROL_SECONDS = 0.5
"""The control runs in every pair: a gain counts only once the control has enough pairs to be judged."""
EQUIVALENCE_PAIRS = 16
"""Pairs below which "no difference" is never said."""
HOLD_FACTOR = 1.2
HOLD_SECONDS = HOLD_FACTOR * 30.0
"""How long each arm is held before a verdict, to see whether the effect is the same then: longer than any dead time of
30 s, so that the second half shows the arm that is held."""
HOLD_RUNS = 6
"""Of each claimed workload in a held arm, at least."""
LONG_TURN_SECONDS = 60.0
"""A turn as long as this holds its arm by itself."""
MINIMUM_HELD_PAIRS = 6
"""Below so many pairs nothing is called, and no time is kept back for holding the arms."""
REPEAT_SHARE = 0.5
DEFAULT_BYTE_BUDGET = 8 * GIB
FREE_SHARE = 0.5
"""Of the free space: a session wears a drive by half of a whole write at most."""
MINIMUM_RUN_BYTES = 1 * MIB
MINIMUM_BLOCKS = 8
OVERSHOOT_SHARE = 0.03
SCRATCH_BUDGET_SHARE = 1 / 16
FILL_BYTES_PER_SECOND = 150 * MIB
"""Assumed for the prediction only."""
FIO_OVERHEAD_SECONDS = 0.5
RESERVE_SECONDS = 3.0
"""Kept back for restoring and removing the scratch file."""
MEASURED_SLACK = 1.2
"""How much longer the run of a command may take the next time than when it was tried out."""
MINIMUM_LOOK_DISTANCE = 4
SESSION_LEVEL = 0.05


class Mode(msgspec.Struct, frozen=True):
    """How thorough: pairs, seconds for each run, looks, and the margin where a claim names none."""

    name: ModeName
    pairs: int
    seconds: float
    looks: tuple[int, ...]
    margin: float
    scratch_bytes: int


MODES: dict[ModeName, Mode] = {
    "quick": Mode("quick", 8, 1.0, (8,), 0.10, 128 * MIB),
    "default": Mode("default", 24, 2.0, (8, 16, 24), 0.10, 512 * MIB),
    "deep": Mode("deep", 48, 2.0, (48,), 0.05, 1024 * MIB),
}


class Schedule(msgspec.Struct, frozen=True):
    """What a session will do at most. Predicted seconds and bytes are shown before it starts.

    ``run_write_bytes`` bounds what each writing run may write; ``predicted_bytes`` is the sum of those bounds and
    the filling of the scratch file, repeats excepted, which draw on what is left of ``byte_budget``. With one arm
    (``bench``) a pair is a round: one run of each workload.
    """

    mode: ModeName
    pairs: int
    looks: tuple[int, ...]
    alpha: float
    seconds_per_run: float
    scratch_bytes: int
    byte_budget: int
    run_write_bytes: int
    predicted_bytes: int
    predicted_seconds: float
    pair_seconds: float
    arms: int = 2
    hold_seconds: float = 0.0
    """How long each arm is held before a verdict; 0 where that is not needed."""
    hold_runs: int = 0
    """Of each claimed workload in that time."""


def looks_for(pairs: int, mode: Mode) -> tuple[int, ...]:
    """The pair counts after which the data are looked at: the mode's own, cut to the pairs that fit."""
    early = [look for look in mode.looks if look < pairs]
    if early and pairs - early[-1] < MINIMUM_LOOK_DISTANCE:
        early.pop()
    return (*early, pairs)


def level_for(looks: Sequence[int]) -> float:
    """Two-sided level for each look that keeps the whole session at 5 %."""
    return POCOCK[len(looks)]


def pair_seconds(workloads: Sequence[Pattern], mode: Mode, place_seconds: float, arms: int = 2) -> float:
    """Predicted duration of one pair or block: every workload and the control in each arm; or of a round of a single
    arm."""
    arm = place_seconds + len(workloads) * (mode.seconds + _overhead_seconds(workloads))
    if arms == 1:
        return arm
    if _is_own_command(workloads):
        return arms * arm
    control = min(CONTROL_SECONDS, mode.seconds) + FIO_OVERHEAD_SECONDS
    return arms * (arm + control)


def _is_own_command(workloads: Sequence[Pattern]) -> bool:
    return all(workload.name in OWN_WORKLOADS for workload in workloads)


def _overhead_seconds(workloads: Sequence[Pattern]) -> float:
    """What a run takes besides its own seconds; of a command, whose runs are measured whole, nothing."""
    return 0.0 if _is_own_command(workloads) else FIO_OVERHEAD_SECONDS


def make_schedule(
    mode: Mode,
    workloads: Sequence[Pattern],
    *,
    free_bytes: int,
    place_seconds: float,
    budget_seconds: float | None = None,
    byte_budget: int | None = None,
    scratch_bytes: int | None = None,
    arms: int = 2,
    files: int = 1,
    held: int = 2,
    hold_seconds: float = HOLD_SECONDS,
) -> Schedule:
    """Lay a session out. ``free_bytes`` may be filled, ``byte_budget`` is 8 GiB or half of them unless given.
    ``place_seconds`` is what applying an arm and settling takes; one of a single arm has
    no looks but the last. ``files`` is the number of scratch files, each of the same size. ``held`` arms are held for
    ``hold_seconds`` before a verdict.

    Raises RefusedError where the budget in seconds has no room for one pair, or the one in bytes none for the runs.
    """
    budget = byte_budget if byte_budget is not None else min(DEFAULT_BYTE_BUDGET, int(free_bytes * FREE_SHARE))
    area = scratch_bytes if scratch_bytes is not None else _scratch_size(mode, min(budget, free_bytes or budget))
    size = area if any(workload.needs_scratch for workload in workloads) else 0
    _require_room(size, workloads)
    each = pair_seconds(workloads, mode, place_seconds, arms)
    warm_up = arms * (place_seconds + len(workloads) * WARM_UP_RUNS * (mode.seconds + _overhead_seconds(workloads)))
    fixed = files * size / FILL_BYTES_PER_SECOND + warm_up + RESERVE_SECONDS
    turn = each / arms
    if arms < 2 or turn >= LONG_TURN_SECONDS:
        held = 0
    run = max(mode.seconds + _overhead_seconds(workloads), 1e-3) * len(workloads)
    hold_runs = max(HOLD_RUNS, math.ceil(hold_seconds / run)) if held else 0
    hold = held * (place_seconds + max(hold_seconds, hold_runs * run))
    if budget_seconds is not None and fixed + hold + MINIMUM_HELD_PAIRS * each <= budget_seconds:
        fixed, hold = fixed + hold, 0.0
    noun = {1: "round", 2: "pair"}.get(arms, "block")
    pairs = _fitting_pairs(
        mode, each, fixed, budget_seconds, noun, hold, has_scratch=size > 0, is_measured=_is_own_command(workloads)
    )
    writers = sum(1 for workload in workloads if workload.is_writing)
    writing_runs = writers * (arms * (WARM_UP_RUNS + pairs) + held * hold_runs)
    per_run = _run_bytes(budget, files * size, writing_runs, _smallest_run(workloads))
    looks = looks_for(pairs, mode) if arms == 2 else (pairs,)
    if budget_seconds is not None:
        hold = max(0.0, min(hold, budget_seconds - fixed - pairs * each))
    return Schedule(
        mode=mode.name,
        pairs=pairs,
        looks=looks,
        alpha=level_for(looks),
        seconds_per_run=mode.seconds,
        scratch_bytes=size,
        byte_budget=budget,
        run_write_bytes=per_run,
        predicted_bytes=files * size + per_run * writing_runs,
        # the sum of parts of a budget may exceed it in the last digit
        predicted_seconds=min(fixed + pairs * each + hold, math.inf if budget_seconds is None else budget_seconds),
        pair_seconds=each,
        arms=arms,
        hold_seconds=hold_seconds if held else 0.0,
        hold_runs=hold_runs,
    )


def make_live_schedule(
    mode: Mode, period_seconds: float, *, fixed: float, budget_seconds: float | None = None
) -> Schedule:
    """Lay a session under live traffic out: pairs of periods, after ``fixed`` seconds of short ones.

    Raises RefusedError where the budget in seconds has no room for one pair.
    """
    each = 2 * period_seconds
    pairs = _fitting_pairs(mode, each, fixed + RESERVE_SECONDS, budget_seconds, "pair", has_scratch=False)
    looks = looks_for(pairs, mode)
    return Schedule(
        mode=mode.name,
        pairs=pairs,
        looks=looks,
        alpha=level_for(looks),
        seconds_per_run=period_seconds,
        scratch_bytes=0,
        byte_budget=0,
        run_write_bytes=0,
        predicted_bytes=0,
        predicted_seconds=fixed + pairs * each + RESERVE_SECONDS,
        pair_seconds=each,
    )


def _scratch_size(mode: Mode, budget: int) -> int:
    return max(MINIMUM_SCRATCH_BYTES, min(mode.scratch_bytes, int(budget * SCRATCH_BUDGET_SHARE) // MIB * MIB))


def _require_room(scratch_bytes: int, workloads: Sequence[Pattern]) -> None:
    """Raise UsageError where a job's region of the scratch file would hold next to nothing (fio reads a size of 0
    as the whole file)."""
    for workload in workloads:
        for section in workload.sections:
            region = scratch_bytes * section.region[1] // 100 // (section.jobs if section.own_regions else 1)
            if section.needs_scratch and region < MINIMUM_BLOCKS * section.largest_bytes:
                needed = (
                    -(-scratch_bytes * MINIMUM_BLOCKS * section.largest_bytes // max(region, 1)) if region else None
                )
                raise UsageError(
                    f"{workload.name} needs more than {scratch_bytes // 1024} KiB to work on",
                    hint=f"--file-size {-(-needed // MIB)}MiB, and a --byte-budget that has room for it"
                    if needed
                    else "choose a larger --file-size",
                )


def _fitting_pairs(
    mode: Mode,
    each: float,
    fixed: float,
    budget_seconds: float | None,
    noun: str,
    hold: float = 0.0,
    *,
    has_scratch: bool,
    is_measured: bool = False,
) -> int:
    """``is_measured`` of a command, whose seconds were found out just now: another time it may take longer."""
    if budget_seconds is None:
        return mode.pairs
    pairs = min(mode.pairs, int((budget_seconds - fixed) / each))
    if pairs >= 1:
        return pairs
    slack = MEASURED_SLACK if is_measured else 1.0
    hint = (
        f"--budget {enough_budget(slack * (fixed + each))} has room for one {noun}, --budget "
        f"{enough_budget(slack * (fixed + hold + mode.pairs * each))} has room for all {mode.pairs}"
    )
    if not has_scratch:
        raise RefusedError(
            (
                f"a budget of {write_budget(budget_seconds)} has no room for one {noun}: warm-up and restoring "
                f"take about {fixed:.0f} s, each {noun} {each:.1f} s"
            ),
            hint=hint,
        )
    raise RefusedError(
        (
            f"a budget of {write_budget(budget_seconds)} has no room for one {noun}: scratch file, warm-up and "
            f"restoring take about {fixed:.0f} s, each {noun} {each:.0f} s"
        ),
        hint=hint,
    )


def _smallest_run(workloads: Sequence[Pattern]) -> int:
    """Bytes below which a bounded run could not give each of its writing jobs a few blocks."""
    needed = (
        sum(section.jobs * section.largest_bytes for section in workload.sections if section.write_share > 0)
        for workload in workloads
    )
    return max(MINIMUM_RUN_BYTES, MINIMUM_BLOCKS * max(needed, default=0))


def _run_bytes(budget: int, scratch_bytes: int, writing_runs: int, smallest: int) -> int:
    left = budget - scratch_bytes
    # fio finishes what is in flight: a little is kept back for that
    per_run = int(left * (1 - OVERSHOOT_SHARE)) // writing_runs if writing_runs else 0
    needed = scratch_bytes + (smallest + 1) * writing_runs / (1 - OVERSHOOT_SHARE)
    if left < 0 or (writing_runs and per_run < smallest):
        raise RefusedError(
            (
                f"the byte budget of {budget // MIB} MiB has no room for a scratch file of "
                f"{scratch_bytes // MIB} MiB and {writing_runs} writing runs"
            ),
            hint=f"--byte-budget {math.ceil(needed / MIB)} has room for them",
        )
    return per_run
