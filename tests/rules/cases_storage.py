"""Hosts that need a rule and hosts that do not: the rows about memory, the receive path, md, geometry and queues."""

from __future__ import annotations

from typing import Any

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk
from advisor.facts.clusters.iris import Iris
from advisor.facts.network.links import Channels, Link, Rings
from advisor.facts.settings.site_settings import SiteSetting
from advisor.facts.system.memory import Counters, HugePagePool
from tests.cases import read_cases
from tests.rules import build
from tests.rules.build import (
    GIB,
    LARGE_BUFFERS,
    Table,
    array,
    disk,
    facts,
    filesystem,
    joined,
    link,
    pcie,
    replaced,
    virtual,
)

Parts = dict[str, Any]


def sysctl(**changed: str) -> Parts:
    """The calm host's sysctls but for these; two underscores stand for a dot."""
    return {"sysctl": {**LARGE_BUFFERS, **{key.replace("__", "."): value for key, value in changed.items()}}}


def counted(**counters: int) -> Parts:
    return {"counters": Counters(**counters)}


def memory(**parts: Any) -> Parts:
    return {"memory": replaced(facts().memory, parts)}


def ringed(rx: int, lost: int, received: int = 1_000_000) -> Link:
    return link("eth1", rings=Rings(rx, 8192, 1024, 8192), counters={"rx_packets": received, "rx_missed_errors": lost})


def queued(now: int, most: int, **parts: Any) -> Link:
    return link("eth1", channels=Channels(0, 0, 0, 0, now, most, 0, 0), **parts)


def with_queue(name: str = "nvme0n1", *, also: Parts | None = None, **queue: str) -> Disk:
    """A disk with these queue attributes."""
    one = disk(name, **(also or {}))
    return replaced(one, {"queue": {**one.queue, **queue}})


def spinning(**queue: str) -> Disk:
    parts = {"kind": "scsi", "rotational": True, "scheduler": "mq-deadline", "mountpoints": ("/data",)}
    return with_queue("sda", also=parts, **queue)


def parity(level: str = "raid5", **detail: str) -> Array:
    drives = tuple(f"nvme{n}n1" for n in range(4))
    return array("md0", *drives, level=level, data_disks=3, detail={"raid_disks": "4", **detail}, size_bytes=10**12)


def two_homes(**parts: Any) -> Parts:
    """Two links in two networks."""
    return {
        "links": tuple(link(f"eth{n}", addresses=(f"10.0.{n}.1/24",)) for n in (0, 1)),
        **sysctl(net__ipv4__conf__all__rp_filter="1", net__ipv4__conf__default__rp_filter="1"),
        **parts,
    }


def below_a_switch(count: int, **parts: Any) -> Parts:
    """Drives of four lanes below a switch with sixteen."""
    uplink = {"0000:3a:00.0": 16 * 7876}
    return {"disks": tuple(disk(f"nvme{n}n1", pcie=pcie(8.0, 4, bridges=uplink)) for n in range(count)), **parts}


BEHIND = counted(softnet_processed=1000, softnet_dropped=9)
SQUEEZED = counted(softnet_processed=1000, softnet_squeezed=30)
EIGHT_CORES = {"cpu": replaced(facts().cpu, {"threads": 8, "cores": 8})}
UDEV = SiteSetting("/etc/udev/rules.d/60-io.rules", 3, "queue/nr_requests", "4096", 'KERNEL=="nvme*n1"')
ON_LINEAR = {
    "arrays": (
        array(level="raid5", data_disks=3),
        array("vg0/data", "md0", manager="lvm", device="dm-0", level="linear"),
    ),
    "filesystems": (filesystem("dm-0", stripe_unit_bytes=0, stripe_width_bytes=0),),
}
LVM_IN_TWO = array("vg0/data", "sdb", "sdc", "sdd", manager="lvm", device="dm-0", level="striped", data_disks=2)


def mpath(*paths: str, **parts: Any) -> Array:
    """A map of dm-multipath, dm-5."""
    return array("mpatha", *paths, **{"manager": "dm-multipath", "device": "dm-5", "level": "multipath", **parts})


OF_SECTOR_63 = disk("sda", partition_offsets={"sda1": 63 * 512}, queue={"physical_block_size": "4096"})
OF_ONE_MIB = disk(
    "sda", partition_offsets={"sda1": 1 << 20}, queue={"physical_block_size": "4096", "optimal_io_size": str(3 << 19)}
)
ON_EBS = {"disks": (disk("nvme1n1", model="Amazon Elastic Block Store"),)}
IRIS = (Iris("LIVE", "/usr/irissys", "2023.2", running=False, mirror="", cpf="", settings=None),)

DATA = read_cases(__file__, HugePagePool, build, globals())

CASES: Table = joined(
    DATA["CASES"],
    {
        "vm.dirty-large": [("write=70%", memory(available_bytes=256 * GIB), "advice", str(256 * GIB * 20 // 100))],
        "network.reverse-path-filter": [
            (two_homes(links=tuple(link(f"eth{n}", addresses=(f"10.0.0.{n}/24",)) for n in (1, 2))), "info", "eth2"),
            (two_homes(**counted(reverse_path_filtered=12)), "advice", "12"),
            two_homes(**sysctl(net__ipv4__conf__all__rp_filter="2")),
            two_homes(**sysctl()),
            two_homes(
                links=(
                    link("eth0", addresses=("10.0.0.1/24",)),
                    virtual("docker0", "bridge", addresses=("172.17.0.1/16",)),
                    virtual("flannel.1", "vxlan", lower=("eth0",), addresses=("10.244.0.0/32",)),
                ),
                **counted(reverse_path_filtered=1200),
            ),
        ],
        "md.stripe-cache-small": [
            ("backup", {"arrays": (parity(stripe_cache_size="256"),)}, "advice", str(4096 * 4096 * 4))
        ],
        "disks.read-ahead-short": [
            (
                "streaming-read",
                {"disks": tuple(replaced(spinning(read_ahead_kb="128"), {"mountpoints": on}) for on in ((), ("/",)))},
            )
        ],
    },
)
