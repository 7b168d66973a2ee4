"""The script killed, and the power gone, at every moment at which something goes to disk: as before, or as after."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.transaction.status import find_drift, rollback_transactions
from tests.cases import read_cases
from tests.exporters.apply_script.stage import SHELLS as ALL_SHELLS
from tests.exporters.apply_script.stage import Stage
from tests.transaction import system
from tests.trees import listing, make_command
from tests.waiting import until_unwatched

Listing = dict[str, tuple[str, int, bytes]]
AT_ONCE = ("apply", "--confirm-within", "0")

# That of busybox takes its own sync before the one on the path.
SHELLS = [shell for shell in ALL_SHELLS if shell[0] != "busybox"]

# What each entry and each file is made durable by: it counts, and does something else at one of them.
DATA = read_cases(__file__)

SYNC = DATA["SYNC"]
# The lock says who is at it; GROUP is a minus for its whole process group.
KILL = '[ "$number" != "${DIE_AT:-0}" ] || kill -9 "$GROUP$(sed "s/process //; s/,.*//" "$PLACE/state/lock")"'
CUT = '/bin/cp -a "$PLACE/root" "$PLACE/cuts/$number.root"; /bin/cp -a "$PLACE/state" "$PLACE/cuts/$number.state"'


# A value, and a file in a new directory whose reload brings a value about: each kind of step, and few of each.
ONLY = (0, 7)


def counting(where: Path, what: str) -> Stage:
    host = system.build(where)
    stage = Stage(where, lambda _: host, system.plan_of(host, ONLY))
    (where / "count").write_text("0\n")
    (where / "cuts").mkdir()
    make_command(where / "bin", "sync", SYNC.format(what=what))
    return stage


def syncs_of_a_whole_run(where: Path) -> int:
    stage = counting(where, "")
    assert stage.call(*AT_ONCE, more={"PLACE": str(where)}).code == 0
    return int((where / "count").read_text())


def killed(where: Path, die_at: int, shell: list[str], *verb: str) -> tuple[Stage, Listing]:
    """Killed at this call of sync(1), alone or with its process group. With the tree as it was before."""
    stage = counting(where, KILL)
    before = stage.listing()
    group = "-" if die_at % 3 else ""
    process = stage.start(*verb, under=shell, more={"PLACE": str(where), "DIE_AT": str(die_at), "GROUP": group})
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return stage, before


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in (1, 2, 3))])
def test_killed_anywhere_the_watchdog_puts_it_back(tmp_path: Path, part: int) -> None:
    count = syncs_of_a_whole_run(tmp_path / "whole")
    assert count > 25
    died = [
        (*killed(tmp_path / str(at), at, SHELLS[at % len(SHELLS)], *AT_ONCE), at)
        for at in range(1 + part, count + 1, 4)
    ]
    for stage, before, at in died:
        until_unwatched(stage.store)
        now = stage.listing()
        records = stage.store.read_records()
        # Without a watchdog nothing has been changed yet; the next one to come closes it.
        if now != before:
            assert records[-1].state == "applied", at
            assert find_drift(stage.host, records) == (), at
        assert stage.call("rollback", more={"PLACE": str(stage.where)}).code == (0 if records else 3), at
        assert stage.listing() == before, at
        assert not stage.store.read_records() or stage.record().state == "rolled-back", at


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_killed_anywhere_the_next_advisor_puts_it_back(tmp_path: Path, part: int) -> None:
    count = syncs_of_a_whole_run(tmp_path / "whole")
    # From the moment on at which the watchdog runs; a tree's host asks for none, and closes none.
    for at in range(count - 2 - part * 3, 14, -6):
        stage, before = killed(tmp_path / str(at), at, SHELLS[at % len(SHELLS)], *AT_ONCE)
        until_unwatched(stage.store)
        rollback_transactions(stage.host, None, everything=False, force=False, store=stage.store)
        assert stage.listing() == before, at
        assert stage.record().state == "rolled-back"


@pytest.mark.thorough
def test_killed_while_it_puts_back_it_is_finished(tmp_path: Path) -> None:
    for at in (1, 4, 6, 7, 8, 9):
        stage = counting(tmp_path / str(at), KILL)
        before = stage.listing()
        place = {"PLACE": str(stage.where)}
        assert stage.call(*AT_ONCE, more=place).code == 0
        (stage.where / "count").write_text("0\n")
        process = stage.start("rollback", more={**place, "DIE_AT": str(at), "GROUP": ""})
        process.communicate(timeout=60)
        until_unwatched(stage.store)
        stage.call("rollback", more=place)
        assert stage.listing() == before, at
        assert stage.record().state == "rolled-back"


def cuts(where: Path) -> Iterator[int]:
    """The tree and the state as they were at each moment are restored, one after another."""
    for cut in sorted((where / "cuts").glob("*.root"), key=lambda one: int(one.stem)):
        for name in ("root", "state"):
            shutil.rmtree(where / name)
            shutil.copytree(cut.with_suffix(f".{name}"), where / name, symlinks=True)
        yield int(cut.stem)


@pytest.mark.parametrize(
    "shell",
    [SHELLS[0], *(pytest.param(shell, marks=pytest.mark.thorough) for shell in SHELLS[1:])],
    ids=lambda shell: shell[0],
)
def test_after_a_power_cut_the_next_boot_has_the_old_or_the_new(tmp_path: Path, shell: list[str]) -> None:
    stage = counting(tmp_path, CUT)
    before = stage.listing()
    assert stage.call(*AT_ONCE, under=shell, more={"PLACE": str(tmp_path)}).code == 0
    after = stage.listing()
    (stage.where / "bin/sync").unlink()
    seen = set()
    for at in cuts(tmp_path):
        script = stage.transaction / "watch.sh"
        if (stage.transaction / "boot").exists():
            (stage.transaction / "boot").write_text("another boot")
        if script.exists():
            subprocess.run([*shell, script, "--boot"], check=True, env=stage.environment())
        now = stage.listing()
        assert now in (before, after), at
        seen.add(now == after)
        states = [record.state for record in stage.store.read_records()]
        assert states in ([], ["applied"]) if now == after else states in ([], ["applying"], ["rolled-back"]), at
    assert seen == {True, False}


def test_a_torn_line_of_the_journal_is_left_out_and_the_next_is_whole(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    stage.call(*AT_ONCE)
    # Its watchdog would see the torn journal as well, and could be the first to roll it back.
    until_unwatched(stage.store)
    journal = stage.transaction / "journal"
    journal.write_bytes(journal.read_bytes()[:-7])
    # As a kill before its last entry leaves it.
    (stage.transaction / "length").unlink()
    (stage.transaction / "pending").touch()
    assert stage.record().state == "applying"
    refused = stage.call("apply")
    assert (refused.code, "was not finished" in refused.last["message"]) == (3, True)
    assert stage.call("rollback").code == 0
    assert stage.listing() == before
    assert stage.record().state == "rolled-back"
    # The watchdog that saw the same may have been first.
    assert stage.record().why_undone in ("interrupted", "its client ended half-way")


def test_a_full_disk_for_the_journal_puts_everything_back(tmp_path: Path) -> None:
    stage = counting(tmp_path, '[ "$number" -lt 18 ] || case $* in *journal) echo full >&2; exit 1 ;; esac')
    before = stage.listing()
    done = stage.call(*AT_ONCE, more={"PLACE": str(tmp_path)})
    assert (done.code, done.state) == (4, "rolled-back")
    assert "journal: cannot be written" in done.last["message"]
    assert stage.listing() == before
    assert os.listdir(tmp_path / "cuts") == []
    # That it is rolled back could not be recorded, so it stays open; the watchdog, or the next one to come, records it.
    until_unwatched(stage.store)
    assert stage.record().state == "rolled-back"
    (stage.where / "bin/sync").unlink()
    assert stage.call("rollback").code == 0
    assert stage.listing() == before
    assert listing(stage.transaction).keys() == {"journal", "length", "rollback.data", "rollback.sh"}
