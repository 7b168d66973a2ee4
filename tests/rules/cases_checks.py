"""Hosts for the rules about what is nearly used up, memory that errs, and how drives and their paths are set up."""

from __future__ import annotations

from typing import Any

from advisor.facts.array import PathGroup
from advisor.facts.counters import Counters
from advisor.facts.encrypted import EncryptedDevice
from advisor.facts.fibre_channel import FcPort, RemotePort
from advisor.facts.memory_modules import MemoryModule
from advisor.facts.network_storage import NetworkStorage
from advisor.facts.numa import Node
from advisor.facts.owners import Owners
from advisor.facts.software import OsdCapacity, StorageSoftware
from advisor.facts.systemd import Systemd
from advisor.facts.zfs import ZfsPool
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


def fc(state: str = "Online", speed: int = 16, best: int = 16, fast: str | None = "5") -> dict[str, Any]:
    """A port with one target port behind it, through which sdb and sdc of a multipath map are reached."""
    remote = RemotePort("rport-1:0-2", "Online", is_target=True, fast_io_fail=fast, dev_loss_seconds=600)
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


def filled(percent: int | None, inodes: int | None = None, **parts: Any) -> dict[str, Any]:
    return {"filesystems": (filesystem(used_percent=percent, inodes_used_percent=inodes, **parts),)}


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
NO_ONE = "00:00:00:00:00:00"
TIERS = (
    Node(0, "0-3", 64 * GIB, 1, (10, 20, 20)),
    Node(1, "4-7", 32 * GIB, 1, (20, 10, 20)),
    Node(2, "", 128 * GIB, 1, (20, 20, 10)),
)
BOTH = "nvme0c0n1 live optimized, nvme0c1n1 live optimized"
WITH_512, WITH_4096 = ({"queue": {"logical_block_size": size}} for size in ("512", "4096"))

