"""A small host as a tree and a few stand-in commands: two nodes, a stack of links, LLT, a service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from advisor.host import DirectoryFiles, Host, LiveCommands
from advisor.operations.transactions import apply_profiles
from advisor.planner import plan_profiles
from advisor.planning.records import Change, Plan, Skipped
from advisor.transaction.journal import Store
from tests.cases import cases
from tests.trees import make_command, make_tree

CASES = cases(__file__)

LLTCONFIG = Path(__file__).parents[1] / "lab" / "guest" / "bin" / "lltconfig"
GIB = 1 << 20  # in the kB of /proc/meminfo

SYSCTL = CASES["SYSCTL"]
FILES: Mapping[str, str] = {
    "/etc/machine-id": "0" * 32 + "\n",
    "/proc/meminfo": f"MemTotal: {16 * GIB} kB\nMemAvailable: {12 * GIB} kB\n",
    "/proc/net/sockstat": "sockets: used 9\nTCP: inuse 20 orphan 0 tw 0 alloc 20 mem 0\nUDP: inuse 6 mem 0\n",
    "/proc/net/route": "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
    "/run/udev/data/n1": "",
    **{f"/proc/sys/{key}": f"{value}\n" for key, value in SYSCTL.items()},
}


def nodes(count: int) -> dict[str, str]:
    """NUMA nodes of four CPUs each."""
    base = "/sys/devices/system"
    files = {f"{base}/node/online": f"0-{count - 1}" if count > 1 else "0", f"{base}/cpu/online": f"0-{4 * count - 1}"}
    for node in range(count):
        files[f"{base}/node/node{node}/cpulist"] = f"{4 * node}-{4 * node + 3}"
        files[f"{base}/node/node{node}/distance"] = " ".join("10" if node == other else "21" for other in range(count))
    return files


class Link(msgspec.Struct, frozen=True):
    """A link; with a ``node`` it is a port, on a PCI function of that node (-1: the kernel does not say)."""

    name: str
    kind: str | None = None
    mtu: int = 1500
    max_mtu: int = 9216
    on: Sequence[str] = ()
    address: str | None = None
    node: int | None = None
    irqs: Mapping[int, str] = {}
    """Number and affinity."""
    actions: str = "queue"
    data: Mapping[str, str] = {}


LOOPBACK = Link("lo", mtu=65536, max_mtu=0)
ETH0 = Link("eth0", address="10.0.2.15", node=0)
PORTS = (LOOPBACK, ETH0, Link("eth1", address="192.0.2.1", node=0), Link("eth2", address="192.0.2.2", node=1))


def system(
    where: Path,
    links: Sequence[Link] = PORTS,
    files: Mapping[str, str | None] | None = None,
    commands: Mapping[str, str] | None = None,
) -> Host:
    """The host below ``where``; ``files`` go over the usual ones, or take them away."""
    tree: dict[str, str] = {**FILES, **nodes(2)}
    symlinks: dict[str, str] = {}
    for number, link in enumerate(links, 1):
        _add_link(link, number, links, tree, symlinks)
    merged = {path: text for path, text in {**tree, **(files or {})}.items() if text is not None}
    make_tree(where / "root", merged, symlinks)
    listing = json.dumps([_ip(link, number, links) for number, link in enumerate(links, 1)])
    (where / "ip.json").write_text(listing)
    for name, script in {"ip": f'exec /bin/cat "{where}/ip.json"', "udevadm": "", **(commands or {})}.items():
        make_command(where / "bin", name, script)
    return host(where)


def host(where: Path) -> Host:
    """No command of this machine is found, so that nothing of it is mixed in."""
    return Host(DirectoryFiles(str(where / "root")), LiveCommands(path=str(where / "bin")), is_root=True)


def _add_link(link: Link, number: int, links: Sequence[Link], tree: dict[str, str], symlinks: dict[str, str]) -> None:
    base = f"/sys/class/net/{link.name}"
    tree |= {f"{base}/mtu": f"{link.mtu}\n", f"{base}/ifindex": f"{number}\n", f"{base}/addr_assign_type": "0\n"}
    tree[f"{base}/address"] = f"02:00:00:00:00:{number:02x}\n"
    if link.node is None:
        return
    pci = f"0000:3b:00.{number}"
    device = f"/sys/devices/pci0000:3a/{pci}"
    tree |= {f"{device}/class": "0x020000\n", f"{device}/numa_node": f"{link.node}\n"}
    symlinks |= {f"{base}/device": device, f"/sys/bus/pci/devices/{pci}": f"../../../devices/pci0000:3a/{pci}"}
    for irq, affinity in link.irqs.items():
        tree |= {f"{device}/msi_irqs/{irq}": "msi\n", f"/proc/irq/{irq}/smp_affinity_list": f"{affinity}\n"}
        tree[f"/sys/kernel/irq/{irq}/actions"] = f"{link.actions}\n"


def _ip(link: Link, number: int, links: Sequence[Link]) -> dict[str, Any]:
    masters = [one.name for one in links if link.name in one.on and one.kind in ("bond", "bridge", "team")]
    entry: dict[str, Any] = {
        **{"ifindex": number, "ifname": link.name, "flags": ["UP", "LOWER_UP"], "mtu": link.mtu, "operstate": "UP"},
        **{"link_type": "loopback" if link.name == "lo" else "ether", "min_mtu": 68, "max_mtu": link.max_mtu},
        "addr_info": [{"family": "inet", "local": link.address, "prefixlen": 24}] if link.address else [],
    }
    if link.kind:
        entry["linkinfo"] = {"info_kind": link.kind, "info_data": dict(link.data)}
    if link.on and link.kind not in ("bond", "bridge", "team"):
        entry["link"] = link.on[0]
    return entry | ({"master": masters[0]} if masters else {})


def llt(where: Path) -> dict[str, str]:
    """The stand-in of the lab host, with its state below ``where``; nothing but its configuration is in the tree."""
    settings = f"LLT_STANDIN_STATE={where}/llt LLT_STANDIN_LLTTAB={where}/root/etc/llttab PATH=/usr/bin:/bin"
    return {"lltconfig": f'{settings} exec /bin/sh {LLTCONFIG} "$@"'}


def systemctl(where: Path, **units: str) -> dict[str, str]:
    """A stand-in that has loaded what the drop-ins said when it was reloaded; ``units`` are what else it knows."""
    script = f"""
