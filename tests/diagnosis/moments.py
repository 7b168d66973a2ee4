"""Hosts as the texts that their kernels print at moments 1 s apart, with counters that agree with each other.

``Host`` describes a load in its own terms (requests a second, waits, shares); `Moments.files` prints /proc and /sys of
it at a time. Every figure may be a function of the time in seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import read_context
from advisor.facts.block.mounts import DF
from advisor.host import Completed, Host, MemoryFiles, RecordedCommands
from advisor.host.ethtool import Answer
from advisor.observe.disks import parse_ebs_log, parse_smart_log
from advisor.observe.hardware import parse_kills, parse_log_errors
from advisor.observe.network import ALL_SOCKETS, ASKED, CONNECTIONS
from advisor.observe.processes import KERNEL_THREAD
from advisor.observe.rates import take_sample
from advisor.observe.sample import CounterSpan, Reading, Sample

HZ = 100


@dataclass(frozen=True)
class Disk:
    """Reads and writes a second, their sizes and waits; ``below`` are the members of an array or mapping."""

    name: str = "sda"
    reads: float = 5
    writes: float = 5
    read_kib: float = 16
    write_kib: float = 16
    wait_ms: float = 1.0
    busy: float | None = None
    rotational: bool = False
    below: tuple[str, ...] = ()
    number: str = "8:0"
    errors: float = 0
    timeouts: float = 0
    in_flight: int | None = None
    flushes: float = 0
    flush_ms: float = 1.0
    discards: float = 0
    discard_ms: float = 0

    @property
    def queue(self) -> float:
        return ((self.reads + self.writes) * self.wait_ms + self.discards * self.discard_ms) / 1000


@dataclass(frozen=True)
class Link:
    name: str = "eth0"
    rx_bytes: float = 1e5
    tx_bytes: float = 1e5
    speed: int = 10_000
    crc: float = 0
    missed: float = 0
    carrier: float = 0
    device: bool = True
    """Whether it is a card, and no bridge or pair of a container's."""


@dataclass(frozen=True)
class Group:
    """A control group: shares of stalls, throttled and all periods a second, limits."""

    path: str = "/system.slice/db.service"
    io_some: float = 0
    memory_some: float = 0
    throttled: float = 0
    quota: str = "max 100000"
    memory_max: str = "max"
    memory_hits: float = 0
    oom_kills: float = 0
    io_max: str = ""
    reads: float = 0
    read_bytes: float = 0
    refused: float | None = None
    """Processes and threads a second; None for a group without the controller."""
    device: str = ""
    """The number in io.stat, where no limit of io.max names it."""
    usage: float | None = None
    """The share of the device that io.cost counts; None where it is off."""
    waits: float | None = None
    """The share of the time in which io.cost held requests back; None where the kernel does not show it."""
    io_tail: str = ""
    """What io.latency adds to io.stat."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Other files of the group."""


@dataclass(frozen=True)
class Connection:
    """Shares of the time; ``rtt`` and the least ``rtt`` in ms."""

    peer: str = "10.0.0.2:5201"
    busy: float = 0.02
    rwnd: float = 0
    sndbuf: float = 0
    rtt: float = 0.2
    least_rtt: float = 0.1
    bytes: float = 1e5
    resent: float = 0


@dataclass(frozen=True)
class Array:
    name: str = "md0"
    state: str = "clean"
    action: str = "idle"
    degraded: int | None = 0
    """None for a level without redundancy, of which the kernel has no such file."""
    done: str = "none"


@dataclass(frozen=True)
class Process:
    """What psutil gives of a process: the share of one CPU, bytes a second that it asked for and that it moved."""

    name: str = "postgres"
    unit: str = "db.service"
    cpu: float = 0.1
    chars: float = 1e5
    read: float = 1e5
    files: tuple[int, int] | None = None
    """Open files, and the limit of them."""
    threads: tuple[float, ...] = ()
    """The share of one CPU of each thread; empty where threads are not recorded."""
    nice: int = 0
    waits_in: str = ""
    """Where in the kernel it sleeps, uninterruptibly, whenever somebody looks."""
    cgroup: str = ""
    children: float = 0
    """The share of one CPU of children that have ended."""
    locked: bool = False
    """Whether its title says that it waits, as that of a process of PostgreSQL."""
    of_kernel: bool = False
    """Whether it is a thread of the kernel's own."""


