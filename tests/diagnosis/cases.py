"""Injected bottlenecks as hosts: what each changes of one that is well, and the answers that are right."""

from __future__ import annotations

from typing import NamedTuple

from tests.diagnosis.moments import Array, Connection, Disk, FileSystem, Group, Link, Machine, NfsMount, Process


class Case(NamedTuple):
    """``right`` are the ids that may come first."""

    name: str
    machine: Machine
    right: frozenset[str]


FLASH = Disk("nvme0n1", reads=20, writes=20, wait_ms=0.1, number="259:0")


_COST = {
    "/sys/fs/cgroup/io.cost.qos": "259:0 enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=95.00 wlat=5000 min=50.00 "
    "max=150.00\n",
    "/sys/fs/cgroup/io.cost.model": "259:0 ctrl=user model=linear rbps=174019176 rseqiops=41708 rrandiops=370 "
    "wbps=178075866 wseqiops=42705 wrandiops=378\n",
}
"""The second one is the example of the kernel's documentation."""


def _members(*waits: float, reads: float = 60) -> tuple[Disk, ...]:
    names = [f"sd{letter}" for letter in "bcdefghi"[: len(waits)]]
    disks = [
        Disk(name, reads=reads, writes=0, read_kib=64, wait_ms=wait, number=f"8:{16 * (at + 1)}")
        for at, (name, wait) in enumerate(zip(names, waits, strict=True))
    ]
    whole = Disk("md0", reads=reads * len(waits), writes=0, wait_ms=max(waits), below=tuple(names), number="9:0")
    return (*disks, whole)


def _case(name: str, right: str, machine: Machine) -> Case:
    return Case(name, machine, frozenset(right.split()))


