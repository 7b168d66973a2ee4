"""Situations as administrators meet them, and busy hosts that resemble them: the counters as their kernels print them.

Unlike `tests.diagnosis.hidden` these were written from what the kernel documents of each file, without a look at what
the causes ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.diagnosis.hidden import Hidden
from tests.diagnosis.moments import Array, Connection, Disk, Group, Link, Machine, Process

Made = Callable[[float], Machine]


def since_boot(make: Made) -> Made:
    """A machine by the seconds since its counters began: a span has those since its own beginning."""
    return lambda at: make(1000 + at)


def _kernel_thread(name: str, cpu: float = 0.99) -> Process:
    return Process(name, "", cpu=cpu, chars=0, read=0, cgroup="/", of_kernel=True)


_CONNTRACK = (
    "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error "
    " expect_new expect_create expect_delete search_restart\n"
)


def _conntrack(at: float, insert_failed: float = 0, drop: float = 0, early: float = 0) -> dict[str, str]:
    """/proc/net/stat/nf_conntrack of one CPU, by what it counts each second."""
    counts = (500, *[0] * 8, *(int(rate * at) for rate in (insert_failed, drop, early)), *[0] * 5)
    return {"/proc/net/stat/nf_conntrack": _CONNTRACK + " ".join(f"{count:08x}" for count in counts) + "\n"}


def _mount(at: float, direct: float = 0, moved: float = 0, **operations: tuple[float, float, float]) -> dict[str, str]:
    """/proc/self/mountstats of one mount: of each operation how many a second, ms in the queue, ms of the server."""
    count = sum(int(one[0] * at) for one in operations.values())
    text = (
        "device sysfs mounted on /sys with fstype sysfs\n"
        "device filer:/vol mounted on /mnt/data with fstype nfs4 statvers=1.1\n"
        "\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys\n"
        f"\tage:\t{int(at)}\n\tevents:\t{' '.join(map(str, range(27)))}\n"
        f"\tbytes:\t9 9 {int(direct * at)} 0 {int(moved * at)} 0 9 9\n\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
        f"\txprt:\ttcp 0 1 2 0 0 {count} {count} 0 {count * 3} 0 64 0 0\n\tper-op statistics\n"
        "\t        NULL: 1 1 0 44 24 0 0 0 0\n"
    )
    for name, (rate, queue_ms, rtt_ms) in operations.items():
        done = int(rate * at)
        times = " ".join(str(int(done * ms)) for ms in (queue_ms, rtt_ms, queue_ms + rtt_ms))
        text += f"\t{name:>12}: {done} {done} 0 {done * 200} {done * 200} {times} 0\n"
    return {"/proc/self/mountstats": text + "\n"}


def _writers(at: float, dirty: int, written: int, io_some: float = 0.9) -> Machine:
    """A service of 64 MiB at its limit, most of it files."""
    stat = f"anon 8388608\nfile 52428800\nkernel 1000000\nfile_dirty {dirty}\nfile_writeback {written}\n"
    group = Group(
        "/system.slice/loader.service",
        io_some=io_some,
        memory_max="67108864",
        memory_hits=20,
        more={
            "memory.current": "66900000\n",
            "memory.stat": stat,
            "io.stat": f"259:0 rbytes=0 wbytes={int(46e6 * at)} rios=0 wios={int(700 * at)} dbytes=0 dios=0\n",
        },
    )
    return Machine(
        io_some=io_some,
        iowait=min(0.2, io_some),
        disks=(Disk("nvme0n1", 0, 700, 16, 64, 0.25, busy=0.3, number="259:0"),),
        groups=(group,),
        extra={"/proc/sys/vm/dirty_ratio": "20\n", "/proc/sys/vm/dirty_background_ratio": "10\n"},
    )


_BOND_FILES = {
    "/sys/class/net/bond0/bonding/mode": "802.3ad 4\n",
    "/sys/class/net/bond0/bonding/slaves": "eth0 eth1\n",
    **{f"/sys/class/net/bond0/lower_{name}/uevent": "" for name in ("eth0", "eth1")},
    **{f"/sys/class/net/{name}/upper_bond0/uevent": "" for name in ("eth0", "eth1")},
    **{f"/sys/class/net/{name}/carrier": "1\n" for name in ("bond0", "eth0", "eth1")},
}
_DOWN = {"/sys/class/net/eth1/carrier": "0\n", "/sys/class/net/eth1/operstate": "down\n"}


def _bond(first: float, second: float, more: Mapping[str, str]) -> Machine:
    """A bond of two links of 1 Gbit/s, by what each of them sends in bytes a second."""
    members = (Link("eth0", tx_bytes=first, speed=1000), Link("eth1", 0, second, speed=1000))
    bond = Link("bond0", tx_bytes=first + second, speed=2000, device=False)
    return Machine(links=(*members, bond), extra=_BOND_FILES | dict(more))


# fmt: off
MET: dict[str, Hidden] = {
    "one thread on one CPU, by a kernel that knows no PSI":
        Hidden(Machine(cpus=8, psi=False, version1=True, users=(0.02, 0.02, 0.99, 0.02, 0.02, 0.02, 0.02, 0.02),
                       system=0, running=2, processes=(Process(), Process("perl", "batch.service", cpu=1.0))),
               "application.single-thread", never="cpu.affinity"),
    "twice as many tasks as CPUs, by a kernel that knows no PSI":
        Hidden(Machine(cpus=8, psi=False, version1=True, user=0.97, running=17), "cpu.saturated"),
    "encryption that one CPU does":
        Hidden(Machine(cpus=16, io_some=0.8, iowait=0.02, users=(0.95, *(0.01,) * 15),
                       disks=(Disk("nvme0n1", 1000, 0, 128, 16, 0.12, busy=0.12, number="259:0"),
                              Disk("dm-0", 1000, 0, 128, 16, 9.0, busy=1.0, below=("nvme0n1",), number="253:0")),
                       processes=(Process(), _kernel_thread("kworker/u32:3-kcryptd/253:0"))), "cpu.kernel-thread",
               never="application.single-thread disk.saturated disk.slow"),
    "parity of an array of NVMe drives that one thread computes": Hidden(
        Machine(
            cpus=16,
            io_some=0.7,
            iowait=0.02,
            disks=(
                *(Disk(f"nvme{at}n1", 300, 900, 16, 16, 0.1, busy=0.1, number=f"259:{at}") for at in range(6)),
                Disk("md0", 0, 3000, 16, 64, 5, busy=1, below=tuple(f"nvme{at}n1" for at in range(6)), number="9:0"),
            ),
            arrays=(Array(),),
            processes=(Process(), _kernel_thread("md0_raid6")),
        ),
        "cpu.kernel-thread",
        never="application.single-thread disk.saturated disk.slow",
    ),
    "one queue of a guest's link":
        Hidden(Machine(cpus=16, user=0.2, processes=(Process(), _kernel_thread("vhost-4711"))), "cpu.kernel-thread",
               never="application.single-thread"),
    "packets of one queue, which its thread of the kernel takes":
        Hidden(Machine(softirq=(0.01, 0.97, 0.01, 0.01), packets=(10, 600_000, 10, 10), links=(Link(rx_bytes=5e8),),
                       processes=(Process(), _kernel_thread("ksoftirqd/1", 0.97))), "net.one-cpu",
               never="application.single-thread cpu.kernel-thread"),
    "memory that one thread of the kernel frees all the time":
        Hidden(Machine(cpus=8, user=0.2, memory_some=0.45, io_some=0.4,
                       vm={"allocstall_normal": 300, "pgscan_kswapd": 500_000, "pgsteal_kswapd": 90_000},
                       disks=(Disk("nvme0n1", 9000, 0, 16, 16, 0.4, busy=0.9, number="259:0"),),
                       processes=(Process(), _kernel_thread("kswapd0"))), "memory.pressure",
               never="application.single-thread cpu.kernel-thread"),
    "array without redundancy that misses a member":
        Hidden(Machine(io_some=0.1, disks=(Disk("sda"), Disk("sdb")), arrays=(Array(state="broken", degraded=None),)),
               "array.degraded"),
    "conntrack table without room":
        Hidden(since_boot(lambda at: Machine(conntrack=(200_000, 262_144), extra=_conntrack(at, drop=50, early=5))),
               "net.conntrack-full"),
    "link of a namespace whose other end goes down again and again":
        Hidden(Machine(links=(Link(), Link("veth0", carrier=0.5, device=False))), "net.errors"),
    "RDMA port that sends much again":
        Hidden(Machine(rdma={"port_rcv_packets": 4e5, "port_xmit_packets": 3e5, "out_of_sequence": 90}), "net.errors"),
    "names that an NFS server looks up slowly, which is no stall for storage":
        Hidden(since_boot(lambda at: Machine(extra=_mount(at, GETATTR=(5, 0.1, 180), LOOKUP=(5, 0.1, 180),
                                                          OPEN=(1, 0.1, 200)))), "net.nfs-server"),
    "direct reads from a slow NFS server, which are no stall for storage":
        Hidden(since_boot(lambda at: Machine(extra=_mount(at, 9e5, 9e5, READ=(110, 0.05, 35)))), "net.nfs-server"),
    "direct reads of an NFS client short of slots":
        Hidden(since_boot(lambda at: Machine(extra=_mount(at, 3e7, 3e7, READ=(3000, 15, 5)))), "net.nfs-slots"),
    "writers of a small container, held by what its own limit admits as dirty":
        Hidden(since_boot(lambda at: _writers(at, dirty=6_291_456, written=3_145_728)), "memory.dirty-limit",
               never="application.serial"),
    "huge pages for which free memory is in pieces too small": Hidden(
        Machine(
            system=0.3,
            memory_some=0.35,
            vm={"compact_stall": 900, "compact_fail": 850, "thp_fault_fallback": 850, "allocstall_normal": 15},
            extra={"/sys/kernel/mm/transparent_hugepage/defrag": "[always] defer defer+madvise madvise never\n"},
        ),
        "memory.compaction",
        never="memory.pressure",
    ),
    "the same, by a kernel that knows no PSI":
        Hidden(Machine(psi=False, version1=True, system=0.4,
                       vm={"compact_stall": 900, "compact_fail": 850, "allocstall": 15}), "memory.compaction"),
    "link that is full of small frames": Hidden(
        since_boot(
            lambda at: Machine(
                links=(Link(speed=1000),),
                extra={
                    "/proc/net/dev": "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n"
                    f"  eth0: {int(8.93e7 * at)} {int(1.488e6 * at)} 0 0 0 0 0 0 {int(1e5 * at)} 9 0 0 0 0 0 0\n"
                },
            )
        ),
        "net.link-saturated",
    ),
    "sockets that have had more than tcp_mem grants them all the time": Hidden(
        Machine(
            tcp={"PruneCalled": 300, "TCPRcvCollapsed": 900, "RcvPruned": 20},
            extra={
                "/proc/net/sockstat": "sockets: used 9000\nTCP: inuse 8000 orphan 4 tw 30 alloc 8100 mem 41000\n",
                "/proc/sys/net/ipv4/tcp_mem": "20000\t30000\t45000\n",
            },
        ),
        "net.tcp-memory",
        never="net.receive-window",
    ),
    "files that all processes together may have open":
        Hidden(Machine(extra={"/proc/sys/fs/file-nr": "99900\t0\t100000\n", "/proc/sys/fs/file-max": "100000\n"}),
               "application.file-limit"),
    "bond that goes on with one member": Hidden(_bond(1e6, 0, _DOWN), "net.errors"),
    "bond of which one member is full": Hidden(_bond(1.23e8, 2e6, {}), "net.link-saturated"),
    "packets of four queues on four of 64 CPUs":
        Hidden(Machine(cpus=64, softirq=tuple(0.96 if cpu < 4 else 0.01 for cpu in range(64)),
                       packets=tuple(500_000 if cpu < 4 else 10 for cpu in range(64)),
                       irqs=tuple(1500 if cpu < 4 else 5 for cpu in range(64)),
                       links=(Link(rx_bytes=2e9, speed=100_000),),
                       processes=(Process(), _kernel_thread("ksoftirqd/2", 0.97))), "net.one-cpu",
               never="cpu.interrupts cpu.kernel-thread"),
    "transfer over a long way":
        Hidden(Machine(connections=(Connection("198.51.100.7:22", busy=0.99, rtt=80, least_rtt=79, bytes=3e5),)),
               "net.round-trip"),
    "one small request after the other over a long way":
        Hidden(Machine(connections=(Connection("198.51.100.7:5432", busy=0.97, rtt=25, least_rtt=24.8, bytes=8000),)),
               "net.round-trip"),
    "small requests in two pieces, each held until the first is acknowledged":
        Hidden(Machine(connections=(Connection("10.0.0.8:11211", busy=0.99, rtt=40.1, least_rtt=0.05, bytes=7500),)),
               "net.round-trip", never="net.link-saturated"),
    "threads of the whole host":
        Hidden(Machine(extra={"/proc/loadavg": "9.00 9.00 9.00 3/32600 32767\n", "/proc/sys/kernel/pid_max": "32768\n",
                              "/proc/sys/kernel/threads-max": "127000\n"}), "application.task-limit"),
    "mirror of SSDs with fsync after fsync": Hidden(
        Machine(
            io_some=0.95,
            iowait=0.2,
            disks=(
                *(
                    Disk(name, 0, 250, 4, 8, 0.3, busy=0.93, number=number, flushes=240, flush_ms=3.6)
                    for name, number in (("sda", "8:0"), ("sdb", "8:16"))
                ),
                Disk("md1", 0, 250, 4, 8, 4, busy=0.95, below=("sda", "sdb"), number="9:1"),
            ),
        ),
        "disk.flushes",
    ),
    "one read after the other from an NFS server that answers soon":
        Hidden(since_boot(lambda at: Machine(io_some=0.95, iowait=0.2,
                                             extra=_mount(at, 9, 5e6, READ=(300, 0.02, 3.1)))), "application.serial"),
    "segments that sockets have no room for": Hidden(
        Machine(tcp={"TCPBacklogDrop": 150, "TCPRcvQDrop": 20}, links=(Link(rx_bytes=9e8),)), "net.receive-window"
    ),
    "slow NFS server, by a kernel that knows no PSI":
        Hidden(since_boot(lambda at: Machine(psi=False, version1=True, iowait=0.22,
                                             extra=_mount(at, READ=(20, 0.1, 45)))), "net.nfs-server"),
}
# fmt: on

# fmt: off
LOOK_ALIKES: dict[str, Machine | Made] = {
    "a build with as many jobs as CPUs, by a kernel that knows no PSI":
        Machine(cpus=8, psi=False, version1=True, user=0.96, system=0.02, running=9),
    "64 busy CPUs and one task more": Machine(cpus=64, psi=False, version1=True, user=0.95, system=0.02, running=66),
    "huge pages that are put together at low priority":
        Machine(nice=0.25, processes=(Process(), Process("khugepaged", "", cpu=1.0, nice=19, of_kernel=True))),
    "a build with as many jobs as CPUs": Machine(cpus=8, user=0.95, cpu_some=0.07, running=9),
    "two packets of one new connection at once, as of DNS":
        since_boot(lambda at: Machine(conntrack=(500, 262_144), extra=_conntrack(at, insert_failed=1.5, drop=1.5))),
    "a container begins": since_boot(
        lambda at: Machine(
            links=(Link(), Link("docker0", 100, 100, device=False), Link("veth12ab", 100, 100, device=False)),
            extra={
                "/sys/class/net/docker0/carrier_changes": str(8 + (at > 1003) + (at > 1005)),
                "/sys/class/net/docker0/bridge/bridge_id": "8000.0242ac110002",
                "/sys/class/net/veth12ab/carrier_changes": str(1 + (at > 1005)),
            },
        )
    ),
    "RDMA over Ethernet with adaptive routing":
        Machine(rdma={"port_rcv_packets": 4e5, "port_xmit_packets": 3e5, "out_of_sequence": 3}),
    "parent that waits until its child has begun":
        Machine(processes=(Process(), Process("driver", "ci.service", 0, 0, 0, waits_in="wait_for_vfork_done"))),
    "writeback to a slow NFS server that nobody waits for":
        since_boot(lambda at: Machine(io_some=0.02,
                                      extra=_mount(at, WRITE=(600, 40, 60), COMMIT=(1, 0.1, 200),
                                                   GETATTR=(10, 0.3, 1)))),
    "lease of an NFS mount over a long way": since_boot(
        lambda at: Machine(extra=_mount(at, RENEW=(0.05, 0.1, 90), SEQUENCE=(9, 0.1, 90), GETATTR=(0.5, 0.1, 40)))
    ),
    "service at its memory limit with files that are clean":
        since_boot(lambda at: _writers(at, 400_000, 0, io_some=0.05)),
    "service that writes much, and waits for nothing":
        since_boot(lambda at: _writers(at, 9_291_456, 3_145_728, io_some=0.02)),
    "huge pages that are mostly free": Machine(vm={"compact_stall": 60, "compact_fail": 10, "thp_fault_alloc": 900}),
    "link that is used three quarters one way": Machine(links=(Link(tx_bytes=9.4e7, speed=1000),)),
    "sockets below the pressure of tcp_mem": Machine(
        extra={
            "/proc/net/sockstat": "sockets: used 9000\nTCP: inuse 8000 orphan 4 tw 30 alloc 8100 mem 29000\n",
            "/proc/sys/net/ipv4/tcp_mem": "20000\t30000\t45000\n",
        }
    ),
    "bond whose members are up": _bond(1e6, 1e6, {}),
    "log that is sent as it is written, over a long way":
        Machine(connections=(Connection("198.51.100.7:5432", busy=0.95, rtt=60, least_rtt=59, bytes=50_000),)),
    "one queue that takes 40 % of its CPU": Machine(softirq=(0.4, 0.01, 0.01, 0.01), packets=(90_000, 10, 10, 10)),
    "client of a service that answers in 100 ms":
        Machine(connections=(Connection("10.0.0.8:8080", busy=0.4, rtt=40.3, least_rtt=0.2, bytes=3000),)),
    "threads far below what the host can have":
        Machine(extra={"/proc/loadavg": "9.00 9.00 9.00 3/3260 32767\n", "/proc/sys/kernel/pid_max": "32768\n"}),
    "more memory promised than there is, which is usual":
        Machine(extra={"/proc/meminfo": "MemTotal: 16000000 kB\nMemFree: 6000000 kB\nMemAvailable: 8000000 kB\n"
                                        "CommitLimit: 8000000 kB\nCommitted_AS: 30000000 kB\n",
                       "/proc/sys/vm/overcommit_memory": "0\n"}),
    "the threads of the kernel that check an array at night":
        Machine(io_some=0.02, processes=(Process(), _kernel_thread("md0_raid6", 0.6)),
                arrays=(Array(action="check", done="100 / 2000"),)),
    "writeback to a slow NFS server, by a kernel that knows no PSI": since_boot(
        lambda at: Machine(psi=False, version1=True, extra=_mount(at, WRITE=(600, 40, 60), GETATTR=(10, 0.3, 1)))
    ),
}
# fmt: on
