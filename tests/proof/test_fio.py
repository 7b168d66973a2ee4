"""fio runs: the command line, the hazards of its output, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.proof.fio import (
    EndedProcess,
    FioError,
    FioJob,
    FioMissingError,
    FioProcess,
    fio_command,
    json_text,
    percentile,
    pooled_bins,
    read_figures,
    read_version,
    run_fio,
)
from advisor.proof.process import Stop, StoppedError
from advisor.proof.scratch import MIB
from advisor.proof.workloads import WORKLOADS, Pattern, get_workload
from tests.cases import read_cases
from tests.trees import make_command

from .fakes import FakeFio

DATA = read_cases(__file__)

READ = get_workload("infoscale.4k-rand-r100")
MIXED = get_workload("infoscale.4k-seq-rw50")
SIZE, LIMIT = 64 * MIB, 16 * MIB


def job(workload: Pattern = READ, seconds: float = 1.0) -> FioJob:
    return FioJob(workload, seconds, SIZE, LIMIT)


HERE_ALONE = [workload for workload in WORKLOADS.values() if not workload.is_network]


@pytest.mark.parametrize("workload", HERE_ALONE, ids=lambda workload: workload.name)
def test_every_command_line_holds_the_guards(workload: Pattern) -> None:
    words = fio_command(job(workload))
    assert words[0] == "fio"
    assert "--output-format=json+" in words
    sections = " ".join(words).split(" --name=")[1:]
    assert len(sections) == len(workload.sections)
    for text in sections:
        options = text.split(" ")
        for guard in ("--thread", "--allow_file_create=0", "--norandommap", "--randrepeat=0", "--group_reporting"):
            assert guard in options
        assert "--runtime=1000ms" in options
        if workload.needs_scratch:
            assert "--filename=scratch" in options
            # only what is meant to go through the page cache does
            assert f"--direct={int(not workload.name.startswith('buffered.'))}" in options
        else:
            assert "filename" not in text
        assert ("--time_based" in options) != ("--io_size=" in text), "bounded by time or by bytes"


def test_command_lines_of_patterns() -> None:
    # half of the transferred bytes are written: 16 MiB of writes are 32 MiB of I/O
    assert f"--io_size={2 * LIMIT}" in fio_command(job(MIXED))
    assert "--rwmixread=50" in fio_command(job(MIXED))
    ranwrite = job(get_workload("iris.ranwrite"))
    assert ranwrite.limited_bytes <= LIMIT
    assert ranwrite.limited_bytes > 0.8 * LIMIT
    words = fio_command(job(get_workload("beegfs.iozone-seq")))
    assert {"--size=16777216", "--offset_increment=16777216", "--offset=0", "--numjobs=4"} <= set(words)
    assert "--end_fsync=1" in words
    words = fio_command(job(get_workload("iris.ranwrite")))
    assert {"--offset=0", "--size=16777216", "--offset=16777216", "--size=50331648"} <= set(words)
    assert {"--percentage_random=60", "--rwmixread=65", "--iodepth=64"} <= set(
        fio_command(job(get_workload("iometer.reallife")))
    )
    for workload in WORKLOADS.values():
        assert not [word for word in fio_command(job(workload)) if set(word) & set("/;$`'\"\\ ")]


def measure(fake_fio: FakeFio, workload: Pattern = READ, seconds: float = 1.0) -> object:
    return run_fio(fake_fio.runner, job(workload, seconds), None, Stop())[0]


def test_a_sound_run_is_read(fake_fio: FakeFio) -> None:
    fake_fio.plan(iops=5000, noise=0)
    found, text = run_fio(fake_fio.runner, job(MIXED), None, Stop())
    assert found.iops == pytest.approx(5000)
    assert found.bandwidth_bytes_per_s == pytest.approx(5000 * 4096)
    assert found.read_bytes == found.written_bytes == 2500 * 4096
    assert found.runtime_seconds == 1.0
    # two directions at 2500 IOPS each: 400 us
    assert found.latency_p50_us == found.latency_p99_us == pytest.approx(400)
    assert found.cpu_us_per_io == pytest.approx(0.15 * 1e6 / 5000)
    assert found.cpu_seconds > 0
    assert text.startswith("{")


def test_text_around_the_json_is_passed_over(fake_fio: FakeFio) -> None:
    for hazard in ("text-before", "text-after"):
        fake_fio.plan(misbehave=hazard, iops=1000, noise=0)
        found, _ = run_fio(fake_fio.runner, job(), None, Stop())
        assert found.iops == 1000


@pytest.mark.parametrize(("hazard", "words"), DATA["a_run_that_does_not_count_is_an_error_that_says_why"])
def test_a_run_that_does_not_count_is_an_error_that_says_why(fake_fio: FakeFio, hazard: str, words: str) -> None:
    fake_fio.plan(misbehave=hazard)
    with pytest.raises(FioError, match=words) as caught:
        measure(fake_fio)
    assert caught.value.exit_code == 4


def test_a_bounded_run_may_end_early_but_not_before_its_bytes(fake_fio: FakeFio) -> None:
    fake_fio.plan(iops=200_000, noise=0)
    found, _ = run_fio(fake_fio.runner, job(MIXED), None, Stop())
    assert found.runtime_seconds < 0.1
    assert found.written_bytes == pytest.approx(LIMIT, rel=0.01)
    fake_fio.plan(iops=200_000, noise=0, misbehave="ended-early")
    with pytest.raises(FioError, match="instead of 1 s"):
        run_fio(fake_fio.runner, FioJob(MIXED, 1.0, SIZE, 1024 * MIB), None, Stop())


def alive(seconds: str) -> list[int]:
    """Processes that sleep for so many seconds on behalf of this one, zombies left out."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
        except OSError:
            continue
        if words == f"sleep {seconds}.{os.getpid()}":
            found.append(int(pid))
    return found