@dataclass(frozen=True)
class NfsMount:
    """Requests a second of a mount, and ms of each: waiting to be sent, then for network and server."""

    target: str = "/mnt/data"
    requests: float = 100
    queue_ms: float = 0.1
    rtt_ms: float = 1.0
    operation: str = "READ"
    sent_again: float = 0.0
    """Of each request how often it is sent once more."""


@dataclass(frozen=True)
class FileSystem:
    """Bytes that are used and available, and how many more are used each second; inodes and free ones."""

    target: str = "/data"
    kind: str = "xfs"
    used: int = 400_000_000_000
    available: int = 600_000_000_000
    grows: float = 1e6
    inodes: int = 100_000_000
    free_inodes: int = 90_000_000


@dataclass(frozen=True)
class Machine:
    """A host that is well; a case changes what is not."""

    cpus: int = 4
    user: float = 0.1
    users: Sequence[float] = ()
    """The share of each CPU, where they differ."""
    system: float = 0.03
    iowait: float = 0.01
    steal: float = 0.0
    softirq: Sequence[float] = (0.01, 0.01, 0.01, 0.01)
    nice: float = 0.0
    hard_irq: Sequence[float] = (0.0,)
    cpu_some: float = 0.01
    io_some: float = 0.01
    memory_some: float = 0.0
    psi: bool = True
    forks: float = 3
    running: int = 1
    disks: tuple[Disk, ...] = (Disk(),)
    links: tuple[Link, ...] = (Link(),)
    groups: tuple[Group, ...] = (Group(),)
    connections: tuple[Connection, ...] = (Connection(),)
    arrays: tuple[Array, ...] = ()
    tcp: Mapping[str, float] = field(default_factory=dict)
    vm: Mapping[str, float] = field(default_factory=dict)
    dirty: tuple[int, int] = (100, 0)
    dirty_limits: tuple[int, int] = (400_000, 200_000)
    conntrack: tuple[int, int] | None = (100, 262_144)
    packets: Sequence[float] = (100, 100, 100, 100)
    thermal: float | None = None
    edac: float | None = None
    irqs: Sequence[float] = (100, 100, 100, 100)
    irq_name: str = "eth0-rx-0"
    nodes: tuple[tuple[float, float], ...] = ()
    swap: str | None = None
    version1: bool = False
    virtual: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    processes: tuple[Process, ...] = (Process(),)
    ebs: Mapping[str, float] = field(default_factory=dict)
    """Shares of the time by the names of `advisor.observe.disks`, of the volume nvme1n1."""
    allowances: Mapping[str, float] = field(default_factory=dict)
    clock: str = "synchronised"
    smart: Mapping[str, float] = field(default_factory=dict)
    """Log page 0x02 of nvme0: counters a second as `advisor.observe.disks` names them, ``warning`` its bits."""
    kills: tuple[tuple[str, str], ...] = ()
    """Processes that the kernel kills during the span, with the control group of each."""
    filesystems: tuple[FileSystem, ...] = (FileSystem(),)
    pool: str | None = None
    arc_throttles: float | None = None
    nfsd: tuple[float, float] | None = None
    """Requests a second for the NFS server, and those for which a thread was idle."""
    mounts: tuple[NfsMount, ...] = ()
    pauses: Mapping[str, float] = field(default_factory=dict)
    rdma: Mapping[str, float] = field(default_factory=dict)
    udp: Mapping[str, float] = field(default_factory=dict)
    fragments: Mapping[str, float] = field(default_factory=dict)
    """Received fragments and what became of them, a second, by the names of /proc/net/snmp."""
    fragments6: Mapping[str, float] = field(default_factory=dict)
    stepped: float = 0.0
    """Seconds by which the clock is set forward in the middle of the span."""
    neighbours_full: float | None = None
    asked: str = ""
    """A peer of which a connection is asked whenever somebody looks."""
    ports: int = 3
    """Local ports from 40000 to 40199 that are used towards one destination."""
    log: tuple[str, ...] = ()
    """What the kernel's log says during the span."""
    suspended: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    """State of each path of a multipath map, by ``MAP DEVICE``."""
    bursts: tuple[float, ...] = ()
    """How far the counters of storage and network are ahead of an even rate, in seconds, at each sample."""


def _pressure(some: float, at: float) -> str:
    text = "{} avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
    return text.format("some", int(some * at * 1e6) + 1000) + text.format("full", int(some * at * 5e5) + 500)


