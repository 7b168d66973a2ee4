"""Hosts for the pictures: a BeeGFS server of 24 drives, a laptop, and a machine of 8 nodes and 576 CPUs."""

from __future__ import annotations

from typing import Any

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.processors.cpu import Cpu
from advisor.facts.processors.numa import Node, Numa
from advisor.facts.system.memory import Memory
from advisor.facts.system.services import Service
from advisor.rules.judged import judge
from advisor.rules.rule import Finding
from tests.rules.build import (
    GIB,
    SYSCTL,
    array,
    disk,
    facts,
    filesystem,
    identity,
    link,
    llt,
    llt_link,
    pcie,
    replaced,
    virtual,
)

MODEL = "Dell Ent NVMe v2 AGN RI U.2 3.84TB"


def drive(number: int, node: int | None, **parts: Any) -> Disk:
    """An NVMe drive of 3.84 TB on four lanes of PCIe 3."""
    whole = {"size_bytes": 3_840_755_982_336, "model": MODEL, "pcie": pcie(8.0, 4), "numa_node": node, **parts}
    return disk(f"nvme{number}n1", **whole)


def drives(first: int, count: int, node: int | None, **parts: Any) -> tuple[Disk, ...]:
    return tuple(drive(number, node, **parts) for number in range(first, first + count))


