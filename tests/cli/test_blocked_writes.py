"""What this process may not write is blocked in the plan, and refused before the first step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.containers import needs_a_host

ROOT = Path(__file__).parent.parent.parent
KEYS = ("net.ipv4.tcp_slow_start_after_idle=0", "net.ipv4.tcp_keepalive_time=600")
VALUES = tuple(f"sysctl:{one}" for one in KEYS)
# Nothing of this machine is written: links and sysctls of a network namespace, and an /etc of its own.
SETUP = """
mount -t sysfs none /sys
ip link add d0 type veth peer name d1
mount -t tmpfs none /etc/sysctl.d
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")


def run(where: Path, setup: str, *words: str, before: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of advisor, called in a namespace that ``setup`` has prepared."""
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(where / "state"), "PYTHONPATH": str(ROOT)}
    command = ["unshare", "-n", "-m", "sh", "-ec", f'{SETUP}{setup}\nexec "$@"', "sh", *before]
    call = [*command, sys.executable, "-m", "advisor", *words, "--json"]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


SWAPPINESS = "sysctl:vm.swappiness=11"


def of_host(where: Path) -> str:
    """A value of no namespace, which files keep: one that only this mount namespace sees."""
    return f"echo 60 > {where}/live; mount --bind {where}/live /proc/sys/vm/swappiness"


def reasons(plan: dict[str, Any]) -> dict[str, str]:
    return {one["tunable"]: one["reason"] for one in plan["skipped"] if one["state"] == "blocked"}


def test_without_an_obstacle_nothing_is_blocked(tmp_path: Path) -> None:
    code, plan = run(tmp_path, "", "plan", *VALUES, "link:d0:mtu=1400")
    assert (code, reasons(plan), len(plan["changes"])) == (0, {}, 3)


@pytest.mark.parametrize(
    "setup",
    ["mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys", "mount -o remount,ro,bind /proc/sys/net"],
)
@needs_a_host
def test_sysctls_that_are_mounted_read_only(tmp_path: Path, setup: str) -> None:
    if "bind /proc/sys/net" in setup:
        setup = f"mount --bind /proc/sys/net /proc/sys/net; {setup}"
    code, plan = run(tmp_path, setup, "plan", *VALUES)
    assert code == 3
    assert plan["changes"] == []
    assert set(reasons(plan)) == {one.partition("=")[0] for one in VALUES}
    assert "mounted read-only" in next(iter(reasons(plan).values()))
    code, refused = run(tmp_path, setup, "apply", "--yes", *VALUES)
    assert code == 3
    assert "mounted read-only" in refused["error"]["message"]
    assert not (tmp_path / "state/transactions/0001/journal").exists(), "refused before anything is begun"


@pytest.mark.skipif(not shutil.which("setpriv"), reason="drops a capability")
def test_a_capability_that_root_lacks(tmp_path: Path) -> None:
    drop = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    code, plan = run(tmp_path, "", "plan", "link:d0:mtu=1400", "link:d0:txqueuelen=5000", before=drop)
    assert code == 3
    assert set(reasons(plan)) == {"link:d0:mtu", "link:d0:txqueuelen"}
    assert "lacks CAP_NET_ADMIN" in reasons(plan)["link:d0:mtu"]
    code, refused = run(tmp_path, "", "apply", "--yes", "link:d0:mtu=1400", before=drop)
    assert (code, "lacks CAP_NET_ADMIN" in refused["error"]["message"]) == (3, True)


@needs_a_host
def test_a_directory_for_files_that_is_read_only(tmp_path: Path) -> None:
    setup = f"{of_host(tmp_path)}; mount -o remount,ro /etc/sysctl.d"
    code, plan = run(tmp_path, setup, "plan", SWAPPINESS)
    assert code == 3
    assert all("mounted read-only" in reason and "--runtime-only" in reason for reason in reasons(plan).values())
    code, plan = run(tmp_path, setup, "plan", "--runtime-only", SWAPPINESS)
    assert (code, reasons(plan), len(plan["changes"])) == (0, {}, 1)


@pytest.mark.skipif(not shutil.which("chattr"), reason="makes a file immutable")
def test_a_file_that_is_immutable(tmp_path: Path) -> None:
    name = "90-advisor-set-vm-swappiness.conf"
    setup = f"{of_host(tmp_path)}; echo '# mine' > /etc/sysctl.d/{name}; chattr +i /etc/sysctl.d/{name} || exit 77"
    try:
        code, plan = run(tmp_path, setup, "plan", SWAPPINESS)
    except json.JSONDecodeError:
        pytest.skip("this file system has no such flag")
    assert code == 3
    assert f"{name} cannot be written: it is immutable" in reasons(plan)["sysctl:vm.swappiness"]


@needs_a_host
def test_another_user_is_told_what_root_could_not_do_either(open_path: Path, as_nobody: tuple[str, ...]) -> None:
    code, plan = run(open_path, "", "plan", VALUES[1], before=as_nobody)
    assert (code, reasons(plan)) == (0, {})
    setup = "mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys"
    code, plan = run(open_path, setup, "plan", VALUES[1], before=as_nobody)
    assert (code, len(reasons(plan))) == (3, 1)
