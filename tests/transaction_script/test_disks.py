"""Disks in the script: a disk is known by what it is, not by its name, and that look-up leaves the script's own be."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Target
from tests.transaction import system
from tests.transaction_script.stage import SHELLS, Stage
from tests.trees import make_tree

WANTED = (("block:sda:read_ahead_kb", "512"), ("block:sda:nr_requests", "128"), ("sysctl:net.core.rmem_max", "8388608"))


def build(where: Path) -> Host:
    host = system.build(where)
    make_tree(
        where / "root",
        {
            "/sys/block/sda/wwid": "naa.5000c500a1b2c3d4\n",
            "/sys/block/sda/device/wwid": "naa.5000c500a1b2c3d4\n",
            "/sys/block/sda/queue/read_ahead_kb": "128\n",
            "/sys/block/sda/queue/nr_requests": "64\n",
        },
    )
    return host


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_values_of_disks_go_in_and_out(tmp_path: Path, shell: list[str]) -> None:
    host = build(tmp_path)
    targets = tuple(Target(name, value, "exactly", "why", "hurts", ("source",), "test", 0) for name, value in WANTED)
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
