"""Whole hosts from a few words, as trees: a distribution's own settings, a machine, its links, its disks and counters.

The settings are those that the distribution's installer leaves, written down from the defaults of its kernel and from
the files that it ships in sysctl.d; nothing is tuned. `tests/rules/test_quiet_hosts.py` uses them for hosts that have
nothing to do with the systems of the articles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.facts.storage import Tree

GIB: Final = 1 << 30


class Distribution(NamedTuple):
    """``name`` and ``version`` as in os-release; ``sysctl`` are what differs from `_COMMON`."""

    name: str
    version: str
    kernel: str
    sysctl: Mapping[str, str]
    thp: str = "always"
    defrag: str = "madvise"
    tuned: str | None = None


_COMMON: Final[Mapping[str, str]] = {
    **{f"net.core.{end}_{key}": "212992" for end in ("rmem", "wmem") for key in ("default", "max")},
    **{"net.core.optmem_max": "20480", "net.core.netdev_max_backlog": "1000", "net.core.netdev_budget": "300"},
    **{"net.core.somaxconn": "4096", "net.core.default_qdisc": "fq_codel", "net.core.busy_poll": "0"},
    **{"net.core.busy_read": "0", "net.core.rps_sock_flow_entries": "0", "net.core.netdev_budget_usecs": "8000"},
    **{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"},
    **{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_mtu_probing": "0", "net.ipv4.ip_no_pmtu_disc": "0"},
    **{"net.ipv4.tcp_slow_start_after_idle": "1", "net.ipv4.tcp_sack": "1", "net.ipv4.tcp_timestamps": "1"},
    **{"net.ipv4.tcp_window_scaling": "1", "net.ipv4.tcp_moderate_rcvbuf": "1", "net.ipv4.tcp_tw_reuse": "2"},
    **{"net.ipv4.tcp_no_metrics_save": "0", "net.ipv4.ip_forward": "0", "net.ipv4.tcp_adv_win_scale": "1"},
    **{f"net.ipv4.conf.{one}.{key}": "0" for one in ("all", "default") for key in ("arp_ignore", "arp_announce")},
    **{f"net.ipv4.conf.{one}.{key}": "0" for one in ("all", "default") for key in ("arp_filter", "rp_filter")},
    **{"net.ipv4.neigh.default.gc_thresh1": "128", "net.ipv4.neigh.default.gc_thresh2": "512"},
    **{"net.ipv4.neigh.default.gc_thresh3": "1024", "vm.dirty_ratio": "20", "vm.dirty_background_ratio": "10"},
    **{"vm.dirty_bytes": "0", "vm.dirty_background_bytes": "0", "vm.dirty_expire_centisecs": "3000"},
    **{"vm.dirty_writeback_centisecs": "500", "vm.min_free_kbytes": "67584", "vm.swappiness": "60"},
    **{
        "vm.vfs_cache_pressure": "100",
        "vm.zone_reclaim_mode": "0",
        "vm.nr_hugepages": "0",
        "vm.max_map_count": "65530",
    },
    **{"vm.overcommit_memory": "0", "vm.overcommit_ratio": "50", "kernel.shmmax": "18446744073692774399"},
    **{"kernel.shmall": "18446744073692774399", "kernel.shmmni": "4096", "fs.aio-max-nr": "65536", "fs.aio-nr": "0"},
    **{"fs.file-max": "9223372036854775807", "fs.nr_open": "1048576", "kernel.timer_migration": "1"},
}


def _filter(every: str, default: str) -> dict[str, str]:
    return {"net.ipv4.conf.all.rp_filter": every, "net.ipv4.conf.default.rp_filter": default}


_OLD: Final = {"net.core.somaxconn": "128", "net.ipv4.tcp_rmem": "4096 87380 6291456", "net.ipv4.tcp_tw_reuse": "0"}
_GUEST: Final = {"vm.swappiness": "30", "vm.dirty_ratio": "30"}
_THROUGHPUT: Final = {"vm.swappiness": "10", "vm.dirty_ratio": "40"}

DISTRIBUTIONS: Final[Mapping[str, Distribution]] = {
    "debian-12": Distribution("Debian GNU/Linux", "12 (bookworm)", "6.1.0-25-amd64", {}),
    "ubuntu-22.04": Distribution("Ubuntu", "22.04.4 LTS", "5.15.0-119-generic", _filter("2", "2"), "madvise"),
    "ubuntu-24.04": Distribution(
        "Ubuntu", "24.04.1 LTS", "6.8.0-41-generic", {**_filter("2", "2"), "vm.max_map_count": "1048576"}, "madvise"
    ),
    "centos-7": Distribution(
        "CentOS Linux",
        "7 (Core)",
        "3.10.0-1160.el7.x86_64",
        {**_OLD, **_filter("1", "1"), **_GUEST},
        "always",
        "always",
    ),
    "rhel-8": Distribution(
        *("Red Hat Enterprise Linux", "8.10 (Ootpa)", "4.18.0-553.16.1.el8_10.x86_64"),
        {**_filter("1", "1"), **_GUEST, "net.core.somaxconn": "128", "net.ipv4.tcp_rmem": "4096 87380 6291456"},
        tuned="virtual-guest",
    ),
    "rhel-9": Distribution(
        *("Red Hat Enterprise Linux", "9.4 (Plow)", "5.14.0-427.31.1.el9_4.x86_64"),
        {**_filter("1", "1"), **_THROUGHPUT},
        tuned="throughput-performance",
    ),
    "sles-15": Distribution("SLES", "15-SP5", "5.14.21-150500.55.73-default", _filter("2", "2")),
    "fedora-40": Distribution(
        *("Fedora Linux", "40 (Workstation Edition)", "6.10.6-200.fc40.x86_64"),
        {**_filter("2", "2"), "vm.max_map_count": "1048576"},
        "madvise",
    ),
    "amazon-2": Distribution(
        "Amazon Linux", "2", "4.14.350-266.564.amzn2.x86_64", {**_OLD, **_filter("1", "1")}, "always", "always"
    ),
    "amazon-2023": Distribution(
        "Amazon Linux", "2023", "6.1.102-111.182.amzn2023.x86_64", _filter("2", "2"), "madvise"
    ),
}


class WholeHost(Tree):
    """A host of one distribution, with ``gib`` of memory and ``cpus`` online CPUs on ``nodes``."""

    def __init__(self, distribution: Distribution, *, gib: int, cpus: int, nodes: int = 1, **sysctl: str) -> None:
        super().__init__()
        self.index = 2
        self.entries: list[dict[str, Any]] = [_loopback()]
        self._machine(distribution, gib, cpus, nodes)
        values = {**_COMMON, **distribution.sysctl, "kernel.numa_balancing": "1" if nodes > 1 else "0"}
        self.sysctl({**values, **{key.replace("__", "."): value for key, value in sysctl.items()}})
        self.counters()
        self.link_order()

    def _machine(self, one: Distribution, gib: int, cpus: int, nodes: int) -> None:
        node, kib, each = "/sys/devices/system/node", gib << 20, max(1, cpus // nodes)
        for number in range(2):
            self.files.pop(f"{node}/node{number}/cpulist")
        for number in range(nodes):
            distances = " ".join("10" if other == number else "21" for other in range(nodes))
            self.files |= {
                f"{node}/node{number}/cpulist": f"{number * each}-{(number + 1) * each - 1}\n",
                f"{node}/node{number}/distance": f"{distances}\n",
                f"{node}/node{number}/meminfo": f"Node {number} MemTotal: {kib // nodes} kB\n",
            }
        sets = f"0-{nodes - 1}" if nodes > 1 else "0"
        self.files |= {
            f"{node}/online": f"{sets}\n",
            "/sys/devices/system/cpu/online": f"0-{cpus - 1}\n",
            "/sys/devices/system/cpu/present": f"0-{cpus - 1}\n",
            "/proc/meminfo": f"MemTotal: {kib} kB\nMemFree: {kib // 4} kB\nMemAvailable: {kib * 2 // 3} kB\n"
            "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n",
            "/proc/sys/kernel/osrelease": f"{one.kernel}\n",
            "/proc/sys/kernel/hostname": "host1\n",
            "/etc/os-release": f'NAME="{one.name}"\nVERSION="{one.version}"\nPRETTY_NAME="{one.name} {one.version}"\n',
            "/sys/kernel/mm/transparent_hugepage/enabled": _chosen(one.thp, ("always", "madvise", "never")),
            "/sys/kernel/mm/transparent_hugepage/defrag": _chosen(
                one.defrag, ("always", "defer", "defer+madvise", "madvise", "never")
            ),
            "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
            "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "0\n",
        }
        if one.tuned:
            self.files["/etc/tuned/active_profile"] = f"{one.tuned}\n"

    def sysctl(self, values: Mapping[str, str]) -> None:
        """Live values by dotted key."""
        self.files |= {f"/proc/sys/{key.replace('.', '/')}": f"{value}\n" for key, value in values.items()}

    def firmware(self, vendor: str, product: str, **more: str) -> None:
        """What DMI says about the machine."""
        named = {"sys_vendor": vendor, "product_name": product, **more}
        self.files |= {f"/sys/class/dmi/id/{key}": f"{value}\n" for key, value in named.items()}

    def ec2(self, instance_type: str) -> None:
        """An instance of the Nitro system."""
        more = {
            "board_asset_tag": "i-0123456789abcdef0",
            "chassis_asset_tag": "Amazon EC2",
            "bios_vendor": "Amazon EC2",
        }
        self.firmware("Amazon EC2", instance_type, **more)

    def counters(self, **changed: int) -> None:
        """The kernel's counters after some weeks: what every host counts, and what ``changed`` says."""
        counts = {"udp": 412_345, "udp_errors": 0, "udp_send_errors": 0, "pruned": 0, "collapsed": 0, "filtered": 0}
        counts |= {"overflows": 0, "stalls": 12, "faults": 84_321, "direct": 0, "kswapd": 0, "swapped": 0} | changed
        self.files |= {
            "/proc/net/snmp": "Ip: InReceives FragCreates ReasmFails\nIp: 91234567 0 0\n"
            "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n"
            f"Udp: {counts['udp']} 312 {counts['udp_errors']} 401234 {counts['udp_errors']} "
            f"{counts['udp_send_errors']}\n",
            "/proc/net/snmp6": "Udp6InDatagrams 4213\nUdp6RcvbufErrors 0\nUdp6SndbufErrors 0\n",
            "/proc/net/netstat": "TcpExt: PruneCalled TCPRcvCollapsed ListenOverflows IPReversePathFilter\n"
            f"TcpExt: {counts['pruned']} {counts['collapsed']} {counts['overflows']} {counts['filtered']}\n",
            "/proc/net/softnet_stat": "0523ab41 00000000 00000003 " + " ".join(["00000000"] * 8) + "\n",
            "/proc/net/stat/arp_cache": "entries allocs table_fulls\n00000006 00000009 00000000\n",
            "/proc/net/sockstat": "sockets: used 312\nTCP: inuse 41 orphan 0 tw 3 alloc 45 mem 8\nUDP: inuse 9 mem 4\n",
            "/proc/net/sockstat6": "TCP6: inuse 7\nUDP6: inuse 5\n",
            "/proc/vmstat": f"compact_stall {counts['stalls']}\nthp_fault_alloc {counts['faults']}\n"
            "thp_fault_fallback 210\n"
            f"pgsteal_direct {counts['direct']}\npgsteal_kswapd {counts['kswapd']}\npswpout {counts['swapped']}\n"
            "nr_dirty 312\nnr_writeback 0\nnr_dirty_threshold 524288\n",
        }

    def link(
        self,
        name: str,
        address: str | None,
        *,
        driver: str = "e1000e",
        mtu: int = 1500,
        speed: int | None = 1000,
        route: bool = False,
        wireless: bool = False,
        up: bool = True,
        node: int = -1,
        most: int = 9216,
    ) -> None:
        """A card of its own PCI function, or (driver virtio_net) of a virtual bus."""
        number = self.index
        place = self.pci(f"0000:{0x40 + number:02x}:00.0", node)
        self.files |= {f"{place}/net/{name}/ifindex": f"{number}\n", f"{place}/net/{name}/mtu": f"{mtu}\n"}
        self.files |= {
            f"{place}/net/{name}/speed": f"{-1 if speed is None else speed}\n",
            f"{place}/class": "0x020000\n",
        }
        if wireless:
            self.directories.add(f"{place}/net/{name}/phy80211")
        self.links |= {
            f"{place}/net/{name}/device": "../..",
            f"{place}/driver": f"../../../bus/pci/drivers/{driver}",
            f"/sys/class/net/{name}": f"../..{place.removeprefix('/sys')}/net/{name}",
            f"/sys/bus/pci/devices/{place.rpartition('/')[2]}": f"../../..{place.removeprefix('/sys')}",
        }
        self._entry(name, address, mtu, up=up, limits=(68, most))
        if route:
            line = f"{name}\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
            self.files["/proc/net/route"] += line

    def virtual_link(self, name: str, kind: str, address: str | None = None, mtu: int = 1500, **more: Any) -> None:
        """A link without a device: a bridge, tunnel, veth. ``more`` goes into what ip prints of it."""
        directory = f"/sys/devices/virtual/net/{name}"
        self.files |= {f"{directory}/ifindex": f"{self.index}\n", f"{directory}/mtu": f"{mtu}\n"}
        self.links[f"/sys/class/net/{name}"] = f"../../devices/virtual/net/{name}"
        self._entry(name, address, mtu, limits=(68, 65535), linkinfo={"info_kind": kind}, **more)

    def _entry(
        self, name: str, address: str | None, mtu: int, *, limits: tuple[int, int], up: bool = True, **more: Any
    ) -> None:
        local, _, length = (address or "").partition("/")
        self.entries.append(
            {
                **{"ifindex": self.index, "ifname": name, "mtu": mtu, "link_type": "ether", "txqlen": 1000},
                **{"flags": ["BROADCAST", "MULTICAST", *(["UP", "LOWER_UP"] if up else ["NO-CARRIER", "UP"])]},
                **{"operstate": "UP" if up else "DOWN", "min_mtu": limits[0], "max_mtu": limits[1]},
                "addr_info": [{"family": "inet", "local": local, "prefixlen": int(length)}] if address else [],
                **more,
            }
        )
        self.index += 1
        self.link_order()

    def link_order(self) -> None:
        """What ip and the routing table answer for the links so far."""
        self.files.setdefault(
            "/proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        )
        self.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(self.entries))

    def drive(self, index: int, model: str, *, gib: int, at: Sequence[str], kind: str = "ext4", node: int = -1) -> None:
        """An NVMe drive whose partitions are mounted ``at`` these places in order."""
        name, address = f"nvme{index}n1", f"0000:{0x20 + index:02x}:00.0"
        place = self.pci(address, node, (100 + 2 * index, 101 + 2 * index))
        self.block(
            *(name, f"{place}/nvme/nvme{index}"),
            sectors=gib << 21,
            number=f"259:{10 * index}",
            partitions=[f"{name}p{number}" for number in range(1, len(at) + 1)],
            device={"model": model, "serial": f"S{index}", "state": "live"},
        )
        self.files[f"{place}/class"] = "0x010802\n"
        self.links[f"/sys/bus/pci/devices/{address}"] = f"../../..{place.removeprefix('/sys')}"
        self._mounted(name, f"259:{10 * index}", at, kind)

    def plain_disk(
        self, name: str, *, gib: int, at: Sequence[str], rotational: bool = False, kind: str = "ext4"
    ) -> None:
        """A disk of a hypervisor or an SD card: sda, vda, mmcblk0."""
        minor = {"mmcblk0": "179:0", "vda": "254:0"}.get(name, "8:0")
        queue = {"rotational": str(int(rotational)), "scheduler": "none [mq-deadline]", "nr_requests": "256"}
        partitions = [f"{name}p{n}" if name[-1].isdigit() else f"{name}{n}" for n in range(1, len(at) + 1)]
        place = self.pci("0000:00:05.0", -1)
        self.block(
            *(name, f"{place}/virtio2/block"), sectors=gib << 21, number=minor, queue=queue, partitions=partitions
        )
        self.links[f"{place}/virtio2/block/{name}/device"] = "../.."
        self._mounted(name, minor, at, kind)

    def _mounted(self, name: str, number: str, at: Sequence[str], kind: str) -> None:
        major, _, minor = number.partition(":")
        for position, target in enumerate(at, 1):
            partition = f"{name}p{position}" if name[-1].isdigit() else f"{name}{position}"
            self.number(partition, f"{major}:{int(minor) + position}")
            self.mount(f"{major}:{int(minor) + position}", target, kind)


def _chosen(one: str, every: Sequence[str]) -> str:
    return " ".join(f"[{word}]" if word == one else word for word in every) + "\n"


def _loopback() -> dict[str, Any]:
    return {
        **{"ifindex": 1, "ifname": "lo", "mtu": 65536, "link_type": "loopback", "txqlen": 1000, "operstate": "UNKNOWN"},
        **{"flags": ["LOOPBACK", "UP", "LOWER_UP"], "min_mtu": 0, "max_mtu": 0},
        "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}],
    }
