"""Scan, plan, recommend and snapshot in namespaces of their own, as a container has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.containers import needs_a_host

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")

NET, HOST = "sysctl:net.core.somaxconn", "sysctl:vm.swappiness"
# A user namespace has no part in the modules of the machine; /proc and /sys are those of the new namespaces.
INSIDE = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--ipc", "--fork", "--mount-proc")
CLOSED = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && "


def call(
    where: Path, *words: str, inside: tuple[str, ...] = INSIDE, setup: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(where / "state"), "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    environment.pop("KUBERNETES_SERVICE_HOST", None)
    command = [*inside, "sh", "-c", f'{setup}exec "$@"', "sh", sys.executable, "-m", "advisor", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    if "unshare failed" in done.stderr:
        pytest.skip("no user namespaces here")
    assert "Traceback" not in done.stderr, done.stderr
    return done


def plan_of(where: Path, *words: str, inside: tuple[str, ...] = INSIDE, setup: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(where, "plan", *words, "--json", inside=inside, setup=setup).stdout)
    return found


def test_a_plan_sets_what_is_the_containers_own(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"{NET}=8191", f"{HOST}=7", "sysctl:net.core.netdev_max_backlog=999", "thp:defrag=never")
    assert [(one["tunable"], one["persist"]) for one in plan["changes"]] == [(NET, None)]
    assert "as long as the network namespace" in plan["changes"][0]["persist_note"]
    assert plan["files"] == []
    left = {one["tunable"]: (one["state"], one["reason"]) for one in plan["skipped"]}
    assert set(left) == {HOST, "sysctl:net.core.netdev_max_backlog", "thp:defrag"}
    assert {state for state, _ in left.values()} == {"not-applicable"}
    assert all("run advisor on the host" in reason for _, reason in left.values())
    assert any("this runs in a container" in note for note in plan["notes"])


def test_a_value_of_a_shared_namespace_is_the_hosts(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"{NET}=8191", inside=tuple(word for word in INSIDE if word != "--net"))
    assert plan["changes"] == []
    assert "whose network namespace this container uses" in plan["skipped"][0]["reason"]


def test_parameters_that_are_read_only_are_given_at_the_start(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"{NET}=8191", f"{HOST}=7", setup=CLOSED)
    found = {one["tunable"]: one["state"] for one in plan["skipped"]}
    assert (plan["changes"], found) == ([], {NET: "by-hand", HOST: "not-applicable"})
    assert "securityContext.sysctls" in next(one["reason"] for one in plan["skipped"] if one["tunable"] == NET)


def test_a_part_of_proc_sys_that_is_writable_is_not_read_only(tmp_path: Path) -> None:
    # What LXC (lxc.mount.auto = proc:mixed) and systemd-nspawn leave.
    opened = "mount --bind /proc/sys /proc/sys && mount --bind /proc/sys/net /proc/sys/net && "
    setup = f"{opened}mount -o remount,ro,bind /proc/sys && "
    plan = plan_of(tmp_path, f"{NET}=8191", "sysctl:kernel.shmmni=4097", setup=setup)
    assert [one["tunable"] for one in plan["changes"]] == [NET]
    assert [(one["tunable"], one["state"]) for one in plan["skipped"]] == [("sysctl:kernel.shmmni", "by-hand")]


@needs_a_host
def test_a_network_namespace_alone_is_no_container(tmp_path: Path) -> None:
    setup = "mount -t tmpfs none /etc/sysctl.d && "
    plan = plan_of(tmp_path, f"{NET}=8191", f"{HOST}=7", inside=("unshare", "--net", "--mount"), setup=setup)
    assert {one["tunable"] for one in plan["changes"]} == {NET, HOST}
    # A file would set the value of the host's own namespace at the next boot.
    assert {one["tunable"]: bool(one["persist"]) for one in plan["changes"]} == {NET: False, HOST: True}


def test_scan_names_the_container_and_a_snapshot_of_it_does_elsewhere(tmp_path: Path) -> None:
    page = call(tmp_path, "scan").stdout
    # The name of the machine's system needs more or less of a line.
    assert re.search(r"(^|· )container\b", page, re.MULTILINE), page.splitlines()[:2]
    assert "kernel and device values are its host's" in page
    assert call(tmp_path, "snapshot", "-o", str(tmp_path / "one.tar.gz")).returncode == 0
    elsewhere = call(tmp_path, "scan", "--json", "--snapshot", str(tmp_path / "one.tar.gz"), inside=("env",))
    found = json.loads(elsewhere.stdout)["container"]
    assert (found["state"], found["namespaces"]["user"], found["namespaces"]["net"]) == ("container", "own", "own")
    plan = plan_of(tmp_path, f"{NET}=8191", f"{HOST}=7", "--snapshot", str(tmp_path / "one.tar.gz"), inside=("env",))
    assert [one["tunable"] for one in plan["changes"]] == [NET]


def test_a_captured_tree_that_is_read_in_a_container_is_none(tmp_path: Path) -> None:
    (tmp_path / "tree/proc").mkdir(parents=True)
    (tmp_path / "tree/proc/meminfo").write_text("MemTotal: 1024 kB\n")
    found = json.loads(call(tmp_path, "scan", "--root", str(tmp_path / "tree"), "--json").stdout)["container"]
    assert found["state"] == "unknown"
    assert set(found["namespaces"].values()) == {"unknown"}


def test_recommend_counts_what_is_the_hosts(tmp_path: Path) -> None:
    done = call(tmp_path, "recommend", "--json")
    said = [one["text"] for each in json.loads(done.stdout)["recommendations"] for one in each["why"]]
    assert any("can be set on its host only" in text for text in said), done.stdout[:2000]