def files_at(machine: Machine, at: float) -> dict[str, str]:
    """What the host's kernel prints ``at`` seconds after the counters' start."""
    files = {
        "/proc/sys/kernel/hostname": "db-07\n",
        "/proc/version": "Linux version 6.1.0\n",
        "/proc/cpuinfo": "".join(f"processor\t: {cpu}\n\n" for cpu in range(machine.cpus)),
        "/sys/devices/system/cpu/online": f"0-{machine.cpus - 1}\n",
        "/proc/meminfo": "MemTotal: 16000000 kB\nMemFree: 2000000 kB\nMemAvailable: 8000000 kB\n",
    }
    files |= _cpu_files(machine, at)
    if machine.psi:
        for name, some in (("cpu", machine.cpu_some), ("io", machine.io_some), ("memory", machine.memory_some)):
            files[f"/proc/pressure/{name}"] = _pressure(some, at)
    moved = at + (machine.bursts[int(at) % len(machine.bursts)] if machine.bursts else 0)
    files |= _disk_files(machine, at, moved) | _net_files(machine, moved) | _group_files(machine, at)
    dirty, writeback = machine.dirty
    limit, background = machine.dirty_limits
    rates: dict[str, float] = {
        "pgpgin": 100,
        "pgpgout": 100,
        "pswpin": 0,
        "pswpout": 0,
        "oom_kill": 0,
        "allocstall_normal": 0,
    }
    rates |= {"workingset_refault_file": 0, **machine.vm}
    files["/proc/vmstat"] = "".join(f"{name} {int(1000 + rate * at)}\n" for name, rate in rates.items()) + (
        f"nr_dirty {dirty}\nnr_writeback {writeback}\nnr_dirty_threshold {limit}\n"
        f"nr_dirty_background_threshold {background}\n"
    )
    for number, (hit, other) in enumerate(machine.nodes):
        files[f"/sys/devices/system/node/node{number}/numastat"] = (
            f"numa_hit {int(hit * at)}\nnuma_miss {int(other * at)}\nnuma_foreign 0\nlocal_node {int(hit * at)}\n"
            f"other_node {int(other * at)}\n"
        )
    for array in machine.arrays:
        top = f"/sys/block/{array.name}/md"
        files[f"{top}/array_state"] = array.state
        if array.degraded is not None:
            files |= {f"{top}/sync_action": array.action, f"{top}/sync_completed": array.done}
            files[f"{top}/degraded"] = str(array.degraded)
    if machine.edac is not None:
        top = "/sys/devices/system/edac/mc/mc0"
        files |= {f"{top}/ce_count": str(int(machine.edac * at)), f"{top}/ue_count": "0"}
    return files | _storage_files(machine, at) | dict(machine.extra)


def _storage_files(machine: Machine, at: float) -> dict[str, str]:
    """ZFS, NFS on both sides, and RDMA."""
    files = {}
    if machine.pool:
        files["/proc/spl/kstat/zfs/tank/state"] = machine.pool + "\n"
    if machine.arc_throttles is not None:
        files["/proc/spl/kstat/zfs/arcstats"] = (
            "13 1 0x01 147 39984 9 3\nname type data\nsize 4 8000000000\nc_max 4 8000000000\n"
            f"memory_throttle_count 4 {int(machine.arc_throttles * at)}\n"
        )
    if machine.nfsd:
        arrived, idle = (int(rate * at) for rate in machine.nfsd)
        files["/proc/fs/nfsd/threads"] = "8\n"
        files["/proc/fs/nfsd/pool_stats"] = (
            f"# pool packets-arrived sockets-enqueued threads-woken threads-timedout\n0 {arrived} {arrived} {idle} 0\n"
        )
    rows = []
    for mount in machine.mounts:
        count = int(mount.requests * at)
        queued, waited = int(count * mount.queue_ms), int(count * mount.rtt_ms)
        rows.append(
            f"device filer:/vol mounted on {mount.target} with fstype nfs4 statvers=1.1\n"
            "\topts:\trw,vers=4.1,rsize=1048576,namlen=255,proto=tcp\n"
            f"\txprt:\ttcp 0 0 1 0 0 {count} {count} 0 {count * 4} {queued} 64 0 0\n\tper-op statistics\n"
            f"\t        NULL: 1 1 0 44 24 0 0 0 0\n\t        {mount.operation}: {count} "
            f"{int(count * (1 + mount.sent_again))} {int(count * mount.sent_again)} 1000 90000 {queued} {waited} "
            f"{queued + waited} 0\n\n"
        )
    if rows:
        files["/proc/self/mountstats"] = "device proc mounted on /proc with fstype proc\n" + "".join(rows)
    top = "/sys/class/infiniband/mlx5_0/ports/1"
    files |= {f"{top}/hw_counters/{name}": str(int(rate * at)) for name, rate in machine.rdma.items()}
    return files


