"""Plans of whole hosts for the reports: real profiles, facts from a few words, a tree for what a plan reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from advisor.facts.host_facts import Facts
from advisor.facts.system.services import Service
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan
from advisor.planning.targets import Request, resolve_targets
from advisor.profiles.profile import load
from tests.rules import build
from tests.trees import host_of, make_command, make_tree

SYSCTL = {**build.SYSCTL, "net.core.optmem_max": "20480"}
FLOW = "lltconfig -F query\nhighwater = 1000\nlowwater = 800\nrporthighwater = 1000\n"


def tree_files(sysctl: Mapping[str, str] = SYSCTL, **links: int) -> dict[str, str | bytes]:
    """/proc/sys, the MTU of each link, and the interrupts 20 to 35, which may run everywhere."""
    files: dict[str, str | bytes] = {
        "/etc/sysctl.d/README": "",
        "/run/udev/data/c1:3": "",
        "/etc/llttab": "set-node n1\nset-cluster 7\nstart\n",
    }
    files |= {f"/proc/sys/{key.replace('.', '/')}": value for key, value in sysctl.items()}
    files |= {f"/sys/class/net/{name}/mtu": str(mtu) for name, mtu in links.items()}
    files |= {f"/proc/irq/{number}/smp_affinity_list": "0-7" for number in range(20, 36)}
    return files


def make(
    root: Path,
    *profiles: str,
    files: Mapping[str, str | bytes] | None = None,
    facts: Facts | None = None,
    settings: Mapping[str, str] | None = None,
    services: tuple[Service, ...] = (),
    systemctl: str = "exit 1",
    runtime_only: bool = False,
    first_seen: Mapping[str, str] | None = None,
) -> Plan:
    """The plan of shipped profiles on a tree below ``root``; ``systemctl`` is the sh body of that command."""
    tree = make_tree(root / "host", tree_files() if files is None else files)
    make_command(root / "bin", "lltconfig", f"cat <<'EOF'\n{FLOW}EOF")
    make_command(root / "bin", "systemctl", systemctl)
    host = host_of(tree, root / "bin")
    found = facts or build.facts()
    asked = [
        Request.from_settings(
            profile, {key: value for key, value in (settings or {}).items() if key in profile.parameters}
        )
        for profile in map(load, profiles)
    ]
    outcomes = [resolve_targets(request, found, services) for request in asked]
    targets = tuple(target for some, _ in outcomes for target in some)
    return make_plan(
        profiles,
        targets,
        tuple(one for _, some in outcomes for one in some),
        observe_targets(host, targets, first_seen or {}),
        found,
        guards=tuple(guard for request in asked for guard in request.profile.guards),
        runtime_only=runtime_only,
    )


def sockets(root: Path, *, runtime_only: bool = False) -> Plan:
    """Seven kernel parameters and a new file."""
    return make(root, "socket-buffers-8m", runtime_only=runtime_only)


def unit(name: str = "beegfs-storage@numa0.service", *devices: str) -> Service:
    return Service(name, 4711, "default", "", "", "0-7", "0-1", devices or ("eth0",))


def two_nodes(**parts: object) -> Facts:
    """Two nodes of four CPUs; eth0 on node 0 and eth1 on node 1, eight interrupts each; NVMe queues 100 to 259."""
    whole: dict[str, object] = {
        "numa": build.numa(2),
        "links": (
            build.link("eth0", addresses=("192.0.2.10/24",), irqs=tuple(range(20, 28)), default_route=True, mtu=1500),
            build.link("eth1", addresses=("198.51.100.1/24",), irqs=tuple(range(28, 36)), numa_node=1, mtu=1500),
        ),
        "irqs": (
            *build.irqs(20, 8, on="0-7"),
            *build.irqs(28, 8, on="0-7"),
            *build.irqs(100, 160, on="0-7", managed=True),
        ),
        "disks": (
            build.disk("nvme0n1", irqs=tuple(range(100, 180))),
            build.disk("nvme1n1", irqs=tuple(range(180, 260)), numa_node=1),
        ),
        **parts,
    }
    return build.facts(**whole)


UNBOUND = "echo LoadState=loaded; echo NUMAPolicy=n/a; echo NUMAMask=; echo CPUAffinity="


def pinning(root: Path) -> Plan:
    """Interrupts of two links moved, those of two NVMe drives left, and a service bound."""
    return make(
        root,
        "numa-pinning",
        facts=two_nodes(),
        settings={"units": "beegfs-storage@numa0"},
        services=(unit(),),
        systemctl=UNBOUND,
    )


def jumbo(root: Path, **links: str) -> Plan:
    """Two named links raised; the sysfs tree says 1500 for both."""
    return make(
        root,
        "jumbo-frames",
        files=tree_files(eth0=1500, eth1=1500),
        facts=two_nodes(),
        settings={"links": links.get("names", "eth0,eth1")},
    )
