"""How often the decision rule of ``advisor prove`` errs, on recorded fio runs, compared with common practice.

    python -m benchmarks.validation [PART]… [--sessions N] [--seed N] [--series FILE]

Nothing is measured here: recorded A = A series (benchmarks/series) are replayed in blocks, with a drift on top and a
coin of their own for each session, through the product's own coin, looks, contamination check, tests and verdict.
Prints Markdown; docs/proof.md holds one run. The live part is :mod:`benchmarks.validation_overhead`.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec
from scipy import stats

from advisor.proof.records import Claim, Proof, ProofSubject, Session, resolve_subject
from advisor.proof.schedule import MODES, ModeName
from advisor.proof.statistics import signed_rank
from advisor.proof.verdict import decide_session
from advisor.proof.workloads import WORKLOADS, get_workload
from benchmarks.validation_hostile import HOSTILE, noisy, pressed
from benchmarks.validation_replay import (
    INVENTED,
    Measured,
    Replay,
    Streams,
    block,
    empty_session,
    is_invented,
    runs_needed,
)
from benchmarks.validation_series import SHIPPED, Recording, Series, load_series
from benchmarks.validation_stalls import STALL_SHARES, count_verdicts
from tests.proof.sessions import DRIFTS, calm

LEVEL = 0.05
NAMES = {"calm": "none"}
MODE_NAMES: tuple[ModeName, ...] = ("quick", "default", "deep")
EFFECTS = (0.05, 0.10, 0.20)
PRESSED = (0.1, 0.33, 0.5, 0.67)
"""Shares of the runs that are under pressure."""
SMALL_NOISE = 0.08
"""Run-to-run noise of a calm host, for the part of the power table that is made up."""

TAIL_SCATTER = (0.05, 0.10, 0.20)
"""Run-to-run scatter of p99, for the table of costs."""
TAILS = (1.0, 1.1, 1.4)
"""What the change does to p99: nothing, just the guardrail's limit, four times as much."""


def rate(errors: int, sessions: int) -> str:
    """A share with its exact (Clopper-Pearson) 95 % interval."""
    found = stats.binomtest(errors, sessions).proportion_ci(0.95, "exact")
    return f"{errors / sessions:.1%} ({found.low:.1%}–{found.high:.1%})"


def value_of(name: str) -> Callable[[Measured], float]:
    metric = get_workload(name).metric
    return lambda measured: measured.figures.value(metric)


# -- what most people do --------------------------------------------------------------------------------------------


