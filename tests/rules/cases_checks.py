"""Hosts for the rules about what is nearly used up, memory that errs, and how drives and their paths are set up."""

from __future__ import annotations

from typing import Any

from advisor.facts.block.block import PathGroup
from advisor.facts.block.dm import EncryptedDevice
from advisor.facts.block.stacked import ZfsPool
from advisor.facts.network.link_claim import Owners
from advisor.facts.processors.numa import Node
from advisor.facts.remote.network_storage import FcPort, NetworkStorage, RemotePort
from advisor.facts.system.memory import Counters, MemoryModule
from advisor.facts.system.roles import OsdCapacity, StorageSoftware
from advisor.facts.system.services import Systemd
from tests.cases import read_cases
from tests.rules.build import (
    GIB,
    Table,
    array,
    disk,
    facts,
    filesystem,
    identity,
    link,
    numa,
    on_cloud,
    replaced,
    virtual,
)


def sysctls(**values: str) -> dict[str, Any]:
    return {"sysctl": {f"fs.{name.replace('_', '-')}": value for name, value in values.items()}}


def handles(used: int, most: str) -> dict[str, Any]:
    return {**sysctls(file_max=most), "counters": Counters(file_handles=used)}


def nodes(*gib: float) -> dict[str, Any]:
    made = numa(len(gib))
    sized = tuple(replaced(node, {"memory_bytes": int(size * GIB)}) for node, size in zip(made.nodes, gib, strict=True))
    return {"numa": replaced(made, {"nodes": sized})}


def memory(**parts: Any) -> dict[str, Any]:
    return {"memory": replaced(facts().memory, parts)}


def head(states: str, policy: str = "numa", kernel: str = "6.1.0-25-amd64") -> dict[str, Any]:
    drive = disk("nvme0n1", paths=("nvme0c0n1", "nvme0c1n1"), detail={"iopolicy": policy, "path_states": states})
    return {"disks": (drive,), "host": identity(kernel=kernel)}


def fc(
    state: str = "Online", speed: int = 16, best: int = 16, fast: str | None = "5", lost: int = 600
) -> dict[str, Any]:
    """A port with one target port behind it, through which sdb and sdc of a multipath map are reached."""
    remote = RemotePort("rport-1:0-2", "Online", is_target=True, fast_io_fail=fast, dev_loss_seconds=lost)
    return {"fibre_channel": (FcPort("host1", state, speed, best, (remote,)),)}


def luns(count: int = 2, **detail: str) -> tuple[Any, ...]:
    own = {"transport": "fc", "remote_port": "rport-1:0-2", "queue_depth": "64", **detail}
    return tuple(disk(f"sd{chr(98 + at)}", kind="scsi", pci=None, detail=own) for at in range(count))


def mapped(*states: str | None, groups: int = 1, **detail: str) -> dict[str, Any]:
    """A multipath map over paths with these access states, in so many groups."""
    paths = [luns(len(states))[at] for at in range(len(states))]
    made = [
        replaced(one, {"detail": {**one.detail, **({"access_state": state} if state else {}), **detail}})
        for one, state in zip(paths, states, strict=True)
    ]
    names = tuple(one.name for one in made)
    split = [names] if groups == 1 else [(name,) for name in names]
    over = array(
        "mpatha",
        *names,
        manager="dm-multipath",
        level="multipath",
        path_groups=tuple(PathGroup("service-time", 1, each) for each in split),
    )
    return {"disks": tuple(made), "arrays": (over,)}


def over_tcp(queues: int, entries: int = 127) -> dict[str, Any]:
    own = {"transport": "tcp", "queue_count": str(queues + 1), "sqsize": str(entries)}
    return {"disks": (disk("nvme0n1", pci=None, detail=own),)}


def fabric(
    loss: str | None, fast: str | None = "off", transport: str = "tcp", paths: int = 0, *, mapped: int = 0
) -> dict[str, Any]:
    """An NVMe disk over a network with these timeouts, alone, with native paths, or below dm-multipath."""
    given = {"transport": transport, "ctrl_loss_tmo": loss, "fast_io_fail_tmo": fast}
    own = {key: value for key, value in given.items() if value is not None}
    names = tuple(f"nvme0c{at}n1" for at in range(paths))
    members = tuple(f"nvme{at}n1" for at in range(mapped))
    over = array("mpatha", *members, manager="dm-multipath", level="multipath", detail={"features": "retain_attached"})
    return {"disks": (disk("nvme0n1", pci=None, paths=names, detail=own),), "arrays": (over,) if mapped else ()}


