"""The gate, and the blind judgement on each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import live_host, tree_host
from advisor.proof.covariates import (
    CovariateCounters,
    Covariates,
    covariates_between,
    dirty_bytes,
    foreign_io,
    is_resyncing,
    judge_group,
    parse_cpu_ticks,
    parse_disk_bytes,
    parse_pressure,
    read_counters,
    read_gate,
    stand_out,
    wait_for_writeback,
)
from tests.cases import read_cases
from tests.known import known

from .fakes import CALM, calm_host
from .sessions import figures

DATA = read_cases(__file__)

DISKSTATS = """\
   8       0 sda 100 0 2000 10 50 0 1000 20 0 30 40
   8       1 sda1 1 0 8 0 0 0 0 0 0 0 0
 253       0 dm-0 9 9
"""
BUSY_CPU = CALM.replace("avg10=0.00", "avg10=20.00", 1)


def test_counters_as_the_kernel_prints_them() -> None:
    found = parse_pressure("some avg10=1.50 avg60=0.10 avg300=0.00 total=123456\nfull avg10=0.25 total=99\n")
    assert found["some"] == {"avg10": 1.5, "avg60": 0.1, "avg300": 0.0, "total": 123456}
    assert found["full"]["avg10"] == 0.25
    assert parse_pressure("") == {}
    assert parse_disk_bytes(DISKSTATS, "sda") == 3000 * 512
    assert parse_disk_bytes(DISKSTATS, "sda1") == 8 * 512
    assert parse_disk_bytes(DISKSTATS, "dm-0") is None, "a cut line is unknown"
    assert parse_disk_bytes(DISKSTATS, "sd") is None
    # user nice system idle iowait irq softirq steal guest guest_nice
    assert parse_cpu_ticks("cpu  10 1 5 100 4 2 3 7 9 0\ncpu0 1 2 3\n") == (132, 21, 7)
    assert parse_cpu_ticks("cpu 1 2 3") is None


@pytest.mark.parametrize(("line", "resyncing"), DATA["resync_in_mdstat"])
def test_resync_in_mdstat(line: str, resyncing: bool) -> None:
    assert is_resyncing(f"Personalities : [raid1]\n{line}\n") is resyncing


def test_a_calm_host_passes_the_gate_and_what_is_unknown_is_said(tmp_path: Path) -> None:
    assert read_gate(calm_host(tmp_path)).busy == ()
    host = calm_host(tmp_path)
    (tmp_path / "proc/pressure/cpu").unlink()
    gate = read_gate(host)
    assert gate.busy == ()
    assert "cpu pressure" in gate.unknown[0]


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"proc__pressure__cpu": BUSY_CPU}, "cpu pressure: 20 %"),
        ({"proc__pressure__io": CALM.replace("full avg10=0.00", "full avg10=31.50")}, "io pressure: 31.5 %"),
        ({"proc__mdstat": "md0 : active raid5\n   [>..]  recovery =  0.5% (1/2)\n"}, "md array"),
        ({"proc__4711__comm": "restic\n"}, "restic is running"),
    ],
)
def test_a_busy_host_does_not(tmp_path: Path, files: dict[str, str], word: str) -> None:
    gate = read_gate(calm_host(tmp_path, **files))
    assert len(gate.busy) == 1
    assert word in gate.busy[0]


def test_an_idle_backup_daemon_is_no_backup(tmp_path: Path) -> None:
    assert read_gate(calm_host(tmp_path, proc__4711__comm="bacula-fd\n")).busy == ()


def test_what_happened_beside_a_run() -> None:
    own = figures(1000)  # 2000 I/Os of 4 KiB, 0.1 s of CPU
    own_bytes = 2000 * 4096
    before = CovariateCounters(10.0, 1_000_000, 1000, 500, 10, 0, 0)
    after = CovariateCounters(12.0, 1_000_000 + own_bytes + own_bytes // 2, 1400, 610, 30, 200_000, 100_000)
    found = covariates_between(before, after, own)
    assert found.seconds == 2.0
    assert found.foreign_bytes == own_bytes // 2
    assert found.foreign_share == pytest.approx(0.5)
    # 110 busy ticks of 10 ms, 10 of them fio's own, out of 400
    assert found.foreign_cpu_share == pytest.approx(0.25)
    assert found.steal_share == pytest.approx(0.05)
    assert found.psi_cpu_share == pytest.approx(0.1)
    assert found.psi_io_full_share == pytest.approx(0.05)


def test_counters_of_this_machine_and_of_a_host_without_any(tmp_path: Path) -> None:
    found = read_counters(live_host(), None, 1.5)
    assert found.at_seconds == 1.5
    assert 0 < known(found.cpu_busy_ticks) < known(found.cpu_total_ticks)
    assert read_counters(tree_host(str(tmp_path)), "sda", 0.0) == CovariateCounters(0.0)


@pytest.mark.parametrize(
    ("lamp", "field", "level"), DATA["a_pair_is_judged_by_its_sum_against_the_median_of_earlier_ones"]
)
def test_a_pair_is_judged_by_its_sum_against_the_median_of_earlier_ones(lamp: str, field: str, level: float) -> None:
    def extra(*values: float) -> list[Covariates]:
        return [Covariates(2.0, **{field: value}) for value in values]  # type: ignore[arg-type]

    history = [extra(0.20, 0.10), extra(0.01, 0.30), extra(0.45, 0.45)]
    for first, second in ((0.30, level), (level, 0.30), (0.30 + level, 0.0), (0.0, 0.30 + level)):
        assert judge_group(extra(first, second), history) == (), "the median is 0.31"
        assert judge_group(extra(first + 0.02, second), history) == (lamp,)
    # a round has one run, and so have those before it
    assert judge_group(extra(0.31 + level), [extra(0.3)]) == (lamp,)


def test_lamps_without_a_history_or_a_figure() -> None:
    first = Covariates(2.0, None, 0.2, 0.9, 0.2, 0.9, 0.9)
    assert judge_group([first, first], []) == ("disk", "steal")
    calm = Covariates(2.0, foreign_share=0.0)
    assert judge_group([Covariates(2.0)], [[calm]]) == ()
    assert judge_group([Covariates(2.0), Covariates(2.0, foreign_share=0.9)], [[calm, calm]]) == ()


def test_foreign_io_is_measured_against_what_the_workload_moves() -> None:
    idle = Covariates(2.0, foreign_bytes=2_000_000)
    assert foreign_io(idle, 30e6) is None
    reason = known(foreign_io(idle, 10e6))
    assert "1.0 MB/s" in reason
    assert "10%" in reason
    assert foreign_io(Covariates(2.0), 1.0) is None
    assert foreign_io(Covariates(1.0, foreign_bytes=60_000), 400_000) is None
    assert foreign_io(Covariates(1.0, foreign_bytes=70_000), 400_000) is not None


def test_waiting_for_writeback(tmp_path: Path) -> None:
    full = "MemTotal: 2048 kB\nDirty:  200000 kB\nWriteback:  1 kB\nWritebackTmp: 999999 kB\n"
    assert dirty_bytes(full) == 200001 * 1024
    host = calm_host(tmp_path, proc__meminfo=full)
    waited: list[float] = []
    assert not wait_for_writeback(host, waited.append, seconds=2.0)
    assert sum(waited) == 2.0

    def drained(_: float) -> None:
        (tmp_path / "proc/meminfo").write_text("Dirty: 0 kB\nWriteback: 0 kB\n")

    assert wait_for_writeback(host, drained)


def test_a_pair_stands_out_whichever_arm_was_hit() -> None:
    calm, hit = Covariates(1.0, psi_cpu_share=0.1), Covariates(1.0, psi_cpu_share=0.5)
    assert stand_out([(calm, calm), (hit, calm), (calm, calm), (calm, hit), (calm, calm)]) == [0, 1, 0, 1, 0]
    # where half of the runs are hit, one hit in a pair is nothing special
    assert stand_out([(hit, calm), (calm, hit), (hit, calm), (hit, hit)]) == [False, False, False, True]
    assert stand_out([(Covariates(1.0), calm), (calm, calm)]) == [False, False]
