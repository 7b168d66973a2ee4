"""Patterns as the articles run them: thread sweeps, sustained runs, files of twice the memory, parts on other volumes,
reads through the page cache. Real fio where it matters what fio really does."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import pytest

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.proof import fio
from advisor.proof.scratch import GIB, MIB, file_size, thread_counts
from advisor.proof.series import Bench, WorkloadSeries, sweeps_of
from advisor.proof.session import bench, sweep_threads
from advisor.proof.workloads import UnknownWorkloadError, expand_workloads, get_workload
from advisor.report.proof.bench import knee_words
from advisor.report.proof.words import workload_title
from tests.cases import read_cases
from tests.known import known

from .fakes import FakeFio
from .test_bench import settings

DATA = read_cases(__file__)


def measure(fake_fio: FakeFio, host: Host, disk: Path, *names: str, **changes: object) -> Bench:
    return bench(host, names, settings(disk, **changes), runner=fake_fio.runner)


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3, 64, 1024])
def test_a_workload_runs_with_the_number_of_threads_in_its_name(threads: int) -> None:
    one = get_workload(f"beegfs.iozone-seq@{threads}")
    job = fio.FioJob(one, 1.0, 1024 * 16 * MIB, 1024 * 16 * MIB)
    argv = fio.fio_command(job)
    assert f"--numjobs={threads}" in argv
    assert "--thread" in argv
    regions = next(word for word in argv if word.startswith("--offset_increment="))
    assert int(regions.partition("=")[2]) * threads <= 1024 * 16 * MIB
    assert workload_title(one.name) == one.title
    assert f"{threads} thread" in one.title
    assert "by 4 threads" not in one.title


def test_threads_of_parts_and_of_no_sweep() -> None:
    journal, database = get_workload("iris.ranwrite@40").sections
    assert (journal.jobs, database.jobs) == (1, 40)
    assert list(sweeps_of([measured("beegfs.dd@4", 1.0), measured("beegfs.storagebench@8", 2.0)])) == []


@pytest.mark.parametrize(("name", "message"), DATA["threads_that_cannot_be_are_named"])
def test_threads_that_cannot_be_are_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_workload(name)


@pytest.mark.parametrize("name", ["beegfs.dd@", "beegfs.dd@x", "beegfs.dd@-1", "@4", "none@4", "beegfs.dd@4@4@x"])
def test_what_is_no_workload_is_unknown(name: str) -> None:
    with pytest.raises(UnknownWorkloadError):
        get_workload(name)
    assert workload_title(name) is None


@pytest.mark.parametrize(("text", "counts"), DATA["a_sweep_is_a_list_or_powers_of_two"])
def test_a_sweep_is_a_list_or_powers_of_two(text: str, counts: tuple[int, ...]) -> None:
    assert thread_counts(text) == counts
    assert sweep_threads(["beegfs.dd"], text) == tuple(f"beegfs.dd@{one}" for one in counts)


@pytest.mark.parametrize("text", ["", "0", "1..", "..4", "8..2", "1,x", "1..2048", "-1", "1;2", "１"])
def test_a_sweep_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--threads"):
        thread_counts(text)


def measured(name: str, median: float) -> WorkloadSeries:
    return WorkloadSeries(name, "bandwidth", "MB/s", "higher", runs=8, median=median)


@pytest.mark.parametrize(("medians", "knee"), DATA["the_knee_is_the_fewest_threads_with_nearly_the_best"])
def test_the_knee_is_the_fewest_threads_with_nearly_the_best(medians: tuple[float, ...], knee: int | None) -> None:
    points = [measured(f"beegfs.dd@{2**index}", value) for index, value in enumerate(medians)]
    (found,) = sweeps_of([*reversed(points), measured("beegfs.storagebench", 1.0)])
    assert (found.threads, found.medians, found.knee) == ((1, 2, 4, 8), medians, knee)
    assert ("Knee at" in knee_words(found)) == (knee is not None)


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [("1048576", MIB), ("512MiB", 512 * MIB), ("64g", 64 * GIB), ("2GB", 2 * GIB), ("1 ", MIB), ("1T", 1024 * GIB)],
)
def test_a_size_is_in_bytes_or_binary_units(text: str, size: int) -> None:
    assert file_size(text, None) == size


@pytest.mark.parametrize(("text", "memory", "size"), [("2x", 24 * GIB, 48 * GIB), ("1.5X", 8 * GIB, 12 * GIB)])
def test_a_file_of_twice_the_memory(text: str, memory: int, size: int) -> None:
    assert file_size(text, memory) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "2y", "1.5GiB", "x2", "0x", "1e9", "٣"])
def test_a_size_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--file-size"):
        file_size(text, GIB)
    with pytest.raises(UsageError, match="memory"):
        file_size("2x", None)


def test_a_file_that_is_too_small_for_the_threads_names_one_that_is_not(
    fake_fio: FakeFio, host: Host, disk: Path
) -> None:
    with pytest.raises(UsageError) as error:
        measure(fake_fio, host, disk, "beegfs.iozone-seq-read@1024", scratch_bytes=64 * MIB)
    assert "--file-size 8192MiB" in known(error.value.hint)


# -- parts on other volumes --------------------------------------------------------------------------------------------

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def test_a_section_that_no_workload_has_is_named(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    with pytest.raises(UsageError, match="--place journal") as error:
        measure(fake_fio, host, disk, "iris.ranwrite", places=(("journal", str(disk)),), scratch_bytes=16 * MIB)
    assert error.value.hint == "here: wij, db"
    place = (("wij", str(disk / "none")),)
    with pytest.raises(RefusedError):
        measure(fake_fio, host, disk, "iris.ranwrite", places=place, scratch_bytes=16 * MIB)
    assert os.listdir(disk) == []


# -- the page cache ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["buffered.seq-128k-r100", "buffered.seq-1m-r100"])
def test_buffered_reads_go_through_the_page_cache_and_all_others_pass_it_by(name: str) -> None:
    argv = fio.fio_command(fio.FioJob(get_workload(name), 1.0, 64 * MIB, 0))
    assert "--direct=0" in argv
    others = [one for one in expand_workloads(["*"]) if not one.startswith(("buffered.", "net."))]
    for other in others:
        assert "--direct=0" not in fio.fio_command(fio.FioJob(get_workload(other), 1.0, 64 * MIB, 64 * MIB)), other


@needs_fio
def test_a_buffered_read_begins_with_an_empty_cache_of_its_file(disk: Path, host: Host) -> None:
    """By the kernel's own count: every run reads from the device what it has not read itself before."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    chosen = settings(disk, scratch_bytes=32 * MIB, seconds=0.2, budget_seconds=9.0, force=True)
    found = bench(host, ("buffered.seq-1m-r100",), chosen)
    read = 512 * (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before)
    runs = [*found.series.warm_up, *(run for one in found.series.rounds for run in one.runs)]
    assert len(runs) > 3
    assert read >= 0.8 * sum(min(run.figures.read_bytes, 32 * MIB) for run in runs)
