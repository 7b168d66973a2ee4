"""Hosts that need a rule and hosts that do not: the rows about links, buffers, LLT, nodes, arrays and PCIe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.facts.processors.numa import Node
from advisor.facts.settings.sysctl import SysctlOrigin
from advisor.facts.system.memory import Counters, Sockets
from advisor.facts.writers.programs import Write
from tests.cases import read_cases
from tests.rules import build
from tests.rules.build import (
    LARGE_BUFFERS,
    Table,
    disk,
    disks,
    facts,
    irqs,
    joined,
    link,
    llt,
    llt_link,
    llttab,
    numa,
    origin,
    pcie,
    replaced,
    virtual,
)


def buffers(**changed: str) -> Mapping[str, str]:
    return {**LARGE_BUFFERS, **{key.replace("__", "."): value for key, value in changed.items()}}


def over_udp(*names: str, mtu: int = 9000, **parts: Any) -> dict[str, Any]:
    """Links that carry LLT over UDP, and LLT."""
    links = tuple(link(name, mtu=mtu, addresses=(f"10.0.{n}.1/24",)) for n, name in enumerate(names))
    table = tuple(llt_link(f"link{n}", name, port=str(50000 + n)) for n, name in enumerate(names))
    return {"links": links, "llt": llt(*table, llttab=llttab(highwater=1000, rporthighwater=1000)), **parts}


def memory_of(available: int, udp: int) -> Any:
    return replaced(facts().memory, {"available_bytes": available, "sockets": Sockets(tcp=1, udp=udp)})


def far_irqs(**parts: Any) -> dict[str, Any]:
    """eth0 on node 0, its eight interrupts on node 1."""
    there = irqs(40, 8, on="4-7", **parts)
    return {"numa": numa(2), "links": (link("eth0", irqs=tuple(irq.number for irq in there)),), "irqs": there}


def write(tunable: str, value: str | None, **parts: Any) -> Write:
    """What a .link file says."""
    return Write(tunable, value, "a .link file", 6, "/etc/systemd/network/10-x.link", 5, **parts)


def by(writer: str) -> Write:
    """What a running program sets."""
    return Write("sysctl:net.ipv4.ip_forward", "1", writer, 30, is_program=True)


def one_cpu(count: int = 8, **parts: Any) -> dict[str, Any]:
    here = irqs(40, count, on="0-3", spread=False, **parts)
    return {"links": (link("eth0", irqs=tuple(irq.number for irq in here)),), "irqs": here}


def on_node(node: int, **parts: Any) -> dict[str, Any]:
    """Data disks on a node, a link that carries no default route on node 0."""
    return {"numa": numa(2), "links": (link("eth1"),), "disks": disks(4, numa_node=node), **parts}


def voided(value: str, refused: str) -> SysctlOrigin:
    """A good line that a later, refused one keeps systemd from writing."""
    both = origin("net.ipv4.tcp_rmem", value, refused)
    late = replaced(both.winner, {"rejected": "quotes"})
    return SysctlOrigin(winner=both.losers[0], losers=(late,), voided_by=late)


def unread_at_boot(value: str, later: str) -> SysctlOrigin:
    late = replaced(origin("vm.swappiness", later, path="/etc/sysctl.conf").winner, {"at_boot": False})
    return replaced(origin("vm.swappiness", value), {"later": late})


VXLAN = virtual("vxlan7", "vxlan", mtu=8950, lower=("eth0",), detail={"id": "7"})
EBS = tuple(disk(f"nvme{n}n1", model="Amazon Elastic Block Store") for n in range(4))
NARROW = pcie(8.0, 4, width_max=16)
SLEEPY = pcie(2.5, 8, speed_max_gts=8.0)
IN_CHIPSET = link("eno1", speed_mbps=10_000, pcie=pcie(2.5, 1, speed_max_gts=8.0, bandwidth_mbps=2_000))
SLOT_OF_63 = pcie(8.0, 8, width_max=16, bandwidth_mbps=63_000)

DATA = read_cases(__file__, Counters, build, globals())

CASES: Table = joined(
    DATA["CASES"],
    {
        "numa.node-without-memory": [
            ({"numa": replaced(numa(2), {"nodes": (numa().nodes[0], Node(1, "4-7", 0, 0, (21, 10)))})}, "warning", "1")
        ],
        "memory.uncorrected-errors": [
            ({"memory": replaced(facts().memory, {"uncorrected_errors": 3})}, "critical", "3"),
            {"memory": replaced(facts().memory, {"uncorrected_errors": 0})},
        ],
        "pcie.shared-slot": [
            (
                {
                    "links": tuple(
                        link(f"eth{n}", speed_mbps=50_000, pci=f"0000:3b:00.{n}", pcie=SLOT_OF_63) for n in (0, 1)
                    )
                },
                "info",
                "100000",
            ),
            {
                "links": tuple(
                    link(f"eth{n}", speed_mbps=25_000, pci=f"0000:3b:00.{n}", pcie=SLOT_OF_63) for n in (0, 1)
                )
            },
        ],
    },
)
