"""The rollback script against ``advisor rollback``: every profile on every captured host ends in the same tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.host import Host, SetMtu
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import profile_paths
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from tests.captured import HWLOC_HOSTS, PEPC_HOSTS, captured_root, tree
from tests.serving_hosts import GENERAL
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


@pytest.mark.captured
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (at % 3 != 1)) for at, name in enumerate(HOSTS)]
)
def test_script_and_rollback_end_alike(name: str, tmp_path: Path) -> None:
    captured_root()
    host = built(name, tmp_path)
    root = tmp_path / "root"
    tried = 0
    for number, profile in enumerate(name for name in profile_paths() if name not in GENERAL):
        store = Store(str(tmp_path / f"state{number}"))
        plan = plan_profiles(host, [profile], SETTINGS if profile == "jumbo-frames" else {}, store=store)
        if plan.is_empty or plan.blocking:
            continue
        tried += 1
        before = touched(plan, root)
        with store.hold_lock():
            record = apply_plan(host, plan, store)
            applied = touched(plan, root)
            assert applied != before
            outcomes = roll_back(host, record, store)
        assert all(one.is_back for one in outcomes), outcomes
        assert touched(plan, root) == before
        again = Store(str(tmp_path / f"again{number}"))
        with again.hold_lock():
            record = apply_plan(host, plan, again)
        assert touched(plan, root) == applied
        words = ["dash", str(again.script_path(record.id)), "--root", str(root)]
        environment = {"PATH": f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert touched(plan, root) == before
    print(f"{name}: {tried} profiles")
    assert tried >= 2
