"""Hosts that need a rule and hosts that do not: the rows about links, buffers, LLT, nodes, arrays and PCIe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.facts.counters import Counters
from advisor.facts.memory import Sockets
from advisor.facts.numa import Node
from advisor.facts.sysctl import SysctlOrigin
from tests.rules.build import (
    FLOW,
    LARGE_BUFFERS,
    SYSCTL,
    Table,
    array,
    bond,
    disk,
    disks,
    facts,
    filesystem,
    identity,
    irqs,
    link,
    llt,
    llt_link,
    llttab,
    numa,
    on_cloud,
    origin,
    pcie,
    replaced,
    virtual,
)

QUOTED = '"4096 87380 8388608"'


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

CASES: Table = {
    "links.mtu-below-range": [
        ({"links": (link("eth1", mtu=1500),)}, "info", "eth1"),
        ({"links": (link("eth1", mtu=1500, mtu_max=None),)}, "info", "unknown"),
        ("replicated-writes", {"links": (link("eth1", mtu=1500),)}, "advice", "eth1"),
        ({"links": bond("bond0", "eth1", "eth2", mtu=1500)}, "info", "bond0"),
        ({"links": (link("ens5", mtu=1500),), "host": on_cloud("aws", "r5b.24xlarge")}, "info", "9001"),
        {"links": (link("eth1", mtu=1500, default_route=True),)},
        {"links": (link("eth1", mtu=1500, default_route=None),)},
        {"links": (link("eth1", mtu=1500, mtu_max=1500),)},
        {"links": (link("eth1", mtu=None),)},
        {"links": (link("eth1", mtu=1500, carrier=False, state="down"),)},
        ("transport=local", {"links": (link("eth1", mtu=1500),)}),
        ("block=512", {"links": (link("eth1", mtu=1500),)}),
        {"links": (virtual("lo", "loopback", mtu=1500), virtual("veth1", "veth", mtu=1500))},
        {
            "links": (
                link("eth1", mtu=1500, upper=("eth1.7",)),
                virtual("eth1.7", "vlan", mtu=1500, lower=("eth1",), default_route=True),
            )
        },
    ],
    "links.mtu-differs-in-stack": [
        (
            {
                "links": (
                    link("eth1"),
                    link("eth2", mtu=1500),
                    virtual("br0", "bridge", mtu=1500, lower=("eth1", "eth2")),
                )
            },
            "warning",
            "eth2: 1500",
        ),
        {"links": bond("bond0", "eth1", "eth2")},
        {"links": (virtual("br0", "bridge", lower=("gone", "eth9")),)},
    ],
    "links.vxlan-mtu-above-underlay": [
        ({"links": (link("eth0", mtu=1500), VXLAN)}, "warning", "vxlan7"),
        ({"links": (link("eth0"), replaced(VXLAN, {"detail": {"remote": "2001:db8::7"}}))}, "warning", "8930"),
        {"links": (link("eth0"), VXLAN)},
        {"links": (replaced(VXLAN, {"lower": ()}),)},
    ],
    "llt.mtu-fragments": [
        (over_udp("eth1", "eth2", mtu=1500), "advice", "6 fragments"),
        (over_udp("eth1", mtu=1500, host=on_cloud("aws")), "warning", "eth1"),
        over_udp("eth1", mtu=9000),
        {"llt": llt(llt_link("a", None))},
        {"links": (link("eth1", mtu=1500),), "llt": llt(llt_link("a", "eth1", type="ether"))},
        {"links": (link("eth1", mtu=1500),), "llt": llt(llt_link("a", "eth1", mtu=1472))},
    ],
    "llt.mtu-differs": [
        (
            {"links": (link("eth1"), link("eth2", mtu=1500)), "llt": llt(llt_link("a", "eth1"), llt_link("b", "eth2"))},
            "warning",
            "b over eth2: 1500",
        ),
        {
            "links": (link("eth1"), link("eth2", mtu=1500)),
            "llt": llt(llt_link("a", "eth1"), llt_link("b", "eth2", low_priority=True)),
        },
    ],
    "buffers.below-profile": [
        ({"sysctl": SYSCTL, "counters": Counters(tcp_collapsed=40)}, "info", "net.core.rmem_max"),
        ("oltp", {"sysctl": SYSCTL, "counters": Counters(udp_receive_buffer_errors=9)}, "info", "9"),
        ({"sysctl": SYSCTL, "llt": llt(llt_link("a", "eth1"))}, "info", "eth1"),
        ("replicated-writes", {"sysctl": SYSCTL}, "advice", "net.ipv4.tcp_rmem"),
        {},
        {"sysctl": SYSCTL},
        {"sysctl": SYSCTL, "llt": llt(llt_link("a", "eth1", type="ether"))},
        ("beegfs", {"sysctl": SYSCTL}),
        ("oltp", {"sysctl": SYSCTL, "counters": Counters(tcp_pruned=0)}),
        ("transport=local", {"sysctl": SYSCTL}),
        {"sysctl": {"net.core.rmem_max": "many"}},
    ],
    "buffers.below-bandwidth-delay": [
        ("transport=tcp,rtt=10ms", {"sysctl": SYSCTL}, "advice", "67108864"),
        ("transport=tcp,rtt=1.16ms", {}),
        ("transport=rdma,rtt=100ms", {"sysctl": SYSCTL}),
        ("rtt=100ms", {"sysctl": SYSCTL, "links": (link("eth0", speed_mbps=None),)}),
    ],
    "buffers.below-llt-window": [
        (over_udp("eth1", sysctl=buffers(net__core__rmem_default="212992")), "advice", "851950"),
        over_udp("eth1"),
        {"llt": llt(llt_link("a", "eth0", type="ether")), "sysctl": SYSCTL},
        {"llt": llt(llt_link("a", "eth0", mtu=1472)), "sysctl": buffers(net__core__rmem_default="212992")},
    ],
    "buffers.udp-receive-errors": [
        ({"counters": Counters(udp_received=10_000, udp_receive_buffer_errors=50)}, "advice", "50"),
        ({"counters": Counters(udp_received=10_000_000, udp_receive_buffer_errors=1)}, "info", "10000000"),
        {"counters": Counters(udp_received=10, udp_receive_buffer_errors=0)},
    ],
    "buffers.tcp-pruned": [
        ({"counters": Counters(tcp_pruned=4)}, "info", "4"),
        {"counters": Counters(tcp_pruned=0, tcp_collapsed=8)},
    ],
    "buffers.above-memory": [
        (
            {"memory": memory_of(1 << 30, 100), "sysctl": buffers(net__core__rmem_default="8388608")},
            "warning",
            "860160000",
        ),
        {"memory": memory_of(1 << 30, 100)},
    ],
    "buffers.default-above-maximum": [
        ({"sysctl": buffers(net__core__rmem_default="16777216")}, "advice", "16777216"),
        {"sysctl": buffers(net__core__rmem_default="8388608", net__core__wmem_default="8388608")},
    ],
    "network.listen-overflows": [
        ({"counters": Counters(listen_overflows=9), "sysctl": buffers(net__core__somaxconn="128")}, "advice", "128"),
        ({"counters": Counters(listen_overflows=9)}, "info", "4096"),
        {"counters": Counters(listen_overflows=0), "sysctl": SYSCTL},
    ],
    "network.softnet-drops": [
        ({"counters": Counters(softnet_processed=1000, softnet_dropped=3)}, "advice", "1000"),
        {"counters": Counters(softnet_processed=1000, softnet_dropped=0)},
    ],
    "network.softnet-squeezed": [
        ({"counters": Counters(softnet_processed=1000, softnet_squeezed=30)}, "advice", "30"),
        {"counters": Counters(softnet_processed=10**6, softnet_squeezed=3)},
    ],
    "sysctl.rejected": [
        (
            {"sysctl_origin": {"net.ipv4.tcp_rmem": origin("net.ipv4.tcp_rmem", QUOTED, rejected="quotes")}},
            "warning",
            "/etc/sysctl.d/10-site.conf:3",
        ),
        (
            {"sysctl_origin": {"net.ipv4.tcp_rmem": voided("4096 131072 33554432", QUOTED)}},
            "warning",
            "does not write /etc/sysctl.d/10-site.conf:3",
        ),
        {"sysctl_origin": {"vm.swappiness": origin("vm.swappiness", "60")}},
    ],
    "sysctl.overridden": [
        ({"sysctl_origin": {"vm.swappiness": origin("vm.swappiness", "10", "60")}}, "advice", "20-site.conf"),
        ({"sysctl_origin": {"vm.swappiness": unread_at_boot("60", "10")}}, "advice", "only under sysctl --system"),
        {"sysctl_origin": {"vm.swappiness": origin("vm.swappiness", "60", "60")}},
        {"sysctl_origin": {"vm.swappiness": origin("vm.swappiness", "10", "60", path="/usr/lib/sysctl.d/{}.conf")}},
    ],
    "sysctl.differs-at-boot": [
        ({"sysctl_origin": {"vm.swappiness": origin("vm.swappiness", "10")}}, "advice", "live 60"),
        {"sysctl_origin": {"vm.swappiness": origin("vm.swappiness", "60")}},
        {"sysctl_origin": {"net.ipv4.tcp_rmem": origin("net.ipv4.tcp_rmem", "4096\t131072  33554432")}},
        {
            "sysctl": {"vm.dirty_ratio": "0", "vm.dirty_bytes": "1000000"},
            "sysctl_origin": {
                "vm.dirty_ratio": origin("vm.dirty_ratio", "20"),
                "vm.dirty_bytes": origin("vm.dirty_bytes", "1000000"),
            },
        },
        {"sysctl_origin": {"net.ipv4.tcp_rmem": voided("4096 87380 1", QUOTED)}},
    ],
    "llt.flow-control-default": [
        ({"llt": llt()}, "info", "1000"),
        ("write=60%,replication=sync", {"llt": llt()}, "advice", "2000"),
        ("rtt=1.2ms,replication=sync,write=30%", {"llt": llt()}, "advice", "2000"),
        # A round trip alone fills no queue.
        ("rtt=1.2ms,replication=sync", {"llt": llt()}, "info", "2000"),
        (
            "fss-cross-zone",
            {"llt": llt(flow_control={**FLOW, "highwater": 1500, "rporthighwater": 1500})},
            "info",
            "1,500",
        ),
        ("replication=none", {"llt": llt()}),
        {"llt": llt(flow_control={**FLOW, "highwater": 2000, "rporthighwater": 2000})},
        {"llt": llt(llttab=llttab(highwater=1000, rporthighwater=1000))},
        ("rtt=1.2ms,replication=sync,read=100%", {"llt": llt()}),
        # The paper, followed by hand.
        (
            "fss-cross-zone",
            {
                "llt": llt(
                    flow_control={**FLOW, "highwater": 2000, "rporthighwater": 2000},
                    llttab=llttab(highwater=2000, rporthighwater=2000),
                )
            },
        ),
    ],
    "llt.flow-control-order": [
        ({"llt": llt(flow_control={**FLOW, "lowwater": 1000})}, "warning", "live: lowwater 1000"),
        ({"llt": llt(llttab=llttab(rportlowwater=4000))}, "warning", "/etc/llttab"),
        {"llt": llt()},
    ],
    "llt.flow-control-drift": [
        ({"llt": llt(llttab=llttab(highwater=2000))}, "advice", "highwater"),
        {"llt": llt(llttab=llttab(highwater=1000))},
    ],
    "llt.same-subnet": [
        (
            {
                "links": (link("eth1", addresses=("10.0.0.1/24",)), link("eth2", addresses=("10.0.0.2/24",))),
                "llt": llt(llt_link("a", "eth1"), llt_link("b", "eth2")),
            },
            "warning",
            "10.0.0.0/24",
        ),
        over_udp("eth1", "eth2"),
    ],
    "llt.port-not-reserved": [
        (
            over_udp(
                "eth1",
                sysctl=buffers(
                    net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports="50001-50009"
                ),
            ),
            "advice",
            "50000",
        ),
        over_udp(
            "eth1",
            sysctl=buffers(
                net__ipv4__ip_local_port_range="32768 60999", net__ipv4__ip_local_reserved_ports="50000-50001"
            ),
        ),
    ],
    "numa.bond-spans-nodes": [
        ({"numa": numa(2), "links": bond("bond0", "eth1@0", "eth2@1")}, "advice", "eth2"),
        {"numa": numa(2), "links": bond("bond0", "eth1@1", "eth2@1")},
    ],
    "numa.links-far-from-disks": [
        (on_node(1), "info", "nvme3n1"),
        ("oltp,transport=tcp", on_node(1), "advice", "eth1"),
        (on_node(1, llt=llt(llt_link("a", "eth1"))), "advice", "eth1"),
        on_node(0),
        on_node(1, disks=disks(2, numa_node=1, mountpoints=("/",))),
        on_node(1, links=(link("eth1", numa_node=None),)),
    ],
    "numa.irqs-far-from-link": [
        (far_irqs(), "advice", "8 of 8"),
        far_irqs(managed=True),
        far_irqs(effective=None),
        far_irqs(effective="0,4"),
    ],
    "irqs.on-one-cpu": [(one_cpu(), "advice", "CPU 0"), one_cpu(2), one_cpu(effective="0-3")],
    "numa.node-without-memory": [
        ({"numa": replaced(numa(2), {"nodes": (numa().nodes[0], Node(1, "4-7", 0, 0, (21, 10)))})}, "warning", "1"),
        {"numa": numa(2)},
    ],
    "arrays.degraded": [
        ({"arrays": (array(level="raid5", state="degraded", missing=1),)}, "critical", "md0"),
        ({"arrays": (array(level="raid5", state="recovering", missing=1),)}, "warning", "md0"),
        ({"arrays": (array(failed=("nvme2n1",)),)}, "info", "nvme2n1"),
        {"arrays": (array(), array("md1", state=None, missing=None))},
    ],
    "disks.offline": [
        ({"disks": (disk("sdb", detail={"state": "offline"}),)}, "critical", "sdb"),
        ({"disks": (disk("nvme0n1", detail={"state": "dead"}),)}, "critical", "nvme0n1"),
        {"disks": (disk("sdb", detail={"state": "running"}), disk("nvme0n1"))},
    ],
    "memory.uncorrected-errors": [
        ({"memory": replaced(facts().memory, {"uncorrected_errors": 3})}, "critical", "3"),
        {"memory": replaced(facts().memory, {"uncorrected_errors": 0})},
        {},
    ],
    "arrays.inactive": [
        ({"arrays": (array("md5", "sdb", level="raid5", state="inactive"),)}, "critical", "sdb"),
        {"arrays": (array(), array("md127", level="container", state="inactive"))},
        {"arrays": (array("datadg/vol01", manager="vxvm", state="inactive"),)},
    ],
    "multipath.suspended": [
        (
            {"arrays": (array("mpathb", "sdb", "sdc", manager="dm-multipath", level="multipath", state="suspended"),)},
            "critical",
            "mpathb",
        ),
        {"arrays": (array(), array("mpatha", "sdb", manager="dm-multipath", state="active"))},
        {"arrays": (array("md1", state="suspended"),)},
    ],
    "advice.tcp-tw-recycle": [
        (
            {
                "host": identity(kernel="3.10.0-1160.el7"),
                "sysctl_origin": {"net.ipv4.tcp_tw_recycle": origin("net.ipv4.tcp_tw_recycle", "1")},
            },
            "warning",
            "tcp_tw_recycle = 1",
        )
    ],
    "arrays.rebuilding": [
        ({"arrays": (array(state="resyncing", progress_percent=12.6),)}, "info", "12.6 %"),
        {"arrays": (array(),)},
    ],
    "arrays.span-nodes": [
        ({"numa": numa(2), "arrays": (array(numa_nodes=(0, 1)),)}, "advice", "nodes 0, 1"),
        ({"numa": numa(2), "arrays": (array(level="raid1", numa_nodes=(0, 1)),)}, "info", "(raid1): nodes 0, 1"),
        {"numa": numa(2), "arrays": (array(level="raid1", numa_nodes=(1,)),)},
    ],
    "arrays.redundant-on-ebs": [
        ({"disks": EBS, "arrays": (array(level="raid10"),)}, "advice", "raid10"),
        {"disks": EBS, "arrays": (array(),)},
        {"disks": EBS, "arrays": (array("dg/vol", "nvme0n1", level="raid1"),)},
        {"disks": EBS, "arrays": (array(level="raid10", detail={"remote": "node2_ebs0_0"}),)},
        {"disks": disks(4), "arrays": (array(level="raid10"),)},
    ],
    "arrays.linear-over-many": [
        ({"arrays": (array("vg0/data", "sdb", "sdc", manager="lvm", device="dm-0", level="linear"),)}, "info", "sdc"),
        {"arrays": (array("vg0/data", "sdb", manager="lvm", device="dm-0", level="linear"),)},
    ],
    "filesystems.not-aligned": [
        (
            {
                "arrays": (array(level="raid5", data_disks=3),),
                "filesystems": (filesystem(stripe_unit_bytes=0, stripe_width_bytes=0),),
            },
            "advice",
            "524288",
        ),
        ({"arrays": (array(),), "filesystems": (filesystem(stripe_unit_bytes=64 << 10),)}, "advice", "65536"),
        (
            {"arrays": (array(),), "filesystems": (filesystem(stripe_unit_bytes=0, stripe_width_bytes=0),)},
            "info",
            "md0",
        ),
        (
            {
                "arrays": (array(level="raid6", data_disks=2),),
                "filesystems": (filesystem(kind="ext4", stripe_unit_bytes=None, stripe_width_bytes=4096),),
            },
            "advice",
            "4096",
        ),
        {"arrays": (array(),), "filesystems": (filesystem(),)},
        {"arrays": (array(),), "filesystems": (filesystem(stripe_unit_bytes=None, stripe_width_bytes=None),)},
        {"arrays": (array(chunk_bytes=None),), "filesystems": (filesystem("sda1"),)},
    ],
    "pcie.below-maximum": [
        ({"disks": (disk("nvme0n1", pcie=NARROW),)}, "advice", "x4 at 8 GT/s of x16"),
        ({"links": (link("eth0", pcie=SLEEPY, speed_mbps=1000),)}, "info", "2.5 GT/s"),
        {"disks": (disk("nvme0n1", pcie=pcie()), disk("nvme1n1"))},
        {"disks": (disk("nvme0n1", pcie=NARROW),), "host": identity(virtualization="kvm")},
        {"links": (IN_CHIPSET,)},
    ],
    "pcie.below-link-speed": [
        (
            {"links": (link("eth0", speed_mbps=100_000, pcie=replaced(SLOT_OF_63, {"limiting": "0000:3a:00.0"})),)},
            "warning",
            "0000:3a:00.0",
        ),
        {"links": (link("eth0", pcie=SLOT_OF_63),)},
        {"links": (IN_CHIPSET,)},
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
        {"links": tuple(link(f"eth{n}", speed_mbps=25_000, pci=f"0000:3b:00.{n}", pcie=SLOT_OF_63) for n in (0, 1))},
    ],
    "disks.bfq-on-nvme": [
        ({"disks": disks(2, scheduler="bfq")}, "advice", "nvme1n1"),
        {"disks": (disk("sda", scheduler="bfq"),)},
    ],
    "disks.ebs-timeout": [({"disks": EBS}, "advice", "nvme3n1"), {"disks": disks(2)}],
}