CASES: tuple[Case, ...] = (
    _case(
        "slow member of an array (dm-delay)",
        "disk.slow-member",
        Machine(io_some=0.9, iowait=0.2, disks=_members(0.6, 0.7, 0.6, 25.0), arrays=(Array(),)),
    ),
    _case(
        "slow array: every member slow",
        "disk.slow",
        Machine(io_some=0.95, iowait=0.3, disks=_members(40, 42, 41, 40, reads=22), arrays=(Array(),)),
    ),
    _case(
        "saturated flash drive",
        "disk.saturated",
        Machine(io_some=0.8, iowait=0.3, disks=(Disk("nvme0n1", 12_000, 0, 256, 16, 8.0, number="259:0"),)),
    ),
    _case(
        "saturated rotating drive",
        "disk.saturated",
        Machine(io_some=0.9, iowait=0.3, disks=(Disk("sda", 90, 40, 16, 16, 120.0, rotational=True),)),
    ),
    _case(
        "io.max of a service",
        "disk.cgroup-limit",
        Machine(
            io_some=0.9,
            iowait=0.2,
            disks=(Disk("nvme0n1", 160, 0, 64, 16, 0.12, number="259:0"),),
            groups=(
                Group(
                    io_some=0.9,
                    io_max="259:0 rbps=10485760 wbps=max riops=max wiops=max",
                    read_bytes=10_485_000,
                    reads=160,
                ),
            ),
        ),
    ),
    _case(
        "blkio.throttle of a service (version 1, no PSI)",
        "disk.cgroup-limit",
        Machine(
            psi=False,
            version1=True,
            iowait=0.2,
            disks=(Disk("sda", 160, 0, 64, 16, 0.3),),
            groups=(Group(io_max="8:0 rbps=10485760", read_bytes=10_400_000),),
        ),
    ),
    _case(
        "io.weight of a service, shared out by io.cost",
        "disk.cgroup-limit",
        Machine(
            io_some=0.9,
            iowait=0.2,
            disks=(Disk("nvme0n1", 9000, 0, 16, 16, 0.3, number="259:0"),),
            groups=(
                Group(
                    io_some=0.9,
                    device="259:0",
                    reads=900,
                    read_bytes=1.4e7,
                    usage=0.1,
                    waits=0.85,
                    more={"io.weight": "default 10\n"},
                ),
                Group(
                    "/system.slice/backup.service",
                    device="259:0",
                    reads=8100,
                    read_bytes=1.3e8,
                    usage=0.88,
                    waits=0.02,
                    more={"io.weight": "default 100\n259:0 400\n"},
                ),
            ),
            extra=_COST,
        ),
    ),
    _case(
        "model of io.cost below what the drive can do (no details in io.stat)",
        "disk.cgroup-limit",
        Machine(
            io_some=0.8,
            iowait=0.2,
            disks=(Disk("nvme0n1", 2000, 0, 16, 16, 0.12, number="259:0"),),
            groups=(
                Group(io_some=0.8, device="259:0", reads=2000, read_bytes=3.2e7, usage=0.98),
                Group("/", device="259:0", reads=2000, read_bytes=3.2e7, usage=0.99),
            ),
            extra=_COST,
        ),
    ),
    _case(
        "io.latency of another service",
        "disk.cgroup-limit",
        Machine(
            io_some=0.9,
            disks=(Disk("sda", 60, 0, 64, 16, 8, rotational=True),),
            groups=(
                Group(
                    "/system.slice/batch.service",
                    io_some=0.9,
                    device="8:0",
                    reads=20,
                    read_bytes=1e6,
                    io_tail=" use_delay=2 delay_nsec=400000000 depth=1 avg_lat=8000 win=100",
                ),
                Group(
                    device="8:0",
                    reads=40,
                    read_bytes=3e6,
                    io_tail=" depth=max avg_lat=7900 win=100",
                    more={"io.latency": "8:0 target=5000\n"},
                ),
            ),
        ),
    ),
    _case(
        "weight of a service in BFQ",
        "disk.cgroup-limit disk.saturated",
        Machine(
            io_some=0.95,
            disks=(Disk("sda", 110, 0, 64, 16, 90, rotational=True),),
            groups=(
                Group(io_some=0.95, reads=6, read_bytes=4e5, more={"io.bfq.weight": "default 10\n"}),
                Group(
                    "/system.slice/tar.service",
                    io_some=0.4,
                    reads=104,
                    read_bytes=6.8e6,
                    more={"io.bfq.weight": "default 100\n8:0 500\n"},
                ),
            ),
            extra={"/sys/block/sda/queue/scheduler": "mq-deadline [bfq] none\n"},
        ),
    ),
    _case(
        "all tags of a drive taken (nr_requests)",
        "disk.queue-full",
        Machine(
            io_some=0.9,
            iowait=0.4,
            disks=(Disk("nvme0n1", 160_000, 0, 4, 16, 0.2, busy=1.0, number="259:0"),),
            extra={"/sys/block/nvme0n1/queue/nr_requests": "32\n"},
        ),
    ),
    _case(
        "queue depth 1",
        "application.serial",
        Machine(io_some=0.85, iowait=0.2, disks=(Disk("nvme0n1", 7000, 0, 4, 4, 0.12, number="259:0"),)),
    ),
    _case(
        "netem loss 2 %",
        "net.loss",
        Machine(
            tcp={"OutSegs": 5000, "RetransSegs": 100, "TCPTimeouts": 3},
            connections=(Connection(busy=0.98, bytes=5e6, resent=100),),
        ),
    ),
    _case(
        "netem delay 50 ms", "net.round-trip", Machine(connections=(Connection(busy=0.99, rtt=50.4, least_rtt=50.1),))
    ),
    _case(
        "netem rate 10 Mbit/s",
        "net.link-saturated",
        Machine(connections=(Connection(busy=0.99, rtt=105, least_rtt=1.3, bytes=1.2e6),)),
    ),
    _case(
        "full link",
        "net.link-saturated",
        Machine(links=(Link(tx_bytes=1.21e8, speed=1000),), connections=(Connection(busy=0.99, rtt=4, least_rtt=0.2),)),
    ),
    _case(
        "small receive window",
        "net.receive-window",
        Machine(connections=(Connection(busy=0.99, rwnd=0.93, rtt=1.0, least_rtt=0.9),)),
    ),
    _case("small send buffer", "net.send-buffer", Machine(connections=(Connection(busy=0.99, sndbuf=0.8, rtt=5),))),
    _case("conntrack table full", "net.conntrack-full", Machine(conntrack=(65_530, 65_536))),
    _case(
        "SYN drops", "net.listen-drops", Machine(tcp={"ListenOverflows": 40, "ListenDrops": 40, "PassiveOpens": 100})
    ),
    _case("CPU steal", "cpu.steal", Machine(user=0.6, steal=0.35, cpu_some=0.7, running=6)),
    _case("all CPUs busy", "cpu.saturated", Machine(user=0.95, cpu_some=0.8, running=12)),
    _case("all CPUs busy, no PSI", "cpu.saturated", Machine(user=0.95, psi=False, running=12)),
    _case(
        "IRQ storm of a link on one CPU",
        "net.one-cpu",
        Machine(softirq=(0.01, 0.85, 0.01, 0.01), irqs=(100, 90_000, 100, 100)),
    ),
    _case(
        "IRQ storm of another device on one CPU",
        "cpu.interrupts",
        Machine(softirq=(0.01, 0.85, 0.01, 0.01), irqs=(100, 90_000, 100, 100), irq_name="megasas0-msix1"),
    ),
    _case(
        "packets on one CPU",
        "net.one-cpu",
        Machine(softirq=(0.9, 0.01, 0.01, 0.01), packets=(200_000, 10, 10, 10), links=(Link(rx_bytes=2e8),)),
    ),
    _case(
        "memory pressure: thrashing page cache",
        "memory.pressure",
        Machine(
            memory_some=0.6,
            io_some=0.7,
            iowait=0.3,
            vm={"allocstall_normal": 300, "workingset_refault_file": 60_000},
            disks=(Disk("nvme0n1", 9000, 0, 32, 4, 4.0, number="259:0"),),
        ),
    ),
    _case(
        "OOM kill",
        "memory.oom",
        Machine(
            memory_some=0.4,
            vm={"oom_kill": 0.2, "allocstall_normal": 200},
            kills=(("postgres", "/system.slice/db.service"), ("java", "/system.slice/app.service")),
        ),
    ),
    _case(
        "OOM kill of a service",
        "memory.oom",
        Machine(groups=(Group(oom_kills=0.2, memory_max="1073741824", memory_some=0.4, memory_hits=50),)),
    ),
    _case(
        "memory limit of a service",
        "memory.cgroup-limit",
        Machine(memory_some=0.5, groups=(Group(memory_max="1073741824", memory_some=0.5, memory_hits=500),)),
    ),
    _case(
        "huge pages that must be put together (memory in small pieces)",
        "memory.compaction",
        Machine(system=0.1, memory_some=0.35, vm={"compact_stall": 900, "compact_fail": 850, "allocstall_normal": 15}),
    ),
    _case(
        "no more memory may be promised (vm.overcommit_memory=2)",
        "memory.commit-limit",
        Machine(
            extra={
                "/proc/meminfo": "MemTotal: 16000000 kB\nMemFree: 6000000 kB\nMemAvailable: 8000000 kB\n"
                "CommitLimit: 12000000 kB\nCommitted_AS: 11950000 kB\n",
                "/proc/sys/vm/overcommit_memory": "2\n",
            }
        ),
    ),
    _case(
        "dirty throttling: small vm.dirty_bytes",
        "memory.dirty-limit",
        Machine(
            io_some=0.8,
            iowait=0.2,
            dirty=(3500, 400),
            dirty_limits=(4096, 2048),
            disks=(Disk("nvme0n1", 0, 300, 4, 64, 0.2, number="259:0"),),
        ),
    ),
    _case(
        "swap",
        "memory.swap",
        Machine(
            memory_some=0.6,
            io_some=0.6,
            iowait=0.3,
            vm={"pswpin": 3000, "pswpout": 3000, "allocstall_normal": 50},
            disks=(Disk("vda", 3000, 200, 4, 60, 9.0, number="254:0"),),
            swap="vda",
        ),
    ),
    _case("CPU quota of a service", "cpu.quota", Machine(groups=(Group(throttled=0.9, quota="50000 100000"),))),
    _case(
        "CPU quota of a service (version 1, no PSI)",
        "cpu.quota",
        Machine(psi=False, version1=True, groups=(Group(throttled=0.9, quota="50000 100000"),)),
    ),
    _case("degraded array", "array.degraded", Machine(disks=_members(0.6, 0.7, 0.6), arrays=(Array(degraded=1),))),
    _case(
        "rebuilding array",
        "array.rebuilding",
        Machine(
            io_some=0.5,
            disks=_members(4, 4, 4, reads=400),
            arrays=(Array(degraded=1, action="recover", done="1000 / 9000"),),
        ),
    ),
    _case("thermal throttling", "cpu.thermal", Machine(user=0.7, thermal=0.6)),
    _case("ECC errors", "memory.errors", Machine(edac=0.3)),
    _case("drive with timeouts", "disk.failing", Machine(io_some=0.6, disks=(Disk(wait_ms=300, timeouts=0.2),))),
    _case("flapping link", "net.errors", Machine(links=(Link(carrier=0.4),))),
    _case("damaged frames", "net.errors", Machine(links=(Link(crc=3),), tcp={"OutSegs": 900, "RetransSegs": 20})),
    _case("ring drops", "net.ring-drops", Machine(links=(Link(rx_bytes=5e8, missed=900),))),
    _case("pages of the other NUMA node", "memory.remote-node", Machine(nodes=((20_000, 9000), (20_000, 100)))),
    _case(
        "EBS: IOPS of the volume (log page 0xD0)",
        "cloud.volume-limit",
        Machine(
            io_some=0.9, ebs={"volume_iops_us": 0.7}, disks=(Disk("nvme1n1", 3000, 0, 16, 16, 10.0, number="259:1"),)
        ),
    ),
    _case(
        "EBS: throughput of the instance (log page 0xD0)",
        "cloud.instance-limit",
        Machine(
            io_some=0.9,
            ebs={"instance_throughput_us": 0.71, "volume_throughput_us": 0.02},
            disks=(Disk("nvme1n1", 1000, 0, 248, 16, 30.0, number="259:1"),),
        ),
    ),
    _case(
        "ENA: allowance of the instance",
        "cloud.network-limit",
        Machine(
            allowances={"bw_out_allowance_exceeded": 400.0, "pps_allowance_exceeded": 0},
            links=(Link(tx_bytes=1.2e8),),
            tcp={"OutSegs": 80_000, "RetransSegs": 800},
        ),
    ),
    _case(
        "read-ahead that thrashes",
        "disk.read-ahead",
        Machine(
            io_some=0.9,
            disks=(Disk("sda", 150, 0, 1024, 16, 7.0),),
            vm={"pgmajfault": 300},
            extra={"/sys/block/sda/queue/read_ahead_kb": "2048"},
        ),
    ),
    _case(
        "one thread that is always busy",
        "application.single-thread",
        Machine(user=0.25, processes=(Process(), Process("cobol", "batch.service", cpu=1.0))),
    ),
    _case(
        "thread of the kernel that is always busy",
        "cpu.kernel-thread",
        Machine(user=0.25, processes=(Process(), Process("md0_raid6", "", cpu=1.0, of_kernel=True))),
    ),
    _case(
        "TCP memory used up", "net.tcp-memory", Machine(tcp={"TCPMemoryPressures": 2, "TCPMemoryPressuresChrono": 600})
    ),
    _case(
        "clock that nobody steers",
        "clock.unsynchronised",
        Machine(clock="unsynchronised", processes=(Process("chronyd", "chronyd.service"),)),
    ),
    _case(
        "NVMe drive that warns of itself (log page 0x02)",
        "disk.failing",
        Machine(io_some=0.4, smart={"warning": 1 << 2}, disks=(Disk("nvme0n1", 900, 0, 16, 16, 40.0, number="259:0"),)),
    ),
    _case("NVMe media errors (log page 0x02)", "disk.failing", Machine(smart={"media_errors": 0.3})),
    _case(
        "NVMe drive slowed down by heat (log page 0x02)",
        "disk.throttled-by-heat",
        Machine(
            io_some=0.8,
            smart={"heavy_throttled_s": 0.8, "heavy_throttles": 0.2},
            disks=(Disk("nvme0n1", 900, 0, 16, 16, 40.0, number="259:0"),),
        ),
    ),
    _case(
        "file system full",
        "disk.filesystem-full",
        Machine(filesystems=(FileSystem(used=998_000_000_000, available=2_000_000_000),)),
    ),
    _case("inodes used up", "disk.filesystem-full", Machine(filesystems=(FileSystem(free_inodes=900),))),
    _case(
        "file system that fills",
        "disk.filesystem-full",
        Machine(filesystems=(FileSystem(used=950_000_000_000, available=50_000_000_000, grows=4e8),)),
    ),
    _case("degraded ZFS pool", "array.degraded", Machine(pool="DEGRADED")),
    _case("ZFS cache without memory", "memory.arc-throttled", Machine(io_some=0.4, arc_throttles=80)),
    _case("too few NFS server threads", "application.nfsd-threads", Machine(nfsd=(9000, 3000))),
    _case(
        "NFS client short of slots",
        "net.nfs-slots",
        Machine(io_some=0.9, mounts=(NfsMount(requests=4000, queue_ms=30, rtt_ms=15),)),
    ),
    _case(
        "slow NFS server",
        "net.nfs-server",
        Machine(io_some=0.9, mounts=(NfsMount(requests=40, queue_ms=0.1, rtt_ms=90),)),
    ),
    _case(
        "service that has opened nearly all files that it may",
        "application.file-limit",
        Machine(processes=(Process("postgres", "postgresql.service", files=(1000, 1024)),)),
    ),
    _case("pause frames", "net.paused", Machine(pauses={"rx": 4000, "tx": 1}, links=(Link(rx_bytes=2e8),))),
    _case("congested RDMA", "net.rdma-congested", Machine(rdma={"rp_cnp_handled": 9000, "np_cnp_sent": 3})),
    _case(
        "datagrams that their reader leaves in the buffer",
        "net.udp-drops",
        Machine(udp={"InDatagrams": 900, "RcvbufErrors": 400}),
    ),
    _case(
        "sender of datagrams without room", "net.udp-drops", Machine(udp={"OutDatagrams": 9000, "SndbufErrors": 300})
    ),
    _case(
        "memory for fragments of a cluster's datagrams full",
        "net.reassembly",
        Machine(fragments={"ReasmReqds": 6000, "ReasmOKs": 900, "ReasmFails": 120}),
    ),
    _case(
        "fragments that get lost",
        "net.reassembly",
        Machine(fragments={"ReasmReqds": 6000, "ReasmOKs": 950, "ReasmFails": 50, "ReasmTimeout": 50}),
    ),
    _case(
        "fragments of IPv6 that find no room",
        "net.reassembly",
        Machine(fragments6={"ReasmReqds": 600, "ReasmFails": 20, "ReasmTimeout": 2}),
    ),
    _case("clock that is set", "clock.stepped", Machine(stepped=-2.5)),
    _case("table of neighbours full", "net.neighbours-full", Machine(neighbours_full=6)),
    _case("no local port left towards a destination", "net.ports-used-up", Machine(ports=198)),
    _case(
        "peer that is gone", "net.no-answer", Machine(connections=(Connection(busy=1.0, bytes=0, resent=0.4, rtt=0.3),))
    ),
    _case("TasksMax of a service", "application.task-limit", Machine(groups=(Group(refused=3.0),))),
    _case(
        "TasksMax of a service (version 1, no PSI)",
        "application.task-limit",
        Machine(psi=False, version1=True, groups=(Group(refused=3.0),)),
    ),
    _case(
        "tasks that may run on one CPU alone",
        "cpu.affinity",
        Machine(users=(0.97, 0.02, 0.02, 0.02), cpu_some=0.97, running=3),
    ),
    _case(
        "fsync after fsync",
        "disk.flushes",
        Machine(
            io_some=0.9,
            iowait=0.2,
            disks=(Disk("nvme0n1", 0, 300, 4, 4, 0.1, busy=0.9, number="259:0", flushes=290, flush_ms=3.0),),
        ),
    ),
    _case(
        "rotating drive with fsync after fsync",
        "disk.flushes",
        Machine(
            io_some=0.9, disks=(Disk("sda", 1, 40, 4, 4, 3.0, busy=0.95, rotational=True, flushes=38, flush_ms=22),)
        ),
    ),
    _case(
        "device that answers no more",
        "disk.stuck",
        Machine(io_some=1.0, iowait=0.5, disks=(Disk("sda", 0, 0, busy=1.0, in_flight=3),)),
    ),
    _case(
        "suspended mapping",
        "disk.stuck",
        Machine(
            io_some=1.0,
            iowait=0.5,
            suspended=("dm-0",),
            disks=(Disk(reads=0, writes=0), Disk("dm-0", 0, 0, below=("sda",), number="253:0")),
        ),
    ),
    _case(
        "multipath map without a path",
        "disk.stuck",
        Machine(io_some=0.9, paths={"mpatha 8:16": "failed", "mpatha 8:32": "failed", "mpathb 8:48": "active"}),
    ),
    _case(
        "discards",
        "disk.saturated",
        Machine(io_some=0.6, disks=(Disk("nvme0n1", 1, 0, busy=0.97, number="259:0", discards=60, discard_ms=30),)),
    ),
    _case(
        "swap on zram",
        "memory.swap",
        Machine(
            memory_some=0.4,
            user=0.25,
            vm={"pswpin": 9000, "pswpout": 9000},
            nodes=((20_000, 9000), (20_000, 100)),
            processes=(Process(), Process("app", "app.service", cpu=0.98)),
        ),
    ),
    _case(
        "server of a hard mount that is gone",
        "disk.stuck",
        Machine(processes=(Process(), Process("rsync", "", cpu=0, chars=0, read=0, waits_in="rpc_wait_bit_killable"))),
    ),
    _case(
        "failed requests of a virtual disk",
        "disk.failing",
        Machine(
            disks=(Disk("vda", number="254:0"),),
            log=("I/O error, dev vda, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",),
        ),
    ),
    _case(
        "damaged file system",
        "disk.failing",
        Machine(
            disks=(Disk("vda", number="254:0"),),
            log=("EXT4-fs error (device vda1): ext4_lookup:1785: inode #2: comm ls: deleted inode referenced: 13",),
        ),
    ),
    _case(
        "any process that has opened nearly all files that it may",
        "application.file-limit",
        Machine(processes=(Process("java", "", files=(1020, 1024)),)),
    ),
    _case(
        "busy neighbour on the same disk",
        "disk.saturated",
        Machine(
            io_some=0.8,
            disks=(Disk("sda", 150, 0, 128, 256, 150.0, rotational=True),),
            processes=(Process(), Process("tar", "backup.service", chars=2e7, read=1.9e7)),
            groups=(
                Group("/system.slice/backup.service", reads=145, read_bytes=1.9e7),
                Group(io_some=0.8, reads=5, read_bytes=8e4),
            ),
        ),
    ),
)