def _cpu_files(machine: Machine, at: float) -> dict[str, str]:
    files: dict[str, str] = {}
    rows, total = [], [0] * 8
    for cpu in range(machine.cpus):
        softirq = machine.softirq[cpu % len(machine.softirq)]
        # Interrupts and the hypervisor come first; a CPU waits for storage only where it has nothing to run.
        asked = machine.users[cpu % len(machine.users)] if machine.users else machine.user
        hard = machine.hard_irq[cpu % len(machine.hard_irq)]
        taken = softirq + hard + machine.steal + machine.system
        user = min(asked, 1 - taken)
        nice = min(machine.nice, 1 - taken - user)
        iowait = min(machine.iowait, 1 - taken - user - nice)
        idle = 1 - taken - user - nice - iowait
        shares = (user, nice, machine.system, idle, iowait, hard, softirq, machine.steal)
        ticks = [int(share * at * HZ) for share in shares]
        total = [a + b for a, b in zip(total, ticks, strict=True)]
        rows.append(f"cpu{cpu} {' '.join(map(str, ticks))} 0 0\n")
        if machine.thermal is not None:
            top = f"/sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
            files[f"{top}/package_throttle_count"] = str(int(machine.thermal * at * 10))
            files[f"{top}/package_throttle_total_time_ms"] = str(int(machine.thermal * at * 1000))
    head = " ".join(f"CPU{cpu}" for cpu in range(machine.cpus))
    counts = " ".join(str(int(machine.irqs[cpu % len(machine.irqs)] * at) + 1) for cpu in range(machine.cpus))
    files["/proc/stat"] = (
        f"cpu  {' '.join(map(str, total))} 0 0\n{''.join(rows)}intr {int(at * 1000)} 0\nctxt {int(at * 5000)}\n"
        f"processes {int(at * machine.forks)}\nprocs_running {machine.running}\n"
        f"procs_blocked {round(machine.io_some)}\nsoftirq {int(at * 500)} 0\n"
    )
    files["/proc/interrupts"] = f"  {head}\n 24: {counts} IR-PCI-MSI {machine.irq_name}\n"
    packets = [machine.packets[cpu % len(machine.packets)] for cpu in range(machine.cpus)]
    files["/proc/net/softnet_stat"] = "".join(
        f"{int(rate * at):08x} 00000000 00000000 " + "00000000 " * 9 + f"{cpu:08x}\n"
        for cpu, rate in enumerate(packets)
    )
    return files


def _disk_files(machine: Machine, at: float, moved: float) -> dict[str, str]:
    files: dict[str, str] = {}
    rows = []
    for disk in machine.disks:
        busy = min(1.0, disk.queue) if disk.busy is None else disk.busy
        reads, writes = int(disk.reads * moved), int(disk.writes * moved)
        major, _, minor = disk.number.partition(":")
        rows.append(
            f"{major} {minor} {disk.name} {reads} 0 {int(disk.reads * disk.read_kib * 2 * moved)} "
            f"{int(disk.reads * disk.wait_ms * moved)} {writes} 0 {int(disk.writes * disk.write_kib * 2 * moved)} "
            f"{int(disk.writes * disk.wait_ms * moved)} "
            f"{round(disk.queue) if disk.in_flight is None else disk.in_flight} {int(busy * at * 1000)} "
            f"{int(disk.queue * moved * 1000)} {int(disk.discards * moved)} 0 {int(disk.discards * moved * 2048)} "
            f"{int(disk.discards * disk.discard_ms * moved)} {int(disk.flushes * moved)} "
            f"{int(disk.flushes * disk.flush_ms * moved)}\n"
        )
        top = f"/sys/block/{disk.name}"
        files |= {f"{top}/size": "2000000000\n", f"{top}/queue/rotational": str(int(disk.rotational))}
        files |= {f"{top}/dev": disk.number, f"{top}/queue/read_ahead_kb": "128\n"}
        files |= {f"{top}/slaves/{name}/uevent": "" for name in disk.below}
        if disk.name.startswith("dm-"):
            files[f"{top}/dm/suspended"] = str(int(disk.name in machine.suspended))
        if disk.name.startswith("sd"):
            files |= {
                f"{top}/device/iorequest_cnt": hex(reads + writes),
                f"{top}/device/ioerr_cnt": hex(int(disk.errors * moved)),
                f"{top}/device/iotmo_cnt": hex(int(disk.timeouts * moved)),
            }
    files["/proc/diskstats"] = "".join(rows)
    if machine.swap:
        files["/proc/swaps"] = f"Filename Type Size Used Priority\n/dev/{machine.swap} partition 8000000 4000000 -2\n"
    return files


