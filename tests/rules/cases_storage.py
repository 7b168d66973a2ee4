"""Hosts that need a rule and hosts that do not: the rows about memory, the receive path, md, geometry and queues."""

from __future__ import annotations

from typing import Any

from advisor.facts.array import Array
from advisor.facts.counters import Counters
from advisor.facts.disks import Disk
from advisor.facts.iris import Iris
from advisor.facts.links import Channels, Link, Rings
from advisor.facts.memory import HugePagePool
from advisor.facts.site_settings import SiteSetting
from tests.rules.build import (
    GIB,
    LARGE_BUFFERS,
    Table,
    array,
    bond,
    disk,
    disks,
    facts,
    filesystem,
    identity,
    link,
    on_cloud,
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
DIRTY = {"dirty_pages": 990_000, "dirty_limit_pages": 1_000_000}
ALWAYS = {"thp_enabled": "always", "thp_defrag": "always"}
MANY_LARGE = "access=sequential,write=100%,block=1m"
UDEV = SiteSetting("/etc/udev/rules.d/60-io.rules", 3, "queue/nr_requests", "4096", 'KERNEL=="nvme*n1"')
ON_LINEAR = {
    "arrays": (
        array(level="raid5", data_disks=3),
        array("vg0/data", "md0", manager="lvm", device="dm-0", level="linear"),
    ),
    "filesystems": (filesystem("dm-0", stripe_unit_bytes=0, stripe_width_bytes=0),),
}
LVM_IN_TWO = array("vg0/data", "sdb", "sdc", "sdd", manager="lvm", device="dm-0", level="striped", data_disks=2)
OF_SECTOR_63 = disk("sda", partition_offsets={"sda1": 63 * 512}, queue={"physical_block_size": "4096"})
OF_ONE_MIB = disk(
    "sda", partition_offsets={"sda1": 1 << 20}, queue={"physical_block_size": "4096", "optimal_io_size": str(3 << 19)}
)
ON_EBS = {"disks": (disk("nvme1n1", model="Amazon Elastic Block Store"),)}
IRIS = (Iris("LIVE", "/usr/irissys", "2023.2", running=False, mirror="", cpf="", settings=None),)
LACP = {"mode": "802.3ad", "xmit_hash_policy": "layer2"}

CASES: Table = {
    "vm.dirty-at-limit": [
        (counted(**DIRTY), "advice", "4096000000"),
        counted(dirty_pages=900_000, dirty_limit_pages=1_000_000),
    ],
    "vm.dirty-large": [
        ("backup", counted(dirty_limit_pages=3_000_000), "advice", "12288000000"),
        ("write=70%", memory(available_bytes=256 * GIB), "advice", str(256 * GIB * 20 // 100)),
        ("streaming-read", counted(dirty_limit_pages=3_000_000)),
        ("backup", counted(dirty_limit_pages=1_000_000)),
        ("backup", {**counted(dirty_limit_pages=3_000_000), **sysctl(vm__dirty_ratio="0")}),
        ("backup", {**counted(dirty_limit_pages=3_000_000), "iris": IRIS}),
    ],
    "vm.reclaim-stalls": [
        (
            {
                **counted(reclaimed_directly_pages=50_000, reclaimed_by_kswapd_pages=150_000),
                **sysctl(vm__min_free_kbytes="67584"),
            },
            "advice",
            "25.0",
        ),
        (
            {
                **counted(reclaimed_directly_pages=50_000, reclaimed_by_kswapd_pages=150_000),
                **sysctl(vm__min_free_kbytes="900000"),
            },
            "info",
            "900000",
        ),
        counted(reclaimed_directly_pages=50_000, reclaimed_by_kswapd_pages=5_000_000),
        counted(reclaimed_directly_pages=500, reclaimed_by_kswapd_pages=0),
    ],
    "vm.huge-pages-always": [
        ({**memory(**ALWAYS), **counted(compaction_stalls=900, huge_page_faults=10_000)}, "advice", "900"),
        memory(thp_enabled="always", thp_defrag="madvise"),
        memory(**ALWAYS),
        {**memory(**ALWAYS), **counted(compaction_stalls=900, huge_page_faults=10**6)},
    ],
    "vm.swapping": [
        (counted(swapped_out_pages=70_000), "info", "70000"),
        ("oltp", counted(swapped_out_pages=70_000), "advice", "60"),
        {**counted(swapped_out_pages=70_000), **sysctl(vm__swappiness="10")},
        ("oltp", counted(swapped_out_pages=0)),
        ("oltp", counted(swapped_out_pages=900)),
    ],
    "vm.huge-pages-unused": [
        (memory(hugepages=(HugePagePool(2 << 20, 16_384, 16_384),)), "advice", "16,384 pages"),
        memory(hugepages=(HugePagePool(2 << 20, 16_384, 200),)),
        memory(hugepages=(HugePagePool(2 << 20, 16, 16),)),
        memory(hugepages=(HugePagePool(2 << 20, 16_384, None),)),
        {**memory(hugepages=(HugePagePool(2 << 20, 16_384, 16_384),)), "iris": IRIS},
    ],
    "vm.cache-pressure": [
        ("small-files", sysctl(vm__vfs_cache_pressure="100"), "info", "100"),
        sysctl(vm__vfs_cache_pressure="100"),
        ("small-files", sysctl(vm__vfs_cache_pressure="50")),
    ],
    "network.ring-drops": [
        ({"links": (ringed(1024, 5000),)}, "advice", "5000"),
        ({"links": (ringed(8192, 3),)}, "info", "8192"),
        ({"links": (replaced(ringed(8192, 5000), {"rings": None}),)}, "advice", "None"),
        {"links": (ringed(1024, 0),)},
    ],
    "network.few-queues": [
        ({"links": (queued(1, 63),), **EIGHT_CORES, **BEHIND}, "advice", "8"),
        ("transport=tcp", {"links": (queued(2, 63),), **EIGHT_CORES}, "info", "eth1"),
        ({"links": (queued(1, 63),), **EIGHT_CORES, **SQUEEZED}, "advice", "8"),
        {"links": (queued(1, 63),), **EIGHT_CORES},
        {"links": (queued(8, 63),), **EIGHT_CORES, **BEHIND},
        {"links": (queued(1, 63, speed_mbps=1000),), **EIGHT_CORES, **BEHIND},
        {"links": (queued(1, 63, pci=None, driver="bonding"),), **EIGHT_CORES, **BEHIND},
        {"links": (queued(1, 63, carrier=False),), **EIGHT_CORES, **BEHIND},
        {"links": (queued(1, 63),), **EIGHT_CORES, **counted(softnet_processed=10**6, softnet_squeezed=3)},
    ],
    "network.steering-redundant": [
        ({"links": (queued(8, 63, rps_cpus="000000ff"),)}, "info", "000000ff"),
        {"links": (queued(2, 2, rps_cpus="f"), queued(8, 63, rps_cpus="0,00000000"))},
    ],
    "network.steering-missing": [
        ({"links": (queued(1, 1, rps_cpus="0"),), **EIGHT_CORES, **BEHIND}, "advice", "eth1"),
        {"links": (queued(1, 1, rps_cpus="f"),), **EIGHT_CORES, **BEHIND},
        {"links": (queued(1, 1, rps_cpus="0"),), **EIGHT_CORES},
        {"links": (queued(1, 63, rps_cpus="0"),), **EIGHT_CORES, **BEHIND},
        {"links": (queued(1, 1, rps_cpus="0", pci=None),), **EIGHT_CORES, **BEHIND},
        {"links": (link("eth1", channels=None, rps_cpus="0"),), **EIGHT_CORES, **BEHIND},
    ],
    "network.reverse-path-filter": [
        (two_homes(links=tuple(link(f"eth{n}", addresses=(f"10.0.0.{n}/24",)) for n in (1, 2))), "info", "eth2"),
        (two_homes(**counted(reverse_path_filtered=12)), "advice", "12"),
        two_homes(**sysctl(net__ipv4__conf__all__rp_filter="2")),
        two_homes(links=(link("eth0", addresses=("10.0.0.1/24",)),)),
        two_homes(**sysctl()),
        two_homes(),
        two_homes(
            links=(
                link("eth0", addresses=("10.0.0.1/24",)),
                virtual("docker0", "bridge", addresses=("172.17.0.1/16",)),
                virtual("flannel.1", "vxlan", lower=("eth0",), addresses=("10.244.0.0/32",)),
            ),
            **counted(reverse_path_filtered=1200),
        ),
        two_homes(
            links=(link("eth0", addresses=("10.0.0.1/24",)), link("wlan0", kind="wlan", addresses=("10.0.0.2/24",)))
        ),
    ],
    "network.neighbours-full": [
        (
            {**counted(neighbours=900, neighbour_table_full=7), **sysctl(net__ipv4__neigh__default__gc_thresh3="1024")},
            "advice",
            "900",
        ),
        ({**counted(neighbours=1000), **sysctl(net__ipv4__neigh__default__gc_thresh3="1024")}, "advice", "1024"),
        {**counted(neighbours=400, neighbour_table_full=0), **sysctl(net__ipv4__neigh__default__gc_thresh3="1024")},
    ],
    "network.lro-forwarded": [
        (
            {
                "links": (
                    link("eth1", features={"rx-lro": True}, upper=("br0",)),
                    virtual("br0", "bridge", lower=("eth1",)),
                )
            },
            "advice",
            "eth1",
        ),
        ({"links": (link("eth1", features={"rx-lro": True}),), **sysctl(net__ipv4__ip_forward="1")}, "advice", "1"),
        {"links": (link("eth1", features={"rx-lro": True}),)},
        {"links": (link("eth1", features={"rx-lro": False}),), **sysctl(net__ipv4__ip_forward="1")},
    ],
    "network.mtu-probing": [
        (
            {
                "links": (link("eth0", default_route=True), virtual("wg0", "wireguard")),
                **sysctl(net__ipv4__tcp_mtu_probing="0"),
            },
            "info",
            "eth0",
        ),
        (
            "transport=tcp,rtt=40ms",
            {"links": (link("eth0", default_route=True),), **sysctl(net__ipv4__tcp_mtu_probing="0")},
            "info",
            "eth0",
        ),
        {"links": (link("eth0", default_route=True),), **sysctl(net__ipv4__tcp_mtu_probing="1")},
        {"links": (link("eth1"),), **sysctl(net__ipv4__tcp_mtu_probing="0")},
        (
            "transport=tcp,rtt=1.16ms",
            {
                "links": (link("eth0", default_route=True), virtual("vxlan0", "vxlan")),
                **sysctl(net__ipv4__tcp_mtu_probing="0"),
            },
        ),
    ],
    "network.bond-by-address": [
        ({"links": bond("bond0", "eth1", "eth2", detail=LACP)}, "info", "bond0"),
        ("beegfs", {"links": bond("bond0", "eth1", "eth2", detail=LACP)}, "advice", "layer2"),
        ("beegfs", {"links": bond("bond0", "eth1", "eth2", detail={**LACP, "xmit_hash_policy": "layer3+4"})}),
        ("beegfs", {"links": bond("bond0", "eth1", "eth2", detail={**LACP, "mode": "active-backup"})}),
    ],
    "network.slow-start-after-idle": [
        ("fss-tcp", sysctl(net__ipv4__tcp_slow_start_after_idle="1"), "advice", "tcp_slow_start_after_idle"),
        sysctl(net__ipv4__tcp_slow_start_after_idle="1"),
        ("fss-udp", sysctl(net__ipv4__tcp_slow_start_after_idle="1")),
        ("fss-tcp", sysctl(net__ipv4__tcp_slow_start_after_idle="0")),
    ],
    "network.initial-window-lowered": [
        (sysctl(net__ipv4__tcp_rmem="4096 87380 33554432"), "info", "87380"),
        sysctl(net__ipv4__tcp_rmem="4096 131072 33554432"),
        {**sysctl(net__ipv4__tcp_rmem="4096 87380 33554432"), "host": identity(kernel="3.10.0-957.el7.x86_64")},
    ],
    "network.tcp-switched-off": [
        (sysctl(net__ipv4__tcp_window_scaling="0"), "warning", "tcp_window_scaling"),
        (sysctl(net__ipv4__tcp_sack="0"), "advice", "tcp_sack"),
        (sysctl(net__ipv4__tcp_timestamps="0"), "advice", "tcp_timestamps"),
        sysctl(net__ipv4__tcp_window_scaling="1", net__ipv4__tcp_sack="1"),
        {},
    ],
    "links.mtu-below-minimum": [
        ({"links": (link("eth1", mtu=1200),)}, "advice", "1200"),
        {"links": (link("eth1", mtu=1280, mtu_max=1500),)},
        {"links": (link("eth1", mtu=None),)},
    ],
    "network.busy-polling": [
        (sysctl(net__core__busy_read="50", net__core__busy_poll="0"), "info", "busy_read"),
        sysctl(net__core__busy_read="0", net__core__busy_poll="0"),
    ],
    "network.bbr-unpaced": [
        (sysctl(net__ipv4__tcp_congestion_control="bbr", net__core__default_qdisc="fq_codel"), "info", "fq_codel"),
        sysctl(net__ipv4__tcp_congestion_control="bbr", net__core__default_qdisc="fq"),
        sysctl(net__ipv4__tcp_congestion_control="bbr"),
        sysctl(net__ipv4__tcp_congestion_control="cubic", net__core__default_qdisc="fq_codel"),
    ],
    "filesystems.strict-atime": [
        ({"filesystems": (filesystem("sda1", options="rw"),)}, "info", "/data (xfs)"),
        {"filesystems": (filesystem("sda1", options="rw,relatime"),)},
        {"filesystems": (filesystem("sda1", options="ro"), filesystem("sdb1"))},
        {"filesystems": (filesystem("sda1", options=None, mountpoints=()),)},
    ],
    "md.stripe-cache-small": [
        ("backup", {"arrays": (parity(stripe_cache_size="256"),)}, "advice", str(4096 * 4096 * 4)),
        {"arrays": (parity(stripe_cache_size="256"),)},
        ("backup", {"arrays": (parity(stripe_cache_size="4096"),)}),
        ("backup", {"arrays": (parity(stripe_cache_size="256"),), **memory(available_bytes=GIB >> 3)}),
        ("backup", {"arrays": (parity(),)}),
    ],
    "md.one-parity-thread": [
        ({"arrays": (parity(group_thread_cnt="0"),), **EIGHT_CORES}, "info", "md0"),
        ("backup", {"arrays": (parity(group_thread_cnt="0"),), **EIGHT_CORES}, "advice", "md0"),
        ("backup", {"arrays": (parity(group_thread_cnt="4"),), **EIGHT_CORES}),
        ("backup", {"arrays": (parity(group_thread_cnt="0"),)}),
    ],
    "md.rebuild-limited": [
        (
            {
                "arrays": (
                    replaced(parity(sync_speed="199000", sync_speed_max="200000 (system)"), {"state": "recovering"}),
                )
            },
            "advice",
            "199000",
        ),
        {"arrays": (replaced(parity(sync_speed="90000", sync_speed_max="200000 (system)"), {"state": "recovering"}),)},
        {"arrays": (parity(sync_speed="none", sync_speed_max="200000 (system)"),)},
    ],
    "md.no-bitmap": [
        ({"arrays": (parity(consistency_policy="resync"),)}, "info", "resync"),
        {"arrays": (parity(consistency_policy="bitmap"), array(detail={"consistency_policy": "none"}))},
    ],
    "md.mismatches": [
        ({"arrays": (parity(mismatch_cnt="128"),)}, "warning", "128"),
        ({"arrays": (parity("raid1", mismatch_cnt="128"),)}, "info", "raid1"),
        {"arrays": (parity(mismatch_cnt="0"),)},
        {"arrays": (replaced(parity(mismatch_cnt="128"), {"manager": "lvm"}),)},
        {"arrays": (parity("raid0", mismatch_cnt="128"),)},
    ],
    "arrays.parity-random-writes": [
        ("oltp", {"arrays": (parity("raid6"),)}, "advice", "raid6"),
        ("oltp", {"arrays": (array(level="raid10"),)}),
        ("backup", {"arrays": (parity("raid6"),)}),
        ("access=random,write=5%", {"arrays": (parity("raid6"),)}),
    ],
    "arrays.chunk-below-block": [
        ("access=random,block=64k", {"arrays": (array(chunk_bytes=16 << 10),)}, "advice", "16384"),
        (MANY_LARGE, {"arrays": (array(chunk_bytes=64 << 10),)}, "info", "65536"),
        ("oltp", {"arrays": (array(chunk_bytes=16 << 10),)}),
        (MANY_LARGE, {"arrays": (array(),)}),
        {"arrays": (array(chunk_bytes=4096),)},
        ("access=sequential,block=4k", {"arrays": (array(chunk_bytes=64 << 10),)}),
    ],
    "filesystems.not-aligned": [
        (ON_LINEAR, "advice", "dm-0"),
        (
            {"arrays": (array(),), "filesystems": (filesystem(stripe_unit_bytes=None, stripe_width_bytes=4096),)},
            "advice",
            "4096",
        ),
        (
            {
                "arrays": (array(level="raid6", data_disks=2),),
                "filesystems": (filesystem("md0p1", kind="ext4", stripe_unit_bytes=0, stripe_width_bytes=0),),
            },
            "advice",
            "md0p1",
        ),
        (
            {
                "disks": (disk("sda", kind="scsi", partitions=("sda1",)),),
                "arrays": (array("c0/v0", "sda", manager="controller", device="sda", level="raid6", data_disks=6),),
                "filesystems": (filesystem("sda1", stripe_unit_bytes=0, stripe_width_bytes=0),),
            },
            "advice",
            "sda1",
        ),
        {**ON_LINEAR, "filesystems": (filesystem("dm-0", stripe_width_bytes=3 * (512 << 10)),)},
        {
            "arrays": (array("vg0/a", "dm-0", manager="lvm", device="dm-0", level="linear"),),
            "filesystems": (filesystem("dm-0", stripe_unit_bytes=0, stripe_width_bytes=0),),
        },
    ],
    "pcie.shared-uplink": [
        (below_a_switch(12), "info", "0000:3a:00.0"),
        ("streaming-read", below_a_switch(5), "advice", "nvme4n1"),
        ("streaming-read", below_a_switch(4)),
        below_a_switch(12, host=identity(virtualization="kvm")),
    ],
    "disks.partition-not-aligned": [
        ({"disks": (OF_SECTOR_63,)}, "warning", "32,256 bytes"),
        ({"disks": (OF_ONE_MIB,)}, "advice", "1,572,864"),
        {"disks": (replaced(OF_SECTOR_63, {"partition_offsets": {"sda1": 1 << 20}}),)},
        {"disks": (replaced(OF_ONE_MIB, {"queue": {"physical_block_size": "512", "optimal_io_size": "33553920"}}),)},
    ],
    "arrays.fewer-stripes-than-devices": [
        ({"arrays": (LVM_IN_TWO,)}, "info", "2 stripes over 3 devices"),
        {"arrays": (replaced(LVM_IN_TWO, {"data_disks": 3}),)},
        {"arrays": (replaced(LVM_IN_TWO, {"disks": ("nvme1n1",)}),), **ON_EBS},
    ],
    "disks.rotating-unscheduled": [
        ({"disks": (replaced(spinning(), {"scheduler": "none"}),)}, "info", "sda"),
        {"disks": (spinning(), disk("nvme0n1"))},
        {"disks": (replaced(spinning(), {"scheduler": "none", "detail": {"transport": "iscsi"}}),)},
    ],
    "disks.rotation-doubtful": [
        ({"disks": (disk("vda", kind="virtio", rotational=True),), "host": on_cloud("gcp")}, "info", "vda"),
        {"disks": (spinning(),)},
        {"disks": (disk("vda", kind="virtio", rotational=False),), "host": on_cloud("gcp")},
    ],
    "disks.entropy-from-flash": [
        ({"disks": (with_queue(add_random="1"),)}, "info", "nvme0n1"),
        {"disks": (with_queue(add_random="0"), spinning(add_random="1"))},
    ],
    "disks.queue-asked-too-long": [
        ({"disks": (with_queue(nr_requests="1023"),), "site_settings": (UDEV,)}, "advice", "60-io.rules:3"),
        {"disks": (with_queue(nr_requests="4096"),), "site_settings": (UDEV,)},
        {"disks": (spinning(nr_requests="256"),), "site_settings": (UDEV,)},
    ],
    "disks.queue-long-for-random": [
        ("oltp", {"disks": (spinning(nr_requests="4096"),)}, "advice", "4096"),
        ("oltp", {"disks": (spinning(nr_requests="256"),)}),
        ("backup", {"disks": (spinning(nr_requests="4096"),)}),
    ],
    "disks.read-ahead-short": [
        ("streaming-read", {"disks": (spinning(read_ahead_kb="128"),)}, "advice", "sda"),
        (
            "streaming-read",
            {"arrays": (array(mountpoints=("/data",), queue={"read_ahead_kb": "128"}),)},
            "advice",
            "are 4096",
        ),
        (
            "streaming-read",
            {"arrays": (array("md0", "nvme1n1", mountpoints=("/data",), queue={"read_ahead_kb": "128"}),), **ON_EBS},
        ),
        ("streaming-read", {"disks": (spinning(read_ahead_kb="4096"),)}),
        ("oltp", {"disks": (spinning(read_ahead_kb="128"),)}),
        {"disks": (spinning(read_ahead_kb="128"),)},
        (
            "streaming-read",
            {"disks": tuple(replaced(spinning(read_ahead_kb="128"), {"mountpoints": on}) for on in ((), ("/",)))},
        ),
        ("streaming-read", {"disks": (with_queue(also={"mountpoints": ("/data",)}, read_ahead_kb="128"),)}),
    ],
    "disks.read-ahead-long-for-random": [
        ("oltp", {"arrays": (array(mountpoints=("/data",), queue={"read_ahead_kb": "8192"}),)}, "advice", "8192"),
        ("streaming-read", {"disks": (spinning(read_ahead_kb="8192"),)}),
        ("oltp", {"disks": (spinning(read_ahead_kb="128"),)}),
    ],
    "disks.requests-below-chunk": [
        (
            {"arrays": (array(),), "disks": (with_queue(max_sectors_kb="256", max_hw_sectors_kb="2048"),)},
            "info",
            "256 KiB",
        ),
        (
            MANY_LARGE,
            {"arrays": (array(),), "disks": (with_queue(max_sectors_kb="256", max_hw_sectors_kb="2048"),)},
            "advice",
            "512 KiB",
        ),
        (MANY_LARGE, {"arrays": (array(),), "disks": (with_queue(max_sectors_kb="256", max_hw_sectors_kb="256"),)}),
        (
            MANY_LARGE,
            {"arrays": (array(level="raid1"),), "disks": (with_queue(max_sectors_kb="256", max_hw_sectors_kb="2048"),)},
        ),
    ],
    "disks.completed-anywhere": [
        ({"disks": (with_queue(rq_affinity="0"),)}, "info", "nvme0n1"),
        {"disks": (with_queue(rq_affinity="2"),)},
    ],
    "disks.merges-off": [
        ("backup", {"disks": (with_queue(nomerges="2"),)}, "advice", "nvme0n1"),
        ("oltp", {"disks": (with_queue(nomerges="2"),)}),
        ("backup", {"disks": (with_queue(nomerges="0"),)}),
    ],
    "disks.writeback-unthrottled": [
        ("oltp", {"disks": (with_queue(wbt_lat_usec="0"),)}, "info", "nvme0n1"),
        ("oltp", {"disks": (with_queue(wbt_lat_usec="2000"),)}),
        ("backup", {"disks": disks(1)}),
    ],
}
