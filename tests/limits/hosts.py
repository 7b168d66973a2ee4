"""Hosts for the pure part: facts with the disks, arrays and links that a test is about."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk
from advisor.facts.block.filesystems import FileSystem
from advisor.facts.host_facts import Facts, scan
from advisor.facts.network.links import Link
from advisor.facts.processors.pci import PcieLink
from advisor.facts.system.identity import Cloud
from advisor.host import Host, MemoryFiles, NoCommands

EBS = "Amazon Elastic Block Store"


@functools.cache
def _nothing() -> Facts:
    return scan(Host(MemoryFiles({}, {}, frozenset()), NoCommands()))


def facts(
    disks: Sequence[Disk] = (),
    arrays: Sequence[Array] = (),
    links: Sequence[Link] = (),
    *,
    filesystems: Sequence[FileSystem] = (),
    instance_type: str | None = None,
    virtualization: str | None = "none",
) -> Facts:
    """A host on bare metal, or in EC2 where an instance type is given."""
    bare = _nothing()
    cloud = Cloud("aws", instance_type) if instance_type else None
    host = msgspec.structs.replace(bare.host, hostname="h", cloud=cloud, virtualization=virtualization)
    return msgspec.structs.replace(
        bare, host=host, disks=tuple(disks), arrays=tuple(arrays), links=tuple(links), filesystems=tuple(filesystems)
    )


def disk(
    name: str,
    *,
    kind: str = "nvme",
    model: str | None = None,
    serial: str | None = None,
    size_bytes: int | None = 1_600_000_000_000,
    **detail: str,
) -> Disk:
    parts: dict[str, object] = {
        "scheduler": None,
        "numa_node": None,
        "pci": None,
        "pcie": None,
        "irqs": (),
        "queue": {},
    }
    rest = {"partitions": (), "holders": (), "mountpoints": (), "paths": (), "rotational": False}
    about = {"name": name, "kind": kind, "model": model, "serial": serial, "size_bytes": size_bytes}
    return msgspec.convert({**parts, **rest, **about, "detail": detail}, Disk)


def array(name: str, level: str | None, members: Sequence[str], **more: object) -> Array:
    empty = dict.fromkeys(("chunk_bytes", "data_disks", "missing", "progress_percent", "size_bytes"), None)
    lists = dict.fromkeys(("spares", "failed", "journal", "numa_nodes", "mountpoints"), ())
    about = {"name": name, "device": name, "manager": "md", "level": level, "members": members, "state": "active"}
    return msgspec.convert({**empty, **lists, **about, "detail": {}, **more}, Array)


def link(
    name: str,
    *,
    speed: int | None = 1000,
    mtu: int = 1500,
    kind: str = "ethernet",
    pci: str | None = "0000:01:00.0",
    lower: Sequence[str] = (),
    addresses: Sequence[str] = (),
    gigabits: int | None = None,
    **detail: str,
) -> Link:
    names = [field.name for field in msgspec.structs.fields(Link) if field.required]
    pcie = PcieLink(8.0, 8.0, 8, 8, gigabits * 1000, None) if gigabits else None
    about: dict[str, object] = dict.fromkeys(names, None)
    about |= {"name": name, "kind": kind, "mtu": mtu, "speed_mbps": speed, "pci": pci, "state": "up", "carrier": True}
    about |= {"lower": lower, "upper": (), "irqs": (), "addresses": addresses, "detail": detail, "pcie": pcie}
    return msgspec.convert(about, Link, from_attributes=True)


def mounted(device: str, place: str, kind: str = "xfs") -> FileSystem:
    return FileSystem(device, kind, (place,), "rw", None, None, None)
