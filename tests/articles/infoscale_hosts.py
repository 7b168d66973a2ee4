"""The hosts of the InfoScale white paper (S000, S001): t2.large on EC2 with RHEL 7.7, InfoScale 7.4.2 and gp2 volumes
of 5 GiB, as each of the five configurations leaves its files, and as administrators set such clusters up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from advisor.host import Completed, Host
from tests.articles.openfiler import Machine
from tests.cases import read_cases

KERNEL = "3.10.0-1062.el7.x86_64"
HEAD = "DEVICE       TYPE            DISK         GROUP        STATUS\n"
DATA = read_cases(__file__)

MIRRORED = DATA["MIRRORED"]
SHARED = f"{HEAD}xvdb         auto:cdsdisk    xvdb         datadg       online shared\n"
LOCAL = f"{HEAD}xvdb         auto:cdsdisk    xvdb         datadg       online\n"
SYSCTL: Mapping[str, str] = DATA["SYSCTL"]
FLOW = DATA["FLOW"]


def node(
    kind: str = "udp",
    listed: str | None = MIRRORED,
    *,
    links: Sequence[str] = ("eth1", "eth2"),
    low: str = "",
    lines: Sequence[str] = (),
    live: tuple[int, int] = (1000, 1000),
    nodes: int = 2,
    far: bool = False,
    mbps: int = 10_000,
    mtu: int = 1500,
    most: int = 9216,
    sysctl: Mapping[str, str] | None = None,
    reserved: str = "",
    spare: Sequence[str] = (),
) -> Callable[[], Host]:
    """A node: LLT of this ``kind`` over ``links``, ``low`` as its low-priority link, more ``lines`` of /etc/llttab,
    ``live`` high-water marks, disks as ``vxdisk`` lists them (None: not root), peers ``far`` away or in the same
    subnets, ``spare`` links without LLT. Without links there is no cluster. ``most`` is the largest MTU of their
    driver."""

    def host() -> Host:
        machine = Machine(KERNEL, 8)
        machine.files |= {
            "/sys/class/dmi/id/sys_vendor": "Xen\n",
            "/sys/hypervisor/uuid": "ec2a1b2c-0000-4000-8000-000000000001\n",
            "/sys/class/dmi/id/product_uuid": "EC2A1B2C-0000-4000-8000-000000000001\n",
            "/sys/class/dmi/id/product_name": "HVM domU\n",
            "/proc/net/sockstat": "sockets: used 9\nTCP: inuse 20 orphan 0 tw 0 alloc 20 mem 0\nUDP: inuse 6 mem 0\n",
            "/proc/net/snmp": "Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 900000 0 0\n",
            "/etc/vx/volboot": "volboot 3.1\n",
            **{f"/proc/sys/{key}": f"{value}\n" for key, value in {**SYSCTL, **(sysctl or {})}.items()},
        }
        if reserved:
            machine.files["/proc/sys/net/ipv4/ip_local_reserved_ports"] = f"{reserved}\n"
        machine.link("eth0", "10.0.0.11/24", mbps=mbps, default=True)
        for at, name in enumerate((*links, *spare), 1):
            machine.link(name, f"10.0.{at}.11/24", mbps=mbps, mtu=mtu)
            machine.entries[-1]["max_mtu"] = most
        machine.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(machine.entries))
        if links:
            _cluster(machine, kind, links, low, (*lines, *_peers(links, far=far)), live, nodes)
        machine.scsi("xvdb", machine.pci("0000:00:1f.0", 0), number="202:16")
        machine.files[f"/sys{machine.links['/sys/block/xvdb'].removeprefix('..')}/size"] = f"{5 << 21}\n"
        machine.mount("202:16", "/data", "ext4")
        if listed is not None:
            machine.answer(("vxdisk", "-o", "alldgs", "list"), listed)
        return machine.host()

    return host


def _peers(links: Sequence[str], *, far: bool) -> list[str]:
    return [f"set-addr 1 link{at} 10.0.{at + 16 * far}.12" for at, _ in enumerate(links, 1)]


def _cluster(
    machine: Machine, kind: str, links: Sequence[str], low: str, lines: Sequence[str], live: tuple[int, int], nodes: int
) -> None:
    table = ["set-node north", "set-cluster 742"]
    for at, name in enumerate(links, 1):
        device = name if kind == "ether" else "udp"
        rest = "- -" if kind == "ether" else f"{49999 + at} - 10.0.{at}.11 -"
        table.append(f"link link{at} {device} - {kind} {rest}")
    if low:
        port = "- -" if kind == "ether" else "50010 - 10.0.0.11 -"
        table.append(f"link-lowpri pub {low if kind == 'ether' else 'udp'} - {kind} {port}")
    names = [f"{number} node{number}" for number in range(nodes)]
    machine.files |= {
        "/etc/llttab": "\n".join((*table, *lines)) + "\n",
        "/etc/llthosts": "\n".join(names) + "\n",
        "/etc/gabtab": f"/sbin/gabconfig -c -n{nodes}\n",
        "/sys/module/llt/refcnt": "3\n",
    }
    machine.answer(("lltconfig", "-F", "query"), FLOW.format(*live))
    machine.answer(("lltconfig",), "LLT is running\n")
    machine.answers[("lltconfig", "-T", "query")] = Completed(1, "", "")
