"""The cases of docs/systems/beegfs.md, on hosts built from the article's text."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from advisor.facts.system.services import VERSION
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


_ASKS = (fact, found, limited_host, planned_of, reasoned, recommended)
_HOSTS = (_article, _balancing, _centos_7, _reclaiming, _scheduled, _small_buffers, _unbound, host, metadata, storage)
_GIVEN = {"client_host": client_host, "_RAID_10": _raid_10(), "_FOUR": layout("storage")[:4], "TUNED": TUNED}
DATA = read_cases(__file__, Case, partial, *_ASKS, *_HOSTS, **_GIVEN, _OVER_RDMA=_OVER_RDMA, _ZONES=_ZONES)

CASES: Final[tuple[Case, ...]] = (
    *DATA["CASES"],
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