CASES: Table = {
    "limits.aio-contexts": [
        (sysctls(aio_nr="60000", aio_max_nr="65536"), "warning", "60000"),
        sysctls(aio_nr="100", aio_max_nr="65536"),
        sysctls(aio_max_nr="65536"),
    ],
    "limits.file-handles": [
        (handles(90_000, "100000"), "warning", "90000"),
        handles(1_000, "100000"),
        handles(4_026_601_935, "100000"),
    ],
    "numa.memory-uneven": [
        (nodes(192, 160), "advice", "160.0 GiB"),
        nodes(192, 188),
        nodes(192),
        nodes(192, 0),
        # A tier of memory without CPUs, and nodes of a virtual machine, are as somebody made them.
        {"numa": replaced(numa(2), {"nodes": TIERS})},
        {**nodes(192, 160), "host": identity(virtualization="kvm")},
    ],
    "memory.corrected-errors": [(memory(corrected_errors=7), "info", "7"), memory(corrected_errors=0), {}],
    "memory.pages-lost": [
        (memory(poisoned_bytes=8192), "warning", "8192"),
        memory(poisoned_bytes=0),
        memory(poisoned_bytes=1 << 60),
    ],
    "disks.path-lost": [
        (head("nvme0c0n1 live optimized, nvme0c1n1 connecting optimized"), "critical", "connecting"),
        head(BOTH),
        head("nvme0c0n1, nvme0c1n1"),
    ],
    "disks.paths-unused": [
        (head(BOTH), "info", "2 live"),
        (head(BOTH, kernel="6.12.1"), "info", "2 live"),
        head(BOTH, policy="round-robin"),
        head("nvme0c0n1 live optimized, nvme0c1n1 live inaccessible"),
    ],
    "disks.block-sizes-differ": [
        (
            {"disks": (disk("nvme0n1", **WITH_512), disk("nvme1n1", **WITH_4096), disk("nvme2n1", **WITH_4096))},
            "advice",
            "1 × 512 bytes",
        ),
        {"disks": (disk("nvme0n1", **WITH_512), disk("nvme1n1", **WITH_512))},
        {"disks": (disk("nvme0n1", **WITH_512), disk("nvme1n1", model="other", **WITH_4096))},
    ],
    "filesystems.online-discard": [
        ({"filesystems": (filesystem(options="rw,discard"),)}, "info", "discard"),
        {"filesystems": (filesystem(options="rw,nodiscard"),)},
        {"filesystems": (filesystem(kind="btrfs", options="rw,discard"),)},
    ],
    "irqs.cloud-agent": [({"owners": Owners(cloud_multiqueue=True)}, "info", "google"), {}],
    "fc.port-down": [
        (fc("Linkdown"), "warning", "Linkdown"),
        fc(),
        # A port that has never had a cable.
        {"fibre_channel": (FcPort("host1", "Linkdown", 0, 16, ()),)},
    ],
    "fc.port-slow": [(fc(speed=8), "advice", "8 of 16"), fc(), fc(speed=0)],
    "fc.queue-depth": [
        ({"disks": luns(20, queue_depth="128")}, "advice", "2560"),
        {"disks": luns(20, queue_depth="64")},
        {"disks": (disk("sdb", kind="scsi", detail={"queue_depth": "4096"}),)},
    ],
    "multipath.alua-groups": [
        (mapped("active/optimized", "active/non-optimized"), "advice", "non-optimized"),
        (mapped(None, None, handler="detached", tpgs="implicit"), "advice", "detached"),
        mapped("active/optimized", "active/optimized"),
        mapped("active/optimized", "active/non-optimized", groups=2),
        mapped(None, None, handler="detached", tpgs="none"),
    ],
    "multipath.fc-timeouts": [
        ({**mapped(None, None), **fc(fast="off")}, "advice", "off"),
        ({**mapped(None, None), **fc(fast="30")}, "advice", "30"),
        {**mapped(None, None), **fc(fast="5")},
        # Without multipath nothing else can be tried.
        {"disks": luns(), **fc(fast="off")},
    ],
    "disks.fabric-queues": [
        (over_tcp(2), "info", "2 queues"),
        (over_tcp(4, entries=31), "info", "32 entries"),
        over_tcp(4),
        {"disks": (disk("nvme0n1"),)},
    ],
    "links.ipoib-connected": [
        ({"links": (link("ib0", kind="infiniband", detail={"mode": "connected"}),)}, "info", "ib0"),
        {"links": (link("ib0", kind="infiniband", detail={"mode": "datagram"}),)},
    ],
    "rdma.write-ordering": [
        ({"links": (link("eth0", detail={"pci_write_ordering": "per_mkey(0)"}),)}, "info", "eth0"),
        {"links": (link("eth0", detail={"pci_write_ordering": "force_relax(1)"}),)},
    ],
    "filesystems.nearly-full": [
        (filled(93), "warning", "93"),
        (filled(99), "critical", "99"),
        filled(89),
        filled(None),
        filled(100, options="ro,noatime"),
    ],
    "filesystems.inodes-nearly-used": [(filled(10, 91), "warning", "91"), filled(10, 89), filled(10, None)],
    "lvm.thin-pool-full": [
        (thin("880/1000", "10/1000"), "warning", "88"),
        (thin("100/1000", "970/1000"), "critical", "97"),
        thin("840/1000", "10/1000"),
        thin("-", "0/0"),
    ],
    "zfs.pool-degraded": [
        ({"zfs_pools": (ZfsPool("tank", "DEGRADED", 40),)}, "critical", "DEGRADED"),
        {"zfs_pools": (ZfsPool("tank", "ONLINE", 40),)},
    ],
    "zfs.pool-full": [
        ({"zfs_pools": (ZfsPool("tank", "ONLINE", 86),)}, "advice", "86"),
        ({"zfs_pools": (ZfsPool("tank", "ONLINE", 93),)}, "warning", "93"),
        {"zfs_pools": (ZfsPool("tank", "ONLINE", 84), ZfsPool("b", None, None))},
    ],
    "filesystems.not-trimmed": [
        (trimming(), "info", "nvme0n1"),
        trimming(trims=True),
        trimming(trims=None),
        trimming("rw,discard"),
        trimming(discards="0"),
    ],
    "disks.declustered-write-cache": [
        ({**DECLUSTERED, "disks": (disk("nvme0n1", queue={"write_cache": "write back"}),)}, "warning", "nvme0n1"),
        {"disks": (disk("nvme0n1", queue={"write_cache": "write back"}),)},
        {**DECLUSTERED, "disks": (disk("nvme0n1", queue={"write_cache": "write through"}),)},
    ],
    "disks.gcp-write-cache": [
        (cached("nvme_card"), "info", "nvme0n1"),
        cached("nvme_card", "write through"),
        cached("nvme_card-pd"),
        cached("nvme_card", provider="aws"),
    ],
    "disks.crypt-queues": [
        (crypt(), "info", "data"),
        (crypt("allow_discards", "no_read_workqueue"), "info", "data"),
        crypt("no_read_workqueue", "no_write_workqueue"),
        crypt(known=False),
        crypt(rotational=True),
        crypt(kernel="5.4.0"),
    ],
    "disks.slower-format": [
        (
            {
                "disks": (
                    disk(
                        "nvme0n1", detail={"lba_format": "512 bytes (good)", "better_lba_format": "4096 bytes (best)"}
                    ),
                )
            },
            "info",
            "4096",
        ),
        {"disks": (disk("nvme0n1", detail={"lba_format": "4096 bytes (best)"}),)},
    ],
    "nfs.slots-unlimited": [(nfs(), "info", "65536"), nfs(slots="128"), nfs("4.1")],
    "nfs.one-connection": [(nfs("4.1"), "info", "/mnt"), nfs(connections=8), nfs(speed=1000)],
    "services.profile": [
        ({"roles": {"redis": ("redis-server.service",)}}, "info", "redis-server.service"),
        {"roles": {}},
    ],
    "ceph.osd-capacity": [
        (osd(240_000), "advice", "240,000"),
        (osd(3, "hdd"), "advice", "hdd"),
        osd(21_500),
        osd(315, "hdd"),
    ],
    "cassandra.host-limits": [
        (cassandra(maps="65530"), "warning", "65530"),
        (cassandra(ahead="4096"), "advice", "nvme0n1"),
        (cassandra(swap=GIB), "advice", "swap"),
        cassandra(),
        {"sysctl": {"vm.max_map_count": "65530"}},
    ],
    "memory.modules-slow": [(modules(32, 32, now=4400), "advice", "4400 of 4800"), modules(32, 32)],
    "memory.channels-uneven": [
        (modules(32, 32, 32, 16), "advice", "16 GiB"),
        (modules(32, 32, 32), "advice", "2 modules"),
        modules(32, 32, 32, 32),
    ],
    "links.speed-below-best": [
        ({"links": (link("eth0", speed_mbps=100, best_speed_mbps=1000),)}, "warning", "100 of"),
        {"links": (link("eth0", speed_mbps=1000, best_speed_mbps=1000),)},
        {"links": (link("eth0", speed_mbps=100, best_speed_mbps=1000, carrier=False),)},
    ],
    "links.bond-partner": [
        (lacp(NO_ONE, "1", "1"), "warning", "bond0"),
        (lacp("02:00:00:00:00:09", "1", "2"), "warning", "eth1"),
        lacp("02:00:00:00:00:09", "1", "1"),
        lacp(NO_ONE, "1"),
    ],
}