PATH=/usr/bin:/bin
loaded={where}/loaded
case $1 in
daemon-reload)
  rm -rf "$loaded"; mkdir "$loaded"; cd {where}/root/etc/systemd/system || exit 0
  for folder in *.d; do cat "$folder"/*.conf > "$loaded/${{folder%.d}}"; done ;;
show)
  while [ "$1" != -- ]; do shift; done; shift
  for unit in "$@"; do
    case $unit in
    {"".join(f"{unit}.service) echo '{text}';;" for unit, text in units.items())}
    *) echo LoadState=not-found; echo "Id=$unit"; echo; continue ;;
    esac
    echo LoadState=loaded; echo "Id=$unit"
    [ -e "$loaded/$unit" ] || echo NUMAPolicy=n/a
    sed -n '/=/p; s/^CPUAffinity=numa/CPUAffinityFromNUMA=yes/p' "$loaded/$unit" 2>/dev/null
    echo
  done ;;
esac
"""
    return {"systemctl": script}


def planned(where: Path, *profiles: str, **settings: str) -> Plan:
    store = Store(str(where / "state"))
    is_runtime = bool(settings.pop("runtime_only", ""))
    return plan_profiles(host(where), profiles, settings, store=store, runtime_only=is_runtime)


def applied(where: Path, *profiles: str, **settings: str) -> Plan:
    return apply_profiles(host(where), profiles, settings, store=Store(str(where / "state"))).plan


def values(plan: Plan) -> dict[str, tuple[str, str]]:
    """Tunable → before and after, in the plan's order."""
    return {one.tunable: (one.before, one.after) for one in plan.changes}


def changes(plan: Plan) -> dict[str, str]:
    """Tunable → after."""
    return {one.tunable: one.after for one in plan.changes}


def reasons(plan: Plan) -> dict[str, str]:
    return {one.tunable: one.reason for one in plan.skipped}


def change(plan: Plan, tunable: str) -> Change:
    return next(one for one in plan.changes if one.tunable == tunable)


def skipped(plan: Plan, tunable: str) -> Skipped:
    return next(one for one in plan.skipped if one.tunable == tunable)


def states(plan: Plan) -> dict[str, str]:
    return {one.tunable: one.state for one in plan.skipped}
