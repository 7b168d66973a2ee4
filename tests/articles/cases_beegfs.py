"""The cases of docs/systems/beegfs.md, on hosts built from the article's text."""

from __future__ import annotations

import re
from typing import Any, Final

from advisor.facts.systemd import VERSION
from advisor.host import Completed, Host
from tests import beegfs_server
from tests.articles.table import Case, fact, found, limited_cluster, limited_host, planned_of, reasoned, recommended
from tests.beegfs_client import TUNED
from tests.beegfs_client import host as client_host
from tests.beegfs_server import Layout, host, layout
from tests.cases import read_cases
from tests.facts.storage import Tree


def _unbound(**parts: Any) -> Host:
    return host(bound=False, **parts)


def centos_7(made: Tree) -> Tree:
    """The article's operating system: systemd 219 has no property of NUMA, and the kernel is 3.10."""
    for argv, one in list(made.answers.items()):
        if argv[:2] == ("systemctl", "show") and isinstance(one, Completed):
            made.answer(argv, re.sub(r"(?m)^(NUMA|CPUAffinityFrom).*\n", "", one.stdout))
    made.answer(VERSION, "systemd 219\n+PAM +AUDIT +SELINUX +IMA -APPARMOR +SMACK\n")
    made.files["/proc/sys/kernel/osrelease"] = "3.10.0-957.el7.x86_64\n"
    return made


def _centos_7(**parts: Any) -> Host:
    return centos_7(beegfs_server.tree(**parts)).host()


def _balancing(**parts: Any) -> Host:
    made = beegfs_server.tree(**parts)
    made.files["/proc/sys/kernel/numa_balancing"] = "1\n"
    return made.host()


_BUFFERS: Final = {
    **{"net/core/rmem_max": "212992", "net/core/wmem_max": "212992"},
    **{"net/core/rmem_default": "212992", "net/core/wmem_default": "212992", "net/core/optmem_max": "20480"},
    **{"net/ipv4/tcp_rmem": "4096 87380 6291456", "net/ipv4/tcp_wmem": "4096 16384 4194304"},
    **{"net/ipv4/udp_mem": "768207 1024276 1536414", "net/ipv4/tcp_mem": "768207 1024276 1536414"},
}
"""The buffer limits of CentOS 7."""


def _small_buffers() -> Host:
    made = beegfs_server.tree()
    made.files |= {f"/proc/sys/{key}": f"{value}\n" for key, value in _BUFFERS.items()}
    return made.host()


def _raid_10() -> tuple[Layout, ...]:
    return tuple((kind, node, drives, "raid10") for kind, node, drives, _ in layout("storage"))


def _reclaiming(**parts: Any) -> Host:
    made = beegfs_server.tree(**parts)
    made.files["/etc/sysctl.d/90-beegfs.conf"] = "vm.zone_reclaim_mode = 2\n"
    made.files["/proc/sys/vm/zone_reclaim_mode"] = "2\n"
    return made.host()


def _article(*, thp: str) -> Host:
    made = centos_7(beegfs_server.tree())
    made.files["/sys/kernel/mm/transparent_hugepage/enabled"] = f"{thp}\n"
    return made.host()


def _scheduled() -> Host:
    made = beegfs_server.tree()
    (path,) = (path for path in made.files if path.endswith("/nvme0n1/queue/scheduler"))
    made.files[path] = "[mq-deadline] kyber none\n"
    return made.host()


_OVER_RDMA: Final = "S004: two InfiniBand EDR adapters in each server; RDMA passes the sockets, and none is tuned"
_ZONES: Final = "S004: services are configured to use their own NUMA zone, by custom systemd unit files"


def storage() -> Host:
    """A storage server with the article's PCI Express (its figure 7)."""
    return beegfs_server.behind_switches(beegfs_server.tree("storage")).host()


def metadata() -> Host:
    """The server of six metadata targets and three storage targets."""
    return beegfs_server.behind_switches(beegfs_server.tree("meta")).host()


DATA = read_cases(
    __file__,
    Case,
    _scheduled,
    _small_buffers,
    _unbound,
    fact,
    found,
    host,
    limited_host,
    metadata,
    planned_of,
    reasoned,
    recommended,
    storage,
    _OVER_RDMA=_OVER_RDMA,
    _ZONES=_ZONES,
    client_host=client_host,
)

