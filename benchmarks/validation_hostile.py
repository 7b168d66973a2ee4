"""Made-up series that try to make the rule invent a gain. Each is A = A; each is nasty in one way of its own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import msgspec

from advisor.proof.covariates import Covariates
from advisor.proof.schedule import ModeName
from benchmarks.validation_replay import Measured, Streams
from tests.proof.sessions import Drift, calm, figures

READ, SEQUENTIAL = "infoscale.4k-rand-r100", "infoscale.64k-seq-r100"
NOISE = 0.08
CALM = Covariates(1.0, 0, 0.0, 0.02, 0.0, 0.02, 0.0)

Speeds = Callable[[random.Random, int], Sequence[float]]
"""The speed of each of so many runs, 1 being normal."""


class Hostile(msgspec.Struct, frozen=True):
    """One attempt. ``repeats``: with the contamination check, for series that are nasty to that."""

    name: str
    make: Callable[[random.Random, int], Streams]
    mode: ModeName = "default"
    repeats: bool = False


def noisy(source: random.Random, speeds: Sequence[float], noise: float = NOISE) -> list[Measured]:
    return [Measured(figures(1000 * speed * math.exp(source.gauss(0, noise))), CALM) for speed in speeds]


def of_speeds(speeds: Speeds, noise: float = NOISE) -> Callable[[random.Random, int], Streams]:
    return lambda source, runs: {READ: noisy(source, speeds(source, runs), noise)}


def autocorrelated(source: random.Random, runs: int) -> list[float]:
    """AR(1) with 0.95 on the ln scale."""
    level, found = 0.0, []
    for _ in range(runs):
        level = 0.95 * level + source.gauss(0, 0.1)
        found.append(math.exp(level))
    return found


def every(period: int) -> Speeds:
    """A job that halves the speed of every n-th run."""

    def speeds(source: random.Random, runs: int) -> list[float]:
        phase = source.randrange(period)
        return [0.5 if number % period == phase else 1.0 for number in range(runs)]

    return speeds


def falling(source: random.Random, runs: int) -> list[float]:
    """Each run a little slower than the one before: the second of every pair loses."""
    rate = source.choice((-0.03, -0.01, 0.01, 0.03))
    return [math.exp(rate * number) for number in range(runs)]


def one_burst(source: random.Random, runs: int) -> list[float]:
    """One stretch of seven runs, early, at a third of the speed: it can cut a pair in half."""
    start = source.randrange(15)
    return [0.33 if start <= number < start + 7 else 1.0 for number in range(runs)]


def heavy_tailed(source: random.Random, runs: int) -> list[float]:
    """Student's t with 1.5 degrees of freedom: no variance."""
    ratios = (source.gauss(0, 1) / math.sqrt(source.gammavariate(0.75, 4 / 3)) for _ in range(runs))
    return [math.exp(0.05 * min(50, max(-50, ratio))) for ratio in ratios]


def one_sided(source: random.Random, runs: int) -> list[float]:
    """Never faster than 1, often a little and sometimes much slower."""
    slower = (source.expovariate(10) + (source.random() < 0.1) * source.expovariate(1) for _ in range(runs))
    return [math.exp(-much) for much in slower]


def quantised(source: random.Random, runs: int) -> Streams:
    """Few levels: most pairs are tied, many are zero."""
    return {READ: [Measured(figures(float(round(20 * math.exp(source.gauss(0, 0.05))))), CALM) for _ in range(runs)]}


def identical(_: random.Random, runs: int) -> Streams:
    return {READ: [Measured(figures(1000.0), CALM)] * runs}


def growing_noise(source: random.Random, runs: int) -> list[float]:
    """The last pairs are twenty times as noisy as the first: the looks are as unlike as they can be."""
    return [math.exp(source.gauss(0, 0.01 + 0.2 * number / runs)) for number in range(runs)]


def shrinking_noise(source: random.Random, runs: int) -> list[float]:
    return growing_noise(source, runs)[::-1]


def three_claims(source: random.Random, runs: int) -> Streams:
    """Three workloads, independent: three chances to be wrong."""
    return {name: noisy(source, [1.0] * runs) for name in (READ, SEQUENTIAL, "infoscale.4k-seq-r100")}


def pressed_runs(source: random.Random, speeds: Sequence[float], share: float, *, calm_first: int = 0) -> Streams:
    """Runs under CPU pressure are at half speed, and look so to the contamination check."""
    found = []
    for number, normal in enumerate(speeds):
        is_pressed = number >= calm_first and source.random() < share
        speed = normal * (0.5 if is_pressed else 1.0)
        covariates = msgspec.structs.replace(CALM, psi_cpu_share=0.5) if is_pressed else CALM
        found.append(Measured(figures(1000 * speed * math.exp(source.gauss(0, NOISE))), covariates))
    return {READ: found}


def pressed(share: float, *, calm_first: int = 0, drift: Drift = calm) -> Callable[[random.Random, int], Streams]:
    return lambda source, runs: pressed_runs(source, drift(source, runs), share, calm_first=calm_first)


HOSTILE = (
    Hostile("autocorrelated noise (AR(1), 0.95)", of_speeds(autocorrelated, 0.02)),
    Hostile("a job every 2nd run", of_speeds(every(2))),
    Hostile("a job every 4th run (2 pairs)", of_speeds(every(4))),
    Hostile("a job every 3rd run", of_speeds(every(3))),
    Hostile("steady drift within every pair", of_speeds(falling, 0.01)),
    Hostile("one early burst", of_speeds(one_burst)),
    Hostile("heavy tails (t, 1.5 degrees of freedom)", of_speeds(heavy_tailed, 0.0)),
    Hostile("one-sided slow-downs", of_speeds(one_sided, 0.0)),
    Hostile("whole numbers around 20", quantised),
    Hostile("identical values", identical),
    Hostile("noise that grows", of_speeds(growing_noise, 0.0)),
    Hostile("noise that shrinks", of_speeds(shrinking_noise, 0.0)),
    Hostile("three independent claims", three_claims),
    Hostile("quick, autocorrelated", of_speeds(autocorrelated, 0.02), "quick"),
    Hostile("deep, a job every 4th run", of_speeds(every(4)), "deep"),
    Hostile("repeats: every tenth run under pressure", pressed(0.1), repeats=True),
    Hostile("repeats: every third run under pressure", pressed(0.33), repeats=True),
    Hostile("repeats: every second run under pressure", pressed(0.5), repeats=True),
    Hostile("repeats: pressure from arm B's warm-up on", pressed(0.5, calm_first=3), repeats=True),
)