def _net_files(machine: Machine, at: float) -> dict[str, str]:
    files: dict[str, str] = {}
    rows = []
    for link in machine.links:
        rx, tx = int(link.rx_bytes * at), int(link.tx_bytes * at)
        rows.append(f"{link.name}: {rx} {rx // 1000} 0 0 0 0 0 0 {tx} {tx // 1000} 0 0 0 0 0 0\n")
        top = f"/sys/class/net/{link.name}"
        files |= {f"{top}/speed": str(link.speed), f"{top}/operstate": "up"}
        files |= {f"{top}/device/uevent": ""} if link.device else {}
        files |= {f"{top}/carrier_changes": str(2 + int(link.carrier * at)), f"{top}/mtu": "1500"}
        files |= {f"{top}/statistics/rx_crc_errors": str(int(link.crc * at))}
        files |= {f"{top}/statistics/rx_missed_errors": str(int(link.missed * at))}
    files["/proc/net/dev"] = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n" + "".join(rows)
    rates: dict[str, float] = {"InSegs": 500, "OutSegs": 500, "RetransSegs": 0, "ActiveOpens": 1, "PassiveOpens": 1}
    extended: dict[str, float] = {
        "ListenOverflows": 0,
        "ListenDrops": 0,
        "TCPOFOQueue": 0,
        "TCPReqQFullDrop": 0,
        "TCPTimeouts": 0,
    }
    extended |= {"TCPReqQFullDoCookies": 0, "TCPToZeroWindowAdv": 0, "TCPMemoryPressures": 0}
    for name, rate in machine.tcp.items():
        (rates if name in rates else extended)[name] = rate
    for path, kind, some in (("/proc/net/snmp", "Tcp", rates), ("/proc/net/netstat", "TcpExt", extended)):
        values = " ".join(str(int(rate * at)) for rate in some.values())
        files[path] = f"{kind}: {' '.join(some)}\n{kind}: {values}\n"
    datagrams: dict[str, float] = {"InDatagrams": 200, "OutDatagrams": 200, "RcvbufErrors": 0, "SndbufErrors": 0}
    datagrams |= machine.udp
    fragments: dict[str, float] = {"ReasmTimeout": 0, "ReasmReqds": 0, "ReasmOKs": 0, "ReasmFails": 0}
    fragments |= machine.fragments
    files["/proc/net/snmp"] += (
        f"Ip: Forwarding {' '.join(fragments)}\nIp: 2 {' '.join(str(int(rate * at)) for rate in fragments.values())}\n"
    )
    files["/proc/net/snmp"] += (
        f"Udp: {' '.join(datagrams)}\nUdp: {' '.join(str(int(rate * at)) for rate in datagrams.values())}\n"
    )
    files["/proc/net/snmp6"] = "".join(f"Udp6{name}\t{int(rate * at / 9)}\n" for name, rate in datagrams.items())
    files["/proc/net/snmp6"] += "".join(f"Ip6{name}\t{int(rate * at)}\n" for name, rate in machine.fragments6.items())
    files["/proc/sys/net/ipv4/ip_local_port_range"] = "40000\t40199\n"
    files["/proc/net/sockstat"] = (
        f"sockets: used 90\nTCP: inuse 9 orphan 0 tw {machine.ports} alloc 12 mem 1\nFRAG: inuse 3 memory 4194304\n"
    )
    if machine.neighbours_full is not None:
        files["/proc/net/stat/arp_cache"] = (
            f"entries allocs table_fulls\n00000400 00000500 {int(machine.neighbours_full * at):08x}\n"
        )
        files["/proc/sys/net/ipv4/neigh/default/gc_thresh3"] = "1024\n"
    if machine.conntrack:
        count, most = machine.conntrack
        top = "/proc/sys/net/netfilter/nf_conntrack"
        files |= {f"{top}_count": str(count), f"{top}_max": str(most)}
    return files