def over(name: str, level: str, *numbers: int, nodes: tuple[int, ...] = (0,), **parts: Any) -> Array:
    """An md array over some of the NVMe drives, by their numbers."""
    members = tuple(f"nvme{number}n1" for number in numbers)
    per_level = {"raid1": 1, "raid0": len(members), "raid10": len(members) // 2}
    data = per_level.get(level, len(members) - 1)
    whole = {"level": level, "numa_nodes": nodes, "data_disks": data, "size_bytes": data * 3_840_000_000_000, **parts}
    return array(name, *members, **{"chunk_bytes": None if level == "raid1" else 512 << 10, **whole})


def of_arrays(name: str, *lower: Array, **parts: Any) -> Array:
    """A raid0 over other arrays."""
    disks = tuple(sorted({disk for one in lower for disk in one.disks}))
    nodes = tuple(sorted({node for one in lower for node in one.numa_nodes}))
    size = sum(one.size_bytes or 0 for one in lower)
    whole = {"numa_nodes": nodes, "disks": disks, "size_bytes": size, "data_disks": len(lower), **parts}
    return array(name, *(one.device for one in lower), **whole)


def infiniband(name: str, node: int, number: int, **parts: Any) -> Link:
    whole = {
        "kind": "infiniband",
        "speed_mbps": 100_000,
        "mtu": 4092,
        "pcie": pcie(8.0, 16),
        "pci": f"0000:{number:02x}:00.0",
        "numa_node": node,
        "addresses": (f"192.0.2.{10 + 64 * node}/26",),
        "detail": {"rdma_device": f"mlx5_{number}"},
    }
    return link(name, **{**whole, **parts})


def service(unit: str, cpus: str, mems: str, *devices: str, policy: str | None = "bind") -> Service:
    return Service(f"{unit}.service", 4711, policy, mems, None, cpus, mems, devices)


def memory(gib: int) -> Memory:
    return replaced(facts().memory, {"total_bytes": gib * GIB, "available_bytes": gib * GIB * 3 // 4})


def beegfs() -> tuple[Facts, tuple[Service, ...]]:
    """Two nodes, twelve drives and an InfiniBand link on each.

    Node 0: a pair for metadata, and a raid0 over four pairs. Node 1: a pair, two raid0 of four drives. One pair lies
    on both nodes, one drive runs on two lanes, one service uses the other node's array, one may run anywhere.
    """
    pairs = tuple(over(f"md{2 + at}", "raid1", 2 + 2 * at, 3 + 2 * at) for at in range(4))
    arrays = (
        over("md0", "raid1", 0, 1, mountpoints=("/data/meta0",)),
        over("md1", "raid1", 12, 13, nodes=(1,), mountpoints=("/data/meta1",)),
        *pairs,
        of_arrays("md100", *pairs, mountpoints=("/data/storage0",)),
        over("md6", "raid0", 14, 15, 16, 17, nodes=(1,), mountpoints=("/data/storage1",)),
        over("md7", "raid0", 18, 19, 20, 21, nodes=(1,), mountpoints=("/data/storage2",)),
        over("md9", "raid1", 10, 22, nodes=(0, 1), mountpoints=("/data/spool",)),
    )
    held = {disk: one.device for one in arrays for disk in one.disks if one.name != "md100"}
    disks = tuple(
        replaced(one, {"holders": (held[one.name],) if one.name in held else ()})
        for one in (*drives(0, 12, 0), *drives(12, 12, 1))
    )
    slow = replaced(disks[16], {"pcie": pcie(8.0, 2, width_max=4)})
    services = (
        service("beegfs-meta@numa0", "0-15,32-47", "0", "/data/meta0", "ib0"),
        service("beegfs-storage@numa0", "0-15,32-47", "0", "/data/storage0", "ib0"),
        service("beegfs-meta@numa1", "16-31,48-63", "1", "/data/meta1", "ib1"),
        service("beegfs-storage@numa1", "16-31,48-63", "1", "/data/storage1", "/data/storage2", "ib0"),
        service("beegfs-mgmtd", "0-63", "0-1", "/data/spool", policy=None),
    )
    eno = {"speed_mbps": 1000, "mtu": 1500, "mtu_max": 9000, "driver": "tg3", "pcie": pcie(5.0, 1, width_max=2)}
    links = (
        infiniband("ib0", 0, 0x3B),
        infiniband("ib1", 1, 0xAF, pcie=pcie(8.0, 8, width_max=16)),
        link("eno1", upper=("bond0",), pci="0000:04:00.0", **eno),
        link("eno2", upper=("bond0",), pci="0000:d8:00.0", **{**eno, "numa_node": 1}),
        virtual(
            "bond0",
            "bond",
            lower=("eno1", "eno2"),
            mtu=1500,
            speed_mbps=2000,
            upper=("bond0.7",),
            detail={"mode": "active-backup"},
        ),
        virtual("bond0.7", "vlan", lower=("bond0",), mtu=1500, addresses=("10.7.0.5/24",), default_route=True),
        virtual("lo", "loopback", mtu=65536, state="unknown"),
    )
    made = facts(
        host=identity(hostname="stor1.example.org", virtualization="none", memory_bytes=384 * GIB),
        cpu=Cpu("0-63", None, "0-63", 64, 32, 2, 2, "Intel(R) Xeon(R) Gold 6226R", "0-63"),
        memory=memory(384),
        numa=Numa(
            nodes=(
                Node(0, "0-15,32-47", 192 * GIB, 150 * GIB, (10, 21)),
                Node(1, "16-31,48-63", 192 * GIB, 171 * GIB, (21, 10)),
            ),
            balancing=1,
            allowed_nodes="0-1",
        ),
        links=links,
        disks=(*disks[:16], slow, *disks[17:]),
        arrays=arrays,
        filesystems=tuple(
            filesystem(one.device, mountpoints=one.mountpoints, stripe_unit_bytes=None, stripe_width_bytes=None)
            for one in arrays
            if one.mountpoints
        ),
        sysctl=SYSCTL,
    )
    return made, services


def laptop() -> tuple[Facts, tuple[Service, ...]]:
    """One node, whose devices do not show where they are; a docking station, Wi-Fi, and bridges of containers."""
    nowhere = {"numa_node": None, "local_cpus": None}
    wifi = {"kind": "wlan", "driver": "iwlwifi", "speed_mbps": None, "mtu": 1500, "pcie": pcie(5.0, 1)}
    system = disk(
        "nvme0n1",
        numa_node=None,
        size_bytes=512_110_190_592,
        model="Samsung SSD 980 PRO 512GB",
        pcie=pcie(16.0, 4),
        partitions=("nvme0n1p1", "nvme0n1p2"),
        mountpoints=("/", "/boot/efi"),
    )
    return (
        facts(
            host=identity(
                hostname="laptop", vendor="LENOVO", product="20XW0026GE", virtualization="none", memory_bytes=16 * GIB
            ),
            cpu=Cpu("0-7", None, "0-7", 8, 4, 1, 2, "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", "0-7"),
            memory=memory(16),
            numa=Numa((Node(0, "0-7", 16 * GIB, 3 * GIB, (10,)),), 0, "0"),
            links=(
                link("enp0s31f6", speed_mbps=None, state="down", carrier=False, driver="e1000e", mtu=1500, **nowhere),
                link("wlp0s20f3", addresses=("192.0.2.77/24",), default_route=True, **{**wifi, **nowhere}),
                virtual("docker0", "bridge", state="down", carrier=False, mtu=1500),
                virtual("lo", "loopback", state="unknown", mtu=65536),
            ),
            disks=(system,),
            filesystems=(filesystem("nvme0n1p2", kind="ext4", mountpoints=("/",), stripe_unit_bytes=None),),
        ),
        (),
    )


def large() -> tuple[Facts, tuple[Service, ...]]:
    """Eight nodes of 72 CPUs, numbered round robin; a link on every other node, drives on two, LLT on two."""
    names = {node: ",".join(str(cpu) for cpu in range(node, 576, 8)) for node in range(8)}
    nodes = tuple(
        Node(
            node,
            names[node],
            256 * GIB,
            200 * GIB,
            tuple(10 if node == other else 12 if node // 4 == other // 4 else 32 for other in range(8)),
        )
        for node in range(8)
    )
    links = tuple(
        link(
            f"ens{node}",
            numa_node=node,
            pcie=pcie(16.0, 16),
            speed_mbps=100_000,
            pci=f"0000:{node}1:00.0",
            addresses=(f"10.0.{node}.1/24",),
        )
        for node in range(0, 8, 2)
    )
    disks = (*drives(0, 16, 3), *drives(16, 8, 5), *drives(24, 2, None))
    services = (
        service("postgresql@main", "0-575", "0-7", "/srv/pg", policy=None),
        service("vxfen", names[2], "2", "ens2"),
        service("backup", names[4], "4", "/srv/pg"),
    )
    return (
        facts(
            host=identity(
                hostname="db-large",
                virtualization="none",
                memory_bytes=2048 * GIB,
                vendor="HPE",
                product="Superdome Flex",
            ),
            cpu=Cpu("0-575", None, "0-575", 576, 288, 8, 2, "Intel(R) Xeon(R) Platinum 8280L CPU @ 2.70GHz", "0-575"),
            memory=memory(2048),
            numa=Numa(nodes, 1, "0-7"),
            links=(*links, virtual("lo", "loopback", state="unknown", mtu=65536)),
            disks=disks,
            arrays=(
                over("md0", "raid10", *range(0, 16), nodes=(3,), mountpoints=("/srv/pg",)),
                over(
                    "md1",
                    "raid5",
                    *range(16, 24),
                    nodes=(5,),
                    mountpoints=("/srv/archive",),
                    state="degraded",
                    missing=1,
                    failed=("nvme19n1",),
                ),
            ),
            llt=llt(llt_link("link1", "ens2"), llt_link("link2", "ens6", low_priority=True)),
        ),
        services,
    )


def judged(found: tuple[Facts, tuple[Service, ...]]) -> tuple[Facts, tuple[Finding, ...], tuple[Service, ...]]:
    """The host, what the rules say about it, and its services: what a picture is made from."""
    made, services = found
    return made, judge(made), services


HOSTS = {"beegfs": beegfs, "laptop": laptop, "large": large}


def device_names(found: Facts) -> tuple[str, ...]:
    """Every link, disk and array."""
    links, disks = (one.name for one in found.links), (one.name for one in found.disks)
    return (*links, *disks, *(one.name for one in found.arrays))
