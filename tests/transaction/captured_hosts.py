"""Captured hosts as writable trees, with what the profiles change laid over them."""

from __future__ import annotations

import shutil
from pathlib import Path

from advisor.host import Host, SetMtu
from advisor.planning.records import Plan
from tests.captured import HWLOC_HOSTS, PEPC_HOSTS, tree
from tests.transaction import system
from tests.trees import host_of, make_command, make_tree

HOSTS = tuple(f"hwloc/{name}" for name in HWLOC_HOSTS) + tuple(f"pepc/{name}" for name in PEPC_HOSTS)
SETTINGS = {"links": "eth1"}

# What the captured topologies do not hold, and the profiles change: the same on each.
ADDED: dict[str, str | bytes] = {
    **system.FILES,
    "/proc/sys/net/core/rmem_default": "212992\n",
    "/proc/sys/net/core/wmem_default": "212992\n",
    "/proc/sys/net/core/wmem_max": "212992\n",
    "/proc/sys/net/core/optmem_max": "20480\n",
    "/proc/sys/net/ipv4/tcp_wmem": "4096 16384 4194304\n",
    "/proc/sys/net/ipv4/tcp_mem": "100000 200000 300000\n",
    "/proc/sys/net/ipv4/udp_mem": "100000 200000 300000\n",
    "/proc/sys/kernel/numa_balancing": "1\n",
    "/sys/class/net/eth1/type": "1\n",
    "/sys/class/net/eth1/carrier": "1\n",
    "/sys/class/net/eth1/operstate": "up\n",
    "/sys/class/net/eth1/address": "02:00:00:00:00:01\n",
}


def built(captured: str, where: Path) -> Host:
    """A writable copy of a captured host's tree, with what the profiles need laid over it."""
    root = where / "root"
    shutil.copytree(tree(captured), root, symlinks=True)
    make_tree(root, {path: content for path, content in ADDED.items() if not (root / path.lstrip("/")).exists()})
    commands = where / "bin"
    make_command(commands, "lltconfig", system.LLTCONFIG.format(root=root))
    make_command(commands, "systemctl", system.SYSTEMCTL.format(root=root))
    make_command(commands, "udevadm", "exit 0")
    for name in ("ip", "lsblk", "mdadm", "lvs", "dmsetup", "multipath", "ethtool"):
        # Those of this machine would describe this machine.
        make_command(commands, name, "exit 1")
    return host_of(root, commands)


def touched(plan: Plan, root: Path) -> dict[str, bytes | None]:
    """Everything that the plan could have changed, byte for byte."""
    steps = [step for change in plan.changes for step in (*change.steps, *change.undo)]
    paths = {str(path) for step in steps if (path := getattr(step, "path", None))}
    paths |= {f"/sys/class/net/{step.link}/mtu" for step in steps if isinstance(step, SetMtu)}
    paths |= {file.path for file in plan.files} | {"/run/llt", "/run/unit"}
    found = {path: root / path.lstrip("/") for path in sorted(paths)}
    return {path: place.read_bytes() if place.is_file() else None for path, place in found.items()}