@pytest.mark.parametrize(("hazard", "left"), [("hang", "600"), ("hang-ignoring-term", "601")])
def test_a_hanging_fio_is_killed_with_all_its_children(fake_fio: FakeFio, hazard: str, left: str) -> None:
    fake_fio.plan(misbehave=hazard)
    began = time.monotonic()
    done = fake_fio.runner.run(fio_command(job()), timeout=0.6, cwd="/", stop=Stop())
    assert done.timed_out
    assert time.monotonic() - began < 60  # it sleeps for 600 s
    assert alive(left) == []
    with pytest.raises(FioError, match="did not end within 11 s"):
        read_figures(job(), done)


def test_a_signal_stops_a_running_fio_and_its_children(fake_fio: FakeFio) -> None:
    fake_fio.plan(misbehave="hang")
    stop = Stop()
    threading.Timer(0.5, stop.request, (int(signal.SIGTERM),)).start()
    began = time.monotonic()
    with pytest.raises(StoppedError, match="SIGTERM"):
        run_fio(fake_fio.runner, job(), None, stop)
    assert 0.3 < time.monotonic() - began < 60  # it sleeps for 600 s
    assert alive("600") == []


def test_a_stop_that_came_before_starts_nothing_more(fake_fio: FakeFio) -> None:
    stop = Stop()
    stop.request(signal.SIGHUP)
    with pytest.raises(StoppedError, match="SIGHUP"):
        run_fio(fake_fio.runner, job(), None, stop)


def test_fio_gets_a_session_of_its_own_and_a_clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_command(tmp_path, "fio", 'ps -o sid= -p $$; echo "secret=$SECRET locale=$LC_ALL"; readlink /proc/self/fd/0')
    monkeypatch.setenv("SECRET", "x")
    done = FioProcess(search_path=f"{tmp_path}:/usr/bin:/bin").run(["fio"], timeout=60, cwd="/", stop=Stop())
    session, environment, stdin = done.stdout.splitlines()
    assert int(session) != os.getsid(0)
    assert environment == "secret= locale=C"
    assert stdin == "/dev/null"


def test_much_output_does_not_block(tmp_path: Path) -> None:
    make_command(tmp_path, "fio", "head -c 3000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2")
    done = FioProcess(search_path=f"{tmp_path}:/usr/bin:/bin").run(["fio"], timeout=60, cwd="/", stop=Stop())
    assert len(done.stdout) == 3_000_000
    assert not done.timed_out


def test_a_missing_fio_is_refused_and_one_that_is_there_says_its_version(tmp_path: Path, fake_fio: FakeFio) -> None:
    with pytest.raises(FioMissingError, match="fio is not installed") as caught:
        read_version(FioProcess(search_path=str(tmp_path)), Stop())
    assert isinstance(caught.value, RefusedError)
    assert "package fio" in (caught.value.hint or "")
    assert read_version(fake_fio.runner, Stop()) == "fio-3.33"


def test_json_and_percentiles_of_a_report() -> None:
    assert json_text("warning: {x}\n{\n}") == "{\n}"
    with pytest.raises(FioError, match="no JSON"):
        json_text("nothing {here}")
    bins = pooled_bins([{"100": 50, "300": 1}, {"100": 25, "200": 24}])
    assert [percentile(bins, share) for share in (0.5, 0.75, 0.76, 0.99, 1.0)] == [100, 100, 200, 200, 300]
    assert percentile({}, 0.5) == 0


@pytest.mark.parametrize("key", ["x", "-5", "1e3", ""])
def test_a_bin_that_is_no_number_is_an_error(key: str) -> None:
    with pytest.raises(FioError, match="latency bin"):
        pooled_bins([{key: 1}])


def direction(blocks: int, latency_ns: int) -> dict[str, object]:
    """A fio direction that moved that many 4 KiB blocks in one second."""
    latency = {"mean": latency_ns, "N": blocks}
    counts = {"io_bytes": 4096 * blocks, "bw_bytes": 4096 * blocks, "iops": blocks, "total_ios": blocks}
    return {**counts, "runtime": 1000, "clat_ns": latency}


def test_a_report_with_two_sections_is_summed() -> None:
    jobs = [
        {"jobname": "wij", "error": 0, "read": direction(0, 0), "write": direction(1, 3000)},
        {"jobname": "db", "error": 0, "read": direction(0, 0), "write": direction(3, 1000)},
    ]
    found = read_figures(job(), EndedProcess(0, json.dumps({"jobs": jobs}), "", False, 0.1))
    assert (found.iops, found.ios, found.written_bytes, found.bandwidth_bytes_per_s) == (4, 4, 16384, 16384)
    assert found.latency_mean_us == pytest.approx(1.5)
