"""Services, adapters, arrays, paths and processes: exact figures."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from advisor.host import Completed, Host, MemoryFiles, RecordedCommands, live_host
from advisor.observe.cgroups import (
    parse_cpu_max,
    parse_io_limits,
    parse_io_pairs,
    parse_io_table,
    read_cgroups,
    unit_of_cgroup,
)
from advisor.observe.disks import parse_sync_completed, read_arrays
from advisor.observe.hardware import parse_hexadecimal, parse_paths, read_adapters, read_paths
from advisor.observe.processes import parse_process_cgroup, read_processes
from advisor.observe.rates import stall_share
from advisor.observe.sample import CounterSpan, Reading
from tests.cases import read_cases
from tests.known import known
from tests.observe.spans import sample_of, span_of

DATA = read_cases(__file__)

DB = "/sys/fs/cgroup/system.slice/db.service"
V2 = {
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "/sys/fs/cgroup/cpu.stat": "usage_usec 1000\n",
    f"{DB}/cpu.stat": "usage_usec 500\nuser_usec 400\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7000\n",
    f"{DB}/cpu.max": "50000 100000\n",
    f"{DB}/memory.events": "low 0\nhigh 3\nmax 2\noom 1\noom_kill 1\n",
    f"{DB}/memory.max": "max\n",
    f"{DB}/memory.high": "1073741824\n",
    f"{DB}/memory.current": "1000000000\n",
    f"{DB}/io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0 avg60=0 avg300=0 total=0\n",
    f"{DB}/io.stat": "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
    f"{DB}/io.max": "8:0 rbps=max wbps=1048576 riops=max wiops=120\n",
}


def test_a_service_of_version_2() -> None:
    later = V2 | {
        f"{DB}/cpu.stat": "usage_usec 900\nnr_periods 110\nnr_throttled 54\nthrottled_usec 2007000\n",
        f"{DB}/io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000000\n",
        f"{DB}/io.stat": "8:0 rbytes=4096 wbytes=10485760 rios=1 wios=1200\n",
    }
    span = span_of(read_cgroups, V2, later)
    path = "/system.slice/db.service"
    assert span.delta("cgroup", path, "cpu_throttled_us") == 2_000_000
    assert span.delta("cgroup", path, "memory_high") == 0
    assert span.level("cgroup", path, "cpu_quota_cpus") == 0.5
    assert span.level("cgroup", path, "memory_high_bytes") == 1 << 30
    assert span.levels("cgroup", path, "memory_max_bytes") == ()
    assert stall_share(span, "cgroup", path, "io_").some == 0.5
    assert stall_share(span, "cgroup", path, "io_").full is None
    assert span.rate("cgroup-io", f"{path} 8:0", "write_bytes") == span.level(
        "cgroup-io", f"{path} 8:0", "write_bytes_max"
    )
    assert span.rate("cgroup-io", f"{path} 8:0", "writes") == 120.0


def test_weights_and_waits_of_a_device() -> None:
    """Texts as blkcg_print_one_stat, ioc_pd_stat, iolatency_pd_stat and ioc_qos_prfill print them."""
    top = "/sys/fs/cgroup"
    files = {
        f"{top}/cgroup.controllers": "io\n",
        f"{top}/io.cost.qos": "8:0 enable=1 ctrl=auto rpct=95.00 rlat=25000 wpct=95.00 wlat=25000 min=1.00 max=150.50\n"
        "8:16 enable=0 ctrl=auto rpct=0.00 rlat=0 wpct=0.00 wlat=0 min=1.00 max=10000.00\n",
        f"{top}/io.cost.model": "8:0 ctrl=auto model=linear rbps=488636629 rseqiops=8932 rrandiops=8518 wbps=1 "
        "wseqiops=1 wrandiops=1\n",
        f"{top}/io.stat": "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 cost.vrate=87.50 cost.usage=700\n",
        f"{DB}/io.stat": "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 use_delay=-1 delay_nsec=5000000 depth=4 "
        "avg_lat=900 win=100 cost.usage=500 cost.wait=40 cost.indebt=30 cost.indelay=20\n"
        "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 missed=3 total=9 depth=max\n",
        f"{DB}/io.weight": "default 200\n8:0 50\n",
        f"{DB}/io.bfq.weight": "default 300\n8:16 70\n",
        f"{DB}/io.latency": "8:0 target=5000\n",
    }
    sample = sample_of(files, read_cgroups)
    path = "/system.slice/db.service"
    assert sample.counters["cgroup-io"][f"{path} 8:0"] == {
        **{"read_bytes": 1, "write_bytes": 2, "reads": 3, "writes": 4},
        **{"cost_usage_us": 500, "cost_wait_us": 40, "cost_indebt_us": 30, "cost_indelay_us": 20},
    }
    assert sample.gauges["cgroup-io"] == {
        f"{path} 8:0": {
            **{"delay_ns": 5000000, "depth": 4, "latency_us": 900, "latency_target_us": 5000},
            **{"weight": 50, "bfq_weight": 300},
        },
        f"{path} 8:16": {"delay_ns": 0, "depth": 0, "weight": 200, "bfq_weight": 70},
    }
    assert sample.gauges["io-cost"] == {"8:0": {"enabled": 1, "vrate_percent": 87.5}, "8:16": {"enabled": 0}}
    assert sample.words["io-cost"]["8:0"]["qos"].startswith("enable=1 ctrl=auto")
    assert sample.words["io-cost"]["8:0"]["model"].startswith("ctrl=auto model=linear")
    assert "io-cost" not in sample.missing


def test_a_service_of_version_1() -> None:
    top, group = "/sys/fs/cgroup", "system.slice/db.service"
    files = {
        f"{top}/cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
        f"{top}/cpu/cpu.cfs_quota_us": "-1\n",
        f"{top}/cpu/cpu.cfs_period_us": "100000\n",
        f"{top}/cpu/{group}/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 7000000\n",
        f"{top}/cpu/{group}/cpu.cfs_quota_us": "150000\n",
        f"{top}/cpu/{group}/cpu.cfs_period_us": "100000\n",
        f"{top}/memory/{group}/memory.failcnt": "12\n",
        f"{top}/memory/{group}/memory.limit_in_bytes": "9223372036854771712\n",
        f"{top}/memory/{group}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        f"{top}/blkio/{group}/blkio.throttle.io_service_bytes": "8:0 Read 4096\n8:0 Write 8192\nTotal 12288\n",
        f"{top}/blkio/{group}/blkio.throttle.write_bps_device": "8:0 1048576\n",
    }
    sample = sample_of(files, read_cgroups)
    path = f"/{group}"
    assert sample.counters["cgroup"][path] == {
        **{"cpu_periods": 10, "cpu_throttled_periods": 4, "cpu_throttled_us": 7000},
        **{"memory_max": 12, "memory_oom_kill": 2},
    }
    assert sample.gauges["cgroup"] == {path: {"cpu_quota_cpus": 1.5}}
    assert sample.counters["cgroup-io"] == {f"{path} 8:0": {"read_bytes": 4096, "write_bytes": 8192}}
    assert sample.gauges["cgroup-io"] == {f"{path} 8:0": {"write_bytes_max": 1048576}}


@pytest.mark.parametrize(("path", "unit"), DATA["the_unit_of_a_control_group"])
def test_the_unit_of_a_control_group(path: str, unit: str | None) -> None:
    assert unit_of_cgroup(path) == unit


def test_fibre_channel_and_infiniband() -> None:
    files = {
        "/sys/class/fc_host/host0/statistics/link_failure_count": "0x9\n",
        "/sys/class/fc_host/host0/statistics/nos_count": "0xffffffffffffffff\n",
        "/sys/class/fc_host/host0/statistics/seconds_since_last_reset": "0x7\n",
        "/sys/class/fc_host/host0/port_state": "Online\n",
        "/sys/class/infiniband/mlx4_0/ports/2/counters/link_downed": "255\n",
        "/sys/class/infiniband/mlx4_0/ports/2/counters/symbol_error": "3\n",
        "/sys/class/infiniband/mlx4_0/ports/2/counters/port_rcv_data": "N/A (no PMA)\n",
        "/sys/class/infiniband/mlx4_0/ports/2/hw_counters/lifespan": "10\n",
        "/sys/class/infiniband/mlx4_0/ports/2/state": "4: ACTIVE\n",
    }
    sample = sample_of(files, read_adapters)
    assert sample.counters["fc"] == {"host0": {"link_failure_count": 9}}
    assert sample.words["fc"]["host0"] == {"port_state": "Online"}
    assert sample.counters["rdma"] == {"mlx4_0/2": {"symbol_error": 3}}
    assert sample.words["rdma"]["mlx4_0/2"] == {"state": "4: ACTIVE"}
    assert parse_hexadecimal("0x1a") == 26
    assert parse_hexadecimal("-0x1") is None


STATUS = """\
root: 0 100 linear
mpatha: 0 209715200 multipath 2 0 0 0 1 1 A 0 2 2 8:16 A 3 0 1 8:32 F 7 0 1
"""


def test_paths_of_a_multipath_map() -> None:
    files = {"/sys/block/dm-0/dm/uuid": b"mpath-3600508b4\n"}

    def moment(text: str) -> Host:
        return Host(MemoryFiles(files), RecordedCommands({("dmsetup", "status", "--noflush"): Completed(0, text, "")}))

    samples = []
    for at, text in ((0.0, STATUS), (10.0, STATUS.replace("F 7", "F 9"))):
        reading = Reading(at)
        read_paths(moment(text), reading)
        samples.append(reading.make_sample())
    span = CounterSpan(samples)
    assert span.delta("path", "mpatha 8:32", "failures") == 2
    assert span.word("path", "mpatha 8:32", "state") == "failed"
    assert span.delta("path", "mpatha 8:16", "failures") == 0
    assert parse_paths(("8:16", "A")) == {}
    refused = Reading(0.0)
    read_paths(Host(MemoryFiles(files), RecordedCommands({})), refused)
    assert "no recorded output of dmsetup" in refused.missing["path"]


def test_an_array_that_is_rebuilt() -> None:
    top = "/sys/block/md0/md"
    files = {
        **{f"{top}/array_state": "clean\n", f"{top}/sync_action": "recover\n", f"{top}/degraded": "1\n"},
        **{f"{top}/sync_completed": "1024 / 4096\n", f"{top}/sync_speed": "98304\n", f"{top}/mismatch_cnt": "0\n"},
    }
    span = span_of(read_arrays, files, files | {f"{top}/sync_completed": "2048 / 4096\n"})
    assert span.names("array") == ("md0",)
    assert (span.word("array", "md0", "sync_action"), span.level("array", "md0", "degraded")) == ("recover", 1)
    assert span.levels("array", "md0", "sync_done_sectors") == (1024, 2048)
    assert [parse_sync_completed(text) for text in ("none", "delayed", "1 / x", "")] == [None] * 4
    damaged = span_of(read_arrays, {f"{top}/degraded": "²\n", f"{top}/array_state": "clean"}, {})
    assert damaged.levels("array", "md0", "degraded") == ()


@pytest.mark.parametrize(("text", "path"), DATA["the_control_group_of_a_process"])
def test_the_control_group_of_a_process(text: str, path: str | None) -> None:
    assert parse_process_cgroup(text) == path


def test_processes_of_the_running_host() -> None:
    work = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    program = f"import time\nprint(0, flush=True)\ninput()\n{work}\nprint(1, flush=True)\ninput()"
    # In a process of its own: its children are the advisor's, which are left out.
    with subprocess.Popen(
        ["setsid", "-f", "nice", "-n", "7", sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as busy:
        samples = []
        for at, said in ((0.0, b"0\n"), (1.0, b"1\n")):
            # Its work lies between the two readings, however long the first one takes.
            assert known(busy.stdout).readline() == said
            reading = Reading(at)
            read_processes(live_host(), reading)
            samples.append(reading.make_sample())
            known(busy.stdin).write(b"\n")
            known(busy.stdin).flush()
    span = CounterSpan(samples)
    found = {
        name: rose
        for name in span.names("process")
        if isinstance(rose := span.delta("process", name, "cpu_ms"), int) and rose >= 100
    }
    assert found
    assert min(19, os.nice(0) + 7) in {span.level("process", name, "nice") for name in found}
    assert not any(name.startswith(f"{os.getpid()}@") for name in span.names("process"))


def test_tables_of_devices_leave_out_what_is_not_whole() -> None:
    assert parse_io_limits("8:0 1048576\n8:16 max\nsda 1\n8:32\n") == {"8:0": 1048576}
    assert parse_io_pairs("8:0 rbytes=1 odd=2 wbytes\nx rbytes=1\n", {"rbytes": "bytes"}) == {"8:0": {"bytes": 1}}
    assert parse_io_table("8:0 Read 7\n8:0 Sync 9\nTotal 7\n8:0 Read x\n", {"Read": "reads"}) == {"8:0": {"reads": 7}}


@pytest.mark.parametrize(
    ("text", "cpus"), [("max 100000", None), ("50000 0", None), ("", None), ("200000 100000", 2.0)]
)
def test_quota(text: str, cpus: float | None) -> None:
    assert parse_cpu_max(text) == cpus
