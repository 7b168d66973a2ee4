"""What issue 19 asks of the statistics of a proof, each figure measured by simulation, in one table.

    python -m benchmarks.proof_validation [--quick] [--part NAME]… [--scale X] [--jobs N] [-o FILE]

Half an hour of CPU time; with --quick half a minute, with few sessions each. Every part runs the product's own
functions in the simulations of another module here (live, looks, ablation, tuning, decisions, validation), which
prints more of it. The table has a row for each requirement, with the load under which it was measured worst; FILE gets
a row for each load. A requirement *holds* where the figure meets it, holds *within chance* where the figure misses it
and its 99 % interval (Clopper and Pearson) does not, and *does not hold* otherwise: then the exit code is 1.
The seeds are fixed. docs/proof.md holds one run.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from scipy import stats

from benchmarks import ablation, decisions, live, looks, tuning
from benchmarks.validation import count_errors
from benchmarks.validation_series import SHIPPED, load_series
from tests.proof.sessions import DRIFTS

CONFIDENCE: Final = 0.99
ERRORS: Final = 0.05
POWER: Final = 0.90
WITHDRAWN: Final = 0.90
"""Of the sessions with a harm of 30 %; the issue names no share."""
KEPT: Final = 0.95
COVERAGE: Final = (0.93, 0.97)


class Finding(NamedTuple):
    """One figure under one load: ``least`` and ``most`` are the ends of what is required of it."""

    part: str
    requirement: str
    load: str
    figure: float
    sessions: int
    interval: tuple[float, float]
    least: float
    most: float
    is_share: bool = True

    @property
    def verdict(self) -> str:
        """``holds``, ``within chance`` or ``does not hold``."""
        if self.least <= self.figure <= self.most:
            return "holds"
        low, high = self.interval
        return "within chance" if low <= self.most and high >= self.least else "does not hold"

    @property
    def distance(self) -> float:
        """How far the figure lies beyond what is required; below 0 where it meets it."""
        return max(self.least - self.figure, self.figure - self.most)

    def write(self, value: float) -> str:
        """A figure with its unit."""
        return f"{value:.1%}".replace("%", " %") if self.is_share else f"{value:.0f}"


class Effort(NamedTuple):
    """How many sessions are simulated."""

    is_quick: bool = False
    scale: float = 1.0

    def sessions(self, full: int, quick: int) -> int:
        """Sessions of a row: so many in the full form, or in the quick one."""
        return quick if self.is_quick else max(quick, round(full * self.scale))


def share(
    part: str, requirement: str, load: str, hits: int, count: int, *, least: float = -math.inf, most: float = math.inf
) -> Finding:
    """A share of sessions with its exact interval."""
    found = stats.binomtest(hits, count).proportion_ci(CONFIDENCE, "exact")
    return Finding(part, requirement, load, hits / count, count, (found.low, found.high), least, most)


def covered(part: str, requirement: str, load: str, hits: int, count: int) -> Finding:
    """The share of intervals that hold the truth."""
    return share(part, requirement, load, hits, count, least=COVERAGE[0], most=COVERAGE[1])


# -- parts -------------------------------------------------------------------------------------------------------------


def check_recorded(workload: str, drift: str, effort: Effort) -> list[Finding]:
    """Replays of runs that fio really made, nothing changed, with a drift on top."""
    recording = load_series(SHIPPED / "a-a.json")
    (series,) = (one for one in recording.series if one.workload == workload)
    sessions = effort.sessions(400, 12)
    found = count_errors(recording, series, drift, sessions, random.Random(f"{workload} {drift}"))
    load = f"{workload}, {drift}"
    return [share("recorded", "false differences, at most 5 %", load, found.final, sessions, most=ERRORS)]


def check_live(load: str, effort: Effort) -> list[Finding]:
    """Sessions under live traffic of one load: an hour at most, without an effect, with effects, with harm."""
    sessions = effort.sessions(1000, 20)
    fewer = effort.sessions(500, 20)
    nothing = live.simulate(load, 0.0, sessions)
    better = live.simulate(load, 0.10, sessions)
    others = [] if effort.is_quick else [one for one in live.EFFECTS if one not in (0.0, 0.10)]
    rows = [better, *(live.simulate(load, effect, fewer) for effect in others)]
    harm = live.simulate(load, 1 / 1.3 - 1, sessions)
    found = [share("live", "false gains, at most 5 %", load, round(nothing.gains * sessions), sessions, most=ERRORS)]
    if load in live.STEADY:
        found += [
            share(
                "live",
                "+10 % found within 60 minutes, at least 90 %",
                load,
                round(better.gains * sessions),
                sessions,
                least=POWER,
            ),
            share(
                "live",
                "harm of 30 % withdrawn within 3 minutes, at least 90 %",
                load,
                round(harm.within_three_minutes * sessions),
                sessions,
                least=WITHDRAWN,
            ),
        ]
    effects = "+10 %" if effort.is_quick else "±5, ±10, ±20 %"
    for what, every in (("no effect", [nothing]), (effects, rows)):
        judged = sum(one.judged for one in every)
        hits = round(sum(one.covered * one.judged for one in every if one.judged))
        if judged:
            requirement = f"intervals cover, at least 93 %: {what}"
            found.append(share("live", requirement, load, hits, judged, least=COVERAGE[0]))
    return found


def check_looks(load: str, effort: Effort) -> list[Finding]:
    """Sessions without an effect, which may end after each of three looks."""
    tally = looks.simulate(looks.LOADS[load], 0.0, effort.sessions(4000, 60), list(looks.LOADS).index(load))
    return [
        share("looks", "false differences, at most 5 %", load, tally.found, tally.sessions, most=ERRORS),
        _looks_cover(load, tally),
    ]


def check_looks_effects(percent: int, effort: Effort) -> list[Finding]:
    """Sessions with an effect under a load that stays, at most 24 pairs."""
    load, sessions = f"constant, {percent:+} %", effort.sessions(1000, 40)
    tally = looks.simulate(looks.LOADS["constant"], math.log1p(percent / 100), sessions, 1000 + percent)
    found = [_looks_cover(load, tally)]
    if abs(percent) == 10:
        found.append(share("looks", "±10 % found in 24 pairs, at least 90 %", load, tally.found, sessions, least=POWER))
    return found


def _looks_cover(load: str, tally: looks.Tally) -> Finding:
    return share("looks", "intervals cover, at least 93 %", load, tally.covered, tally.sessions, least=COVERAGE[0])


def check_ablation(law: str, values: int, effort: Effort) -> list[Finding]:
    """Sessions of several values of which none does anything."""
    sessions = effort.sessions(600, 30 if values < 5 else 10)
    effects = [0.0] * values
    wrong, inside = 0, list[bool]()
    for seed in range(sessions):
        found = ablation.simulate_session(effects, seed, law=ablation.LAWS[law])
        wrong += any(one.verdict in ("gain", "loss") for one in found.workloads)
        inside += ablation.covers(found, effects)
    load = f"{law}, {values} values"
    return [
        share("ablation", "any value called that does nothing, at most 5 %", load, wrong, sessions, most=ERRORS),
        covered("ablation", "intervals of values cover, 93 to 97 %", load, sum(inside), len(inside)),
    ]


def check_placebo_race(load: str, effort: Effort) -> list[Finding]:
    """Races of candidates that do nothing; a placebo that wins counts, too."""
    races, seed = effort.sessions(1000, 12), list(tuning.LOADS).index(load)
    won = round(tuning.raced_winners(tuning.LOADS[load], races, seed) * races)
    return [share("tune", "placebo-only field: any winner, at most 5 %", load, won, races, most=ERRORS)]


def check_planted(load: str, effort: Effort) -> list[Finding]:
    """Searches of twelve candidates of which one is better by 10 %."""
    searches, seed = effort.sessions(1000, 25), 200 + list(tuning.LOADS).index(load)
    tally = tuning.Tally(tuning.search, tuning.LOADS[load], tuning.PLANTED, searches, seed)
    reported = sum(one.winner is not None for one in tally.outcomes)
    found = [
        share(
            "tune",
            "optimum of 12 candidates found, at least 90 %",
            load,
            round(tally.found * searches),
            searches,
            least=POWER,
        )
    ]
    if reported:
        kept = round(tally.kept * reported)
        requirement = "promised gain kept within 10 %, at least 95 %"
        found.append(share("tune", requirement, load, kept, reported, least=KEPT))
    return found


def check_decisions(effort: Effort) -> list[Finding]:
    """Correct decisions in an hour against what people do, at the same error rate: each of the others has the level at
    which it errs in 5 % under this load, which nobody knows beforehand, or under the load that misleads it most."""
    sessions = effort.sessions(1000, 40)
    others = {name: way for name, way in decisions.WAYS.items() if way is not decisions.prove}
    levels = {
        (name, load): decisions.own_level(way, decisions.LOADS[load], sessions, seed)
        for name, way in others.items()
        for seed, load in enumerate(decisions.LOADS, 1)
    }
    found = []
    for seed, (load, law) in enumerate(decisions.LOADS.items(), 1):
        own = decisions.judge_way(decisions.prove, law, ERRORS, sessions, seed)
        false = round(own.false * sessions)
        found.append(share("decisions", "false differences, at most 5 %", load, false, sessions, most=ERRORS))
        right = stats.binomtest(round(own.right * sessions), sessions).proportion_ci(CONFIDENCE, "exact")
        interval = (60 * right.low / own.minutes, 60 * right.high / own.minutes)
        for name, way in others.items():
            every = min(levels[name, one] for one in decisions.LOADS)
            for what, level in (("every load", every), ("this load", levels[name, load])):
                least = decisions.judge_way(way, law, level, sessions, seed).hourly
                requirement = f"right decisions an hour, as many as {name} at 5 % under {what}"
                found.append(
                    Finding(
                        "decisions", requirement, load, own.hourly, sessions, interval, least, math.inf, is_share=False
                    )
                )
    return found


Task = tuple[Callable[..., list[Finding]], tuple[object, ...]]
WORKLOADS: Final = ("infoscale.4k-rand-r100", "infoscale.64k-seq-r100")
PARTS: Final[dict[str, list[Task]]] = {
    "recorded": [(check_recorded, (workload, drift)) for workload in WORKLOADS for drift in DRIFTS],
    "live": [(check_live, (load,)) for load in live.LOADS],
    "looks": [
        *((check_looks, (load,)) for load in looks.LOADS),
        *((check_looks_effects, (percent,)) for percent in (5, 10, 20, -10)),
    ],
    "ablation": [(check_ablation, (law, values)) for law in ablation.LAWS for values in (4, 7)],
    "tune": [(check, (load,)) for check in (check_placebo_race, check_planted) for load in tuning.LOADS],
    "decisions": [(check_decisions, ())],
}
"""What each part runs, a piece for a process."""


# -- the table ---------------------------------------------------------------------------------------------------------

COLUMNS: Final = ("part", "requirement", "load", "measured", "sessions", "99 % interval", "verdict")


def write_table(rows: Iterable[Finding], notes: Sequence[str] | None = None) -> list[str]:
    """The rows in Markdown; ``notes`` are a last column."""
    columns = (*COLUMNS, *(["loads under which it holds"] if notes else []))
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for at, one in enumerate(rows):
        low, high = map(one.write, one.interval)
        cells = [one.part, one.requirement, one.load, one.write(one.figure), f"{one.sessions:,}", f"{low} to {high}"]
        if not one.is_share:
            cells[3] += f" against {one.write(one.least)}"
        lines.append(f"| {' | '.join([*cells, one.verdict, *([notes[at]] if notes else [])])} |")
    return lines


def worst_rows(findings: Sequence[Finding]) -> tuple[list[Finding], list[str]]:
    """For each requirement the load under which it was measured worst, and under how many it holds."""
    kinds = list(dict.fromkeys((one.part, one.requirement) for one in findings))
    worst, notes = [], []
    for kind in kinds:
        every = [one for one in findings if (one.part, one.requirement) == kind]
        worst.append(max(every, key=lambda one: (one.verdict == "does not hold", one.distance)))
        met = sum(one.verdict != "does not hold" for one in every)
        notes.append(f"{met} of {len(every)}")
    return worst, notes


def run_parts(names: Sequence[str], effort: Effort, jobs: int, say: Callable[[str], None]) -> list[Finding]:
    """The findings of these parts in their order; ``say`` gets a line for each as it is made."""
    tasks = [task for name in names for task in PARTS[name]]
    found: dict[int, list[Finding]] = {}
    pool: Executor | None
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        if pool is None:
            made: Iterable[tuple[int, list[Finding]]] = (
                (at, check(*given, effort)) for at, (check, given) in enumerate(tasks)
            )
        else:
            waiting = {pool.submit(check, *given, effort): at for at, (check, given) in enumerate(tasks)}
            made = ((waiting[one], one.result()) for one in as_completed(waiting))
        for at, findings in made:
            found[at] = findings
            for line in write_table(findings)[2:]:
                say(line)
    return [one for at in sorted(found) for one in found[at]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. 0 where every requirement holds under every load, within chance or not; else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proof_validation", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="few sessions each: half a minute of CPU time")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="so many times the sessions (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="write a row for each load here")
    chosen = parser.parse_args(arguments)
    effort = Effort(chosen.quick, chosen.scale)
    names = [name for name in PARTS if name in (chosen.part or PARTS)]
    findings = run_parts(names, effort, chosen.jobs, lambda line: print(line, file=sys.stderr, flush=True))
    if chosen.file is not None:
        chosen.file.write_text("\n".join(write_table(findings)) + "\n")
    print("\n".join(write_table(*worst_rows(findings))))
    failed = sum(one.verdict == "does not hold" for one in findings)
    print(f"\n{len(findings) - failed} of {len(findings)} figures meet what is required, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
