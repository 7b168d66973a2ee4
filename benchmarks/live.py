"""How often `prove-live` errs, what it finds, whether its interval covers, and how soon harm is withdrawn.

    python -m benchmarks.live [SESSIONS]      1,000 for each load and effect unless said; about 15 minutes of CPU time

Simulated seconds of a service's wait under six loads, with an effect that relaxes within 2 s; the short pairs, the
relaxation read off them, the test for harm and the verdict are the product's own functions, and a test holds a
simulated session against one that was conducted. Prints Markdown tables; docs/proof.md sums up one run. Uses numpy,
which comes with the tests' scipy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from advisor.proof.covariates import Covariates
from advisor.proof.live import NO_FIGURES, PERIOD_SECONDS, plan_periods
from advisor.proof.live_source import (
    ASSUMED_TAU,
    HARM_LEVEL,
    MOST_DISCARDED_SHARE,
    PROBE_DISCARD,
    PROBE_PAIRS,
    PROBE_SECONDS,
    HarmTest,
    PeriodSeries,
    discard_for,
    estimate_tau,
)
from advisor.proof.own_command import LIVE_WORKLOAD, CommandMetric, OwnCommand
from advisor.proof.records import Arm, FioRun, Pair, Proof, Session, Switchback, command_subject, resolve_subject
from advisor.proof.schedule import MODES
from advisor.proof.session_runner import Settings
from advisor.proof.verdict import decide_session, is_settled

TAU: Final = 2.0
NOISE: Final = 0.25
"""Of a second, on the logarithmic scale, independent of the others."""
SLOW_NOISE: Final = 0.15
BUDGET_SECONDS: Final = 3600.0
SLOW_SECONDS: Final = 300.0
"""Of the autoregressive load: its standard deviation, and the time over which it forgets."""

Source = np.random.Generator
Seconds = NDArray[np.float64]
Load = Callable[[Source, int], Seconds]
"""ln wait of each second of a session, without the change."""


def _constant(source: Source, count: int) -> Seconds:
    return source.normal(0, NOISE, count)


def _autoregressive(source: Source, count: int) -> Seconds:
    keep = math.exp(-1 / SLOW_SECONDS)
    shocks = source.normal(0, SLOW_NOISE * math.sqrt(1 - keep * keep), count)
    found, value = np.zeros(count), float(source.normal(0, SLOW_NOISE))
    for at in range(count):
        value = keep * value + shocks[at]
        found[at] = value
    return found + _constant(source, count)


def _step(source: Source, count: int) -> Seconds:
    where = source.integers(count // 4, 3 * count // 4)
    return _constant(source, count) + np.where(np.arange(count) < where, 0, math.log(source.choice([0.6, 1.5])))


def _periodic(source: Source, count: int, every: int = 25) -> Seconds:
    """A quarter of the time others make it wait half as long again."""
    phase = (np.arange(count) + source.integers(every)) % every
    return _constant(source, count) + np.where(phase < every / 4, math.log(1.5), 0)


def _in_step(source: Source, count: int) -> Seconds:
    # as long as a pair: each pair has the burst in the same place
    return _periodic(source, count, 80)


def _long_cycle(source: Source, count: int) -> Seconds:
    return _periodic(source, count, 120)


LOADS: Final[dict[str, Load]] = {
    "constant": _constant,
    "autoregressive (300 s)": _autoregressive,
    "one step": _step,
    "periodic (25 s)": _periodic,
    "periodic (80 s, as a pair)": _in_step,
    "periodic (120 s)": _long_cycle,
}
STEADY: Final = tuple(name for name in LOADS if not name.startswith("periodic"))
"""Under which power and harm are promised: a load that repeats needs periods of whole cycles, which the user gives."""
EFFECTS: Final = (0.0, 0.05, -0.05, 0.10, -0.10, 0.20, -0.20)
SUBJECT: Final = resolve_subject(
    command_subject(
        "simulated",
        OwnCommand((), (CommandMetric("wait", "command", "wait", "lower", "ms"),), "/"),
        workload=LIVE_WORKLOAD,
    ),
    MODES["default"],
)


class Outcome(NamedTuple):
    """What became of a simulated session, and how many seconds it took."""

    proof: Proof
    seconds: float
    """From the first switch to the end."""


class Simulation:
    """One session. ``effect`` is a fraction in the direction of better: +0.1 is a wait of 1 / 1.1."""

    def __init__(self, source: Source, load: Load, effect: float, *, seed: int) -> None:
        self._coin = source
        settings, mode = Settings(budget_seconds=BUDGET_SECONDS), MODES["default"]
        self._seconds = load(source, round(BUDGET_SECONDS))
        self._now = 0
        schedule = plan_periods(mode, settings, PERIOD_SECONDS)
        self._period = period = schedule.seconds_per_run
        self._change = -math.log1p(effect)
        self._state = 0.0
        self._harm = HarmTest()
        live = Switchback(period, discard_for(ASSUMED_TAU), ASSUMED_TAU)
        self.session = Session(
            subject=SUBJECT,
            schedule=schedule,
            toggle_class="T0",
            seed=seed,
            target="",
            file_system="live",
            device=None,
            fio_version="",
            started="2024-05-17T12:00:00+00:00",
            judged_by="pair",
            live=live,
        )

    def run(self) -> Outcome:
        """The session to its end, and its proof."""
        for change in self._measure():
            self.session = msgspec.structs.replace(self.session, **change)
            if self._harm.evidence >= HARM_LEVEL:
                break
            if "pairs" in change and self._is_over():
                break
        if self._harm.evidence >= HARM_LEVEL:
            self.session = msgspec.structs.replace(self.session, ended="harm")
        return Outcome(decide_session(self.session), float(self._now))

    def _is_over(self) -> bool:
        done = len(self.session.pairs)
        if done in self.session.schedule.looks[:-1] and is_settled(self.session):
            self.session = msgspec.structs.replace(self.session, ended="settled")
            return True
        return False

    def _measure(self) -> Iterator[dict[str, object]]:
        live = self.session.live
        assert live is not None
        series = []
        for index in range(PROBE_PAIRS):
            _pair, periods = self._pair(index, round(PROBE_SECONDS), round(PROBE_DISCARD))
            series.append(periods)
            yield {}
        tau = estimate_tau(series)
        if tau is not None and tau > self._period:
            # the product ends the session
            return
        if tau is not None:
            discard = min(discard_for(tau), MOST_DISCARDED_SHARE * self._period)
            live = msgspec.structs.replace(live, tau_seconds=tau, tau_from="measured", discard_seconds=discard)
            yield {"live": live}
        for index in range(self.session.schedule.pairs):
            pair, _periods = self._pair(index, round(self._period), round(live.discard_seconds))
            yield {"pairs": (*self.session.pairs, pair)}

    def _pair(self, index: int, seconds: int, discard: int) -> tuple[Pair, list[PeriodSeries]]:
        order: tuple[Arm, Arm] = ("A", "B") if self._coin.random() < 0.5 else ("B", "A")
        runs: list[FioRun] = []
        periods = []
        for arm in order:
            waits = self._waits(seconds, is_changed=arm == "B")
            periods.append(PeriodSeries(arm == "B", list(waits)))
            if runs and self._looks_harmful(runs[0], arm, waits[discard:]):
                # inside a period, where the session ends at once
                break
            runs.append(_make_run(arm, float(np.mean(waits[discard:]))))
        if len(runs) == 2:
            self._harm.add_pair(_effect(runs[0], runs[1]))
        return Pair(index, 0, "".join(order), tuple(runs)), periods

    def _waits(self, seconds: int, *, is_changed: bool) -> Seconds:
        keep = math.exp(-1 / TAU)
        found = np.empty(seconds)
        for at in range(seconds):
            self._state = is_changed + (self._state - is_changed) * keep
            found[at] = self._state
        part = self._seconds[self._now : self._now + seconds]
        self._now += seconds
        return np.exp(part + self._change * found)

    def _looks_harmful(self, first: FioRun, arm: Arm, counted: Seconds) -> bool:
        means = np.cumsum(counted) / np.arange(1, len(counted) + 1)
        for at in range(math.ceil(len(counted) / 2), len(counted)):
            effect = _effect(first, _make_run(arm, float(means[at - 1])))
            if self._harm.look_ahead(effect) >= HARM_LEVEL:
                self._harm.add_pair(effect)
                self._now -= len(counted) - at
                return True
        return False


def _make_run(arm: Arm, wait: float) -> FioRun:
    figures = msgspec.structs.replace(NO_FIGURES, measures={"wait": wait})
    return FioRun(0, arm, LIVE_WORKLOAD, 0.0, figures, Covariates(PERIOD_SECONDS))


def _effect(first: FioRun, second: FioRun) -> float:
    waits = {run.arm: run.figures.value("wait") for run in (first, second)}
    return math.log(waits["A"] / waits["B"])


class Row(NamedTuple):
    """What became of the sessions of one load and effect, as shares; of seconds the median."""

    gains: float
    losses: float
    withdrawn: float
    within_three_minutes: float
    covered: float
    stated: float
    """The level that the intervals say they have, on average."""
    minutes: float
    judged: int
    """Sessions of at least six pairs, whose intervals are counted."""


def simulate(name: str, effect: float, sessions: int) -> Row:
    """Sessions of one load with an effect; seeded, so that it repeats."""
    source = np.random.default_rng([sessions, round(1000 * effect) + 1000, *name.encode()])
    found = [Simulation(source, LOADS[name], effect, seed=number).run() for number in range(sessions)]
    judged = [one.proof.workloads[0] for one in found if one.proof.workloads[0].pairs >= 6]
    inside = [one.ci95[0] <= 1 / (1 + effect) <= one.ci95[1] for one in judged if one.ci95 is not None]
    return Row(
        gains=sum(one.proof.verdict == "gain" for one in found) / sessions,
        losses=sum(one.proof.verdict == "loss" for one in found) / sessions,
        withdrawn=sum(one.proof.session.ended == "harm" for one in found) / sessions,
        within_three_minutes=sum(one.proof.session.ended == "harm" and one.seconds <= 180 for one in found) / sessions,
        covered=sum(inside) / len(inside) if inside else math.nan,
        stated=float(np.mean([one.confidence for one in judged])) if judged else math.nan,
        minutes=float(np.median([one.seconds for one in found])) / 60,
        judged=len(inside),
    )


def main(sessions: int) -> None:
    """Print the tables."""
    print("| load | effect | gain | loss | of these withdrawn | interval covers (says) | minutes (median) |")
    print("|---|---|---|---|---|---|---|")
    for name in LOADS:
        for effect in EFFECTS:
            row = simulate(name, effect, sessions)
            covers = f"{row.covered:.1%} ({row.stated:.1%})" if row.covered == row.covered else ""
            cells = (f"{row.gains:.1%}", f"{row.losses:.1%}", f"{row.withdrawn:.1%}", covers, f"{row.minutes:.0f}")
            print(f"| {name} | {effect:+.0%} | {' | '.join(cells)} |", flush=True)
    print("\n| load | harm of 30 % withdrawn within 3 minutes | at all | minutes (median) |\n|---|---|---|---|")
    for name in LOADS:
        row = simulate(name, 1 / 1.3 - 1, sessions)
        print(f"| {name} | {row.within_three_minutes:.1%} | {row.withdrawn:.1%} | {row.minutes:.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
