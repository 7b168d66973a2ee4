"""Every reader of counters: what rose, and what a wrap, a reset, a vanished and an appeared thing, and garbage make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host import Missing
from advisor.observe.cgroups import read_cgroups
from advisor.observe.cpus import read_cpus, read_interrupts, read_thermal
from advisor.observe.disks import read_disks
from advisor.observe.hardware import read_adapters, read_memory_errors, read_scsi
from advisor.observe.memory import read_memory, read_nodes, read_pressure
from advisor.observe.network import read_conntrack, read_link_errors, read_links, read_protocols, read_softnet
from tests.each import for_each
from tests.observe.spans import Source, sample_of, span_of

Files = Mapping[str, str]


class Case(NamedTuple):
    """A reader, its files with a counter at a value (or without the thing, at None), and that counter's place."""

    read: Source
    files: Callable[[int | None], Files]
    kind: str
    name: str
    field: str


def one_file(path: str, head: str, line: str, **more: str) -> Callable[[int | None], Files]:
    """A file of a heading and, where the thing is there, its line, in which N or X stands for the count; without a
    heading the file comes and goes with the thing. ``more`` are files that are always there, by any name."""
    others = dict(text.split(" ", 1) for text in more.values())

    def make(count: int | None) -> Files:
        own = "" if count is None else line.replace("{N}", str(count)).replace("{X}", f"{count:08x}")
        return {path: head + own, **others} if head + own else others

    return make


def of_sys(path: str, line: str = "{N}\n", **more: str) -> Callable[[int | None], Files]:
    return one_file(f"/sys/{path}", "", line, **more)


HEAD_OF_DEV = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n"
CPU = "devices/system/cpu"
GROUP = "fs/cgroup/a.slice/b.service/cpu.stat"
UNIFIED = "/sys/fs/cgroup/cgroup.controllers cpu io memory"
# fmt: off
CASES = [
    Case(read_disks,
         one_file("/proc/diskstats", "   8  0 sda 1 0 8 0 1 0 8 0 0 1 1\n", "8 16 sdb {N} 0 8 1 1 0 8 1 0 1 1\n"),
         "disk", "sdb", "reads"),
    Case(read_cpus,
         one_file("/proc/stat", "cpu  1 0 1 9 0 0 0 0 0 0\ncpu0 1 0 1 9 0 0 0 0 0 0\n", "cpu1 {N} 0 1 9 0 0 0 0 0 0\n"),
         "cpu", "1", "user_ticks"),
    Case(read_pressure, one_file("/proc/pressure/io", "", "some avg10=0.00 avg60=0.00 avg300=0.00 total={N}\n"),
         "pressure", "io", "some_us"),
    Case(read_links, one_file("/proc/net/dev", HEAD_OF_DEV, "  eth1:{N} 9 0 0 0 0 0 0 8 7 0 0 0 0 0 0\n"),
         "link", "eth1", "rx_bytes"),
    Case(read_link_errors, of_sys("class/net/eth1/carrier_changes"), "link-errors", "eth1", "carrier_changes"),
    Case(read_protocols,
         one_file("/proc/net/snmp", "Udp: InErrors\nUdp: 3\n", "Tcp: MaxConn RetransSegs\nTcp: -1 {N}\n"),
         "protocol", "Tcp", "RetransSegs"),
    Case(read_softnet, one_file("/proc/net/softnet_stat", "000000ff 00000000 00000000\n", "000000ff {X} 00000000\n"),
         "softnet", "1", "dropped"),
    Case(read_conntrack,
         one_file("/proc/net/stat/nf_conntrack", "", "entries drop early_drop\n0000000c {X} 00000000\n",
                  count="/proc/sys/net/netfilter/nf_conntrack_count 12"), "conntrack", "host", "drop"),
    Case(read_memory, one_file("/proc/vmstat", "", "nr_dirty 7\noom_kill {N}\n"), "vm", "host", "oom_kill"),
    Case(read_nodes,
         of_sys("devices/system/node/node1/numastat", "numa_foreign {N}\n",
                other="/sys/devices/system/node/node0/numastat numa_hit 5\n"), "node", "1", "numa_foreign"),
    Case(read_interrupts,
         one_file("/proc/interrupts", "           CPU0       CPU2\n",
                  " 41:  {N}  3  PCI-MSIX-0000:00:04.0   1-edge   nvme0q1\n"), "irq", "41", "0"),
    Case(read_thermal,
         of_sys(f"{CPU}/cpu3/thermal_throttle/package_throttle_count",
                other=f"/sys/{CPU}/cpu0/thermal_throttle/core_throttle_count 1"),
         "thermal", "3", "package_throttle_count"),
    Case(read_cgroups,
         of_sys(GROUP, "throttled_usec {N}\n", kind=UNIFIED, top="/sys/fs/cgroup/cpu.stat usage_usec 5"),
         "cgroup", "/a.slice/b.service", "cpu_throttled_us"),
    Case(read_cgroups,
         one_file("/sys/fs/cgroup/blkio/b/blkio.throttle.io_serviced", "8:0 Read 7\n", "8:16 Read {N}\n",
                  kind="/sys/fs/cgroup/cpu/tasks "), "cgroup-io", "/b 8:16", "reads"),
    Case(read_memory_errors, of_sys("devices/system/edac/mc/mc0/ce_count"), "edac", "mc0", "ce_count"),
    Case(read_adapters, of_sys("class/fc_host/host7/statistics/invalid_crc_count", "0x{X}\n"),
         "fc", "host7", "invalid_crc_count"),
    Case(read_adapters, of_sys("class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence"),
         "rdma", "mlx5_0/1", "out_of_sequence"),
    Case(read_scsi, of_sys("block/sdab/device/iotmo_cnt", "0x{X}\n"), "scsi", "sdab", "iotmo_cnt"),
]
# fmt: on
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)