def _group_files(machine: Machine, at: float) -> dict[str, str]:
    if machine.version1:
        return _first_version_files(machine, at)
    files = {"/sys/fs/cgroup/cgroup.controllers": "cpu io memory\n"}
    for group in machine.groups:
        top = f"/sys/fs/cgroup{group.path.rstrip('/')}"
        files[f"{top}/cpu.stat"] = (
            f"usage_usec {int(at * 1e5)}\nnr_periods {int(at * 10)}\nnr_throttled {int(at * 10 * group.throttled)}\n"
            f"throttled_usec {int(at * 5e5 * group.throttled)}\n"
        )
        files |= {f"{top}/cpu.max": group.quota, f"{top}/memory.max": group.memory_max}
        files[f"{top}/memory.events"] = (
            f"low 0\nhigh 0\nmax {int(group.memory_hits * at)}\noom 0\noom_kill {int(group.oom_kills * at)}\n"
        )
        if group.refused is not None:
            files |= {f"{top}/pids.events": f"max {int(group.refused * at)}\n", f"{top}/pids.max": "512\n"}
            files[f"{top}/pids.current"] = "512\n"
        files[f"{top}/io.pressure"] = _pressure(group.io_some, at)
        files[f"{top}/memory.pressure"] = _pressure(group.memory_some, at)
        files |= {f"{top}/io.max": group.io_max} if group.io_max else {}
        device = group.device or group.io_max.partition(" ")[0] or "8:0"
        cost = "" if group.usage is None else f" cost.usage={int(group.usage * at * 1e6)}"
        cost += "" if group.waits is None else f" cost.wait={int(group.waits * at * 1e6)} cost.indebt=0 cost.indelay=0"
        files[f"{top}/io.stat"] = (
            f"{device} rbytes={int(group.read_bytes * at)} wbytes=0 "
            f"rios={int(group.reads * at)} wios=0 dbytes=0 dios=0{group.io_tail}{cost}\n"
        )
        files |= {f"{top}/{name}": text for name, text in group.more.items()}
    return files


def _first_version_files(machine: Machine, at: float) -> dict[str, str]:
    files = {}
    for group in machine.groups:
        quota, period = group.quota.split()
        cpu, memory, blkio = (f"/sys/fs/cgroup/{name}{group.path}" for name in ("cpu", "memory", "blkio"))
        files[f"{cpu}/cpu.stat"] = (
            f"nr_periods {int(at * 10)}\nnr_throttled {int(at * 10 * group.throttled)}\n"
            f"throttled_time {int(at * 5e8 * group.throttled)}\n"
        )
        files |= {f"{cpu}/cpu.cfs_quota_us": "-1" if quota == "max" else quota, f"{cpu}/cpu.cfs_period_us": period}
        files[f"{memory}/memory.failcnt"] = str(int(group.memory_hits * at))
        files[f"{memory}/memory.limit_in_bytes"] = (
            "9223372036854771712" if group.memory_max == "max" else group.memory_max
        )
        if group.refused is not None:
            pids = f"/sys/fs/cgroup/pids{group.path}"
            files |= {f"{pids}/pids.events": f"max {int(group.refused * at)}\n", f"{pids}/pids.max": "512\n"}
            files[f"{pids}/pids.current"] = "512\n"
        device, _, limits = group.io_max.partition(" ")
        if limits:
            files[f"{blkio}/blkio.throttle.read_bps_device"] = f"{device} {limits.partition('rbps=')[2].split()[0]}\n"
        files[f"{blkio}/blkio.throttle.io_service_bytes"] = (
            f"{device or '8:0'} Read {int(group.read_bytes * at)}\n{device or '8:0'} Write 0\n"
        )
    return files


