"""What somebody meets who knows the fleet from its pages alone: a name misspelt, a capture made by hand, the words of a
page that say what to type next. No host is asked here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.fleet.runs.journal import (
    Asked,
    Ended,
    Entry,
    HostDone,
    Planned,
    PlannedHost,
    Resumed,
    RunJournal,
    RunRecord,
    WaveBegun,
    WaveEnded,
    read_entries,
    read_run,
)
from advisor.fleet.runs.waves import Wave, WaveShape
from advisor.fleet.scan import FleetStore
from advisor.report.fleet.run import fleet_run_text, fleet_status_text
from tests.cli.inside import call_inside

INVENTORY = "[storage]\na ansible_host=192.0.2.1\nb ansible_host=192.0.2.2\n[pair]\na\nb\n"
THEIRS = "link:eth0:mtu not restored: kept: modified externally (4000)"


def run(state: Path, *arguments: str | Path, code: int) -> tuple[str, str]:
    """Standard output and error of ``advisor fleet``, which ends with ``code``."""
    done = call_inside("fleet", *arguments, COLUMNS=100, ADVISOR_STATE_DIR=state, ANSIBLE_TIMEOUT=1)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout, done.stderr


def inventory(where: Path, text: str = INVENTORY) -> Path:
    path = where / "hosts.ini"
    path.write_text(text)
    return path


@pytest.mark.repeats(1)
@pytest.mark.parametrize("group", ["piar", "var=rack"])
def test_a_failover_group_of_nobody_is_refused_before_a_host_is_asked(tmp_path: Path, group: str) -> None:
    hosts = inventory(tmp_path)
    arguments = ("jumbo-frames", "-i", hosts, "--failover-group", group, "--json")
    for verb in (("plan",), ("apply", "--dry-run"), ("apply", "--yes")):
        out, error = run(tmp_path / "state", *verb, *arguments, code=2)
        assert group in json.loads(out)["error"]["message"]
        assert "capturing" not in error


def rolled_back_but_for_one(store: FleetStore) -> RunRecord:
    asked = Asked(1.0, "1", ("jumbo-frames",), (("links", "eth0"),), ("hosts",), None, 5, 60, WaveShape())
    planned = Planned(2.0, tuple(PlannedHost(name, "change", name) for name in "ab"), (Wave(1, ("a", "b")),), ())
    with RunJournal(store.run("0001")) as journal:
        entries: tuple[Entry, ...] = (
            asked,
            planned,
            WaveBegun(3.0, 1, ("a", "b")),
            *(HostDone(4.0, 1, name, "confirm", "applied", "0001") for name in "ab"),
            WaveEnded(5.0, 1, "confirmed"),
            Ended(6.0, 0, "done"),
            Resumed(7.0, "rollback"),
            HostDone(8.0, 1, "a", "rollback", "rolled-back", "0001"),
            HostDone(9.0, 1, "b", "rollback", "unknown", "0001", THEIRS, by_hand="ssh b sudo sh -s rollback"),
            Ended(10.0, 5, "stopped", "1 host is not rolled back"),
        )
        for entry in entries:
            journal.write(entry)
    found = read_run("0001", read_entries(store.run("0001")))
    assert found is not None
    return found


def test_a_rollback_that_keeps_what_somebody_else_set_says_how_to_override_it(tmp_path: Path) -> None:
    page = fleet_run_text(rolled_back_but_for_one(FleetStore(tmp_path)), None, width=100, color=False)
    assert "advisor fleet rollback 0001 --force" in page
    assert "To roll back what is left:" not in page, "the same again would keep it again"
    assert "--resume" not in page, "that would carry out again what was to be rolled back"


def test_a_rollback_that_was_cut_short_is_not_taken_up_as_an_apply(tmp_path: Path) -> None:
    from advisor.fleet.runs.status import FleetStanding

    rolled_back_but_for_one(FleetStore(tmp_path))
    with RunJournal(FleetStore(tmp_path).run("0001")) as journal:
        journal.write(Resumed(11.0, "rollback"))
    run_again = read_run("0001", read_entries(FleetStore(tmp_path).run("0001")))
    assert run_again is not None
    assert run_again.state == "interrupted"
    page = fleet_status_text(FleetStanding((), runs=(run_again,)), width=100, color=False)
    assert "advisor fleet rollback 0001" in page
    assert "--resume" not in page