def timed(kind: str, model: str, milliseconds: int, vendor: str = "") -> dict[str, Any]:
    own = {"vendor": vendor} if vendor else {}
    queue = {"io_timeout": str(milliseconds)}
    return {"disks": (disk("sda", kind=kind, model=model, detail=own, queue=queue),)}


def filled(percent: int | None, inodes: int | None = None, **parts: Any) -> dict[str, Any]:
    return {"filesystems": (filesystem(used_percent=percent, inodes_used_percent=inodes, **parts),)}


def stored(level: str, key: str, used: str) -> dict[str, Any]:
    return {"arrays": (array("vg0/a", manager="lvm", level=level, detail={key: used}),)}


def thin(data: str, metadata: str) -> dict[str, Any]:
    own = {"data_blocks": data, "metadata_blocks": metadata}
    return {"arrays": (array("vg0/pool", manager="lvm", level="thin-pool", detail=own),)}


def trimming(options: str = "rw", discards: str = "2147450880", *, trims: bool | None = False) -> dict[str, Any]:
    return {
        "disks": (disk("nvme0n1", queue={"discard_max_bytes": discards}),),
        "filesystems": (filesystem("nvme0n1p1", kind="ext4", options=options),),
        "systemd": Systemd(252, "252", is_running=True, trims=trims),
    }


def crypt(*options: str, rotational: bool = False, known: bool = True, kernel: str = "6.1.0") -> dict[str, Any]:
    return {
        "disks": (disk("nvme0n1", partitions=("nvme0n1p2",), rotational=rotational),),
        "encrypted": (EncryptedDevice("data", "dm-0", ("nvme0n1p2",), options if known else None),),
        "host": identity(kernel=kernel),
    }


def cached(model: str, cache: str = "write back", provider: str = "gcp") -> dict[str, Any]:
    return {"disks": (disk("nvme0n1", model=model, queue={"write_cache": cache}),), "host": on_cloud(provider)}


def nfs(version: str = "3", connections: int = 1, slots: str = "65536", speed: int = 25_000) -> dict[str, Any]:
    mount = NetworkStorage("nfs", "/mnt", "tcp", ("eth0",), version, connections)
    return {
        "network_storage": (mount,),
        "sysctl": {**facts().sysctl, "sunrpc.tcp_max_slot_table_entries": slots},
        "links": (link("eth0", speed_mbps=speed),),
    }


def osd(iops: float, medium: str = "ssd") -> dict[str, Any]:
    return {"software": StorageSoftware(osd_capacities=(OsdCapacity("osd.3", medium, iops),))}


def cassandra(maps: str = "1048575", ahead: str = "128", swap: int = 0) -> dict[str, Any]:
    return {
        "software": StorageSoftware(cassandra="/var/lib/cassandra/data"),
        "sysctl": {**facts().sysctl, "vm.max_map_count": maps},
        "filesystems": (filesystem("sda1", mountpoints=("/",)), filesystem("nvme0n1", mountpoints=("/var/lib",))),
        "disks": (disk("nvme0n1", queue={"read_ahead_kb": ahead}), disk("sda", queue={"read_ahead_kb": "4096"})),
        **memory(swap_bytes=swap),
    }


def modules(*gib: int, now: int = 4800, rated: int = 4800) -> dict[str, Any]:
    """Modules, half of them on each of two sockets."""
    return {
        "memory_modules": tuple(
            MemoryModule(f"CPU{2 * at // len(gib)}_DIMM_{at}", "NODE 1", size * GIB, "DDR5", rated, now)
            for at, size in enumerate(gib)
        )
    }


def lacp(partner: str = "02:00:00:00:00:09", *aggregators: str) -> dict[str, Any]:
    own = {"mode": "802.3ad", "ad_aggregator": "1", "ad_partner_mac": partner}
    ports = tuple(
        link(f"eth{at}", upper=("bond0",), detail={"port_ad_aggregator_id": one}) for at, one in enumerate(aggregators)
    )
    return {"links": (*ports, virtual("bond0", "bond", lower=tuple(one.name for one in ports), detail=own))}


DECLUSTERED = {"software": StorageSoftware(declustered_raid=True)}
TIERS = (
    Node(0, "0-3", 64 * GIB, 1, (10, 20, 20)),
    Node(1, "4-7", 32 * GIB, 1, (20, 10, 20)),
    Node(2, "", 128 * GIB, 1, (20, 20, 10)),
)
WITH_512, WITH_4096 = ({"queue": {"logical_block_size": size}} for size in ("512", "4096"))

DATA = read_cases(__file__, Owners, ZfsPool, globals())

CASES: Table = DATA["CASES"]