def _connections_at(machine: Machine, at: float) -> str:
    lines = ["Recv-Q Send-Q Local Address:Port Peer Address:Port Process"]
    for number, one in enumerate(machine.connections):
        lines.append(f"0      0      10.0.0.1:{40000 + number} {one.peer}")
        words = [f"cubic rto:204 rtt:{one.rtt}/0.1 mss:1448 cwnd:10 bytes_acked:{int(one.bytes * at)}"]
        words.append(f"busy:{int(one.busy * at * 1000)}ms")
        words += [f"rwnd_limited:{int(one.rwnd * at * 1000)}ms(9.9%)"] if one.rwnd else []
        words += [f"sndbuf_limited:{int(one.sndbuf * at * 1000)}ms(9.9%)"] if one.sndbuf else []
        words += [f"retrans:0/{int(one.resent * at)}"] if one.resent else []
        lines.append(f"\t {' '.join(words)} rcv_space:14480 minrtt:{one.least_rtt}")
    return "\n".join(lines) + "\n"


ETHTOOL = ("ethtool", "-S", "eth0")


def host_at(machine: Machine, at: float) -> Host:
    """The host at one moment, to read."""
    files = {path: text.encode() for path, text in files_at(machine, at).items()}
    links = {"/sys/class/net/eth0/device/driver": "/sys/bus/pci/drivers/ena"} if machine.allowances else {}
    statistics = "".join(f"     {name}: {int(rate * at)}\n" for name, rate in machine.allowances.items())
    answers = {
        CONNECTIONS: Completed(0, _connections_at(machine, at), ""),
        ALL_SOCKETS: Completed(0, _sockets_of(machine), ""),
        ASKED: Completed(0, f"Recv-Q Send-Q Local Peer\n0 1 10.0.0.1:{40000 + int(at)} {machine.asked} \n", ""),
        DF: Completed(0, _space_at(machine, at), ""),
        ETHTOOL: Completed(0, f"NIC statistics:\n     tx_timeout: 0\n{statistics}", ""),
    }
    if machine.pauses:
        links["/sys/class/net/eth0/device/driver"] = "/sys/bus/pci/drivers/mlx5_core"
    pauses: Answer = {f"{way}_pause_ctrl_phy": int(rate * at) for way, rate in machine.pauses.items()}
    return Host(
        MemoryFiles(files, links),
        RecordedCommands(answers),
        is_root=True,
        ethtool_answers={("eth0", "statistics"): pauses},
    )


def _sockets_of(machine: Machine) -> str:
    """``ss -tan``: a listening socket, and TIME-WAIT towards one destination."""
    lines = ["State Recv-Q Send-Q Local Address:Port Peer Address:Port Process", "LISTEN 0 128 0.0.0.0:40005 0.0.0.0:*"]
    lines += [f"TIME-WAIT 0 0 10.0.0.1:{40000 + port} 10.0.0.9:443" for port in range(machine.ports)]
    return "\n".join(lines) + "\n"


def _space_at(machine: Machine, at: float) -> str:
    """What df prints, with an image that is as full as it was made."""
    rows = ["Type     1B-blocks      Used     Avail   Inodes    IFree Mounted on", "squashfs 9 9 0 9 0 /snap"]
    for one in machine.filesystems:
        grown = int(one.grows * (at - 1000))
        size = one.used + one.available
        rows.append(
            f"{one.kind} {size} {one.used + grown} {max(0, one.available - grown)} {one.inodes} {one.free_inodes} "
            f"{one.target}"
        )
    return "\n".join(rows) + "\n"


