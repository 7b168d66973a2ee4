"""A client of Dell's BeeGFS article as a tree: a C6420 node with two sockets of 20 cores, one InfiniBand EDR link for
data and Ethernet for the private network, which mounts a BeeGFS file system by /etc/beegfs/beegfs-client.conf."""

from __future__ import annotations

import json
from collections.abc import Mapping

from advisor.facts.clusters.beegfs import entry_command
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host
from tests.beegfs_server import ENTRY
from tests.facts.storage import Tree

FILE = "/etc/beegfs/beegfs-client.conf"
ETHERNET, INFINIBAND = "em1", "ib0"
TUNED: Mapping[str, str] = {"connMaxInternodeNum": "24", "connInterfacesFile": "/etc/beegfs/client-interfaces.conf"}
"""What the article sets, and a file that names the data link."""


def tree(
    settings: Mapping[str, str] | None = None,
    *,
    pattern: tuple[str, int] | None = ("512K", 4),
    interfaces: tuple[str, ...] = (INFINIBAND,),
    is_mounted: bool = True,
    file: str = FILE,
    has_ethernet: bool = True,
    cores: int = 40,
) -> Tree:
    """``settings`` go over the file that BeeGFS' package brings; ``interfaces`` are the lines of the file that its
    connInterfacesFile names."""
    made = Tree()
    made.files |= {
        "/sys/devices/system/cpu/online": f"0-{cores - 1}\n",
        "/sys/devices/system/cpu/present": f"0-{cores - 1}\n",
        "/proc/meminfo": f"MemTotal: {192 << 20} kB\nMemFree: {96 << 20} kB\nMemAvailable: {96 << 20} kB\n",
        "/proc/sys/kernel/osrelease": "3.10.0-957.el7.x86_64\n",
        "/proc/net/route": "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        f"{ETHERNET}\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
    }
    lines = {"connMaxInternodeNum": "12", "connInterfacesFile": "", "tuneRemoteFSync": "true", **(settings or {})}
    made.files[file] = "# BeeGFS client\n" + "".join(f"{key:30}= {value}\n" for key, value in lines.items())
    if lines["connInterfacesFile"]:
        made.files[lines["connInterfacesFile"]] = "".join(f"{name}\n" for name in interfaces)
    if is_mounted:
        made.files["/proc/self/mountinfo"] += (
            f"90 1 0:77 / /mnt/beegfs rw,relatime - beegfs beegfs_nodev rw,cfgFile={file},_netdev\n"
        )
        if pattern:
            made.answer(entry_command("/mnt/beegfs"), ENTRY.format(chunk=pattern[0], count=pattern[1]))
    links = [(INFINIBAND, "infiniband", "100000", "10.10.1.1", "0000:5e:00.0")]
    if has_ethernet:
        links.append((ETHERNET, "ether", "1000", "10.0.2.15", "0000:01:00.0"))
    _links(made, links)
    return made


def _links(made: Tree, links: list[tuple[str, str, str, str, str]]) -> None:
    entries = []
    for index, (name, kind, speed, address, pci) in enumerate(links, 2):
        place = made.pci(pci, 0)
        made.files |= {f"{place}/net/{name}/ifindex": f"{index}\n", f"{place}/net/{name}/speed": f"{speed}\n"}
        made.files[f"{place}/class"] = "0x020700\n" if kind == "infiniband" else "0x020000\n"
        made.links |= {
            f"{place}/net/{name}/device": "../..",
            f"/sys/class/net/{name}": f"../..{place.removeprefix('/sys')}/net/{name}",
            f"/sys/bus/pci/devices/{pci}": f"../../..{place.removeprefix('/sys')}",
        }
        entries.append(
            {
                **{"ifindex": index, "ifname": name, "flags": ["UP", "LOWER_UP"], "mtu": 1500, "operstate": "UP"},
                **{"link_type": kind, "min_mtu": 68, "max_mtu": 9000},
                "addr_info": [{"family": "inet", "local": address, "prefixlen": 24}],
            }
        )
    made.answer(("ip", "-j", "-d", "addr", "show"), json.dumps(entries))


def client(settings: Mapping[str, str] | None = None, **parts: object) -> Facts:
    """What a scan learns of `tree`."""
    return scan(tree(settings, **parts).host())  # type: ignore[arg-type]


def host(settings: Mapping[str, str] | None = None, **parts: object) -> Host:
    return tree(settings, **parts).host()  # type: ignore[arg-type]
