"""Block devices, md arrays, huge pages, LLT timers, units and files: in with a transaction, out by either way back."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from advisor.host import Host, observe
from advisor.transaction.journal import Store
from advisor.transaction.verify import find_drift
from tests.cases import cases
from tests.planning.system import llt
from tests.transaction.system import apply_locked, plan_of_values, roll_back_locked
from tests.transaction.test_script import run_script
from tests.trees import host_of, listing, make_command, make_tree

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.planning.records import Plan

CASES = cases(__file__)

SYSTEMCTL = CASES["SYSTEMCTL"]
FILES = CASES["FILES"]
WANTED = CASES["WANTED"]


def build(where: Path) -> Host:
    root, commands = make_tree(where / "root", FILES), where / "bin"
    make_command(commands, "lltconfig", llt(where)["lltconfig"])
    make_command(commands, "systemctl", SYSTEMCTL.format(root=root))
    make_command(commands, "udevadm", "exit 0")
    subprocess.run([commands / "lltconfig", "-c"], check=True)
    return host_of(root, commands)


def plan_of(host: Host) -> Plan:
    return plan_of_values(host, WANTED)


def state(where: Path) -> dict[str, tuple[str, int, bytes]]:
    return {**listing(where / "root"), **{f"llt/{name}": one for name, one in listing(where / "llt").items()}}


def read(host: Host, plan: Plan) -> dict[str, object]:
    return {one.tunable: observe(host, one.probe) for one in plan.changes}


def test_a_disk_that_is_gone_is_told_and_nothing_else_is_written(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    record = apply_locked(host, plan_of(host), store)
    (tmp_path / "root/sys/block/sda/device/wwid").write_text("t10.ATA     DISK  2\n")
    done = run_script(store.script_path(record.id), tmp_path)
    assert done.returncode == 5
    assert "failed    block:sda:scheduler cannot be read" in done.stdout
    drifted = {one.what: one.reason for one in find_drift(host, [record])}
    gone = "cannot be read: the device that it was is not there, under any name"
    assert drifted["block:sda:scheduler"] == gone
    outcomes = {one.what: one.state for one in roll_back_locked(host, record, store)}
    assert outcomes["block:sda:scheduler"] == outcomes["block:sda:read_ahead_kb"] == "failed"
    assert (tmp_path / "root/sys/block/sda/queue/scheduler").read_text() == "bfq\n"
