"""The checks that other tools make of storage hosts, each with its place: rules of ``scan``, causes of ``why``.

What needs an interval is a cause, what stands in configuration a rule; some have a part in each.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.diagnosis.live import INJECTIONS

SEEN_LIVE = frozenset(identity for one in INJECTIONS for identity in one.right)
"""Causes that were answered in a run with the bottleneck really there."""


class Check(NamedTuple):
    """``places`` are ids of rules and causes."""

    number: int
    system: str
    what: str
    places: tuple[str, ...]
    source: str


def _check(number: int, system: str, what: str, places: str, source: str) -> Check:
    return Check(number, system, what, tuple(places.split()), source)


CHECKS = (
    _check(1, "AWS EBS", "which limit throttled: volume or instance", "cloud.volume-limit cloud.instance-limit",
           "nvme-cli plugins/amzn"),
    _check(2, "AWS ENA", "network allowances exceeded", "cloud.network-limit", "amzn-drivers, ENA best practices"),
    _check(3, "cloud agents", "an agent rewrites interrupts and queues", "irqs.cloud-agent",
           "GoogleCloudPlatform guest-configs"),
    _check(4, "block", "slow member of an array or of equal drives", "disk.slow-member", "WEKA 360"),
    _check(5, "block", "device saturated or queueing", "disk.saturated disk.slow", "netdata disks.conf"),
    _check(6, "NVMe", "critical warning, wear, media errors, heat",
           "disks.failing disks.worn disks.too-hot disk.failing disk.throttled-by-heat", "netdata nvme.conf"),
    _check(7, "NVMe", "blocks slower than the drive's best, unlike peers",
           "disks.slower-format disks.block-sizes-differ", "WEKA 223"),
    _check(8, "NVMe", "volatile write cache below declustered RAID", "disks.declustered-write-cache", "IBM mor.py"),
    _check(9, "NVMe multipath", "I/O policy", "disks.paths-unused disks.path-lost", "kernel, nvme-multipath"),
    _check(10, "NVMe/TCP", "too few or short queues", "disks.fabric-queues", "nvme-connect(1)"),
    _check(11, "SATA in RAID", "no error recovery limit", "disks.error-recovery", "IBM mor.py"),
    _check(12, "FC", "port state, speed, link errors", "fc.port-down fc.port-slow net.errors", "prometheus/procfs"),
    _check(13, "FC", "queue depth against the array's ports", "fc.queue-depth", "NetApp"),
    _check(14, "multipath", "ALUA groups and handler", "multipath.alua-groups", "HPE"),
    _check(15, "multipath", "timeouts of Fibre Channel paths", "multipath.fc-timeouts", "HPE, Pure Storage"),
    _check(16, "SSD, thin LUN", "no periodic trim", "filesystems.not-trimmed", "Redpanda, ScyllaDB"),
    _check(17, "SSD", "online discard", "filesystems.online-discard", "Intel PerfSpect"),
    _check(18, "GCP", "local SSDs that are flushed", "disks.gcp-write-cache", "Redpanda"),
    _check(19, "dm-crypt", "queues cost latency on flash", "disks.crypt-queues", "kernel, dm-crypt"),
    _check(20, "LVM", "thin pool nearly full", "lvm.thin-pool-full", "netdata lvm.conf"),
    _check(21, "file systems", "space and inodes, and how fast they fill",
           "filesystems.nearly-full filesystems.inodes-nearly-used disk.filesystem-full", "netdata disks.conf"),
    _check(22, "ZFS", "pool state and space, throttled cache",
           "zfs.pool-degraded zfs.pool-full array.degraded memory.arc-throttled", "netdata zfs.conf"),
    _check(23, "NFS client", "slots and connections",
           "nfs.slots-unlimited nfs.one-connection net.nfs-slots net.nfs-server", "Azure NetApp Files"),
    _check(24, "NFS server", "too few threads", "application.nfsd-threads", "kernel, knfsd-stats"),
    _check(25, "Ceph", "capacities that cannot be", "ceph.osd-capacity", "Ceph, mclock-config-ref"),
    _check(26, "Cassandra", "what it checks at its start", "cassandra.host-limits", "Cassandra, StartupChecks"),
    _check(27, "limits", "AIO contexts nearly used up", "limits.aio-contexts", "ScyllaDB"),
    _check(28, "limits", "file handles of the host, files of a service", "limits.file-handles application.file-limit",
           "PCP vfs_files"),
    _check(29, "clock", "slow clock source", "cpu.slow-clock-source", "Redpanda, Seastar"),
    _check(30, "clock", "not synchronised", "clock.unsynchronised", "netdata timex.conf, WEKA 060"),
    _check(31, "CPU", "throttled by heat", "cpu.throttled-by-heat cpu.thermal", "PCP thermal_throttle"),
    _check(32, "CPU", "stolen time", "cpu.steal", "netdata cpu.conf"),
    _check(33, "memory", "hardware errors",
           "memory.uncorrected-errors memory.corrected-errors memory.pages-lost memory.errors", "netdata memory.conf"),
    _check(34, "memory", "kills for memory, with the process", "memory.oom", "PCP oom_kill"),
    _check(35, "memory", "channels, speed of modules, unequal nodes",
           "memory.modules-slow memory.channels-uneven numa.memory-uneven", "Intel PerfSpect, WEKA 420"),
    _check(36, "TCP", "memory pressure and retransmission", "net.tcp-memory net.loss", "netdata tcp_mem.conf, bpftune"),
    _check(37, "TCP", "drops of SYN queues, full conntrack table", "net.listen-drops net.conntrack-full",
           "PCP tcpqfulldrops, netdata netfilter.conf"),
    _check(38, "links", "speed below the best, errors, flaps, LACP partner",
           "links.speed-below-best links.bond-partner net.errors", "WEKA 900 and 805, netdata net.conf"),
    _check(39, "RDMA", "errors, IPoIB mode, write ordering, pauses and congestion",
           "net.errors links.ipoib-connected rdma.write-ordering net.paused net.rdma-congested", "WEKA 915 and 740"),
    _check(40, "cgroups", "a service throttled by its own limits",
           "disk.cgroup-limit memory.cgroup-limit cpu.quota", "netdata cgroups.conf, kernel cgroup-v2"),
)  # fmt: skip
