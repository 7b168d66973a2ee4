"""Twins of loads that are known exactly: what fio is asked for, what is refused, how both are compared."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from advisor.errors import AdvisorError, InvalidInputError, RefusedError, UsageError
from advisor.host import Host, MemoryFiles, NoCommands, live_host
from advisor.observe.load import LoadFigures, measure_load, measure_roughly
from advisor.observe.rates import DiskRates
from advisor.observe.tracing import BlockRequest, device_number, events_of, trace_requests
from advisor.proof.fio import EndedProcess, FioError, FioJob, fio_command, read_figures
from advisor.proof.observing import _make_from_means, find_disk, require_unit
from advisor.proof.pattern import (
    JobSection,
    LoadObservation,
    WorkloadFile,
    encode_workload,
    is_workload_path,
    parse_workload_file,
    read_workload,
)
from advisor.proof.target import read_target
from advisor.proof.twin import make_section, require_steady
from advisor.proof.workloads import UnknownWorkloadError, expand_workloads, get_workload
from advisor.recommend.records import declared
from advisor.report.proof.words import _claim_title, workload_title
from advisor.report.why import twin_text
from tests.cases import read_cases
from tests.known import known

DATA = read_cases(__file__)

SECTORS = 1 << 20


def closed_loop(
    depth: int,
    count: int,
    size: Callable[[random.Random], int] = lambda _: 4096,
    *,
    writes: float = 0.0,
    think: float = 1e-5,
) -> list[BlockRequest]:
    """As many requests in flight as ``depth``: each is followed by the next after ``think`` seconds."""
    chance = random.Random(depth)
    free = [0.0] * depth
    found = []
    for _ in range(count):
        slot = min(range(depth), key=lambda one: free[one])
        took = chance.uniform(0.8e-3, 1.2e-3)
        is_write = chance.random() < writes
        found.append(BlockRequest(free[slot], took, 1, is_write, chance.randrange(SECTORS) * 8, size(chance)))
        free[slot] += took + think
    return found


def by_clock(gaps: Iterator[float], count: int, seconds: float = 1e-4) -> list[BlockRequest]:
    chance = random.Random(count)
    at, found = 0.0, []
    for _ in range(count):
        at += next(gaps)
        found.append(
            BlockRequest(at, seconds * chance.uniform(0.8, 1.2), 1, False, chance.randrange(SECTORS) * 8, 4096)
        )
    return found


def poisson_gaps(rate: float) -> Iterator[float]:
    chance = random.Random(5)
    while True:
        yield chance.expovariate(rate)


def even_gaps(gap: float) -> Iterator[float]:
    while True:
        yield gap


def burst_gaps(chance: random.Random | None = None) -> Iterator[float]:
    while True:
        pause = 0.03 if chance is None else chance.uniform(0.01, 0.9)
        for number in range(50 if chance is None else chance.choice((3, 10, 400))):
            yield pause if number == 0 else 4e-4


def options_of(section: JobSection) -> str:
    job = FioJob(WorkloadFile(title="t", sections=(section,)).pattern("t"), 2.0, 1 << 28, 1 << 30)
    return " ".join(fio_command(job))


def test_sizes_and_mix_become_percents() -> None:
    load = measure_load(closed_loop(8, 4000, lambda chance: 4096 if chance.random() < 0.75 else 65536, writes=0.3))
    section, error = make_section(load)
    assert (section.pattern, section.depth, section.arrival.kind) == ("randrw", 8, "closed")
    assert section.read_percent == pytest.approx(70, abs=2)
    assert sum(section.sizes["read"].values()) == sum(section.sizes["write"].values()) == 100
    assert error.sizes < 0.02
    command = options_of(section)
    assert f"--bssplit=4096/{section.sizes['read']['4096']}:65536/" in command
    assert "--iodepth=8" in command
    assert f"--size={(1 << 28) - 65536} " in command
    assert "--rate_iops" not in command


def test_streams_in_order_become_jobs_with_regions() -> None:
    rows = [
        BlockRequest(number * 1e-3 + stream * 1e-5, 2.9e-3, 1, True, stream * SECTORS + number * 128, 65536)
        for number in range(1000)
        for stream in range(3)
    ]
    section, _ = make_section(measure_load(rows, flushes=[(0.0, 1e-3)] * 750))
    assert (section.pattern, section.jobs, section.own_regions, section.flush_every) == ("write", 3, True, 4)
    assert "--fdatasync=4" in options_of(section)


@pytest.mark.parametrize(
    ("requests", "kind", "option"),
    [
        (by_clock(poisson_gaps(2000), 4000), "poisson", "--rate_process=poisson"),
        (by_clock(even_gaps(1e-3), 2000, 3e-3), "steady", "--rate_process=linear"),
        (closed_loop(1, 2000, think=5e-4), "think", "--thinktime_blocks=1 "),
        (by_clock(burst_gaps(), 4000), "bursts", "--thinktime_blocks=50 "),
    ],
    ids=["poisson", "steady", "think", "bursts"],
)
def test_arrival(requests: list[BlockRequest], kind: str, option: str) -> None:
    # Of equal times with requests that overlap, none follows the end of another.
    if kind == "steady":
        chance = random.Random(1)
        requests = [one._replace(seconds=chance.uniform(1e-4, 5e-3)) for one in requests]
    section, _ = make_section(measure_load(requests))
    assert section.arrival.kind == kind
    assert option in options_of(section) + " "
    if section.arrival.rate:
        assert section.arrival.rate == pytest.approx(len(requests) / requests[-1].at_seconds, rel=0.02)


def of_threads(count: int, think: Callable[[random.Random], float]) -> list[BlockRequest]:
    """Threads that wait for each request, and then think."""
    found = []
    for thread in range(count):
        chance = random.Random(thread)
        at = 0.0
        for _ in range(1500):
            took = chance.uniform(0.8e-4, 1.2e-4)
            found.append(BlockRequest(at, took, 100 + thread, False, chance.randrange(SECTORS) * 8, 4096))
            at += took + think(chance)
    return found


def test_threads_that_think_are_jobs() -> None:
    section, _ = make_section(measure_load(of_threads(4, lambda chance: chance.uniform(5e-4, 9e-4))))
    assert (section.jobs, section.depth, section.engine, section.own_regions) == (4, 1, "psync", False)
    # fio itself takes 15 of the 700.
    assert section.arrival.kind == "think"
    assert section.arrival.think_us == pytest.approx(685, abs=10)
    assert "--numjobs=4" in options_of(section)
    section, _ = make_section(measure_load(of_threads(2, lambda _: 5e-6)))
    assert (section.jobs, section.arrival.kind) == (2, "closed")


@pytest.mark.parametrize(
    "requests",
    [
        of_threads(4, lambda chance: chance.expovariate(100)),
        # One thread with four requests at a time.
        [one._replace(pid=1) for one in of_threads(4, lambda _: 7e-4)],
        # A thread for each request.
        [one._replace(pid=number) for number, one in enumerate(of_threads(4, lambda _: 7e-4))],
    ],
    ids=["independent times", "one thread", "many threads"],
)
def test_what_is_no_thread_that_thinks(requests: list[BlockRequest]) -> None:
    section, _ = make_section(measure_load(requests))
    assert (section.jobs, section.arrival.kind) in ((1, "poisson"), (1, "steady"), (1, "closed"))


def test_flushes_and_a_far_journal_are_no_part_of_the_reads() -> None:
    reads = closed_loop(4, 4000)
    few = [one._replace(is_write=True) for one in reads[:10]]
    section, _ = make_section(measure_load([*few, *reads[10:]], flushes=[(0.0, 1e-3)] * 20))
    assert (section.pattern, section.flush_every, section.durable) == ("randread", 0, False)
    requests = closed_loop(4, 4000)
    assert make_section(measure_load(requests))[0].zones == ()
    far = [one._replace(sector=SECTORS * 1000) for one in requests[:10]]
    assert make_section(measure_load([*far, *requests[10:]]))[0].zones == ()


# 122 flushes of 3,907 writes; not all versions count each of them as one.
@pytest.mark.parametrize(
    ("flush_every", "synced", "counts"), [(32, 122, True), (32, 0, True), (64, 0, True), (0, 122, False)]
)
def test_flushes_that_fio_reports_as_short_reads(flush_every: int, synced: int, *, counts: bool) -> None:
    none = {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0, "short_ios": 122, "drop_ios": 0}
    write = {"io_bytes": 1 << 27, "bw_bytes": 1 << 26, "iops": 1953.5, "runtime": 2000, "total_ios": 3907}
    report = {"jobname": "a", "error": 0, "read": none, "write": write, "sync": {"total_ios": synced}}
    done = EndedProcess(0, json.dumps({"jobs": [report]}), "", timed_out=False, cpu_seconds=1.0)
    section = JobSection("a", "randwrite", 32768, depth=8, flush_every=flush_every)
    job = FioJob(WorkloadFile(title="t", sections=(section,)).pattern("t"), 2.0, 1 << 28, 1 << 30)
    if counts:
        assert read_figures(job, done).ios == 3907
        return
    with pytest.raises(FioError, match="122 short"):
        read_figures(job, done)


def test_uneven_places_become_zones() -> None:
    requests = [
        one._replace(sector=one.sector // 10 if number % 5 else one.sector)
        for number, one in enumerate(closed_loop(4, 3000))
    ]
    section, _ = make_section(measure_load(requests))
    assert len(section.zones) == 20
    assert sum(section.zones) == 100
    assert section.zones[0] > 30
    assert "--random_distribution=zoned:" in options_of(section)


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (measure_load(closed_loop(1, 500)), "500 requests in"),
        (measure_load(closed_loop(1, 2000), discards=500), "20 % of the requests are discards"),
        (measure_load(by_clock(burst_gaps(random.Random(3)), 4000)), "irregular bursts"),
        (measure_load(closed_loop(4, 5000, lambda chance: 512 * chance.randrange(1, 400))), "sizes of requests"),
    ],
    ids=["few", "discards", "bursts", "sizes"],
)
def test_what_fio_cannot_be_asked_for_is_refused(load: LoadFigures, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        make_section(load)


def test_a_load_that_changes_is_refused() -> None:
    first = measure_roughly(closed_loop(2, 2000), 1.0)
    require_steady(first, first)
    others: tuple[list[BlockRequest], ...] = (
        closed_loop(2, 900),
        closed_loop(2, 4100),
        [],
        closed_loop(2, 2000, lambda _: 8192),
    )
    for other in others:
        with pytest.raises(RefusedError, match="changed"):
            require_steady(first, measure_roughly(other, 1.0))


def file_of(load: LoadFigures) -> WorkloadFile:
    section, error = make_section(load)
    observed = LoadObservation("sda", "2026-01-01T00:00:00+00:00", load.seconds, "requests", figures=load)
    return WorkloadFile(title="Twin of all on sda", sections=(section,), observed=observed, error=error)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = file_of(measure_load(closed_loop(8, 4000)))
    assert parse_workload_file(encode_workload(found), "x") == found
    place = tmp_path / "load.json"
    place.write_bytes(encode_workload(found))
    assert expand_workloads([str(place)]) == (str(place),)
    pattern = get_workload(str(place))
    assert (pattern.name, pattern.title, pattern.metric) == (str(place), "Twin of all on sda", "iops")
    assert get_workload(f"{place}@3").sections[0].jobs == 3
    assert workload_title(str(place)) == "Twin of all on sda"
    # A verdict is one line; the title is another.
    assert _claim_title(cast(Any, SimpleNamespace(name=str(place)))) == "load.json"
    assert workload_title(str(tmp_path / "gone.json")) is None
    workload = declared(f"{place},rtt=1ms")
    assert (workload.block_bytes, workload.write_share, workload.access) == (4096, 0.0, "random")


SECTION: dict[str, Any] = {"name": "a", "pattern": "randrw", "block_bytes": 4096, "depth": 2}
BAD: list[tuple[dict[str, Any], str]] = DATA["BAD"]


@pytest.mark.parametrize(
    ("change", "why"), BAD, ids=[next(iter(change)) + str(at) for at, (change, _) in enumerate(BAD)]
)
def test_a_bad_file_is_refused_with_its_field(change: dict[str, Any], why: str) -> None:
    document = {"title": "t", "sections": [{**SECTION, **change}]}
    with pytest.raises(InvalidInputError, match=why) as caught:
        parse_workload_file(msgspec.json.encode(document), "load.json")
    assert caught.value.message.startswith("load.json: field ")
    assert caught.value.hint is not None


def test_a_good_section_is_taken_as_toml_too() -> None:
    text = 'title = "t"\n[[sections]]\nname = "a"\npattern = "randread"\nblock_bytes = 4096\n'
    assert parse_workload_file(text.encode(), "x.toml").sections == (JobSection("a", "randread", 4096),)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"title = 1", b'{"title": "t", "sections": []}'])
def test_what_is_no_workload_file(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"x\.json"):
        parse_workload_file(data, "x.json")


def test_files_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "load").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownWorkloadError) as caught:
        get_workload("load")
    assert caught.value.hint == "the file of that name is ./load"
    assert is_workload_path("./a")
    assert is_workload_path("a.toml")
    assert not is_workload_path("iris.ranread")
    with pytest.raises(InvalidInputError, match="No such file"):
        read_workload(str(tmp_path / "none.json"))
    with pytest.raises(AdvisorError, match="No such file"):
        expand_workloads(["none.json"])
    with pytest.raises(UsageError):
        expand_workloads(["none"])


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("fio") is None, reason="needs root and fio")
def test_a_running_fio_is_observed(disk: Path) -> None:
    host = live_host()
    try:
        device = find_disk(host, known(read_target(host, str(disk)).device))
        trace_requests(0.1, events_of(host, device))
    except AdvisorError as error:
        pytest.skip(error.message)
    call = ["fio", "--name=a", f"--filename={disk}/data", "--size=32m", "--direct=1", "--rw=randwrite", "--norandommap"]
    call += ["--bssplit=4k/50:16k/50", "--ioengine=libaio", "--iodepth=4", "--time_based", "--runtime=60", "--thread"]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(disk)}) as running:
        try:
            time.sleep(2)
            traced = trace_requests(3, events_of(host, device))
            threads = {int(name) for name in os.listdir(f"/proc/{running.pid}/task")}
        finally:
            running.terminate()
    found = traced.devices[device_number(host, device) or ""]
    mine = [one for one in found.requests if one.pid in threads]
    load = measure_load(mine)
    assert load.read_share < 0.01  # The file system reads its own blocks in the name of fio, now and then.
    assert load.depth_high in (4, 5)
    section, _ = make_section(load)
    assert section.sizes["write"]["4096"] == pytest.approx(50, abs=6)


def test_counters_alone_make_a_coarse_twin_that_says_so() -> None:
    rates = DiskRates(
        "sda",
        300.0,
        100.0,
        3e6,
        1e6,
        10_000.0,
        9_000.0,
        1.0,
        2.0,
        0.0,
        0.0,
        flushes_per_s=1.0,
        queue=3.2,
        utilisation=0.5,
    )
    found = _make_from_means(rates, "2026-01-01T00:00:00+00:00", 10.0, "not permitted")
    assert parse_workload_file(encode_workload(found), "x") == found
    (section,) = found.sections
    assert (section.pattern, section.read_percent, section.arrival.kind) == ("randrw", 75, "poisson")
    assert section.sizes == {"read": {"8192": 100}, "write": {"8192": 100}}
    text = twin_text(found, Path("load"), width=100, color=False)
    assert "means alone" in text
    assert "not known: no distribution was observed" in text
    assert "advisor bench --workload ./load --target DIR" in text


def test_a_stacked_device_names_its_members() -> None:
    files = {f"/sys/class/block/{name}/dev": b"%d:0\n" % number for number, name in ((9, "md0"), (8, "sda"))}
    host = Host(MemoryFiles({**files, "/sys/class/block/md0/slaves/sda/dev": b"8:0\n"}), NoCommands())
    assert find_disk(host, "sda") == "sda"
    with pytest.raises(RefusedError, match="md0: requests are those of the devices below") as caught:
        find_disk(host, "md0")
    assert caught.value.hint == "--device sda"
    with pytest.raises(UsageError, match="no such block device"):
        find_disk(host, "../sda")


def test_a_unit_is_one_of_which_a_process_runs() -> None:
    files = {"/proc/1/cgroup": b"0::/init.scope\n", "/proc/7/cgroup": b"0::/system.slice/db.service/w\n"}
    host = Host(MemoryFiles({**files, "/proc/self/cgroup": b"0::/\n"}), NoCommands())
    for name in ("db", "db.service", "init.scope"):
        require_unit(host, name)
    for name in ("d", "", "../..", "w", "init"):
        with pytest.raises(UsageError, match="no process of such a unit"):
            require_unit(host, name)
