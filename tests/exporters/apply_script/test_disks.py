"""Disks in the script: a disk is known by what it is, not by its name, and that look-up leaves the script's own be."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget
from tests.cases import read_cases
from tests.exporters.apply_script.stage import SHELLS, Stage
from tests.transaction import system
from tests.transaction import test_disk_paths as disk_paths
from tests.trees import make_tree

WANTED = (("block:sda:read_ahead_kb", "512"), ("block:sda:nr_requests", "128"), ("sysctl:net.core.rmem_max", "8388608"))


DATA = read_cases(__file__)


def build(where: Path) -> Host:
    host = system.build(where)
    make_tree(where / "root", DATA["build"])
    return host


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_values_of_disks_go_in_and_out(tmp_path: Path, shell: list[str]) -> None:
    host = build(tmp_path)
    targets = tuple(
        PlanTarget(name, value, "exactly", "why", "hurts", ("source",), "test", 0) for name, value in WANTED
    )
    plan = make_plan(("test",), targets, (), observe_targets(host, targets, {}), system.bare_facts(), runtime_only=True)
    stage = Stage(tmp_path, lambda _: host, plan)
    assert "located" in stage.script.read_text()
    before = stage.listing()
    done = stage.call("apply", "--confirm-within", "0", under=shell)
    assert (done.code, done.state) == (0, "applied"), done
    assert (stage.root / "sys/block/sda/queue/read_ahead_kb").read_text() == "512\n"
    assert (stage.root / "sys/block/sda/queue/nr_requests").read_text() == "128\n"
    assert stage.call("verify", under=shell).code == 0
    assert (stage.call("rollback", under=shell).code, stage.listing()) == (0, before)


def path_stage(where: Path) -> Stage:
    """Two paths of one unit and one that is never set; the values are set on the first two."""
    host = disk_paths.lay(where, disk_paths.LAYOUT)
    return Stage(where, lambda _: host, disk_paths.plan_of(host, "sdb", "sdc"))


@pytest.mark.repeats(4)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("move", ["swapped", "turned", "one is gone, its sibling has its name", "all are gone"])
def test_paths_of_one_unit_change_their_names(tmp_path: Path, move: str, shell: list[str]) -> None:
    stage = path_stage(tmp_path)
    moved = disk_paths.layout(disk_paths.CASES["moves"][move])
    later = {name: replace(disk, value="256") for name, disk in moved.items()}
    present = {disk.path for disk in later.values()}
    missed = {f"block:{name}:nr_requests" for name, disk in (("sdb", disk_paths.A), ("sdc", disk_paths.B))
              if disk.path not in present}  # fmt: skip
    assert stage.call("apply", "--confirm-within", "0", under=shell).code == 0
    disk_paths.lay(tmp_path, later)
    done = stage.call("verify", under=shell)
    assert (done.code, {one for one, state in done.states().items() if state == "unknown"}) == (bool(missed), missed)
    assert all("cannot be read: the device" in one["detail"] for one in done.last["items"] if one["state"] == "unknown")
    assert stage.call("rollback", under=shell).code == (5 if missed else 0)
    own = {disk.path: disk.value for disk in (disk_paths.A, disk_paths.B)}
    wanted = {name: own.get(disk.path, "256") for name, disk in later.items()}
    assert disk_paths.values(tmp_path, later) == wanted


def test_another_path_with_the_name_since_the_plan_is_refused(tmp_path: Path) -> None:
    stage = path_stage(tmp_path)
    disk_paths.lay(tmp_path, {"sda": disk_paths.D, "sdb": disk_paths.C, "sdc": disk_paths.B})
    before = stage.listing()
    done = stage.call("apply", "--confirm-within", "0")
    assert (done.code, stage.listing()) == (3, before)
    assert "ID_PATH=pci-05-fc-0xa-lun-1 is not there; other devices of its identity: sdb sdc" in done.errors
