"""Where a rule tips over: hosts on either side of its bounds."""

from __future__ import annotations

from advisor.facts.processors.cpu import CpuSets
from advisor.facts.processors.numa import Node
from advisor.facts.system.memory import Counters
from tests.cases import read_cases
from tests.rules import build, cases
from tests.rules.build import Table, facts, joined, link, numa, pcie, replaced
from tests.rules.cases import EBS, far_irqs, one_cpu

SMALL_MTU = {"links": (link("eth1", mtu=1500),)}
FAR = far_irqs()
NEAR = tuple(replaced(irq, {"effective": "0"}) for irq in FAR["irqs"][:4])


def node(cpus: str, memory: int | None) -> dict[str, object]:
    """A second node with these CPUs and this memory."""
    return {"numa": replaced(numa(2), {"nodes": (numa().nodes[0], Node(1, cpus, memory, None, (21, 10)))})}


def with_links(parts: dict[str, object], **changed: object) -> dict[str, object]:
    links: tuple[object, ...] = parts["links"]  # type: ignore[assignment]
    return {**parts, "links": tuple(replaced(one, changed) for one in links)}  # type: ignore[type-var]


DATA = read_cases(__file__, Counters, build, cases, globals())

CASES: Table = joined(
    DATA["CASES"],
    {
        "numa.irqs-far-from-link": [({**FAR, "irqs": (*NEAR, *FAR["irqs"][4:])}, "info", "4 of 8")],
        "irqs.on-one-cpu": [{**one_cpu(4), "cpu": replaced(facts().cpu, {"sets": CpuSets(housekeeping="0")})}],
        "pcie.shared-slot": [
            {
                "links": tuple(
                    link(name, speed_mbps=50_000, pcie=pcie(8.0, 4, width_max=16, bandwidth_mbps=60_000))
                    for name in ("eth0", "eth0x")
                )
            }
        ],
        "disks.ebs-timeout": [
            {"disks": tuple(replaced(volume, {"queue": {"io_timeout": timeout}}) for volume in EBS)}
            for timeout in ("90000", "4294967295", "", "30s")
        ],
    },
)