def rise(case: Case, *counts: int | None) -> int | str:
    found = span_of(case.read, *map(case.files, counts)).delta(case.kind, case.name, case.field)
    return found.why if isinstance(found, Missing) else found


@each_case
def test_a_counter_that_rose(case: Case) -> None:
    assert rise(case, 100, 160) == 60
    assert rise(case, 7, 7) == 0


@each_case
def test_a_counter_that_wrapped_or_began_again_is_unknown(case: Case) -> None:
    assert "went back from 4294967295 to 12: wrapped or began again" in str(rise(case, (1 << 32) - 1, 12))
    assert "went back from 900 to 0: wrapped or began again" in str(rise(case, 900, 0))
    assert "went back from 900 to 0" in str(rise(case, 900, 0, 2000))


@each_case
def test_a_thing_that_vanished_or_appeared_is_unknown(case: Case) -> None:
    for counts in ((5, None), (None, 5), (None, None), (5, None, 9)):
        assert isinstance(rise(case, *counts), str)


@each_case
@for_each(
    "garbage",
    ["", "\n", "\0\0", "²³ １", "sda" * 1000, "cpu -1 x\n8 0 sda -1", ":" * 99, "1" * 5000, "Tcp:\nTcp:", "CPU0\n1:"],
)
def test_garbage_is_unknown_and_raises_nothing(case: Case, garbage: str) -> None:
    good = case.files(5)
    bad = dict.fromkeys(good, garbage)
    assert isinstance(span_of(case.read, good, bad).delta(case.kind, case.name, case.field), Missing)


@each_case
@settings(max_examples=30)
@given(data=st.data())
def test_damaged_files_raise_nothing_and_give_nothing_negative(case: Case, data: st.DataObject) -> None:
    moments = []
    for count in (100, 200):
        files = dict(case.files(count))
        for path, text in files.items():
            at = data.draw(st.integers(0, len(text)))
            files[path] = text[:at] + data.draw(st.text(max_size=6)) + text[data.draw(st.integers(0, len(text))) :]
        moments.append(files)
    span = span_of(case.read, *moments)
    for name in span.names(case.kind):
        for field in span.fields(case.kind, name):
            found = span.delta(case.kind, name, field)
            assert isinstance(found, Missing) or found >= 0


@each_case
def test_what_cannot_be_read_has_a_reason(case: Case) -> None:
    span = span_of(case.read, {}, {})
    found = span.delta(case.kind, case.name, case.field)
    assert isinstance(found, Missing)
    assert found.why
    assert not any(sample_of({}, case.read).counters.values())