def _add_instruments(machine: Machine, reading: Reading, at: float) -> None:
    """What no file says: processes, log pages and the state of the clock, which are read on a running host alone."""
    reading.missing = {key: why for key, why in reading.missing.items() if key not in ("process", "clock")}
    for number, one in enumerate(machine.processes):
        counters = {"cpu_ms": int(one.cpu * at * 1000), "children_ms": int(one.children * at * 1000)}
        counters |= {"read_chars": int(one.chars * at)}
        counters |= {"read_bytes": int(one.read * at), "write_bytes": 0}
        levels = {"open_files": one.files[0], "open_files_limit": one.files[1]} if one.files else {}
        levels |= {"threads": len(one.threads)} if one.threads else {}
        levels |= {"nice": one.nice} if one.nice else {}
        counters |= {f"thread_{200 + tid}_ms": int(share * at * 1000) for tid, share in enumerate(one.threads)}
        words = {"name": one.name, "unit": one.unit, "waits_in": one.waits_in, "cgroup": one.cgroup}
        words |= {"kind": KERNEL_THREAD} if one.of_kernel else {}
        words |= {"locked": "PostgreSQL"} if one.locked else {}
        words = {field: word for field, word in words.items() if word}
        reading.add("process", f"{100 + number}@1.00", counters, levels, words)
    if machine.ebs:
        page = parse_ebs_log(ebs_log({name: int(share * at * 1e6) for name, share in machine.ebs.items()}))
        assert page is not None
        reading.add("ebs", "nvme1n1", page[0], {"queue": page[1]})
    ahead = 1.7e9 + (machine.stepped if at > 1005 else 0.0)
    reading.add("clock", "host", gauges={"ahead_s": ahead}, words={"state": machine.clock})
    if machine.smart:
        found = parse_smart_log(smart_log(machine.smart, at))
        assert found is not None
        reading.add("smart", "nvme0", *found)
    log = "".join(
        f"6,{20 + number},99000000,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"global_oom,task_memcg={group},task={name},pid={4000 + number},uid=26\n"
        f"3,{40 + number},99000100,-;Out of memory: Killed process {4000 + number} ({name}) total-vm:9kB, a:8kB\n"
        for number, (name, group) in enumerate(machine.kills)
        if at > 1000
    )
    for record, words in parse_kills(log).items():
        reading.add("kill", record, words=words)
    for name, state in machine.paths.items():
        reading.add("path", name, {"failures": 3}, words={"state": state})
    reading.ask("log-error")
    texts = "".join(f"3,{60 + number},99000200,-;{text}\n" for number, text in enumerate(machine.log) if at > 1000)
    for record, words in parse_log_errors("3,7,1000,-;I/O error, dev sda, sector 8 op 0x0:(READ)\n" + texts).items():
        reading.add("log-error", record, words=words)


def smart_log(rates: Mapping[str, float], at: float = 1.0) -> bytes:
    """Log page 0x02 as struct nvme_smart_log of libnvme lays it out: counters ``at`` seconds after they began."""

    def count(name: str) -> int:
        return int(rates.get(name, 0) * at)

    head = struct.pack("<BHBBBB25x", int(rates.get("warning", 0)), 273 + 41, 97, 10, 3, 0)
    totals = b"".join(value.to_bytes(16, "little") for value in (1, 2, 3, 4, 5, 6, 7, 8, count("media_errors"), 9))
    temperatures = struct.pack(
        "<II8H", count("warning_temperature_minutes"), count("critical_temperature_minutes"), *[314] * 8
    )
    names = ("light_throttles", "heavy_throttles", "light_throttled_s", "heavy_throttled_s")
    return (head + totals + temperatures + struct.pack("<IIII", *map(count, names))).ljust(512, b"\0")


def ebs_log(microseconds: Mapping[str, int], queue: int = 3) -> bytes:
    """Log page 0xD0 as nvme-cli's struct amzn_latency_log_page lays it out."""
    over = ("volume_iops_us", "volume_throughput_us", "instance_iops_us", "instance_throughput_us")
    counts = [1000, 1000, 4096, 4096, 10, 10, *(microseconds.get(name, 0) for name in over), queue]
    return struct.pack("<II11Q", 0x3C23B510, 0, *counts).ljust(4096, b"\0")


def span_of(machine: Machine | Callable[[float], Machine], seconds: int = 10, start: float = 1000) -> CounterSpan:
    """The host's counters over a span, sampled each second. The counters ran for ``start`` seconds before."""
    make = machine if callable(machine) else lambda at: machine
    samples: list[Sample] = []
    for second in range(seconds + 1):
        at = start + second
        now = make(float(second))
        sample = take_sample(host_at(now, at), whole=second in (0, seconds), clock=lambda at=at: at)  # type: ignore[misc]
        if second in (0, seconds):
            reading = Reading(at)
            reading.counters = {kind: dict(things) for kind, things in sample.counters.items()}
            reading.gauges = {kind: dict(things) for kind, things in sample.gauges.items()}
            reading.words = {kind: dict(things) for kind, things in sample.words.items()}
            reading.missing = dict(sample.missing)
            _add_instruments(now, reading, at)
            sample = reading.make_sample()
        samples.append(sample)
    return CounterSpan(samples)


def diagnose_machine(machine: Machine | Callable[[float], Machine], seconds: int = 10) -> Diagnosis:
    first = machine(0.0) if callable(machine) else machine
    return diagnose(span_of(machine, seconds), read_context(host_at(first, 1000)), 0.0)