def one_and_one(values: Sequence[float]) -> bool:
    """One run before, one after, and a difference of more than the default margin."""
    return abs(math.log(values[len(values) // 2] / values[len(values) // 2 - 1])) > math.log(1.1)


def welch_differs(values: Sequence[float]) -> bool:
    half = len(values) // 2
    return bool(stats.ttest_ind(values[:half], values[half:], equal_var=False).pvalue < LEVEL)


def mann_whitney(values: Sequence[float]) -> bool:
    half = len(values) // 2
    return bool(stats.mannwhitneyu(values[:half], values[half:]).pvalue < LEVEL)


def fixed_abba(values: Sequence[float]) -> bool:
    """Pairs in the fixed order AB, BA, AB, … and the signed-rank test once, at the end."""
    ratios = [math.log(second / first) for first, second in zip(values[::2], values[1::2], strict=True)]
    return signed_rank([-ratio if number % 2 else ratio for number, ratio in enumerate(ratios)]).p_value < LEVEL


OTHERS = ("1 + 1, > 10 %", "24 + 24 Welch", "24 + 24 Mann–Whitney", "ABBA")


# -- nothing changed ------------------------------------------------------------------------------------------------


class Counts(msgspec.Struct):
    """Errors of each way on the same sessions: ours on the pairs as they ran, with contaminated ones repeated, and of
    the latter those that are still there in the final verdict."""

    sessions: int = 0
    as_run: int = 0
    repeated: int = 0
    final: int = 0
    one_and_one: int = 0
    welch: int = 0
    mann_whitney: int = 0
    fixed_abba: int = 0


def count_errors(recording: Recording, series: Series, drift: str, sessions: int, source: random.Random) -> Counts:
    counts = Counts(sessions)
    value = value_of(series.workload)
    for _ in range(sessions):
        runs = block(source, series, recording.seconds, runs_needed("default", repeats=False), DRIFTS[drift])
        seed = source.getrandbits(32)
        counts.as_run += is_invented(Replay({series.workload: runs}, "default", seed, repeats=False).conclude())
        values = [value(run) for run in runs]
        counts.one_and_one += one_and_one(values)
        counts.welch += welch_differs(values)
        counts.mann_whitney += mann_whitney(values)
        counts.fixed_abba += fixed_abba(values)
        longer = block(source, series, recording.seconds, runs_needed("default", repeats=True), DRIFTS[drift])
        whole = Replay({series.workload: longer}, "default", seed, repeats=True).conclude()
        counts.repeated += is_invented(whole)
        counts.final += whole.verdict in INVENTED
    return counts


def print_errors(recording: Recording, sessions: int, source: random.Random) -> None:
    print(f"\nNothing changed (A = A): differences called, of {sessions} sessions in each row\n")
    print(f"| series | drift | advisor | with repeats | its final verdict | {' | '.join(OTHERS)} |")
    print("|---|---|---|---|---|" + "---|" * len(OTHERS))
    every = [
        _print_row(series.workload, NAMES.get(drift, drift), count_errors(recording, series, drift, sessions, source))
        for series in recording.series
        for drift in DRIFTS
    ]
    _print_row("all", "", Counts(*(sum(column) for column in zip(*map(msgspec.structs.astuple, every), strict=True))))


def _print_row(series: str, drift: str, found: Counts) -> Counts:
    others = " | ".join(
        f"{errors / found.sessions:.0%}"
        for errors in (found.one_and_one, found.welch, found.mann_whitney, found.fixed_abba)
    )
    print(
        f"| {series} | {drift} | {rate(found.as_run, found.sessions)} | {rate(found.repeated, found.sessions)}"
        f" | {found.final / found.sessions:.1%} | {others} |",
        flush=True,
    )
    return found


def print_hostile(_recording: Recording, sessions: int, source: random.Random) -> None:
    print(f"\nMade-up series meant to mislead (A = A), of {sessions} sessions in each row\n")
    print("| series | mode | differences called | its final verdict | indicative | invalid |")
    print("|---|---|---|---|---|---|")
    for hostile in HOSTILE:
        proofs = []
        for _ in range(sessions):
            streams = hostile.make(source, runs_needed(hostile.mode, repeats=True))
            proof = Replay(streams, hostile.mode, source.getrandbits(32), repeats=hostile.repeats).conclude()
            proofs.append((is_invented(proof), proof.verdict))
        called = sum(invented for invented, _ in proofs)
        final, indicative, invalid = (
            sum(verdict in words for _, verdict in proofs) / sessions
            for words in (INVENTED, ("indicative",), ("invalid",))
        )
        print(
            f"| {hostile.name} | {hostile.mode} | {rate(called, sessions)} | {final:.1%} | {indicative:.1%}"
            f" | {invalid:.1%} |",
            flush=True,
        )


def print_pressure(_recording: Recording, sessions: int, source: random.Random) -> None:
    print(
        f"\nMade-up runs of which a share is under CPU pressure, at half speed (A = A), of {sessions} sessions each\n"
    )
    print("| under pressure | drift | differences called | with repeats | its final verdict | invalid |")
    print("|---|---|---|---|---|---|")
    for share in PRESSED:
        for drift in DRIFTS:
            as_run = repeated = final = invalid = 0
            for _ in range(sessions):
                streams = pressed(share, drift=DRIFTS[drift])(source, runs_needed("default", repeats=True))
                seed = source.getrandbits(32)
                as_run += is_invented(Replay(streams, "default", seed, repeats=False).conclude())
                whole = Replay(streams, "default", seed, repeats=True).conclude()
                repeated += is_invented(whole)
                final += whole.verdict in INVENTED
                invalid += whole.verdict == "invalid"
            print(
                f"| {share:.0%} | {NAMES.get(drift, drift)} | {rate(as_run, sessions)} | {rate(repeated, sessions)}"
                f" | {final / sessions:.1%} | {invalid / sessions:.1%} |",
                flush=True,
            )


# -- something changed ----------------------------------------------------------------------------------------------


def sources(recording: Recording) -> Iterable[tuple[str, Callable[[random.Random, int], Streams]]]:
    """Each recorded series, and a made-up one with the noise of a calm host."""
    for series in recording.series:

        def recorded(source: random.Random, runs: int, series: Series = series) -> Streams:
            return {series.workload: block(source, series, recording.seconds, runs, calm)}

        yield series.workload, recorded
    first = recording.series[0].workload
    yield "made up, 8 % noise", lambda source, runs: {first: noisy(source, [1.0] * runs, SMALL_NOISE)}


class Power(msgspec.Struct):
    """How sessions with a true effect end. ``covered`` counts intervals that hold the true factor: as reported, had
    none ended early, and of the ``settled`` ones, which did."""

    found: int = 0
    wrong: int = 0
    pairs: int = 0
    covered: int = 0
    covered_whole: int = 0
    settled: int = 0
    covered_settled: int = 0


def covers(proof: Proof, factor: float) -> bool:
    interval = proof.workloads[0].ci95
    return interval is not None and interval[0] <= factor <= interval[1]


def try_effect(
    make: Callable[[random.Random, int], Streams], mode: ModeName, factor: float, sessions: int, source: random.Random
) -> Power:
    power = Power()
    for _ in range(sessions):
        streams, seed = make(source, runs_needed(mode, repeats=False)), source.getrandbits(32)
        proof = Replay(streams, mode, seed, effect=factor, repeats=False).conclude()
        right = ("gain", "gain-with-cost") if factor > 1 else ("loss",)
        power.found += proof.tendency in right
        power.wrong += proof.tendency in INVENTED and proof.tendency not in right
        power.pairs += proof.workloads[0].pairs
        power.covered += covers(proof, factor)
        whole = proof
        if proof.session.ended == "settled":
            power.settled += 1
            power.covered_settled += covers(proof, factor)
            whole = Replay(streams, mode, seed, effect=factor, repeats=False).conclude(may_stop=False)
        power.covered_whole += covers(whole, factor)
    return power


def print_power(recording: Recording, sessions: int, source: random.Random) -> None:
    print(f"\nA true effect, of {sessions} sessions each: found, pairs on average, wrong sign\n")
    print("| noise | mode | " + " | ".join(f"{sign}{effect:.0%}" for effect in EFFECTS for sign in "+−") + " |")
    print("|---|---|" + "---|" * 2 * len(EFFECTS))
    tally = {mode: Power() for mode in MODE_NAMES}
    for name, make in sources(recording):
        for mode in MODE_NAMES:
            cells = []
            for factor in (factor for effect in EFFECTS for factor in (1 + effect, 1 - effect)):
                found = try_effect(make, mode, factor, sessions, source)
                wrong = f", {found.wrong} wrong" if found.wrong else ""
                cells.append(f"{found.found / sessions:.0%}, {found.pairs / sessions:.1f}{wrong}")
                tally[mode] = added(tally[mode], found)
            print(f"| {name} | {mode} | {' | '.join(cells)} |", flush=True)
    total = len(EFFECTS) * 2 * len(list(sources(recording))) * sessions
    print("\nThe 95 % interval held the true factor, over all the sessions above\n")
    print("| mode | as reported | had every session run to its last pair | only those that ended early |")
    print("|---|---|---|---|")
    for ending, found in tally.items():
        early = rate(found.covered_settled, found.settled) if found.settled else ""
        print(f"| {ending} | {rate(found.covered, total)} | {rate(found.covered_whole, total)} | {early} |")


def added(one: Power, other: Power) -> Power:
    return Power(*(a + b for a, b in zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)))


# -- costs ----------------------------------------------------------------------------------------------------------


def tailed(source: random.Random, runs: int, scatter: float) -> list[Measured]:
    """Made-up runs with the noise of a calm host, whose p99 scatters by itself."""
    return [
        msgspec.structs.replace(
            one, figures=msgspec.structs.replace(one.figures, latency_p99_us=500 * math.exp(source.gauss(0, scatter)))
        )
        for one in noisy(source, [1.0] * runs, SMALL_NOISE)
    ]


def print_costs(recording: Recording, sessions: int, source: random.Random) -> None:
    print(f"\nA true gain of 20 %, made-up noise of 8 %, of {sessions} sessions each: how it ends\n")
    print("| p99 scatters | true p99 | mode | gain | cost undecided | with a cost | no gain | pairs |")
    print("|---|---|---|---|---|---|---|---|")
    name = recording.series[0].workload
    for scatter in TAIL_SCATTER:
        for tail in TAILS:
            for mode in MODE_NAMES:
                proofs = [
                    Replay(
                        {name: tailed(source, runs_needed(mode, repeats=False), scatter)},
                        mode,
                        source.getrandbits(32),
                        effect=1.2,
                        tail=tail,
                        repeats=False,
                    ).conclude()
                    for _ in range(sessions)
                ]
                plain = sum(one.is_gain or (one.verdict, one.cost) == ("gain", "none") for one in proofs)
                open_ones = sum((one.verdict, one.cost) == ("gain", "undecided") for one in proofs)
                costly = sum(one.verdict == "gain-with-cost" for one in proofs)
                pairs = statistics.fmean(one.workloads[0].pairs for one in proofs)
                shares = (plain, open_ones, costly, sessions - plain - open_ones - costly)
                cells = " | ".join(f"{count / sessions:.1%}" for count in shares)
                print(f"| {scatter:.0%} | × {tail:g} | {mode} | {cells} | {pairs:.1f} |", flush=True)


def print_stalls(_recording: Recording, sessions: int, source: random.Random) -> None:
    print(f"\nA gain of 25 % whose runs stall, of {sessions} sessions each: plain gain / indicative / other\n")
    print(f"| stalled runs | of | {' | '.join(MODE_NAMES)} |")
    print("|---|---|---|---|---|")
    for share in STALL_SHARES:
        for on, (on_a, on_b) in {"arm B alone": (0.0, share), "both arms": (share, share)}.items():
            cells = []
            for mode in MODE_NAMES:
                found = count_verdicts(mode, sessions, source, on_a, on_b)
                cells.append(" / ".join(f"{count / sessions:.1%}" for count in found.values()))
            print(f"| {share:.0%} | {on} | {' | '.join(cells)} |", flush=True)


# -- arithmetic and cost --------------------------------------------------------------------------------------------


def largest_deviation(source: random.Random, samples: int = 1000) -> float:
    """Largest relative deviation of p from scipy's, half of the samples with ties and zeros.

    Zeros are left out before ranking and ties get mid-ranks, in both; scipy's exact table knows no ties, so there it
    enumerates every assignment of signs.
    """
    worst = 0.0
    for number in range(samples):
        if number % 2:
            values = [source.gauss(source.uniform(-0.5, 0.5), 1) for _ in range(source.randint(1, 48))]
            expected = float(stats.wilcoxon(values, method="exact").pvalue)
        else:
            values = [float(round(source.gauss(0.5, 2))) for _ in range(source.randint(6, 12))]
            kept = [value for value in values if value]
            every = stats.PermutationMethod(n_resamples=2 ** len(kept))
            expected = float(stats.wilcoxon(kept, method=every).pvalue) if len(kept) > 1 else 1.0
        worst = max(worst, abs(signed_rank(values).p_value / expected - 1))
    return worst


def statistics_milliseconds(source: random.Random, rounds: int = 7) -> tuple[float, float]:
    """CPU time from 48 pairs of nine workloads to the proof: of all of it, and of one claim and its guardrails."""
    names = [name for name in WORKLOADS if name.startswith("infoscale.") and name.count(".") == 1][:9]
    streams = {name: noisy(source, [1.0] * 96) for name in names[:3]}
    first = Replay(streams, "deep", 1, repeats=False).conclude().session
    claims = tuple(map(Claim, names[:3]))
    subject = resolve_subject(ProofSubject("cost", claims, control=None, exploratory=tuple(names[3:])), MODES["deep"])
    pairs = []
    for pair in first.pairs:
        more = tuple(
            msgspec.structs.replace(run, workload=name, figures=noisy(source, [1.0])[0].figures)
            for name in names[3:]
            for run in pair.runs[::3]
        )
        pairs.append(msgspec.structs.replace(pair, runs=(*pair.runs, *more)))
    nine = msgspec.structs.replace(first, subject=subject, pairs=tuple(pairs))
    one = Replay({names[0]: noisy(source, [1.0] * 96)}, "deep", 1, repeats=False).conclude().session
    return _cpu_milliseconds(nine, rounds), _cpu_milliseconds(one, rounds)


def _cpu_milliseconds(session: Session, rounds: int) -> float:
    spent = []
    for _ in range(rounds):
        began = time.process_time()
        decide_session(session)
        spent.append(time.process_time() - began)
    return statistics.median(spent) * 1000


def print_arithmetic(_recording: Recording, _sessions: int, source: random.Random) -> None:
    print(f"\nLargest relative deviation of p from scipy's on 1,000 samples: {largest_deviation(source):.1e}")
    nine, one = statistics_milliseconds(source)
    print(f"\nCPU time from 48 pairs to the proof: {nine:.0f} ms for nine workloads, {one:.0f} ms for one")
    print("\n| mode | pairs at most | seconds | bytes written: reading, writing workload |\n|---|---|---|---|")
    for mode in MODE_NAMES:
        read, write = (empty_session((f"infoscale.4k-rand-{mix}",), mode).schedule for mix in ("r100", "w100"))
        print(
            f"| {mode} | {read.pairs} | {read.predicted_seconds:.0f} | {read.predicted_bytes / 1e9:.2f} GB,"
            f" at most {write.predicted_bytes / 1e9:.2f} GB |"
        )


PARTS: dict[str, Callable[[Recording, int, random.Random], None]] = {
    "errors": print_errors,
    "hostile": print_hostile,
    "pressure": print_pressure,
    "power": print_power,
    "costs": print_costs,
    "stalls": print_stalls,
    "arithmetic": print_arithmetic,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validation", description=__doc__.split("\n\n")[0])
    parser.add_argument("--sessions", type=int, default=200, help="in each row (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--series", default=str(SHIPPED / "a-a.json"), help="another recording")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part is named {', '.join(sorted(unknown))}")
    recording = load_series(chosen.series)
    print(f"{recording.how}; {recording.fio}, {recording.host}, {recording.recorded}; seed {chosen.seed}")
    for name in chosen.parts or PARTS:
        # a coin for each part, so that one alone gives what it gives among all
        PARTS[name](recording, chosen.sessions, random.Random(f"{chosen.seed} {name}"))


if __name__ == "__main__":
    main()
