"""Bottlenecks as somebody would hide them, and hosts that are well and look held up: each in the texts of a kernel.

They were written before the rules had seen them, against what the rules read; what was wrong is in the history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tests.diagnosis.moments import Array, Connection, Disk, FileSystem, Group, Link, Machine, NfsMount, Process

Moments = Machine | Callable[[float], Machine]


class Hidden(NamedTuple):
    """``first`` are the ids of which one comes first; ``all`` are those that are all named, in any order; ``never``
    are wrong wherever they stand."""

    machine: Moments
    first: str
    all: str = ""
    never: str = ""


def _sd(letter: str, reads: float, wait: float, busy: float | None = None, **more: object) -> Disk:
    at = ord(letter) - ord("a")
    values: dict[str, object] = {"writes": 0, "read_kib": 64, "wait_ms": wait, "busy": busy, "number": f"8:{16 * at}"}
    return Disk(f"sd{letter}", reads, **(values | more))  # type: ignore[arg-type]


def _top(name: str, below: str, reads: float, wait: float, number: str, **more: object) -> Disk:
    values: dict[str, object] = {"writes": 0, "read_kib": 64, "wait_ms": wait, "number": number}
    return Disk(name, reads, below=tuple(below.split()), **(values | more))  # type: ignore[arg-type]


def _nvme(at: int, reads: float, wait: float, **more: object) -> Disk:
    values: dict[str, object] = {"writes": 0, "read_kib": 16, "wait_ms": wait, "number": f"259:{at}"}
    return Disk(f"nvme{at}n1", reads, **(values | more))  # type: ignore[arg-type]


def _events(high: float, most: float = 0) -> Callable[[float], str]:
    return lambda at: f"low 0\nhigh {int(high * at)}\nmax {int(most * at)}\noom 0\noom_kill 0\n"


def _memory_high(at: float) -> Machine:
    more = {"memory.high": "2147483648\n", "memory.events": _events(900)(at + 1000)}
    return Machine(memory_some=0.6, groups=(Group(memory_some=0.6, more=more),))


def _conntrack(at: float) -> Machine:
    """/proc/net/stat/nf_conntrack of two CPUs: what is dropped, early dropped and invalid; the count falls."""
    head = (
        "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop "
        "icmp_error  expect_new expect_create expect_delete search_restart\n"
    )
    drops = int(40 * (at + 1000))
    row = f"0003e800  00000000 00000000 00000000 {drops * 9:08x} 00000000 00000000 00000001 00000000 00000000 "
    rest = f"{drops:08x} 00000000 00000000  00000000 00000000 00000000 00000000\n"
    return Machine(
        conntrack=(240_000, 262_144),
        tcp={"OutSegs": 900, "RetransSegs": 9},
        extra={"/proc/net/stat/nf_conntrack": head + row + rest + row + rest},
    )


def _invalid(at: float) -> Machine:
    """Packets that belong to no connection, of scanners: the table has room."""
    text = f"entries invalid drop early_drop\n000003e8 {int(50 * (at + 1000)):08x} 00000000 00000000\n"
    return Machine(extra={"/proc/net/stat/nf_conntrack": text})


def _batch(nice: int = 19, count: int = 4) -> tuple[Process, ...]:
    names = ("boinc", "fold", "xmrig", "make")[:count]
    return (Process(), *(Process(name, "batch.service", cpu=0.96, nice=nice) for name in names))


def _stat(at: float) -> dict[str, str]:
    """A virtual disk that has completed a million reads of 4 KiB in 0.15 ms each, and now takes 1.7 ms."""
    reads = 1_000_000 + int(9000 * at)
    row = (
        f" 254 0 vda {reads} 0 {reads * 8} {150_000 + int(15_300 * at)} 0 0 0 0 0 {int(1000 * at)} {int(15_300 * at)}\n"
    )
    return {"/proc/diskstats": row}


def _quiet_then_deep(at: float) -> Machine:
    """Reads of 0.15 ms for two seconds, then many at a time; it took as long before."""
    quiet, deep = min(at, 2.0), max(0.0, at - 2.0)
    reads, ms = 10_000_000 + int(900 * quiet + 12_000 * deep), 17_000_000 + int(135 * quiet + 20_400 * deep)
    row = f" 254 0 vda {reads} 0 {reads * 8} {ms} 0 0 0 0 0 {int(135 * quiet + 1000 * deep)} {ms}\n"
    return Machine(io_some=0.3, disks=(_DEEP,), extra={"/proc/diskstats": row})


_DEEP = Disk("vda", 84_000, 0, 4, 4, 1.31, busy=1.0, number="254:0")
_ZRAM = {"/proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 8000000 7900000 100\n"}
_EBS = {"/sys/block/nvme1n1/device/model": "Amazon Elastic Block Store"}
_KVM = {
    "/sys/class/dmi/id/sys_vendor": "QEMU\n",
    "/proc/cpuinfo": "".join(f"processor\t: {cpu}\nflags\t\t: fpu hypervisor\n\n" for cpu in range(4)),
}

# fmt: off
HIDDEN: dict[str, Hidden] = {
    "slow member of RAID 10, of which its mirror takes the reads":
        Hidden(Machine(io_some=0.8, arrays=(Array(),),
                       disks=(_sd("b", 300, 0.7, writes=80, write_kib=64),
                              _sd("c", 30, 38, writes=80, write_kib=64, busy=1.0),
                              _sd("d", 190, 0.8, writes=80, write_kib=64), _sd("e", 185, 0.7, writes=80, write_kib=64),
                              _top("md0", "sdb sdc sdd sde", 705, 3, "9:0", writes=160, write_kib=64, busy=0.98))),
               "disk.slow-member"),
    "slow member of RAID 10 of rotating drives below LVM":
        Hidden(Machine(io_some=0.9, arrays=(Array(),),
                       disks=(*(_sd(letter, 40, 12, 0.45, rotational=True) for letter in "bcd"),
                              _sd("e", 40, 140, 1.0, rotational=True),
                              _top("md0", "sdb sdc sdd sde", 160, 44, "9:0", rotational=True, busy=1.0),
                              _top("dm-0", "md0", 160, 44, "253:0", rotational=True, busy=1.0))), "disk.slow-member",
               never="disk.saturated disk.slow"),
    "one slow path of four of a multipath map":
        Hidden(Machine(io_some=0.7, paths={f"mpatha 8:{16 * at}": "active" for at in range(1, 5)},
                       disks=(*(_sd(letter, 220, 0.6) for letter in "bce"), _sd("d", 60, 16, 0.9),
                              _top("dm-0", "sdb sdc sdd sde", 720, 2, "253:0", busy=0.95))), "disk.slow-member"),
    "slow path of NVMe's own multipath":
        Hidden(Machine(io_some=0.8,
                       disks=(Disk("nvme0c0n1", 900, 0, 16, 16, 0.2, number="259:1"),
                              Disk("nvme0c1n1", 120, 0, 16, 16, 9.0, busy=0.95, number="259:2"),
                              Disk("nvme0n1", 1020, 0, 16, 16, 1.3, busy=0.95, number="259:0"))), "disk.slow-member",
               never="disk.saturated disk.slow"),
    "SSD that is given one request at a time by its driver":
        Hidden(Machine(io_some=0.9, iowait=0.4, disks=(_sd("b", 2200, 14, 1.0, read_kib=4),),
                       extra={"/sys/block/sdb/device/queue_depth": "1\n", "/sys/block/sdb/queue/nr_requests": "64\n"}),
               "disk.queue-full", never="disk.saturated"),
    "loss of 5 %, for which the window of the peer fills":
        Hidden(Machine(tcp={"OutSegs": 5000, "RetransSegs": 250, "InSegs": 4000},
                       connections=(Connection(busy=0.98, rwnd=0.7, bytes=5e6, resent=250),)), "net.loss",
               never="net.receive-window net.send-buffer"),
    "loss of 6 % towards this host, which holds what comes after it":
        Hidden(Machine(tcp={"InSegs": 5000, "TCPOFOQueue": 300, "PruneCalled": 60, "OutSegs": 3000}), "net.loss",
               never="net.receive-window"),
    "small window on a way that loses 1 of 150 segments":
        Hidden(Machine(tcp={"OutSegs": 3000, "RetransSegs": 20},
                       connections=(Connection(busy=0.99, rwnd=0.9, bytes=4e6, resent=20),)), "net.receive-window",
               "net.receive-window net.loss"),
    "every CPU busy with what is niced":
        Hidden(Machine(user=0.03, nice=0.93, cpu_some=0.12, running=5, processes=_batch()), "cpu.niced"),
    "more niced tasks than CPUs": Hidden(Machine(user=0.04, nice=0.92, cpu_some=0.95, running=9), "cpu.niced"),
    "more niced tasks than CPUs, no PSI": Hidden(Machine(user=0.04, nice=0.92, psi=False, running=9), "cpu.niced"),
    "tasks of the class SCHED_IDLE on every CPU, whose time counts as that of users":
        Hidden(Machine(user=0.97, cpu_some=0.95, running=9, processes=_batch(20)), "cpu.niced",
               never="cpu.saturated application.single-thread"),
    "tasks of the class SCHED_BATCH on every CPU, which make no room":
        Hidden(Machine(user=0.97, cpu_some=0.95, running=9, processes=_batch(0)), "cpu.saturated", never="cpu.niced"),
    "one thread beside what is niced":
        Hidden(Machine(user=0.25, nice=0.7, cpu_some=0.95, running=9,
                       processes=(Process("cobol", "x.service", cpu=1.0), *_batch(count=3))),
               "application.single-thread", "cpu.niced", never="cpu.saturated"),
    "quota of a service beside what is niced":
        Hidden(Machine(user=0.1, nice=0.85, cpu_some=0.9, running=9, processes=_batch(),
                       groups=(Group(throttled=0.9, quota="50000 100000"),)), "cpu.quota", "cpu.niced"),
    "stolen time beside what is niced":
        Hidden(Machine(user=0.05, nice=0.6, steal=0.3, cpu_some=0.9, running=9, processes=_batch()), "cpu.steal",
               "cpu.niced"),
    "a full disk beside what is niced":
        Hidden(Machine(user=0.03, nice=0.9, io_some=0.8, cpu_some=0.9, running=9, processes=_batch(),
                       disks=(_nvme(0, 12_000, 8, read_kib=256),)), "disk.saturated", "cpu.niced"),
    "processes that live for a moment, one after the other":
        Hidden(Machine(user=0.2, system=0.15, forks=700,
                       processes=(Process("bash", "", cpu=0.3, children=0.9),)), "application.short-lived",
               never="cpu.saturated application.single-thread"),
    "short processes on every CPU":
        Hidden(Machine(user=0.6, system=0.38, cpu_some=0.7, running=14, forks=3000,
                       processes=(Process("nagios", "nagios.service", cpu=0.2, children=3.4),)),
               "application.short-lived", never="cpu.saturated"),
    "queue of 110 at a virtual disk, asked for asynchronously by an idle host":
        Hidden(Machine(io_some=0.02, disks=(_DEEP,)), "disk.saturated"),
    "virtual disk that took a tenth of the time before":
        Hidden(lambda at: Machine(io_some=0.3, disks=(replace(_DEEP, reads=9000, wait_ms=1.7),), extra=_stat(at)),
               "disk.saturated"),
    "virtual disk that took a tenth of the time in the first seconds":
        Hidden(_quiet_then_deep, "disk.saturated"),
    "receive buffers that are pruned": Hidden(Machine(tcp={"PruneCalled": 60, "RcvPruned": 4}), "net.receive-window"),
    "receive window closed by a slow reader here":
        Hidden(Machine(tcp={"TCPToZeroWindowAdv": 30, "TCPFromZeroWindowAdv": 30, "TCPWantZeroWindowAdv": 90}),
               "net.receive-window"),
    "queue of half-open connections full, with cookies":
        Hidden(Machine(tcp={"TCPReqQFullDoCookies": 50, "PassiveOpens": 400}), "net.listen-drops"),
    "conntrack full, and emptied at the end": Hidden(_conntrack, "net.conntrack-full"),
    "softirq storm on one CPU of 64":
        Hidden(Machine(cpus=64, softirq=(0.97, *[0.005] * 63), packets=(600_000, *[200] * 63),
                       irqs=(45_000, *[50] * 63), links=(Link(rx_bytes=5e8, speed=100_000),)), "net.one-cpu"),
    "hard interrupts of a controller on one CPU":
        Hidden(Machine(cpus=8, hard_irq=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0),
                       softirq=(0.01, 0.01, 0.35, 0.01, 0.01, 0.01, 0.01, 0.01),
                       irqs=(50, 50, 120_000, 50, 50, 50, 50, 50), irq_name="mpt3sas0-msix2"), "cpu.interrupts"),
    "quota of 5 CPUs of which 4.9 are used":
        Hidden(Machine(cpus=16, user=0.3,
                       groups=(Group(throttled=0.25, quota="500000 100000", path="/kubepods.slice/pod.scope"),)),
               "cpu.quota"),
    "memory.high of a service": Hidden(_memory_high, "memory.cgroup-limit"),
    "thrashing with zram":
        Hidden(Machine(memory_some=0.7, io_some=0.2, user=0.2, system=0.5, cpu_some=0.4,
                       vm={"pswpin": 22_000, "pswpout": 23_000, "allocstall_normal": 400,
                           "workingset_refault_anon": 22_000},
                       disks=(Disk(), Disk("zram0", 22_000, 23_000, 4, 4, 0.005, number="252:0")), extra=_ZRAM),
               "memory.swap"),
    "writers that wait for a slow NFS server":
        Hidden(Machine(io_some=0.9, iowait=0.4, dirty=(280_000, 60_000),
                       mounts=(NfsMount(requests=60, queue_ms=1, rtt_ms=180, operation="WRITE"),)), "net.nfs-server"),
    "NFS over a way that loses packets":
        Hidden(Machine(io_some=0.9, tcp={"OutSegs": 4000, "RetransSegs": 120, "TCPTimeouts": 8},
                       connections=(Connection("10.0.0.9:2049", busy=0.97, bytes=4e6, resent=100),),
                       mounts=(NfsMount(requests=60, rtt_ms=70),)), "net.loss"),
    "NFS server that drops requests, which are sent again":
        Hidden(Machine(io_some=0.9, mounts=(NfsMount(requests=30, rtt_ms=900, sent_again=0.4),)), "net.nfs-server"),
    "reclaim by kswapd without swap":
        Hidden(Machine(memory_some=0.35, io_some=0.5, iowait=0.2,
                       vm={"pgscan_kswapd": 90_000, "pgsteal_kswapd": 60_000, "pgscan_direct": 20_000,
                           "allocstall_movable": 150, "workingset_refault_file": 30_000, "pgmajfault": 800},
                       disks=(_nvme(0, 6000, 0.4, read_kib=20, busy=0.9),)), "memory.pressure", never="disk.saturated"),
    "EBS volume without credits, as no root":
        Hidden(Machine(io_some=0.95, extra=_EBS | _KVM, disks=(_nvme(1, 100, 80, busy=1.0, number="259:1"),)),
               "disk.slow disk.saturated"),
    "check of an array while the load binds":
        Hidden(Machine(io_some=0.85, iowait=0.3, arrays=(Array(action="check", done="1000 / 90000"),),
                       disks=(*(_sd(letter, 160, 45, 1.0, rotational=True, read_kib=256) for letter in "bcd"),
                              _top("md0", "sdb sdc sdd", 90, 80, "9:0", rotational=True, busy=1.0))),
               "array.rebuilding"),
    "quota of a service and loss on the way":
        Hidden(Machine(groups=(Group(throttled=0.6, quota="200000 100000"),), tcp={"OutSegs": 3000, "RetransSegs": 90},
                       connections=(Connection(busy=0.9, bytes=3e6, resent=80),)), "cpu.quota net.loss",
               "cpu.quota net.loss"),
    "stolen time and a slow member": Hidden(
        Machine(
            user=0.4,
            steal=0.3,
            io_some=0.8,
            disks=(
                *(Disk(f"vd{letter}", 60, 0, 64, 16, 1.5, number=f"254:{at}") for at, letter in enumerate("bcd")),
                Disk("vde", 60, 0, 64, 16, 60.0, busy=1.0, number="254:9"),
                _top("md0", "vdb vdc vdd vde", 240, 16, "9:0", busy=1.0),
            ),
        ),
        "cpu.steal disk.slow-member",
        "cpu.steal disk.slow-member",
    ),
    "limit of a slice in which a service waits":
        Hidden(Machine(io_some=0.9, iowait=0.2, disks=(_nvme(0, 2000, 0.1, read_kib=4),),
                       groups=(Group("/batch.slice", io_some=0.9, reads=2000, read_bytes=8.2e6,
                                     io_max="259:0 rbps=max wbps=max riops=2000 wiops=max"),
                               Group("/batch.slice/etl.service", io_some=0.9, device="259:0", reads=2000,
                                     read_bytes=8.2e6))), "disk.cgroup-limit"),
    "limit of a service that asks asynchronously":
        Hidden(Machine(io_some=0.02, disks=(_nvme(0, 1000, 0.1, read_kib=4),),
                       groups=(Group(io_some=0.02, reads=1000, read_bytes=4.1e6,
                                     io_max="259:0 rbps=max wbps=max riops=1000 wiops=max"),)), "disk.cgroup-limit"),
    "rotating drive on USB and too many dirty pages":
        Hidden(Machine(io_some=0.9, iowait=0.4, dirty=(250_000, 60_000),
                       disks=(_sd("b", 1, 900, 1.0, writes=60, write_kib=512, rotational=True),)),
               "memory.dirty-limit disk.saturated disk.slow"),
    "full link of a bond":
        Hidden(Machine(links=(Link("bond0", tx_bytes=1.2e9, speed=20_000), Link("eth0", tx_bytes=1.2e9),
                              Link("eth1", tx_bytes=1e6)),
                       extra={"/sys/class/net/bond0/lower_eth0/uevent": "",
                              "/sys/class/net/bond0/lower_eth1/uevent": ""}), "net.link-saturated"),
    "path that was lost, and the others carry it": Hidden(
        lambda at: Machine(
            io_some=0.5,
            paths={"mpatha 8:16": "active" if at < 5 else "failed", "mpatha 8:32": "active"},
            disks=(_sd("b", 100, 0.6), _sd("c", 400, 0.6), _top("dm-0", "sdb sdc", 500, 0.6, "253:0")),
            log=("blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x4200 phys_seg 1",),
        ),
        "disk.failing",
    ),
    "asynchronous writer at its limit":
        Hidden(lambda at: Machine(io_some=0.02, groups=(_writer(at, io_some=0.0),)), "disk.cgroup-limit"),
    "check of an array of which one member is slow":
        Hidden(Machine(io_some=0.85, arrays=(Array(action="check", done="1000 / 90000"),),
                       disks=(*(_sd(letter, 60, 9, 0.5, rotational=True, read_kib=256) for letter in "bcd"),
                              _sd("e", 60, 300, 1.0, rotational=True, read_kib=256),
                              _top("md0", "sdb sdc sdd sde", 40, 200, "9:0", rotational=True, busy=1.0))),
               "array.rebuilding disk.slow-member", "disk.slow-member"),
    "one busy thread of a process with others":
        Hidden(Machine(user=0.35,
                       processes=(Process(), Process("redis", "redis.service", cpu=1.3, threads=(0.99, 0.2, 0.11)))),
               "application.single-thread"),
    "NVMe drive that answers too late, by the log": Hidden(
        Machine(
            io_some=0.9,
            disks=(_nvme(0, 20, 900, busy=1.0),),
            log=(
                "nvme nvme0: I/O tag 123 (a07b) opcode 0x2 (I/O Cmd) QID 5 timeout, aborting req_op:READ(0) size:4096",
            ),
        ),
        "disk.failing",
        never="disk.slow",
    ),
    "tasks of one node while the other idles":
        Hidden(Machine(cpus=8, users=(0.96,) * 4 + (0.02,) * 4, cpu_some=0.9, running=9), "cpu.affinity"),
    "limits of CPU and memory of one service":
        Hidden(lambda at: Machine(memory_some=0.4,
                                  groups=(Group(memory_some=0.4, throttled=0.5, quota="100000 100000",
                                                more={"memory.high": "1073741824\n",
                                                      "memory.events": _events(400)(at + 1000)}),)),
               "cpu.quota memory.cgroup-limit", "cpu.quota memory.cgroup-limit"),
    "limit of a service and stolen time":
        Hidden(Machine(user=0.3, steal=0.2, io_some=0.9, disks=(_nvme(0, 160, 0.12, read_kib=64),),
                       groups=(Group(io_some=0.9, io_max="259:0 rbps=10485760 wbps=max riops=max wiops=max",
                                     read_bytes=1.04e7),)), "disk.cgroup-limit cpu.steal",
               "disk.cgroup-limit cpu.steal"),
    "heat and a clock that nobody steers":
        Hidden(Machine(user=0.6, thermal=0.5, clock="unsynchronised",
                       processes=(Process("chronyd", "chronyd.service"),)), "cpu.thermal",
               "cpu.thermal clock.unsynchronised"),
    "table of connections full and queue of a listener full": Hidden(
        Machine(conntrack=(65_536, 65_536), tcp={"ListenOverflows": 90, "ListenDrops": 90, "PassiveOpens": 200}),
        "net.conntrack-full net.listen-drops",
        "net.conntrack-full net.listen-drops",
    ),
    "degraded array under full load":
        Hidden(Machine(io_some=0.8, arrays=(Array(degraded=1),),
                       disks=(*(_sd(letter, 120, 90, 1.0, rotational=True) for letter in "bc"),
                              _top("md0", "sdb sdc", 240, 90, "9:0", rotational=True, busy=1.0))), "array.degraded",
               "array.degraded disk.saturated"),
}
# fmt: on


def _writer(at: float, *, io_some: float) -> Group:
    """A service that writes just what its limit of 10 MiB/s admits."""
    written = int(10_485_000 * (at + 1000))
    return Group(
        io_some=io_some,
        io_max="8:0 rbps=max wbps=10485760 riops=max wiops=max",
        more={"io.stat": f"8:0 rbytes=0 wbytes={written} rios=0 wios={written // 65536} dbytes=0 dios=0\n"},
    )


def _short_runs(at: float) -> Machine:
    """A timer that runs for half a second of the span, and is throttled in most of its few periods."""
    periods = int(0.6 * (at + 1000))
    counts = f"nr_periods {periods}\nnr_throttled {periods}\nthrottled_usec {periods * 20000}\n"
    text = f"usage_usec {periods * 50000}\n{counts}"
    return Machine(groups=(Group(quota="50000 100000", more={"cpu.stat": text}),))


def _drops(at: float) -> Machine:
    """Frames for nobody here (rx_dropped: a protocol that is not known), on a link that is well."""
    rx = int(2e7 * (at + 1000))
    row = f"  eth0: {rx} {rx // 1000} 0 {int(30 * (at + 1000))} 0 0 0 900 {rx} {rx // 1000} 0 0 0 0 0 0\n"
    return Machine(extra={"/proc/net/dev": f"Inter-|   Receive  |  Transmit\n face |bytes packets errs\n{row}"})


def _memory_max_of_files(at: float) -> Machine:
    """A service whose page cache fills its limit: the kernel drops clean pages, and nobody waits."""
    more = {"memory.events": _events(0, 1500)(at + 1000)}
    return Machine(groups=(Group(memory_max="4294967296\n", memory_some=0.02, more=more),))


_STANDBY = "1: FLOCK  ADVISORY  WRITE 100 08:01:9 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 7 08:01:9 0 EOF\n"

# fmt: off
WELL_BUT_BUSY: dict[str, Moments] = {
    "backup at 100 % of an NVMe drive, depth 32, answered at once":
        Machine(io_some=0.08, disks=(_nvme(0, 100_000, 0.32, read_kib=16, busy=1.0),)),
    "the same with tasks that wait":
        Machine(io_some=0.6, iowait=0.3, disks=(_nvme(0, 90_000, 0.25, read_kib=64, busy=1.0),)),
    "asynchronous reader of 128 KiB at depth 8":
        Machine(io_some=0.02, disks=(_nvme(0, 24_000, 0.33, read_kib=128, busy=1.0),)),
    "idle database of which one thread is in iowait":
        Machine(iowait=0.25, io_some=0.99, disks=(_nvme(0, 0.5, 0.1, writes=0.5),)),
    "the same, and it writes a little": Machine(iowait=0.25, io_some=0.99, disks=(_nvme(0, 3, 0.1, writes=12),)),
    "1 in 100,000 segments is sent again": Machine(
        tcp={"OutSegs": 200_000, "RetransSegs": 2, "TCPTimeouts": 0}, connections=(Connection(busy=0.3, bytes=2e8),)
    ),
    "a burst of segments sent again": lambda at: Machine(
        tcp={"OutSegs": 50_000, "RetransSegs": 0.5 if at < 3 else 0.51}, connections=(Connection(busy=0.3, bytes=2e7),)
    ),
    "all but a few of the CPUs busy with what is niced": Machine(user=0.03, nice=0.8, running=4),
    "a build of many jobs, of which each works for a while":
        Machine(user=0.8, cpu_some=0.3, running=5, forks=150,
                processes=(Process("make", "ci.service", cpu=0.05, children=2.6),)),
    "a service that starts some helpers a second":
        Machine(user=0.2, forks=140, processes=(Process("cron", "cron.service", cpu=0.01, children=0.2),)),
    "one that waits for the lock of a file, as a standby does": Machine(extra={"/proc/locks": _STANDBY}),
    "loop devices and zram at rest":
        Machine(disks=(Disk(), Disk("loop0", 0, 0, number="7:0"), Disk("zram0", 0, 0, number="252:0"))),
    "one CPU busy with what is niced":
        Machine(user=0.02, nice=0.25, processes=(Process(), Process("borg", "backup.service", cpu=0.99, nice=19))),
    "the same, where niceness is not recorded":
        Machine(user=0.02, nice=0.25, processes=(Process(), Process("borg", "backup.service", cpu=0.99))),
    "writeback that is held at the limit of a service":
        lambda at: Machine(io_some=0.03, dirty=(30_000, 9_000), groups=(_writer(at, io_some=0.01),)),
    "timer that is throttled for a moment": _short_runs,
    "one peer of many that is asked for a connection once more":
        Machine(tcp={"OutSegs": 100, "RetransSegs": 1.5, "TCPSynRetrans": 1.5, "ActiveOpens": 40}),
    "connections that are asked for all the time, and answered":
        Machine(tcp={"OutSegs": 9000, "RetransSegs": 0.1, "TCPSynRetrans": 0.1, "ActiveOpens": 40},
                asked="10.9.9.9:80"),
    "few segments, of which a connection that ends sends some again": Machine(tcp={"OutSegs": 1.2, "RetransSegs": 0.8}),
    "segments that were late and not lost":
        Machine(tcp={"OutSegs": 4000, "RetransSegs": 40, "TCPDSACKRecv": 38, "TCPSpuriousRTOs": 1},
                connections=(Connection(busy=0.3, bytes=5e6),)),
    "rotating drive of a log server":
        Machine(io_some=0.3, disks=(_sd("b", 2, 8, 0.35, writes=40, write_kib=64, rotational=True),)),
    "swap on zram that is used a little":
        Machine(memory_some=0.03, vm={"pswpin": 300, "pswpout": 400},
                disks=(Disk(), Disk("zram0", 300, 400, 4, 4, 0.005, number="252:0")), extra=_ZRAM),
    "four threads that each use a CPU": Machine(
        cpus=16, user=0.3, processes=(Process(), Process("postgres", "db.service", cpu=3.96, threads=(0.99,) * 4))
    ),
    "all tags taken by who does not wait":
        Machine(io_some=0.05, disks=(_nvme(0, 160_000, 0.2, read_kib=4, busy=1.0),),
                extra={"/sys/block/nvme0n1/queue/nr_requests": "32\n"}),
    "paths of NVMe's own multipath, of which one is used":
        Machine(disks=(Disk("nvme0c0n1", 2900, 0, 16, 16, 0.2, number="259:1"),
                       Disk("nvme0c1n1", 3, 0, 16, 16, 0.9, number="259:2"),
                       Disk("nvme0n1", 2903, 0, 16, 16, 0.2, number="259:0"))),
    "guest with 2 % of its time stolen": Machine(user=0.5, steal=0.02, cpu_some=0.1, extra=_KVM),
    "idle guest with 4 % stolen": Machine(user=0.1, steal=0.04, cpu_some=0.06, extra=_KVM),
    "as many tasks as CPUs": Machine(user=0.96, cpu_some=0.05, running=4),
    "multipath with optimized and other paths":
        Machine(io_some=0.08, paths={"mpatha 8:16": "active", "mpatha 8:32": "active"},
                disks=(_sd("b", 900, 0.6), _sd("c", 3, 14), _top("dm-0", "sdb sdc", 900, 0.6, "253:0"))),
    "mirror of which one side takes the reads":
        Machine(io_some=0.08, arrays=(Array(),),
                disks=(_sd("b", 700, 0.6, writes=40), _sd("c", 2, 0.7, writes=40),
                       _top("md0", "sdb sdc", 702, 0.6, "9:0", writes=40))),
    "write-mostly member of a mirror":
        Machine(io_some=0.12, arrays=(Array(),),
                disks=(_nvme(0, 900, 0.15, writes=60), _sd("c", 0, 14, writes=60, busy=0.6, rotational=True),
                       _top("md0", "nvme0n1 sdc", 900, 0.2, "9:0", writes=60))),
    "pages that nobody uses are put into swap":
        Machine(memory_some=0.03, vm={"pswpout": 900, "pswpin": 4, "pgscan_kswapd": 9000}, swap="sda"),
    "page cache that turns over":
        Machine(io_some=0.09, memory_some=0.01,
                vm={"pgscan_kswapd": 80_000, "pgsteal_kswapd": 80_000, "workingset_refault_file": 900},
                disks=(_nvme(0, 6000, 0.2, read_kib=64, busy=0.7),)),
    "writeback in the background":
        Machine(io_some=0.05, dirty=(210_000, 40_000), disks=(_sd("b", 1, 30, 0.9, writes=130, write_kib=256),)),
    "page cache of a service that fills its limit": _memory_max_of_files,
    "quota that is reached now and then": Machine(groups=(Group(throttled=0.08, quota="400000 100000"),)),
    "frames that nobody here wants": _drops,
    "packets of scanners that are no connection": _invalid,
    "table of connections at 85 %": Machine(conntrack=(222_000, 262_144)),
    "soft interrupts spread over all CPUs":
        Machine(softirq=(0.4, 0.42, 0.38, 0.41), packets=(90_000,) * 4, links=(Link(rx_bytes=8e8),)),
    "one CPU of eight takes half of the packets":
        Machine(cpus=8, softirq=(0.45, *[0.1] * 7), packets=(90_000, *[12_000] * 7), links=(Link(rx_bytes=3e8),)),
    "commits on a drive whose cache survives": Machine(
        io_some=0.15, disks=(_nvme(0, 50, 0.05, writes=900, write_kib=8, flushes=800, flush_ms=0.02, busy=0.1),)
    ),
    "virtual disk that is always busy and in time": Machine(
        io_some=0.5, iowait=0.2, extra=_KVM, disks=(Disk("vda", 7000, 0, 8, 4, 2.0, busy=1.0, number="254:0"),)
    ),
    "EBS volume that exceeds its limit for a moment":
        Machine(io_some=0.05, ebs={"volume_iops_us": 0.04}, extra=_EBS, disks=(_nvme(1, 900, 1.1, number="259:1"),)),
    "some packets over the allowance of an instance":
        Machine(allowances={"pps_allowance_exceeded": 3.0}, links=(Link(tx_bytes=6e8),)),
    "long connections that are seldom used": Machine(
        connections=tuple(
            Connection(f"198.51.100.{at}:443", busy=0.2, rtt=140, least_rtt=130, bytes=9000) for at in range(9)
        )
    ),
    "windows that close now and then": Machine(tcp={"TCPToZeroWindowAdv": 1.0, "TCPFromZeroWindowAdv": 1.0}),
    "container without a time service": Machine(clock="unsynchronised", processes=(Process("nginx", "nginx.service"),)),
    "hot for a moment": Machine(user=0.7, thermal=0.04),
    "NFS mount far away, seldom used": Machine(io_some=0.02, mounts=(NfsMount(requests=4, rtt_ms=90),)),
    "compilation on all CPUs for most of the time": Machine(user=0.84, cpu_some=0.3, running=5),
    "full file system that only root may fill": Machine(
        filesystems=(FileSystem(), FileSystem("/boot", "ext4", used=900_000_000, available=60_000_000, grows=0))
    ),
}
# fmt: on
