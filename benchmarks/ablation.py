"""How often an ablation names a value that does nothing, what it finds, and whether its intervals cover.

    python -m benchmarks.ablation [SESSIONS]      1,000 a row unless said; about ten minutes of CPU time

Sessions as `advisor prove-values --quick` makes them (12 blocks), of 3 to 7 values, under several laws of load: the
design, the coins and the judgement are the tool's own, the figures of the runs are drawn. A false claim is any value
of a session that is called although it does nothing. Prints Markdown tables; docs/proof.md holds one run.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from advisor.proof.blocks import (
    combination_digits,
    conclude_session,
    design_words,
    draw_combinations,
    kept_values,
    run_count,
)
from advisor.proof.covariates import Covariates
from advisor.proof.metrics import RunFigures
from advisor.proof.own_command import COMMAND_WORKLOAD, CommandMetric, OwnCommand
from advisor.proof.records import NONE, Ablation, FioRun, Pair, Proof, Session, command_subject, resolve_subject
from advisor.proof.schedule import MODES, Schedule, make_schedule
from advisor.proof.workloads import command_pattern

BLOCKS = 12
NOISE = 0.11 / math.sqrt(2)
"""Of the logarithm of one run, so that a pair of runs has 11 %."""
COMMAND = OwnCommand(("true",), (CommandMetric("tps", "regex", "tps"),), "/")
Law = Callable[[random.Random, int], Sequence[float]]
"""ln speed of each run of a session, in the order of time, without any value."""


def _constant(source: random.Random, runs: int) -> list[float]:
    return [source.gauss(0, NOISE) for _ in range(runs)]


def _autoregressive(source: random.Random, runs: int) -> list[float]:
    found = [0.0]
    for _ in range(runs):
        found.append(0.9 * found[-1] + source.gauss(0, NOISE))
    return found[1:]


def _step(source: random.Random, runs: int) -> list[float]:
    where, height = source.randrange(runs), math.log(source.choice((0.6, 1.5)))
    return [value + height * (at >= where) for at, value in enumerate(_constant(source, runs))]


def _linear(source: random.Random, runs: int) -> list[float]:
    slope = source.uniform(-0.5, 0.5) / runs
    return [value + slope * at for at, value in enumerate(_constant(source, runs))]


def _periodic(source: random.Random, runs: int) -> list[float]:
    phase = source.randrange(8)
    return [value + math.log(0.7) * ((at + phase) % 8 < 2) for at, value in enumerate(_constant(source, runs))]


LAWS: Mapping[str, Law] = {
    "constant": _constant,
    "autoregressive (0.9)": _autoregressive,
    "one step": _step,
    "linear": _linear,
    "periodic (8 runs)": _periodic,
}


def make_layout(runs: int) -> Schedule:
    """The layout of a session of so many combinations a block."""
    pattern = command_pattern(COMMAND)
    return make_schedule(MODES["quick"], [pattern], free_bytes=0, place_seconds=0.0, arms=runs)


def simulate_session(
    effects: Sequence[float],
    seed: int,
    *,
    law: Law = _constant,
    pairs: Mapping[tuple[int, int], float] | None = None,
    blocks: int = BLOCKS,
) -> Proof:
    """A session of values with these effects (ln ratios); ``pairs`` are what two values do together on top."""
    names = [f"value-{number}" for number in range(len(effects))]
    words = design_words(len(names))
    runs = run_count(words)
    source = random.Random(seed)
    noise = law(source, blocks * runs)
    made = []
    for index in range(blocks):
        found = []
        for place, active in enumerate(draw_combinations(names, words, source)):
            on = {names.index(name) for name in active}
            speed = noise[index * runs + place] + sum(effects[at] for at in on)
            speed += sum(value for pair, value in (pairs or {}).items() if on >= set(pair))
            found.append(_make_run(combination_digits(names, active), 1000 * math.exp(speed)))
        made.append(Pair(index, 0, "", tuple(found)))
    session = Session(
        subject=resolve_subject(command_subject("simulated", COMMAND), MODES["quick"]),
        arms=(NONE, *names),
        schedule=make_layout(runs),
        judged_by="pair",
        toggle_class="T0",
        seed=seed,
        target="/",
        file_system="command",
        device=None,
        fio_version="",
        started="2026-11-23T12:00:00+00:00",
        pairs=tuple(made),
        ablation=Ablation("simulated", {name: (name,) for name in names}, words),
    )
    return conclude_session(session)


def _make_run(arm: str, tps: float) -> FioRun:
    names = [name for name in RunFigures.__struct_fields__ if name not in ("measures", "sent_bytes", "received_bytes")]
    bare = RunFigures(**dict.fromkeys(names, 0), measures={"tps": tps})
    return FioRun(0, arm, COMMAND_WORKLOAD, 0.0, bare, Covariates(2.0))


def covers(found: Proof, effects: Sequence[float]) -> list[bool]:
    """Whether the 95 % interval of each value holds its effect."""
    answers = []
    for one, effect in zip(found.workloads, effects, strict=True):
        low, high = one.interval95 or (math.nan, math.nan)
        answers.append(low <= math.exp(effect) <= high)
    return answers


def zero_rows(sessions: int) -> Iterable[str]:
    """Sessions without any effect."""
    for law_name, law in LAWS.items():
        for count in range(3, 8) if law is _constant else (4, 7):
            effects = [0.0] * count
            wrong = 0
            covered: list[bool] = []
            for seed in range(sessions):
                found = simulate_session(effects, seed, law=law)
                wrong += any(one.verdict in ("gain", "loss") for one in found.workloads)
                covered += covers(found, effects)
            share = sum(covered) / len(covered)
            yield f"| {law_name} | {count} | {wrong / sessions:.1%} | {share:.1%} |"


def planted_rows(sessions: int) -> Iterable[str]:
    """Sessions in which two values do something, one up and one down, and the others nothing."""
    for size in (0.05, 0.10):
        for count in range(3, 8):
            effects = [math.log1p(size), -math.log1p(size), *[0.0] * (count - 2)]
            hits = wrong = 0
            covered: list[bool] = []
            for seed in range(sessions):
                found = simulate_session(effects, seed)
                calls = [one.verdict for one in found.workloads]
                hits += (calls[0] == "gain") + (calls[1] == "loss")
                wrong += any(call in ("gain", "loss") for call in calls[2:])
                covered += covers(found, effects)
            share = sum(covered) / len(covered)
            yield f"| {size:+.0%} | {count} | {hits / 2 / sessions:.1%} | {wrong / sessions:.1%} | {share:.1%} |"


def pair_rows(sessions: int) -> Iterable[str]:
    """Sessions in which the first two values do something together alone."""
    for count in (3, 4, 7):
        hits = others = 0
        for seed in range(sessions):
            kept = set(kept_values(simulate_session([0.0] * count, seed, pairs={(0, 1): math.log1p(0.2)})))
            hits += kept >= {"value-0", "value-1"}
            others += bool(kept - {"value-0", "value-1"})
        yield f"| {count} | {hits / sessions:.1%} | {others / sessions:.1%} |"


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for head, rows in (
        (("load, nothing changed", "values", "any value called", "95 % interval covers"), zero_rows),
        (("effect of two values", "values", "found", "others called", "95 % interval covers"), planted_rows),
        (("values, +20 % of two together", "both kept", "another kept"), pair_rows),
    ):
        print(f"| {' | '.join(head)} |", "|---" * len(head) + "|", sep="\n")
        for row in rows(sessions):
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
