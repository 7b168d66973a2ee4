"""Block devices, md arrays, huge pages, LLT timers, units and files: in with a transaction, out by either way back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from advisor.host import Host, observe
from advisor.planning.records import Plan
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.verify import find_drift
from tests.cases import cases
from tests.planning.system import llt
from tests.transaction.system import apply_locked, plan_of_values, roll_back_locked
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import host_of, listing, make_command, make_tree

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


def test_in_and_out_again(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    before = state(tmp_path)
    plan = plan_of(host)
    assert {one.tunable: one.after for one in plan.changes} == WANTED
    with store.hold_lock():
        record = apply_plan(host, plan, store)
        assert read(host, plan) == WANTED
        assert find_drift(host, [record]) == ()
        assert plan_of(host).is_empty
        outcomes = roll_back(host, record, store)
    assert {one.what: one.detail for one in outcomes if not one.is_back} == {}
    assert state(tmp_path) == before


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


@pytest.mark.parametrize("way", ["rollback", *(shell[0] for shell in SHELLS)])
def test_a_disk_that_has_another_name_since_is_put_back(tmp_path: Path, way: str) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    record = apply_locked(host, plan_of(host), store)
    block = tmp_path / "root/sys/block"
    (block / "sda").rename(block / "sdb")
    other = {"/sys/block/sda/device/wwid": "other\n", "/sys/block/sda/queue/scheduler": "bfq\n"}
    make_tree(tmp_path / "root", other)
    assert {one.what for one in find_drift(host, [record])} == set()
    if way == "rollback":
        assert all(one.is_back for one in roll_back_locked(host, record, store))
    else:
        shell = next(shell for shell in SHELLS if shell[0] == way)
        run_script(store.script_path(record.id), tmp_path, shell=shell)
    live = [(block / f"sdb/queue/{name}").read_text() for name in ("scheduler", "nr_requests", "read_ahead_kb")]
    assert live == ["mq-deadline\n", "64\n", "128\n"]
    assert (block / "sda/queue/scheduler").read_text() == "bfq\n"


def test_a_key_that_somebody_changed_since_is_kept(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    with store.hold_lock():
        record = apply_plan(host, plan_of(host), store)
        conf = tmp_path / "root/etc/beegfs/beegfs-storage.conf"
        conf.write_text(conf.read_text().replace("= 32", "= 64"))
        drifted = {one.what for one in find_drift(host, [record])}
        assert "file:/etc/beegfs/beegfs-storage.conf:tuneNumWorkers" in drifted
        outcomes = {one.what: one.state for one in roll_back(host, record, store)}
    assert outcomes["/etc/beegfs/beegfs-storage.conf"] == "kept"
    assert "tuneNumWorkers   = 64" in conf.read_text()
    assert (tmp_path / "root/etc/multipath.conf").read_text() == FILES["/etc/multipath.conf"]
