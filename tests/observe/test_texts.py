"""Readers on what kernels print: exact figures of each column."""

from __future__ import annotations

import pytest

from advisor.observe.cpus import parse_cpu_times, parse_interrupts, parse_scheduler, read_interrupts
from advisor.observe.disks import parse_diskstats, parse_inflight, parse_stat, read_disks
from advisor.observe.memory import parse_meminfo, parse_pressure, parse_vmstat, read_pressure
from advisor.observe.network import (
    parse_conntrack_stat,
    parse_net_dev,
    parse_sockstat,
    parse_softnet,
    read_link_errors,
    read_links,
)
from advisor.observe.rates import cpu_shares, disk_rates, link_rates, stall_shares
from advisor.observe.sample import CounterSpan, Reading, Sample, parse_counts, parse_named_counts
from tests.cases import read_cases
from tests.known import known
from tests.observe.spans import sample_of, span_of

DATA = read_cases(__file__)

# 6.18, with discards and flushes; 4.15, without; 2.6.18, whose partitions have four columns.
DISKS_618 = """\
 254       0 vda 1000 300 80000 500 200 50 16000 900 2 700 2000 30 1 4096 12 8 400
   1       0 ram0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""
DISKS_618_LATER = " 254       0 vda 2000 300 160000 1500 600 60 48000 2900 1 5700 12000 40 1 4196 62 16 480\n"
DISKS_2618 = (
    "   8    0 sda 25354637 34367663 1003346126 18492372 28444756 11134226 505697032 63877960 0 9653880 82621804\n"
    "   8    1 sda1 340 2818 11 152\n"
)


def test_counts_of_one_disk_and_by_name() -> None:
    stat = known(
        parse_stat(
            "    1000      300    80000      500      200       50    16000      900        2      700     2000\n"
        )
    )
    assert (stat.in_flight, stat.counters["reads"], stat.counters["weighted_ms"]) == (2, 1000, 2000)
    assert parse_stat("1 2 3\n") is None
    assert parse_stat("") is None
    text = "oom_kill 3\npgfault 18446744073709551615\nbroken\nlow -1\nodd \u0663\nlarge 18446744073709551616\n"
    assert parse_named_counts(text) == {"oom_kill": 3, "pgfault": 18446744073709551615}


@pytest.mark.parametrize("text", ["1 -1", "1 1_0", "1 \u0663", "", "1  2", "18446744073709551616", "9" * 5000])
def test_what_the_kernel_cannot_have_counted_is_no_count(text: str) -> None:
    assert parse_counts(text.split(" ")) is None
    assert parse_counts(["0", "18446744073709551615"]) == [0, 18446744073709551615]


def test_diskstats_of_several_kernels() -> None:
    disks = parse_diskstats(DISKS_618)
    assert list(disks) == ["vda"]
    assert disks["vda"].in_flight == 2
    assert disks["vda"].counters["flush_ms"] == 400
    old = parse_diskstats(DISKS_2618)
    assert old["sda"].counters["weighted_ms"] == 82621804
    assert "discards" not in old["sda"].counters
    assert old["sda1"].counters == {"reads": 340, "sectors_read": 2818, "writes": 11, "sectors_written": 152}
    negative = parse_diskstats("8 0 sda 1 0 8 0 1 0 8 0 -1 1 1\n")["sda"]
    assert (negative.in_flight, negative.counters["busy_ms"]) == (None, 1)


def test_rates_of_a_disk() -> None:
    inflight = {"/sys/block/vda/inflight": "       3        7\n"}
    span = span_of(read_disks, {"/proc/diskstats": DISKS_618}, {"/proc/diskstats": DISKS_618_LATER, **inflight})
    (disk,) = disk_rates(span).values()
    assert (disk.reads_per_s, disk.writes_per_s) == (100.0, 40.0)
    assert (disk.read_bytes_per_s, disk.write_bytes_per_s) == (4096000.0, 1638400.0)
    assert (disk.read_size_bytes, disk.write_size_bytes) == (40960.0, 40960.0)
    assert (disk.read_wait_ms, disk.write_wait_ms) == (1.0, 5.0)
    assert (disk.read_merges_per_s, disk.write_merges_per_s) == (0.0, 1.0)
    assert (disk.discards_per_s, disk.discard_wait_ms) == (1.0, 5.0)
    assert (disk.flushes_per_s, disk.flush_wait_ms) == (0.8, 10.0)
    assert (disk.queue, disk.utilisation, disk.in_flight) == (1.0, 0.5, 1)
    assert disk.unknown is None
    assert span.level("disk", "vda", "writes_in_flight") == 7
    assert parse_inflight("3") is None


def test_a_disk_that_did_nothing_or_began_again() -> None:
    disk = disk_rates(span_of(read_disks, {"/proc/diskstats": DISKS_618}, {"/proc/diskstats": DISKS_618}))["vda"]
    assert (disk.reads_per_s, disk.read_wait_ms, disk.read_size_bytes, disk.unknown) == (0.0, None, None, None)
    disk = disk_rates(span_of(read_disks, {"/proc/diskstats": DISKS_618_LATER}, {"/proc/diskstats": DISKS_618}))["vda"]
    assert (disk.reads_per_s, disk.queue, disk.utilisation) == (None, None, None)
    assert disk.unknown == "disk vda: reads went back from 2000 to 1000: wrapped or began again"


def test_disks_by_sysfs_where_diskstats_is_hidden() -> None:
    files = {"/sys/block/nvme0n1/stat": "5 0 40 1 6 0 48 2 0 3 3 0 0 0 0 1 1\n", "/sys/block/ram0/stat": "0 " * 17}
    sample = sample_of(files, read_disks)
    assert list(sample.counters["disk"]) == ["nvme0n1"]
    assert sample.counters["disk"]["nvme0n1"]["writes"] == 6
    assert sample_of({}, read_disks).missing == {"disk": "does not exist"}


# 6.18; the second text an hour later. 2.6.10 has no steal.
STAT = (
    "cpu  100 10 50 800 20 5 10 5 30 0\ncpu0 100 10 50 800 20 5 10 5 30 0\nintr 61667318 0 0\n"
    "ctxt 10\nbtime 1\nprocesses 4\nprocs_running 3\nprocs_blocked 1\nsoftirq 99 1 2\n"
)
STAT_LATER = "cpu  150 10 70 890 10 5 20 25 40 0\ncpu0 150 10 70 890 10 5 20 25 40 0\n"


def test_cpu_shares() -> None:
    shares = cpu_shares(
        CounterSpan([Sample(0.0, {"cpu": parse_cpu_times(STAT)}), Sample(1.0, {"cpu": parse_cpu_times(STAT_LATER)})])
    )
    everything = shares["all"]
    # 50 user, 20 system, 10 softirq, 20 stolen, 80 of idle and iowait together
    assert everything.user == pytest.approx(50 / 180)
    assert everything.steal == pytest.approx(20 / 180)
    assert everything.busy == pytest.approx(80 / 180)
    assert everything.iowait is None
    assert everything.idle == pytest.approx(90 / 180)
    assert everything.unknown is None
    old = parse_cpu_times("cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4\n")
    assert old["all"]["resting_ticks"] == 9
    assert "steal_ticks" not in old["all"]
    assert old["0"]["resting_ticks"] == 4
    still = cpu_shares(CounterSpan([Sample(at, {"cpu": parse_cpu_times(STAT)}) for at in (0.0, 1.0)]))["0"]
    assert (still.busy, still.unknown) == (None, "cpu 0: no tick passed")


def test_totals_of_scheduler_pressure_and_sockets() -> None:
    counters, levels = parse_scheduler(STAT)
    assert counters == {"interrupts": 61667318, "context_switches": 10, "forks": 4, "soft_interrupts": 99}
    assert levels == {"running": 3, "blocked": 1}
    text = "some avg10=0.10 avg60=2.00 avg300=3.85 total=15\nfull avg10=0.20 avg60=3.00 avg300=4.95 total=25\n"
    assert parse_pressure(text) == {"some_us": 15, "full_us": 25}
    later = text.replace("total=15", "total=2000015").replace("total=25", "total=99000025")
    span = span_of(read_pressure, {"/proc/pressure/io": text}, {"/proc/pressure/io": later})
    assert (stall_shares(span)["io"].some, stall_shares(span)["io"].full) == (0.2, 1.0)
    assert stall_shares(span_of(read_pressure, {}, {})) == {}
    assert parse_sockstat("sockets: used 1602\nTCP: inuse 35 orphan 0 tw 4 alloc 59 mem 22\nUDP: x\n") == {
        "sockets": {"used": 1602},
        "TCP": {"inuse": 35, "orphan": 0, "tw": 4, "alloc": 59, "mem": 22},
    }
    text = "entries  searched found new drop early_drop\n0000000c 1 0 0 00000010 00000001\n0000000c 0 0 0 00000002 0\n"
    assert parse_conntrack_stat(text) == {"drop": 18, "early_drop": 1}


INTERRUPTS = DATA["INTERRUPTS"]


def test_interrupts_by_cpu() -> None:
    found = parse_interrupts(INTERRUPTS)
    assert found["41"] == ({"0": 20841, "2": 100}, "PCI-MSIX-0000:00:04.0 1-edge virtio3-rx")
    assert found["NMI"] == ({}, "Non-maskable interrupts")
    assert "ERR" not in found
    later = INTERRUPTS.replace("20841        100", "20841       1100").replace("          1          0", "1 50")
    span = span_of(read_interrupts, {"/proc/interrupts": INTERRUPTS}, {"/proc/interrupts": later})
    assert (span.rate("irq", "41", "2"), span.rate("irq", "41", "0"), span.delta("irq", "24", "2")) == (100.0, 0.0, 50)
    assert span.rate("irq-cpu", "2", "total") == 105.0
    assert span.word("irq", "41", "called") == "PCI-MSIX-0000:00:04.0 1-edge virtio3-rx"


def test_softnet_of_several_kernels() -> None:
    zeros = " ".join(["00000000"] * 6)
    text = (
        f"00358fe3 00006283 00000000 {zeros} 000855fc 00000076 00000000 00000000\n"
        f"00953d1a 00000446 000000b1 {zeros} 008eeb9a 0000002b 000000dc 00000003\n"
        f"00008e78 00000001 00000011 {zeros}\n"
    )
    found = parse_softnet(text)
    assert found["0"]["processed"] == 0x358FE3
    assert found["3"] == {
        **{"processed": 0x953D1A, "dropped": 0x446, "squeezed": 0xB1},
        **{"steered": 0x8EEB9A, "flow_limited": 0x2B},
    }
    assert found["2"] == {"processed": 0x8E78, "dropped": 1, "squeezed": 0x11}


NET_DEV = DATA["NET_DEV"]


def test_links() -> None:
    assert parse_net_dev(NET_DEV)["eth0"]["collisions"] == 10
    assert list(parse_net_dev(NET_DEV)) == ["lo", "eth0"]
    sysfs = {
        "/sys/class/net/eth0/carrier_changes": "4\n",
        "/sys/class/net/eth0/speed": "100\n",
        "/sys/class/net/eth0/operstate": "up\n",
        "/sys/class/net/eth0/device/vendor": "0x1d0f\n",
        "/sys/class/net/eth0/statistics/rx_crc_errors": "9\n",
    }
    later = {
        **sysfs,
        "/sys/class/net/eth0/carrier_changes": "6\n",
        "/proc/net/dev": NET_DEV.replace(":1000", ":62501000"),
    }

    def read(host: object, reading: Reading) -> None:
        for one in (read_links, read_link_errors):
            one(host, reading)  # type: ignore[arg-type]

    span = span_of(read, {"/proc/net/dev": NET_DEV, **sysfs}, later)
    eth0 = link_rates(span)["eth0"]
    assert (eth0.rx_bytes_per_s, eth0.speed_mbps, eth0.utilisation, eth0.carrier_changes) == (6.25e6, 100, 0.5, 2)
    assert span.delta("link-errors", "eth0", "rx_crc_errors") == 0
    assert span.word("link-errors", "eth0", "state") == "up"
    assert link_rates(span)["lo"].utilisation is None


def test_vmstat_adds_up_zones_of_old_kernels() -> None:
    counters, levels = parse_vmstat(
        "allocstall_dma 1\nallocstall_normal 2\npgscan_direct_normal 5\npgscan_direct_movable 6\n"
        "pgscan_direct_throttle 3\n"
        "nr_dirty 9\nnr_dirty_threshold 100\nworkingset_refault_file 4\nnuma_foreign 8\nnr_anon_pages 77\n"
    )
    assert counters == {
        **{"allocstall": 3, "pgscan_direct": 11, "pgscan_direct_throttle": 3},
        **{"workingset_refault_file": 4, "numa_foreign": 8},
    }
    assert levels == {"nr_dirty": 9, "nr_dirty_threshold": 100}
    assert parse_meminfo("MemTotal:       24603388 kB\nHugePages_Total:       0\nDirty:   12 kB\n") == {
        "MemTotal": 24603388 * 1024,
        "Dirty": 12288,
    }