WELL: tuple[tuple[str, Machine], ...] = (
    ("idle", Machine(user=0, system=0, disks=(Disk(reads=0, writes=0.2),), connections=())),
    ("healthy", Machine()),
    ("no PSI, version 1", Machine(psi=False, version1=True)),
    (
        "storage of all kinds, and well",
        Machine(
            smart={"light_throttled_s": 0.02, "warning_temperature_minutes": 0.01},
            filesystems=(
                FileSystem(used=880_000_000_000, available=120_000_000_000, grows=2e8),
                FileSystem("/b", inodes=0),
            ),
            pool="ONLINE",
            arc_throttles=0.1,
            nfsd=(9000, 8500),
            mounts=(NfsMount(), NfsMount("/mnt/far", requests=2, rtt_ms=40)),
            processes=(Process("postgres", "postgresql.service", files=(800, 1024)),),
            pauses={"rx": 3, "tx": 1},
            rdma={"rp_cnp_handled": 2},
        ),
    ),
    (
        "busy and well",
        Machine(
            user=0.5,
            cpu_some=0.12,
            io_some=0.05,
            disks=(Disk("nvme0n1", 3000, 2000, 16, 16, 0.15, number="259:0"),),
            links=(Link(rx_bytes=4e8, tx_bytes=4e8),),
            connections=(Connection(busy=0.3, bytes=1e8),),
        ),
    ),
)
