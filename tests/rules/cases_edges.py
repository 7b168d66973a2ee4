"""Where a rule tips over: hosts on either side of its bounds."""

from __future__ import annotations

from advisor.facts.counters import Counters
from advisor.facts.numa import Node
from tests.rules.build import SYSCTL, Table, array, disk, facts, link, llt, llt_link, numa, pcie, replaced, virtual
from tests.rules.cases import EBS, buffers, far_irqs, memory_of, on_node, one_cpu, over_udp

SMALL_MTU = {"links": (link("eth1", mtu=1500),)}
NEED = 100 * (851_968 + 212_992)
LOCAL_ONLY = ("fe80::1/64", "192.0.2.1/32", "nonsense")
FAR = far_irqs()
NEAR = tuple(replaced(irq, {"effective": "0"}) for irq in FAR["irqs"][:4])


def node(cpus: str, memory: int | None) -> dict[str, object]:
    """A second node with these CPUs and this memory."""
    return {"numa": replaced(numa(2), {"nodes": (numa().nodes[0], Node(1, cpus, memory, None, (21, 10)))})}


def with_links(parts: dict[str, object], **changed: object) -> dict[str, object]:
    links: tuple[object, ...] = parts["links"]  # type: ignore[assignment]
    return {**parts, "links": tuple(replaced(one, changed) for one in links)}  # type: ignore[type-var]


CASES: Table = {
    "links.mtu-below-range": [
        ("transport=tcp,access=sequential", SMALL_MTU, "advice", "eth1"),
        ("transport=tcp,write=50%", SMALL_MTU, "advice", "eth1"),
        ("replication=async,write=1", SMALL_MTU, "advice", "eth1"),
        ("transport=tcp,write=49%", SMALL_MTU, "info", "eth1"),
        ("access=sequential,write=1", SMALL_MTU, "info", "eth1"),
        ("transport=tcp,block=1500", SMALL_MTU, "info", "eth1"),
    ],
    "links.vxlan-mtu-above-underlay": [
        {"links": (link("eth0", mtu=1500), virtual("vx", "vxlan", mtu=1450, lower=("eth0",)))}
    ],
    "buffers.below-profile": [
        ("transport=udp", {"sysctl": SYSCTL}, "advice", "rmem_max"),
        ("transport=tcp,access=sequential", {"sysctl": SYSCTL}, "advice", "rmem_max"),
        ("transport=tcp,write=1,block=64k", {"sysctl": SYSCTL}, "advice", "rmem_max"),
        ("transport=rdma,access=sequential", {"sysctl": SYSCTL}),
        ("transport=tcp,write=1,block=63k", {"sysctl": SYSCTL}),
        ("transport=tcp,write=10%,block=1m", {"sysctl": SYSCTL}),
        ("access=sequential", {"sysctl": SYSCTL}),
    ],
    "buffers.below-bandwidth-delay": [
        # A link that is down is not the fastest.
        (
            "rtt=1ms",
            {"links": (link("eth0", speed_mbps=1000), link("eth1", state="down", carrier=False, speed_mbps=100_000))},
        )
    ],
    "buffers.below-llt-window": [over_udp("eth1", sysctl=buffers(net__core__rmem_default="851950"))],
    "buffers.udp-receive-errors": [
        ({"counters": Counters(udp_received=9_999, udp_receive_buffer_errors=1)}, "advice", "9999"),
        {"counters": Counters(udp_received=9_999, udp_receive_buffer_errors=0)},
        ({"counters": Counters(udp_receive_buffer_errors=1)}, "advice", "1"),
    ],
    "network.softnet-drops": [
        ({"counters": Counters(softnet_dropped=1)}, "advice", "1"),
        ({"counters": Counters(softnet_processed=10**6, softnet_dropped=1)}, "info", "1000000"),
    ],
    "network.softnet-squeezed": [
        ({"counters": Counters(softnet_processed=1000, softnet_squeezed=1)}, "advice", "1000"),
        {"counters": Counters(softnet_squeezed=9)},
    ],
    "buffers.above-memory": [
        {"memory": memory_of(4 * NEED, 100)},
        ({"memory": memory_of(4 * NEED - 1, 100)}, "warning", ""),
    ],
    "buffers.default-above-maximum": [{"sysctl": buffers(net__core__rmem_default="8388608")}],
    "llt.flow-control-default": [
        ("replication=sync,write=50%", {"llt": llt()}, "advice", "1000"),
        ("replication=async,rtt=501us,write=10%", {"llt": llt()}, "advice", "1000"),
        ("replication=async,rtt=501us", {"llt": llt()}, "info", "1000"),
        ("replication=sync,rtt=500us", {"llt": llt()}, "info", "1000"),
        ("replication=sync,write=10%", {"llt": llt()}, "info", "1000"),
        ("write=1", {"llt": llt()}, "info", "1000"),
    ],
    "llt.same-subnet": [
        {
            "links": (link("eth1", addresses=LOCAL_ONLY), link("eth2", addresses=LOCAL_ONLY)),
            "llt": llt(llt_link("a", "eth1"), llt_link("b", "eth2")),
        }
    ],
    "numa.links-far-from-disks": [
        on_node(1, links=(link("eth1", speed_mbps=9_999),)),
        (on_node(1, links=(link("eth1", speed_mbps=10_000),)), "info", "eth1"),
        on_node(1, links=(link("eth1", default_route=True),)),
    ],
    "numa.irqs-far-from-link": [
        # Few of them, or of a slow link, are no advice.
        ({**FAR, "irqs": (*NEAR, *FAR["irqs"][4:])}, "info", "4 of 8"),
        (with_links(FAR, speed_mbps=1000), "info", "8 of 8"),
        with_links(FAR, numa_node=None),
        with_links(FAR, state="down", carrier=False),
        with_links(FAR, pci=None, driver="veth"),
    ],
    "irqs.on-one-cpu": [
        (one_cpu(4), "advice", "CPU 0"),
        one_cpu(3),
        with_links(one_cpu(4), state="down", carrier=False),
        {**one_cpu(4), "cpu": replaced(facts().cpu, {"threads": 1})},
    ],
    "numa.node-without-memory": [node("4-7", 1), node("", 0), node("4-7", None)],
    "arrays.span-nodes": [{"numa": numa(2), "arrays": (array(numa_nodes=(1,)),)}],
    "arrays.linear-over-many": [
        {"arrays": (array("vg0/data", "sdb", manager="lvm", level="linear"),)},
        {"arrays": (array("md0", "sdb", "sdc", level="linear"),)},
    ],
    "pcie.below-link-speed": [
        {"links": (link("eth0", speed_mbps=63_000, pcie=pcie(8.0, 8, width_max=16, bandwidth_mbps=63_000)),)}
    ],
    "pcie.below-maximum": [{"disks": (disk("nvme0n1", pcie=pcie(0.0, 0, speed_max_gts=8.0, width_max=8)),)}],
    "pcie.shared-slot": [
        # VLANs of one port.
        {
            "links": tuple(
                link(name, speed_mbps=50_000, pcie=pcie(8.0, 4, width_max=16, bandwidth_mbps=60_000))
                for name in ("eth0", "eth0x")
            )
        }
    ],
    # Timeouts that somebody set stay.
    "disks.ebs-timeout": [
        {"disks": tuple(replaced(volume, {"queue": {"io_timeout": timeout}}) for volume in EBS)}
        for timeout in ("90000", "4294967295", "", "30s")
    ],
}
