"""The real fio on a scratch file of a real file system; short, but nothing is faked below the host's calm."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.host import live_host
from advisor.proof.fio import FioError, FioJob, FioProcess, run_fio
from advisor.proof.process import Stop
from advisor.proof.scratch import MIB, Keep, Scratch, scratch_file
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import WORKLOADS, JobSection, Pattern, get_workload
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed (package fio)")
READ, MIXED = get_workload("infoscale.4k-rand-r100"), get_workload("infoscale.4k-rand-rw50")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredTarget]:
    place = Path("/var/tmp") / f"advisor-proof-real-{os.getpid()}"
    place.mkdir(mode=0o700)
    yield read_target(live_host(), str(place))
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def scratch(target: MeasuredTarget) -> Iterator[Scratch]:
    with scratch_file(target, 32 * MIB, keep=Keep(0, 0.0)) as made:
        yield made


ALONE = [workload for workload in WORKLOADS.values() if not workload.is_network]


@pytest.mark.repeats(12)
@pytest.mark.parametrize("workload", ALONE, ids=lambda workload: workload.name)
def test_fio_takes_every_workload(workload: Pattern, scratch: Scratch) -> None:
    job = FioJob(workload, 0.1, scratch.size_bytes, 8 * MIB)
    found, _ = run_fio(FioProcess(), job, scratch if workload.needs_scratch else None, Stop())
    assert found.iops > 0
    assert found.value(workload.metric) > 0
    # what is in flight when the limit is reached is finished: at most the depth of every job
    in_flight = sum(section.depth * section.jobs * section.block_bytes for section in workload.sections)
    # Of a mixed pattern fio bounds reads and writes together, and draws for each block which it is.
    drawn = sum(
        section.jobs
        * job.section_limit(section)
        * section.block_bytes
        * section.write_share
        * (1 - section.write_share)
        for section in workload.sections
        if section.write_share > 0
    )
    assert found.written_bytes <= 8 * MIB * 1.01 + in_flight + 6 * math.sqrt(drawn)
    assert (found.written_bytes > 0) == workload.is_writing
    if workload.needs_scratch:
        assert found.latency_p50_us <= found.latency_p95_us <= found.latency_p99_us <= found.latency_p999_us
    scratch.check()


def test_jobs_that_fio_places_and_refuses(scratch: Scratch) -> None:
    where = ("--numa_cpu_nodes=0", "--numa_mem_policy=bind:0")
    found, _ = run_fio(FioProcess(), FioJob(READ, 0.1, scratch.size_bytes, 0, where), scratch, Stop())
    assert found.iops > 0
    odd = Pattern("odd", "blocks that direct I/O cannot take", (JobSection("io", "randread", 4097),), "iops", "none")
    with pytest.raises(FioError, match=r"error 22 \(Invalid argument\)"):
        run_fio(FioProcess(), FioJob(odd, 0.1, scratch.size_bytes, 0), scratch, Stop())


def test_our_percentiles_are_fio_s_own(scratch: Scratch) -> None:
    import json

    found, text = run_fio(FioProcess(), FioJob(READ, 0.3, scratch.size_bytes, 0), scratch, Stop())
    theirs = json.loads(text)["jobs"][0]["read"]["clat_ns"]["percentile"]
    assert found.latency_p50_us * 1000 == pytest.approx(theirs["50.000000"], rel=0.02)
    assert found.latency_p99_us * 1000 == pytest.approx(theirs["99.000000"], rel=0.02)


def test_fio_creates_no_file(target: MeasuredTarget, tmp_path: Path) -> None:
    """In a directory without the scratch file fio fails instead of making one."""
    done = FioProcess().run(
        ["fio", "--name=x", "--thread", "--filename=scratch", "--allow_file_create=0", "--rw=read", "--size=1M"],
        timeout=PATIENCE_SECONDS,
        cwd=target.path,
        stop=Stop(),
    )
    assert done.returncode != 0
    assert not (Path(target.path) / "scratch").exists()


def test_a_real_fio_is_stopped_without_leaving_a_thread(scratch: Scratch) -> None:
    words = ["fio", "--name=endless-advisor-test", "--thread", "--ioengine=null", "--size=1g", "--time_based"]
    done = FioProcess().run([*words, "--runtime=60", "--numjobs=2"], timeout=0.7, cwd="/", stop=Stop())
    assert done.timed_out
    found = subprocess.run(["pgrep", "-f", "endless-advisor-test"], capture_output=True, text=True, check=False)
    assert found.stdout == ""
