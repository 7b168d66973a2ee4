"""The journal of a run: what is on disk is read, a torn end is as if it had never been written, damage is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import BusyError, InvalidInputError, UsageError
from advisor.fleet.runs.journal import (
    Asked,
    Ended,
    Entry,
    GateDone,
    HostDone,
    Planned,
    PlannedHost,
    ProofBegun,
    ProofDone,
    Resumed,
    RunJournal,
    WaveBegun,
    WaveEnded,
    all_runs,
    find_run,
    lock_store,
    next_id,
    read_entries,
    read_run,
    same_order,
)
from advisor.fleet.runs.waves import Wave, WaveShape
from advisor.fleet.scan import FleetStore

ASKED = Asked(1.0, "1", ("jumbo-frames",), (("links", "eth0"),), ("hosts",), None, 5, 60, WaveShape())
ENTRIES: tuple[Entry, ...] = (
    ASKED,
    Planned(
        2.0,
        tuple(PlannedHost(name, "change", f"print-{name}") for name in "abc"),
        (Wave(1, ("a",), is_canary=True), Wave(2, ("b", "c"))),
        (),
    ),
    WaveBegun(3.0, 1, ("a",)),
    HostDone(4.0, 1, "a", "apply", "awaiting-confirmation", "0001"),
    GateDone(5.0, 1, True, ()),
    HostDone(6.0, 1, "a", "confirm", "applied", "0001"),
    WaveEnded(7.0, 1, "confirmed"),
    WaveBegun(8.0, 2, ("b", "c")),
    HostDone(9.0, 2, "b", "apply", "awaiting-confirmation", "0004"),
)


def written(where: Path, entries: tuple[Entry, ...] = ENTRIES) -> Path:
    directory = FleetStore(where).run("0001")
    with RunJournal(directory) as journal:
        for entry in entries:
            journal.write(entry)
    return directory


def test_a_run_that_was_cut_short_tells_which_wave_was_open(tmp_path: Path) -> None:
    run = read_run("0001", read_entries(written(tmp_path)))
    assert run is not None
    assert run.state == "interrupted"
    assert run.open_wave is not None
    assert run.open_wave.hosts == ("b", "c")
    assert run.outcomes == {1: "confirmed"}
    assert {name: one.state for name, one in run.hosts.items()} == {"a": "applied", "b": "awaiting-confirmation"}
    assert run.touched == ("a", "b")
    assert run.sought["b"].fingerprint == "print-b"


def test_a_resumed_run_counts_its_waves_anew_and_forgets_no_host(tmp_path: Path) -> None:
    planned = Planned(11.0, (PlannedHost("b", "change", "other"),), (Wave(1, ("b",)),), ())
    more = (Resumed(10.0), planned, WaveBegun(12.0, 1, ("b",)), HostDone(13.0, 1, "b", "confirm", "applied", "0005"))
    run = read_run("0001", (*ENTRIES, *more, WaveEnded(14.0, 1, "confirmed"), Ended(15.0, 0, "done")))
    assert run is not None
    assert run.state == "done"
    assert run.touched == ("a", "b")
    assert (run.sought["a"].fingerprint, run.sought["b"].fingerprint) == ("print-a", "other")
    # Rolled back in the reverse of the order in which they were last changed.
    assert same_order(run) == ((1, ("a",)), (3, ("b",)))


def test_a_proof_is_open_until_its_host_is_known_to_be_back(tmp_path: Path) -> None:
    def open_after(*entries: Entry) -> dict[str, str]:
        run = read_run("0001", (ASKED, *entries))
        assert run is not None
        return run.open_proofs

    begun = ProofBegun(2.0, "a", "0123456789abcdef")
    assert open_after(begun) == {"a": "0123456789abcdef"}
    assert open_after(begun, ProofDone(3.0, "a", 5, "unknown", "why"), Resumed(4.0)) == {"a": "0123456789abcdef"}
    assert open_after(begun, ProofDone(3.0, "a", 1, "rolled-back", "why")) == {}
    # A journal of before the token was kept.
    directory = written(tmp_path, (ASKED,))
    with (directory / "journal").open("ab") as file:
        file.write(b'{"event":"proof-begun","time":2.0,"host":"a"}\n')
    assert open_after(*read_entries(directory)[1:]) == {"a": ""}


@given(cut=st.integers(0, 4000))
def test_a_power_cut_takes_the_last_line_at_most(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    directory = written(tmp_path_factory.mktemp("run"))
    path = directory / "journal"
    data = path.read_bytes()
    os.truncate(path, min(cut, len(data)))
    whole = data[: min(cut, len(data))].count(b"\n")
    assert read_entries(directory) == ENTRIES[:whole]
    with RunJournal(directory) as journal:
        journal.write(Resumed(99.0))
    assert read_entries(directory) == (*ENTRIES[:whole], Resumed(99.0))


def test_damage_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path) / "journal"
    path.write_bytes(path.read_bytes().replace(b'"wave-begun"', b'"wave-bogus"', 1))
    with pytest.raises(InvalidInputError, match="line 3"):
        read_entries(path.parent)


def test_runs_are_numbered_found_and_listed(tmp_path: Path) -> None:
    store = FleetStore(tmp_path)
    assert next_id(store) == "0001"
    with pytest.raises(UsageError, match="there is no run"):
        find_run(store, None)
    written(tmp_path)
    assert next_id(store) == "0002"
    assert [one.id for one in all_runs(store)] == ["0001"]
    assert find_run(store, "1").id == find_run(store, "last").id == find_run(store, None).id == "0001"
    with pytest.raises(UsageError, match="'7'"):
        find_run(store, "7")


def test_a_second_run_at_once_is_refused_and_names_the_first(tmp_path: Path) -> None:
    store = FleetStore(tmp_path)
    with lock_store(store), pytest.raises(BusyError, match=f"process {os.getpid()}"), lock_store(store):
        pass
    with lock_store(store):
        pass
