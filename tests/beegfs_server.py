"""The servers of Dell's BeeGFS article as trees: two sockets, 24 NVMe drives, two InfiniBand links, twelve and one for
each zone. Storage server: three RAID 0 of four in each zone. Metadata server: six RAID 1 pairs in zone 0, three RAID 0
of four in zone 1. One service for each target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from advisor.facts.clusters.beegfs import entry_command
from advisor.facts.host_facts import Facts, scan
from advisor.facts.network.link_stack import RULES
from advisor.facts.system.services import show_command
from advisor.host import Host, ReadCommand
from advisor.tunables.unit import UnitNuma
from tests.facts.storage import Tree

CPUS = {0: "0-23,48-71", 1: "24-47,72-95"}
MEMORY_BYTES = 384 << 30
DRIVE_SECTORS = 1_600_000_000_000 // 512
ENTRY = """EntryID: 0-5D9BA1BC-1
ParentID: root
Metadata node: node001-numa0-4 [ID: 4]
Stripe pattern details:
+ Type: RAID0
+ Chunksize: {chunk}
+ Number of storage targets: desired: {count}
+ Storage Pool: 1 (Default)
"""
NO_RULES = [{"priority": 0, "src": "all", "table": "local"}, {"priority": 32766, "src": "all", "table": "main"}]
SOURCE_RULES = [*NO_RULES, {"priority": 32765, "src": "10.10.0.1", "table": "101"}]

_VM = {
    **{"dirty_ratio": 20, "dirty_background_ratio": 10, "dirty_bytes": 0, "dirty_background_bytes": 0},
    **{"vfs_cache_pressure": 100, "min_free_kbytes": 90_112, "zone_reclaim_mode": 0},
}

Role = Literal["storage", "meta"]
Layout = tuple[str, int, tuple[int, ...], str]
"""Kind of service, node, drives and RAID level of a target."""


def layout(role: Role) -> tuple[Layout, ...]:
    """Targets in order of their drives: drives 0 to 11 are in zone 0, 12 to 23 in zone 1."""
    fours = tuple(("storage", first // 12, tuple(range(first, first + 4)), "raid0") for first in range(0, 24, 4))
    pairs = tuple(("meta", 0, (first, first + 1), "raid1") for first in range(0, 12, 2))
    return fours if role == "storage" else (*pairs, *fours[3:])


def tree(
    role: Role = "storage",
    *,
    bound: bool = True,
    link_nodes: tuple[int, ...] = (0, 1),
    networks: tuple[str, ...] = ("10.10.0.1/24", "10.10.0.2/24"),
    interfaces: bool = True,
    settings: Mapping[str, str] | None = None,
    arp: Mapping[str, int] | None = None,
    rules: object = None,
    targets: tuple[Layout, ...] | None = None,
    pattern: tuple[str, int] | None = None,
    running: bool = True,
) -> Tree:
    """``settings`` go into every configuration file; ``arp`` is what conf.all says; ``pattern`` is the chunk size and
    stripe count of a mounted file system. ``bound``: services run on the CPUs of their targets' node."""
    made = Tree()
    _machine(made)
    for index in range(24):
        _drive(made, index, index // 12)
    _links(made, link_nodes, networks, dict(arp or {}), rules)
    listed = targets or layout(role)
    shown = {
        unit(number, one): _target(made, number, one, bound, interfaces, settings or {}, running)
        for number, one in enumerate(listed)
    }
    asked = tuple(sorted(shown, key=lambda name: name.partition("@")[2]))
    made.answer(show_command(asked), "\n".join(shown[name] for name in asked))
    if pattern:
        made.files["/proc/self/mountinfo"] += "90 1 0:77 / /mnt/beegfs rw - beegfs beegfs_nodev rw\n"
        made.answer(entry_command("/mnt/beegfs"), ENTRY.format(chunk=pattern[0], count=pattern[1]))
    return made


def behind_switches(made: Tree) -> Tree:
    """The same with the article's PCI Express: x4 drives, twelve behind each switch, a x16 card for each switch (its
    figure 7), and InfiniBand adapters in x16 slots; all of the third generation."""
    for index in range(24):
        own, root = f"{0x20 + index:02x}", 0x17 if index < 12 else 0x97
        _move(made, f"devices/pci0000:{own}/", f"devices/pci0000:{root:02x}/0000:{root:02x}:00.0/")
        place = f"/sys/devices/pci0000:{root:02x}/0000:{root:02x}:00.0"
        _pcie(made, f"{place}/0000:{own}:00.0", 4)
        _pcie(made, place, 16)
    for index in (0, 1):
        address = f"0000:{0x3B + 0x80 * index:02x}:00.0"
        _pcie(made, f"/sys/devices/pci{address[:7]}/{address}", 16)
    return made


def _move(made: Tree, old: str, new: str) -> None:
    made.files = {path.replace(old, new): text for path, text in made.files.items()}
    made.links = {path.replace(old, new): target.replace(old, new) for path, target in made.links.items()}
    made.directories = {path.replace(old, new) for path in made.directories}


def _pcie(made: Tree, place: str, lanes: int) -> None:
    for name, value in (("speed", "8.0 GT/s PCIe"), ("width", str(lanes))):
        made.files |= {f"{place}/{when}_link_{name}": f"{value}\n" for when in ("current", "max")}


def volumes(read_mb_per_s: int = 3200, write_mb_per_s: int = 1300) -> str:
    """The drives' data sheet, as ``--volumes`` takes it: the article's 3.2 and 1.3 GB/s."""
    sheet = f'type = "drive"\nread-mb-per-s = {read_mb_per_s}\nwrite-mb-per-s = {write_mb_per_s}\n'
    return "\n".join(f'[[volume]]\ndevice = "nvme{index}n1"\n{sheet}' for index in range(24))


def server(role: Role = "storage", **parts: object) -> Facts:
    """What a scan learns of `tree`."""
    return scan(tree(role, **parts).host())  # type: ignore[arg-type]


def host(role: Role = "storage", **parts: object) -> Host:
    return tree(role, **parts).host()  # type: ignore[arg-type]


def instance(number: int, one: Layout) -> str:
    return f"numa{one[1]}-{one[0]}{number}"


def unit(number: int, one: Layout) -> str:
    return f"beegfs-{one[0]}@{instance(number, one)}.service"


def _path(number: int, one: Layout) -> str:
    return f"/etc/beegfs/{instance(number, one)}.d/beegfs-{one[0]}.conf"


def _machine(made: Tree) -> None:
    node = "/sys/devices/system/node"
    memory = MEMORY_BYTES // 1024
    made.files |= {
        "/sys/devices/system/cpu/online": "0-95\n",
        "/sys/devices/system/cpu/present": "0-95\n",
        f"{node}/online": "0-1\n",
        "/proc/meminfo": f"MemTotal: {memory} kB\nMemFree: {memory // 2} kB\nMemAvailable: {memory // 2} kB\n",
        "/proc/sys/kernel/numa_balancing": "0\n",
        "/proc/sys/kernel/osrelease": "4.18.0-553.el8.x86_64\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    }
    for number, cpus in CPUS.items():
        made.files |= {f"{node}/node{number}/cpulist": f"{cpus}\n"}
        made.files |= {f"{node}/node{number}/distance": "10 21\n" if number == 0 else "21 10\n"}
        made.files |= {f"{node}/node{number}/meminfo": f"Node {number} MemTotal: {memory // 2} kB\n"}
    for key, value in _VM.items():
        made.files[f"/proc/sys/vm/{key}"] = f"{value}\n"


def _drive(made: Tree, index: int, node: int) -> None:
    made.nvme(index, node)
    address = f"0000:{0x20 + index:02x}:00.0"
    place = f"/sys/devices/pci0000:{0x20 + index:02x}/{address}"
    made.files |= {f"{place}/class": "0x010802\n", f"{place}/local_cpulist": f"{CPUS[node]}\n"}
    made.files[f"{place}/nvme/nvme{index}/nvme{index}n1/size"] = f"{DRIVE_SECTORS}\n"
    made.links[f"/sys/bus/pci/devices/{address}"] = f"../../..{place.removeprefix('/sys')}"
    for queue, irq in enumerate((100 + 2 * index, 101 + 2 * index)):
        # The admin queue is not managed and stays where the driver asked for it; what serves data is.
        made.files |= {f"/proc/irq/{irq}/smp_affinity_list": "0\n", f"/proc/irq/{irq}/effective_affinity_list": "0\n"}
        made.files[f"/sys/kernel/irq/{irq}/actions"] = f"nvme{index}q{queue}\n"


def _links(made: Tree, nodes: tuple[int, ...], networks: tuple[str, ...], arp: dict[str, int], rules: object) -> None:
    entries = []
    for index, node in enumerate(nodes):
        name, address = f"ib{index}", f"0000:{0x3B + 0x80 * index:02x}:00.0"
        irqs = tuple(range(400 + 8 * index, 408 + 8 * index))
        place = made.pci(address, node, irqs)
        made.files |= {f"{place}/local_cpulist": f"{CPUS[node]}\n", f"{place}/class": "0x020700\n"}
        made.files |= {f"{place}/net/{name}/ifindex": f"{index + 2}\n", f"{place}/net/{name}/speed": "100000\n"}
        made.files |= {f"/proc/irq/{irq}/smp_affinity_list": f"{CPUS[node]}\n" for irq in irqs}
        made.files |= {f"/proc/irq/{irq}/effective_affinity_list": CPUS[node].split("-")[0] + "\n" for irq in irqs}
        made.files |= {f"/sys/kernel/irq/{irq}/actions": f"mlx5_comp{irq}@pci:{address}\n" for irq in irqs}
        made.links |= {
            f"{place}/net/{name}/device": "../..",
            f"/sys/class/net/{name}": f"../..{place.removeprefix('/sys')}/net/{name}",
            f"/sys/bus/pci/devices/{address}": f"../../..{place.removeprefix('/sys')}",
        }
        entries.append(_ip(name, index, networks[index]))
        for key in ("rp_filter", "arp_filter", "arp_ignore", "arp_announce"):
            made.files[f"/proc/sys/net/ipv4/conf/{name}/{key}"] = "0\n"
    for key in ("rp_filter", "arp_filter", "arp_ignore", "arp_announce"):
        made.files[f"/proc/sys/net/ipv4/conf/all/{key}"] = f"{arp.get(key, 0)}\n"
    made.files["/proc/net/route"] = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    made.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(entries))
    made.answer(RULES, json.dumps(rules or NO_RULES))


def _ip(name: str, index: int, address: str) -> dict[str, object]:
    local, _, length = address.partition("/")
    return {
        **{"ifindex": index + 2, "ifname": name, "flags": ["UP", "LOWER_UP"], "mtu": 2044, "operstate": "UP"},
        **{"link_type": "infiniband", "min_mtu": 68, "max_mtu": 4092},
        "addr_info": [{"family": "inet", "local": local, "prefixlen": int(length)}],
    }


def _target(
    made: Tree, number: int, one: Layout, bound: bool, interfaces: bool, settings: Mapping[str, str], running: bool
) -> str:
    kind, node, drives, level = one
    name, place = f"md{number}", f"/data/{kind}{number}"
    attributes = {"level": level, "raid_disks": str(len(drives)), "array_state": "clean", "metadata_version": "1.2"}
    attributes |= {"chunk_size": "524288" if level != "raid1" else "0", "degraded": "0", "sync_action": "idle"}
    made.md(name, attributes, {f"nvme{drive}n1": ("in_sync", str(slot)) for slot, drive in enumerate(drives)})
    for drive in drives:
        address = f"0000:{0x20 + drive:02x}:00.0"
        directory = f"/sys/devices/pci0000:{0x20 + drive:02x}/{address}/nvme/nvme{drive}/nvme{drive}n1"
        made.directories.add(f"{directory}/holders/{name}")
    made.number(name, f"9:{number}")
    made.mount(f"9:{number}", place, "ext4" if kind == "meta" else "xfs")
    path = _path(number, one)
    lines = {f"store{kind.capitalize()}Directory": place, "connAuthFile": "/etc/beegfs/connauthfile", **settings}
    port = "connStoragePortTCP" if kind == "storage" else "connMetaPortTCP"
    lines = {port: str(9000 + number), **lines}
    if interfaces:
        file = f"/etc/beegfs/{instance(number, one)}.d/connInterfacesFile.conf"
        lines["connInterfacesFile"] = file
        made.files[file] = f"ib{node}\n"
    made.files[path] = "# a comment = of the test\n" + "".join(f"{key:30}= {value}\n" for key, value in lines.items())
    pid = 5000 + number
    if running:
        allowed = CPUS[node] if bound else "0-95"
        made.files[f"/proc/{pid}/status"] = f"Name:\tbeegfs\nCpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0-1\n"
    policy = f"NUMAPolicy=bind\nNUMAMask={node}\nCPUAffinityFromNUMA=yes\n" if bound else "NUMAPolicy=n/a\nNUMAMask=\n"
    shown = f"Id={unit(number, one)}\nLoadState=loaded\nMainPID={pid if running else 0}\n{policy}"
    probe = UnitNuma(unit(number, one)).probe
    assert isinstance(probe, ReadCommand)
    made.answer(probe.argv, shown)
    return shown