CASES: Final[tuple[Case, ...]] = (
    *DATA["CASES"],
    Case(
        "The same on the article's CentOS 7.6, whose systemd 219 cannot bind memory",
        "S004: CentOS 7.6, kernel 3.10.0-957, custom systemd unit files for each zone",
        lambda: _centos_7(bound=False),
        planned_of(("unit:", "sysctl:"), "numa-pinning"),
        (
            "CPUAffinity= → CPUAffinity=0-23,48-71",
            "CPUAffinity=24-47,72-95",
            "memory cannot be bound",
            "numactl --membind",
        ),
        ("NUMAPolicy=bind", "CPUAffinity=numa"),
    ),
    Case(
        "The metadata server on CentOS 7.6: six metadata services in zone 0, three storage services in zone 1",
        "S004: six metadata services in zone 0 and three storage services in zone 1 of one server",
        lambda: _centos_7(role="meta", bound=False),
        planned_of(("unit:", "sysctl:"), "numa-pinning"),
        (
            "unit:beegfs-meta@numa0-meta5.service:numa CPUAffinity= → CPUAffinity=0-23,48-71",
            "unit:beegfs-storage@numa1-storage8.service:numa CPUAffinity= → CPUAffinity=24-47,72-95",
        ),
        ("NUMAPolicy=bind",),
    ),
    Case(
        "Services that are bound to their zones already",
        _ZONES,
        lambda: host(bound=True),
        planned_of(("unit:", "sysctl:"), "numa-pinning"),
        ("unit:beegfs-storage@numa0-storage0.service:numa: is bound to node 0 already",),
        ("NUMAPolicy=default",),
    ),
    Case(
        "A target whose four drives lie two on each node",
        "S004: each target's drives are in one zone, which avoids NUMA problems",
        lambda: _unbound(targets=(("storage", 0, (10, 11, 12, 13), "raid0"),)),
        planned_of(("unit:", "sysctl:"), "numa-pinning"),
        ("nodes 0 (nvme10n1, nvme11n1) and 1 (nvme12n1, nvme13n1)", "leave it unbound"),
        ("node unknown",),
    ),
    Case(
        "Automatic balancing on a server with unbound services",
        "S004: kernel.numa_balancing = 0, as the services are bound by hand",
        lambda: _balancing(bound=False),
        planned_of(("unit:", "sysctl:"), "numa-pinning"),
        ("sysctl:kernel.numa_balancing 1 → 0",),
    ),
    *DATA["CASES_2"],
    Case(
        "Storage targets on RAID 10 of four NVMe drives",
        "S004: RAID 0 writes 5.1 GB/s, RAID 10 3.4 GB/s and half of the capacity",
        lambda: host(targets=_raid_10()),
        reasoned("beegfs.storage-on-mirror"),
        ("(info)", "3.4 GB/s", "5.1 and 5.5 GB/s", "loss of one drive loses the target"),
    ),
    *DATA["CASES_3"],
    Case(
        "vm.zone_reclaim_mode = 2 in a file, every service bound to its zone",
        "S004: vm.zone_reclaim_mode = 2 on servers whose services are bound",
        lambda: _reclaiming(bound=True),
        found("advice.zone-reclaim"),
        ("no finding",),
    ),
    Case(
        "vm.zone_reclaim_mode = 2 in a file, services bound to nothing",
        "S004: vm.zone_reclaim_mode = 2 on servers whose services are bound; the kernel's documentation says 0 else",
        lambda: _reclaiming(bound=False),
        found("advice.zone-reclaim"),
        ("advice.zone-reclaim", "unless every service is bound"),
    ),
    Case(
        "Memory settings on which the article and BeeGFS' guide agree",
        "S004: vm.dirty_background_ratio 5, dirty_ratio 20, min_free_kbytes 262144, vfs_cache_pressure 50",
        lambda: host("meta"),
        planned_of(("sysctl:vm",), "beegfs-nvme"),
        (
            "sysctl:vm.dirty_background_ratio 10 → 5",
            "sysctl:vm.dirty_ratio: already set",
            "sysctl:vm.min_free_kbytes 90112 → 262144",
            "sysctl:vm.vfs_cache_pressure 100 → 50",
        ),
    ),
    Case(
        "Huge pages off and vm.zone_reclaim_mode 2, where the article is to be followed to the letter",
        "S004: huge pages are switched off; vm.zone_reclaim_mode = 2. BeeGFS' own guide says always and 1",
        lambda: _article(thp="[always] madvise never"),
        planned_of(("thp:", "sysctl:vm"), "beegfs-nvme", thp="never", zone_reclaim="2"),
        ("thp:enabled always → never", "sysctl:vm.zone_reclaim_mode 0 → 2"),
    ),
    Case(
        "Workers: 32 for each storage target, 24 for each metadata service",
        "S004: tuneNumWorkers is 24 for metadata and 32 for storage",
        lambda: host("meta"),
        planned_of(("file:",), "beegfs-nvme", meta_workers="24"),
        (
            "numa1-storage8.d/beegfs-storage.conf:tuneNumWorkers (unset) → 32",
            "numa0-meta0.d/beegfs-meta.conf:tuneNumWorkers (unset) → 24",
        ),
    ),
    Case(
        "Connections of the servers: 32 of metadata and 12 of storage are BeeGFS' defaults",
        "S004: connMaxInternodeNum is 32 for metadata and 12 for storage",
        lambda: host("meta"),
        planned_of(("file:",), "beegfs-nvme"),
        ("tuneNumWorkers",),
        ("connMaxInternodeNum",),
    ),
    Case(
        "tuneTargetChooser = roundrobin in a metadata service's file",
        "S004: tuneTargetChooser is set to roundrobin for the benchmark",
        lambda: host("meta", settings={"tuneTargetChooser": "roundrobin"}),
        reasoned("advice.target-chooser"),
        ("advice.target-chooser", "benchmark", ":tuneTargetChooser=randomized"),
    ),
    *DATA["CASES_4"],
    Case(
        "A client with two file systems, one of which does not pass fsync on",
        "S004: beegfs-mounts.conf names beegfs-client-medium.conf and beegfs-client-small.conf",
        lambda: client_host({"tuneRemoteFSync": "false"}, file="/etc/beegfs/beegfs-client-medium.conf"),
        found("beegfs.client-fsync"),
        ("tuneRemoteFSync=true",),
    ),
    Case(
        "A client set up as the article's: 24 connections, its data link, three targets in chunks of 2 MiB",
        "S004: connMaxInternodeNum 24, stripe count 3, chunk 2 MiB",
        lambda: client_host(TUNED, pattern=("2M", 3)),
        found("beegfs.client-connections", "beegfs"),
        ("no finding",),
    ),
    Case(
        "Zones with unlike numbers of drives",
        "S004: a balanced configuration, in which each processor has twelve drives and one adapter",
        lambda: host(targets=layout("storage")[:4]),
        found("beegfs.uneven-zones"),
        ("twelve and one in the article",),
    ),
    Case(
        "Metadata on RAID 1 pairs, as the article has it",
        "S004: twelve drives of zone 0 as six RAID 1 pairs with ext4",
        lambda: host("meta"),
        found("beegfs.metadata-not-mirrored"),
        ("no finding",),
    ),
    *DATA["CASES_5"],
    Case(
        "The metadata server: six RAID 1 pairs with ext4 on node 0, three RAID 0 of four drives on node 1",
        "S004: twelve drives of zone 0 as six RAID 1 groups with ext4, those of zone 1 as three RAID 0 with XFS",
        lambda: host("meta"),
        fact("beegfs"),
        (
            '"disks": ["nvme10n1", "nvme11n1"], "filesystem": "ext4", "level": "raid1"',
            '"disks": ["nvme12n1", "nvme13n1", "nvme14n1", "nvme15n1"], "filesystem": "xfs", "level": "raid0"',
        ),
    ),
    *DATA["CASES_6"],
    Case(
        case="The cluster: five storage servers and the metadata server",
        article="S004: drives 422 and 172 GB/s, network 136.4 GB/s, which limits; 132 and 121 GB/s measured are 97 and "
        "89 %",
        host=storage,
        ask=limited_cluster(
            {**{f"storage{number}": storage for number in range(2, 6)}, "metadata": metadata},
            beegfs_server.volumes(),
            "read=132GB/s,write=121GB/s",
        ),
        says=(
            "drives and volumes 422,400 171,600",
            "PCI Express 173,272",
            "links (binds) 136,633 136,633",
            "97 % of 136,633",
            "89 % of 136,633",
        ),
    ),
)
