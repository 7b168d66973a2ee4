"""Whole hosts from a few words: each function gives a complete record, any part of which may be replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk, FileSystem
from advisor.facts.clusters.llt import Llt, LltLink, Llttab
from advisor.facts.host_facts import Facts
from advisor.facts.network.link_claim import Owners
from advisor.facts.network.links import Channels, Link, Rings
from advisor.facts.processors.cpu import Cpu
from advisor.facts.processors.numa import Node, Numa
from advisor.facts.processors.pci import Irq, PcieLink
from advisor.facts.settings.sysctl import SysctlOrigin, SysctlSource
from advisor.facts.system.identity import Cloud, Identity
from advisor.facts.system.memory import HugePagePool, Memory, Sockets
from advisor.facts.unknown import Unknown

GIB = 1 << 30
T = TypeVar("T", bound=msgspec.Struct)
Table = dict[str, list[Any]]
"""Rows of `tests.rules.table.cases_of` by their rule."""

SYSCTL: Mapping[str, str] = {
    "kernel.numa_balancing": "1",
    "net.core.netdev_budget": "300",
    "net.core.netdev_max_backlog": "1000",
    "net.core.rmem_default": "212992",
    "net.core.rmem_max": "212992",
    "net.core.somaxconn": "4096",
    "net.core.wmem_default": "212992",
    "net.core.wmem_max": "212992",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "vm.dirty_background_ratio": "10",
    "vm.dirty_ratio": "20",
    "vm.swappiness": "60",
}
LARGE_BUFFERS = {
    **SYSCTL,
    "net.core.rmem_max": "8388608",
    "net.core.wmem_max": "8388608",
    "net.core.rmem_default": "851968",
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 33554432",
}
FLOW = {"lowwater": 800, "highwater": 1000, "rportlowwater": 800, "rporthighwater": 1000, "window": 50, "ackval": 10}


def replaced(record: T, parts: Mapping[str, Any]) -> T:
    return msgspec.structs.replace(record, **parts)


def pcie(speed: float = 8.0, width: int = 8, **parts: Any) -> PcieLink:
    bandwidth = round(speed * width * 1000 * 128 / 130)
    return replaced(PcieLink(speed, speed, width, width, bandwidth, None), parts)


def link(name: str, **parts: Any) -> Link:
    """A physical link of 25 Gbit/s, up, MTU 9000 of 9216, on node 0."""
    return replaced(
        Link(
            name=name,
            kind="ethernet",
            mtu=9000,
            mtu_min=68,
            mtu_max=9216,
            speed_mbps=25_000,
            state="up",
            carrier=True,
            driver="mlx5_core",
            firmware="16.35.3006",
            pci="0000:3b:00.0",
            numa_node=0,
            local_cpus="0-3",
            pcie=None,
            mac="02:00:00:00:00:01",
            permanent_mac="02:00:00:00:00:01",
            ifindex=2,
            lower=(),
            upper=(),
            irqs=(),
            rings=Rings(1024, 8192, 1024, 8192),
            channels=Channels(0, 0, 0, 0, 8, 63, 0, 0),
            features=None,
            txqueuelen=1000,
            addresses=(),
            default_route=False,
            detail={},
        ),
        parts,
    )


def virtual(name: str, kind: str, **parts: Any) -> Link:
    """A link without a device behind it."""
    nowhere = {"driver": None, "firmware": None, "pci": None, "numa_node": None, "local_cpus": None}
    return link(name, kind=kind, rings=None, channels=None, mtu_max=65535, **{**nowhere, **parts})


def bond(
    name: str, *ports: str, ports_mtu: int = 9000, ports_down: Iterable[str] = (), speeds: Any = (), **parts: Any
) -> tuple[Link, ...]:
    """A bond and its ports, which are named with an optional ``@node``; ``speeds`` in Mbit/s by port."""
    split = [port.partition("@") for port in ports]
    lower = tuple(
        link(
            port,
            upper=(name,),
            numa_node=int(node or 0),
            pci=f"0000:3b:00.{index}",
            mtu=ports_mtu,
            **({"state": "down", "carrier": False} if port in ports_down else {}),
            **({"speed_mbps": dict(speeds)[port]} if port in dict(speeds) else {}),
        )
        for index, (port, _, node) in enumerate(split)
    )
    return (*lower, virtual(name, "bond", lower=tuple(port.name for port in lower), **parts))


def disk(name: str, **parts: Any) -> Disk:
    """An NVMe drive of 1.6 TB on node 0."""
    return replaced(
        Disk(
            name=name,
            kind="nvme",
            size_bytes=1_600_321_314_816,
            rotational=False,
            scheduler="none",
            numa_node=0,
            model="INTEL SSDPE2KE016T7",
            serial=f"S{name}",
            pci=f"0000:{int(''.join(filter(str.isdigit, name)) or 0) % 256:02x}:00.0",
            pcie=None,
            irqs=(),
            queue={"scheduler": "[none] mq-deadline", "read_ahead_kb": "128", "io_timeout": "30000"},
            partitions=(),
            holders=(),
            mountpoints=(),
            paths=(),
        ),
        parts,
    )


def disks(count: int, **parts: Any) -> tuple[Disk, ...]:
    return tuple(disk(f"nvme{number}n1", **parts) for number in range(count))


def array(name: str = "md0", *members: str, **parts: Any) -> Array:
    """A clean md raid0 over four drives, chunks of 512 KiB."""
    names = members or ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1")
    return replaced(
        Array(
            name=name,
            manager="md",
            device=name,
            level="raid0",
            chunk_bytes=512 << 10,
            data_disks=len(names),
            state="clean",
            missing=0,
            members=names,
            spares=(),
            failed=(),
            journal=(),
            numa_nodes=(0,),
            size_bytes=len(names) * 1_600_000_000_000,
            progress_percent=None,
            mountpoints=(),
            detail={},
            disks=names,
        ),
        parts,
    )


def filesystem(device: str = "md0", **parts: Any) -> FileSystem:
    """XFS with su=512k, sw=4 on md0."""
    return replaced(
        FileSystem(
            device=device,
            kind="xfs",
            mountpoints=("/data",),
            options="rw,noatime",
            block_bytes=4096,
            stripe_unit_bytes=512 << 10,
            stripe_width_bytes=4 * (512 << 10),
        ),
        parts,
    )


def llt_link(tag: str, kernel_link: str | None, **parts: Any) -> LltLink:
    """A private LLT link over UDP with the default MTU."""
    record = LltLink(tag, "udp", "udp", low_priority=False, port="50000", mtu=None, address=None, link=kernel_link)
    return replaced(record, parts)


def llt(*links: LltLink, **parts: Any) -> Llt:
    """LLT that runs, with the flow control of InfoScale 7.4.2 and nothing set in /etc/llttab."""
    table = Llttab(node="n1", cluster="7", links=links, peers=(), flow={}, timers={}, other=())
    return replaced(Llt(running=True, flow_control=FLOW, links=links, llttab=table), parts)


def llttab(**flow: int) -> Llttab:
    return Llttab(node="n1", cluster="7", links=(), peers=(), flow=flow, timers={}, other=())


def irqs(first: int, count: int, *, on: str, spread: bool = True, **parts: Any) -> tuple[Irq, ...]:
    """Interrupts that take effect on the CPUs of ``on``, one after the other, or all on the first of them."""
    cpus = [str(cpu) for cpu in range(int(on.split("-")[0]), int(on.split("-")[-1]) + 1)]
    return tuple(
        replaced(
            Irq(
                number=first + index,
                actions=(f"queue-{index}",),
                affinity=on,
                effective=cpus[index % len(cpus)] if spread else cpus[0],
                node=None,
                managed=False,
                device=None,
            ),
            parts,
        )
        for index in range(count)
    )


def origin(key: str, *values: str, path: str = "/etc/sysctl.d/{}-site.conf", **parts: Any) -> SysctlOrigin:
    """A key that files set one after the other; the last wins."""
    lines = [SysctlSource(key, value, path.format(10 * n), 3) for n, value in enumerate(values, start=1)]
    return SysctlOrigin(winner=replaced(lines[-1], parts), losers=tuple(lines[:-1]))


def numa(count: int = 1, *, cpus_each: int = 4, balancing: int | None = 1) -> Numa:
    nodes = tuple(
        Node(
            id=node,
            cpus=f"{node * cpus_each}-{(node + 1) * cpus_each - 1}",
            memory_bytes=16 * GIB,
            free_bytes=12 * GIB,
            distances=tuple(10 if other == node else 21 for other in range(count)),
        )
        for node in range(count)
    )
    return Numa(nodes=nodes, balancing=balancing, allowed_nodes=f"0-{count - 1}" if count > 1 else "0")


def identity(**parts: Any) -> Identity:
    return replaced(
        Identity(
            hostname="db1",
            kernel="6.1.0-25-amd64",
            os="Debian GNU/Linux 12 (bookworm)",
            architecture="x86_64",
            virtualization=None,
            vendor="Dell Inc.",
            product="PowerEdge R740xd",
            memory_bytes=64 * GIB,
            machine_id="0" * 32,
            boot_id=None,
            cloud=None,
        ),
        parts,
    )


def on_cloud(provider: str, instance_type: str | None = None) -> Identity:
    return identity(virtualization="kvm", vendor=None, product=None, cloud=Cloud(provider, instance_type))


def facts(**parts: Any) -> Facts:
    """A calm host on which no rule fires: one node, one link at its best, large buffers."""
    return replaced(
        Facts(
            host=identity(),
            cpu=Cpu("0-3", None, "0-3", 4, 4, 1, 1, "Intel(R) Xeon(R) Platinum 8268", "0-3"),
            memory=Memory(
                total_bytes=64 * GIB,
                available_bytes=48 * GIB,
                page_bytes=4096,
                thp_enabled="madvise",
                thp_defrag="madvise",
                hugepages=(HugePagePool(2 << 20, 0, 0),),
                sockets=Sockets(tcp=20, udp=6),
            ),
            numa=numa(),
            links=(link("eth0", addresses=("192.0.2.10/24",), default_route=True),),
            irqs=(),
            sysctl=LARGE_BUFFERS,
            sysctl_origin={},
            disks=(),
            filesystems=(),
            arrays=(),
            llt=None,
            owners=Owners(irqbalance=False, tuned_profile=None, network_managers=()),
            unknown=(),
        ),
        parts,
    )


def nothing_known() -> Facts:
    """What a scan of an empty captured tree gives: everything null."""
    return Facts(
        host=Identity(None, None, None, None, None, None, None, None, None, None, None),
        cpu=Cpu(None, None, None, None, None, None, None, None, None),
        memory=Memory(None, None, 4096, None, None, (), Sockets(None, None)),
        numa=Numa((), None, None),
        links=(),
        irqs=(),
        sysctl={},
        sysctl_origin={},
        disks=(),
        filesystems=(),
        arrays=(),
        llt=None,
        owners=Owners(irqbalance=False, tuned_profile=None, network_managers=()),
        unknown=(Unknown("links", "does not exist"), Unknown("disks", "does not exist")),
    )


def joined(table: Mapping[str, Iterable[Any]], more: Table) -> Table:
    """The rows of two tables, rule by rule."""
    return {rule: [*table.get(rule, ()), *more.get(rule, ())] for rule in {**table, **more}}
