"""The cases of docs/systems/beegfs.md, on hosts built from the article's text."""

from __future__ import annotations

import re
from typing import Any, Final

from advisor.facts.systemd import VERSION
from advisor.host import Completed, Host
from tests import beegfs_server
from tests.articles.table import Case, fact, limited_cluster, limited_host, planned
from tests.beegfs_server import host
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


_ZONES: Final = "S004: services are configured to use their own NUMA zone, by custom systemd unit files"


def storage() -> Host:
    """A storage server with the article's PCI Express (its figure 7)."""
    return beegfs_server.behind_switches(beegfs_server.tree("storage")).host()


def metadata() -> Host:
    """The server of six metadata targets and three storage targets."""
    return beegfs_server.behind_switches(beegfs_server.tree("meta")).host()


CASES: Final[tuple[Case, ...]] = (
    Case(
        "A storage server whose six services are bound to nothing",
        _ZONES,
        _unbound,
        planned("numa-pinning"),
        (
            "unit:beegfs-storage@numa0-storage0.service:numa",
            "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa",
            "unit:beegfs-storage@numa1-storage5.service:numa",
            "NUMAPolicy=bind NUMAMask=1 CPUAffinity=numa",
            "node 1: beegfs-storage@numa1-storage3",
        ),
        ("no storage service was found", "name some with"),
    ),
    Case(
        "The same on the article's CentOS 7.6, whose systemd 219 cannot bind memory",
        "S004: CentOS 7.6, kernel 3.10.0-957, custom systemd unit files for each zone",
        lambda: _centos_7(bound=False),
        planned("numa-pinning"),
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
        planned("numa-pinning"),
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
        planned("numa-pinning"),
        ("unit:beegfs-storage@numa0-storage0.service:numa: is bound to node 0 already",),
        ("NUMAPolicy=default",),
    ),
    Case(
        "A target whose four drives lie two on each node",
        "S004: each target's drives are in one zone, which avoids NUMA problems",
        lambda: _unbound(targets=(("storage", 0, (10, 11, 12, 13), "raid0"),)),
        planned("numa-pinning"),
        ("nodes 0 (nvme10n1, nvme11n1) and 1 (nvme12n1, nvme13n1)", "leave it unbound"),
        ("node unknown",),
    ),
    Case(
        "Automatic balancing on a server with unbound services",
        "S004: kernel.numa_balancing = 0, as the services are bound by hand",
        lambda: _balancing(bound=False),
        planned("numa-pinning"),
        ("sysctl:kernel.numa_balancing 1 → 0",),
    ),
    Case(
        "Both InfiniBand links in one subnet: each answers for its own address, and no other link is touched",
        "S004: traffic of zone 0 goes over ib0, that of zone 1 over ib1; two interfaces in one subnet (Red Hat 30564)",
        _unbound,
        planned("beegfs-nvme"),
        (
            "sysctl:net.ipv4.conf.ib0.arp_ignore 0 → 1",
            "sysctl:net.ipv4.conf.ib1.arp_announce 0 → 2",
            "sysctl:net.ipv4.conf.ib1.rp_filter 0 → 2",
        ),
        ("conf.all",),
    ),
    Case(
        "The zones of a server: 24 drives, a link each",
        "S004: each processor has twelve NVMe drives and one InfiniBand adapter",
        host,
        fact("numa"),
        ('"id": 0', '"id": 1', '"balancing": 0'),
    ),
    Case(
        case="One storage server: six targets behind two links",
        article="S004: 24 drives of 3.2 and 1.3 GB/s, two x16 cards, two EDR links of 12.4 GB/s",
        host=storage,
        ask=limited_host(beegfs_server.volumes()),
        says=(
            "drives and volumes 76,800 31,200",
            "PCI Express 31,504 31,504",
            "links (binds) 24,842 24,842",
            "next: PCI Express, 31,504 MB/s (27 % higher)",
        ),
    ),
    Case(
        case="The metadata server: three storage targets behind one link",
        article="S004: 12 drives hold metadata and 12 storage targets; 11 links serve the storage targets of 6 servers",
        host=metadata,
        ask=limited_host(beegfs_server.volumes()),
        says=("drives and volumes 38,400 15,600", "12,421 MB/s, bound by links (ib1)"),
        never=("ib0",),
    ),
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
            "PCI Express 189,024",
            "links (binds) 136,633 136,633",
            "97 % of 136,633",
            "89 % of 136,633",
        ),
    ),
)
