"""Whole series: the real measuring against an fio on PATH and a captured host, and what is said about the figures."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from scipy import stats

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.proof.archive import SavedBench, load_any, reanalyse_series
from advisor.proof.metrics import read_identity
from advisor.proof.scratch import GIB, MIB, Keep
from advisor.proof.series import Bench, Round, summarise_series
from advisor.proof.session import DEFAULT_WORKLOADS, ProgressEvent, Settings, bench
from advisor.proof.workloads import UnknownWorkloadError
from tests.known import known

from .benches import OTHER, rounds, series, speeds
from .fakes import FakeFio, calm_host
from .sessions import WORKLOAD

WRITE = "infoscale.4k-rand-w100"


def settings(disk: Path, **changes: object) -> Settings:
    small = Settings(
        target=str(disk), mode="quick", scratch_bytes=MIB, keep=Keep(0, 0.0), seed=1, byte_budget=GIB, hold_seconds=0.1
    )
    return msgspec.structs.replace(small, **changes)


def measure(fake_fio: FakeFio, host: Host, disk: Path, *names: str, **changes: object) -> Bench:
    return bench(host, names or (WORKLOAD,), settings(disk, **changes), runner=fake_fio.runner)


def order(found: Bench) -> list[list[str]]:
    return [[run.workload for run in one.runs] for one in found.series.rounds]


# -- what is run -------------------------------------------------------------------------------------------------------


def test_a_series_is_measured_saved_and_nothing_is_left(
    fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path
) -> None:
    place, shown = tmp_path / "before", list[ProgressEvent]()
    chosen = settings(disk, save_to=str(place))
    found = bench(host, (WORKLOAD, OTHER), chosen, runner=fake_fio.runner, progress=shown.append)
    assert (found.quality, found.reasons, found.series.ended) == ("sound", (), "complete")
    assert [(one.name, one.runs) for one in found.workloads] == [(WORKLOAD, 8), (OTHER, 8)]
    for one in found.workloads:
        assert one.median == pytest.approx(1000, rel=0.05)
        low, high = known(one.interval)
        assert low <= known(one.median) <= high
    assert found.workloads[0].latency_p99_us == pytest.approx(1000, rel=0.05)
    assert os.listdir(disk) == []
    # the warm-up is not counted
    assert [run.workload for run in found.series.warm_up] == [WORKLOAD, WORKLOAD, OTHER, OTHER]
    numbers = {run.number for one in found.series.rounds for run in one.runs}
    assert min(numbers) == 4
    # the record gives the same figures again
    saved = load_any(place)
    assert isinstance(saved, SavedBench)
    assert saved.bench == found == reanalyse_series(saved)
    assert numbers <= set(saved.fio)
    assert found.saved_to == str(place)
    # progress has rounds and no figure
    assert [event.stage for event in shown] == ["plan", "scratch", "warm-up", *["round"] * 8]
    assert [event.pair for event in shown if event.stage == "round"] == list(range(1, 9))
    assert (shown[0].workloads, shown[0].pairs) == (2, 8)
    assert all(event.seconds_left >= 0 for event in shown)


def test_orders_and_seeds_of_a_series(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    names = (WORKLOAD, OTHER, WRITE)
    few: dict[str, object] = {"budget_seconds": 15.0, "seconds": 0.1}
    first, again, other = (measure(fake_fio, host, disk, *names, seed=seed, **few) for seed in (5, 5, 6))
    assert all(sorted(one) == sorted(names) for one in order(first))
    assert len({tuple(one) for one in order(first)}) > 1
    assert order(first) == order(again) != order(other)
    assert (first.seed, other.seed) == (5, 6)
    seeds = {measure(fake_fio, host, disk, seed=None, budget_seconds=9.0, seconds=0.1).seed for _ in range(2)}
    assert len(seeds) == 2


def test_without_names_the_usual_ones_are_measured_and_each_only_once(
    fake_fio: FakeFio, host: Host, disk: Path
) -> None:
    few = {"budget_seconds": 15.0, "seconds": 0.1}
    found = bench(host, (), settings(disk, save_to="/proc/nowhere/result", **few), runner=fake_fio.runner)
    assert found.series.workloads == DEFAULT_WORKLOADS
    # one that cannot be saved is given all the same
    assert (found.workloads[0].runs > 0, found.saved_to) == (True, None)
    assert any("not saved: /proc/nowhere/result" in note for note in found.notes)
    assert measure(fake_fio, host, disk, OTHER, OTHER, **few).series.workloads == (OTHER,)


def test_budgets_in_seconds_and_in_bytes(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    found = measure(fake_fio, host, disk, budget_seconds=13.0, seconds=0.1, mode="default")
    assert 0 < found.series.schedule.pairs < 24
    assert found.workloads[0].runs == found.series.schedule.pairs
    with pytest.raises(RefusedError, match="one round"):
        measure(fake_fio, host, disk, budget_seconds=1.0)
    found = measure(fake_fio, host, disk, WRITE, byte_budget=40 * MIB)
    written = sum(run.figures.written_bytes for one in found.series.rounds for run in one.runs)
    assert 0 < written <= found.series.bytes_written <= 40 * MIB
    with pytest.raises(RefusedError, match="byte budget"):
        measure(fake_fio, host, disk, WRITE, byte_budget=4 * MIB)


def test_a_round_that_others_disturbed_is_repeated_and_kept(fake_fio: FakeFio, disk: Path, tmp_path: Path) -> None:
    """From the fifth run on others steal CPU time now and then."""
    host = calm_host(tmp_path / "stolen")
    stat = tmp_path / "stolen/proc/stat"

    def progress(event: ProgressEvent) -> None:
        disturbed = event.stage == "round" and event.pair in (3, 5)
        fake_fio.plan(stat=str(stat), steal=60 if disturbed and not event.lamps else 0)

    found = bench(host, (WORKLOAD,), settings(disk), runner=fake_fio.runner, progress=progress)
    repeated = [one for one in found.series.rounds if one.superseded]
    assert [(one.index, one.attempt, one.contaminated) for one in repeated] == [(2, 0, True), (4, 0, True)]
    assert [(one.index, one.attempt) for one in found.series.rounds if one.attempt] == [(2, 1), (4, 1)]
    assert found.workloads[0].runs == 8, "each round counts once"
    assert found.quality == "sound"


# -- refusals and faults -----------------------------------------------------------------------------------------------


def test_what_cannot_be_measured_is_refused_before_anything(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    with pytest.raises(UnknownWorkloadError):
        measure(fake_fio, host, disk, "nonsense")
    with pytest.raises(UsageError, match="a command of yours"):
        measure(fake_fio, host, disk, "net.tcp-64k")
    with pytest.raises(RefusedError, match="stay free"):
        measure(fake_fio, host, disk, keep=Keep(0, 1.0))
    with pytest.raises(RefusedError, match="not a directory"):
        measure(fake_fio, host, Path("/etc/passwd"))
    assert [call for call in fake_fio.calls() if call != ["--version"]] == []
    assert os.listdir(disk) == []


@pytest.mark.parametrize("hazard", ["zero-ios", "error-exit-0", "cut-off"])
def test_an_fio_that_fails_midway_makes_it_invalid(fake_fio: FakeFio, host: Host, disk: Path, hazard: str) -> None:
    fake_fio.plan(misbehave=hazard, after=9)
    found = measure(fake_fio, host, disk, WORKLOAD, OTHER)
    assert (found.quality, found.series.ended) == ("invalid", "fault")
    assert not found.series.rounds[-1].whole
    assert found.workloads[0].runs == len(found.series.rounds) - 1
    assert os.listdir(disk) == []


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_host_is_recorded_without_giving_its_machine_id_away(tmp_path: Path) -> None:
    files = {"etc__machine-id": "a" * 32 + "\n", "proc__sys__kernel__hostname": "vm1\n"}
    found = read_identity(calm_host(tmp_path / "a", **files))
    again = read_identity(calm_host(tmp_path / "b", **{**files, "proc__sys__kernel__hostname": "vm2\n"}))
    other = read_identity(calm_host(tmp_path / "c", **{**files, "etc__machine-id": "b" * 32 + "\n"}))
    assert found.machine == again.machine != other.machine
    assert "a" * 8 not in str(found.machine)
    assert (found.name, again.name, found.kernel) == ("vm1", "vm2", None)


# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_figures_are_those_of_the_runs() -> None:
    values = speeds(24)
    (found,) = summarise_series(series(values)).workloads
    assert found.runs == 24
    assert found.median == pytest.approx(float(stats.scoreatpercentile(values, 50)))
    assert found.mad == pytest.approx(float(stats.median_abs_deviation(values)))
    assert found.cv == pytest.approx(float(stats.variation(values, ddof=1)))
    assert found.interval == (sorted(values)[6], sorted(values)[17])
    assert found.confidence == pytest.approx(float(1 - 2 * stats.binom.cdf(6, 24, 0.5)))
    assert found.noise_floor is not None
    assert found.latency_p99_us == 500.0
    assert found.cpu_us_per_io == 20.0


def test_few_rounds_are_indicative_and_a_drift_is_said() -> None:
    found = summarise_series(series(speeds(5)))
    assert found.quality == "indicative"
    assert found.workloads[0].noise_floor is None
    assert found.workloads[0].confidence == pytest.approx(0.9375)
    steady = summarise_series(series({WORKLOAD: speeds(24), OTHER: speeds(24, seed=2)}))
    assert not any("first half" in note for note in steady.notes)
    moved = [*speeds(12), *speeds(12, around=700, seed=3)]
    (note,) = summarise_series(series({WORKLOAD: speeds(24), OTHER: moved})).notes
    assert note.startswith(f"{OTHER} changed by -3")


def test_rounds_that_count() -> None:
    whole = series(speeds(8))
    lit = tuple(msgspec.structs.replace(one, contaminated=one.index < 5) for one in whole.rounds)
    found = summarise_series(msgspec.structs.replace(whole, rounds=lit))
    assert (found.quality, found.contaminated_share) == ("sound", 5 / 8)
    whole = series([1000.0] * 8)
    odd = rounds({WORKLOAD: [1.0, 1.0]})
    extra = (msgspec.structs.replace(odd[0], superseded=True), Round(8, 0, odd[1].runs, whole=False))
    found = summarise_series(msgspec.structs.replace(whole, rounds=(*whole.rounds, *extra)))
    assert found.workloads[0].runs == 8
    assert found.workloads[0].interval == (1000.0, 1000.0)
