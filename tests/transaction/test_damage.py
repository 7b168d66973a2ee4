"""Damage of a journal, byte for byte: it is named, nothing is built on it, and nothing is rolled back because of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.errors import RefusedError
from advisor.host import Host
from advisor.transaction.approvals import refuse_while_one_waits
from advisor.transaction.journal import Store
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.status import host_status, rollback_transactions
from tests.transaction.killing import killed_at_fsync
from tests.transaction.layered import BASE, apply, build, live
from tests.transaction.test_damaged import journal_of
from tests.transaction.test_layers import SWAP, out
from tests.transaction.test_script import run_script
from tests.transaction.test_script_notes import host_files, store_in
from tests.trees import listing

ENDS = ("applied", "rolled-back", "handed-over")


def ended(where: Path, end: str) -> tuple[Host, Store]:
    """0002 is applied over 0001, is rolled back, or has been given another plan since the rollback of 0001."""
    host, store = build(where), store_in(where)
    apply(host, store, "aa", {SWAP: "10"})
    apply(host, store, "bb", {SWAP: "20"})
    if end == "rolled-back":
        out(host, store, "2")
    if end == "handed-over":
        out(host, store, "1")
    return host, store


def places(whole: bytes, every: int) -> Iterator[int]:
    """Each of the last line, and every so many of those before it."""
    last = whole.rfind(b"\n", 0, -1) + 1
    yield from range(0, last, every)
    yield from range(last, len(whole))


def flipped(whole: bytes, every: int) -> Iterator[tuple[str, bytes]]:
    """One bit in each byte, another one each time; in the last line each bit, if it is short."""
    last = whole.rfind(b"\n", 0, -1) + 1
    has_all = every == 1 or len(whole) - last < 400
    for at in places(whole, every):
        for bit in range(8) if at >= last and has_all else (at % 8,):
            yield f"bit {bit} of byte {at}", whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]


def cut(whole: bytes, every: int) -> Iterator[tuple[str, bytes]]:
    for length in list(places(whole, every))[:-1]:
        yield f"cut to {length}", whole[:length]


def rearranged(whole: bytes, _every: int) -> Iterator[tuple[str, bytes]]:
    lines = whole.splitlines(keepends=True)
    for at in range(len(lines)):
        yield f"line {at} twice", b"".join((*lines[: at + 1], *lines[at:]))
        yield f"line {at} is empty", b"".join((*lines[:at], b"\n", *lines[at + 1 :]))
        yield f"line {at} is zeros", b"".join((*lines[:at], b"\0" * (len(lines[at]) - 1) + b"\n", *lines[at + 1 :]))
        yield f"line {at} is lost", b"".join((*lines[:at], *lines[at + 1 :]))
        if at:
            yield (
                f"lines {at - 1} and {at} swapped",
                b"".join((*lines[: at - 1], lines[at], lines[at - 1], *lines[at + 1 :])),
            )
    yield "an empty line at the end", whole + b"\n"
    yield "an entry of another", whole + lines[-1].replace(b"1", b"2")


KINDS = {"flipped": flipped, "cut": cut, "rearranged": rearranged}


def is_damage(host: Host, store: Store, what: str) -> None:
    """The short form of the next one, for each of thousands."""
    assert [one.id for one in store.survey_records()[1]] == ["0002"], what
    with store.hold_lock():
        assert recover_unfinished(host, store) == (), what


def is_settled_as_damage(host: Host, store: Store, tree: dict[str, object], what: str) -> None:
    before = journal_of(store, "0002").read_bytes()
    assert [one.id for one in host_status(host, store).unreadable] == ["0002"], what
    with pytest.raises(RefusedError) as caught:
        refuse_while_one_waits(store)
    assert caught.value.exit_code == 3
    with store.hold_lock():
        assert recover_unfinished(host, store) == (), what
    if store.find_record("1").is_active:
        with pytest.raises(RefusedError, match="what it holds is unknown"):
            rollback_transactions(host, "1", everything=False, force=False, store=store)
    assert host_files(store.directory.parents[3]) == tree, what
    assert journal_of(store, "0002").read_bytes() == before


@pytest.mark.repeats(3)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.thorough)])
def test_every_damage_is_named_and_changes_nothing(tmp_path: Path, kind: str, end: str, every: int) -> None:
    host, store = ended(tmp_path, end)
    journal, tree = journal_of(store, "0002"), host_files(tmp_path)
    whole = journal.read_bytes()
    count = 0
    for what, data in KINDS[kind](whole, every):
        journal.write_bytes(data)
        is_damage(host, store, what)
        if count % 20 == 0:
            is_settled_as_damage(host, store, tree, what)
        count += 1
    assert count > 20
    assert host_files(tmp_path) == tree
    journal.write_bytes(whole)
    assert host_status(host, store).unreadable == ()


@pytest.mark.parametrize("way", [0, 1])
def test_each_command_of_the_hint_settles_it(tmp_path: Path, way: int) -> None:
    host, store = ended(tmp_path, "applied")
    journal_of(store, "0002").write_bytes(b"x" + journal_of(store, "0002").read_bytes()[1:])
    (damaged,) = host_status(host, store).unreadable
    assert subprocess.run(["sh", "-c", damaged.look_command], check=True, capture_output=True).stdout
    if way == 0:
        assert damaged.settle_commands[0] == f"sh {store.script_path('0002')}"
        assert run_script(store.script_path("0002"), tmp_path).returncode == 0
        assert live(host)[SWAP] == "10"
    else:
        subprocess.run(["sh", "-c", damaged.settle_commands[1]], check=True)
        assert live(host)[SWAP] == "20"
    assert host_status(host, store).unreadable == ()
    assert apply(host, store, "cc", {SWAP: "30"})
    assert live(host)[SWAP] == "30"


def test_every_cut_of_a_running_one_is_torn_or_damage_and_never_loses_the_original(tmp_path: Path) -> None:
    """Killed at each write, then cut at each length of the last line, as a power cut does: it is rolled back."""
    at = 0
    while True:
        at += 1
        where = tmp_path / str(at)
        host, store = build(where), store_in(where)
        before = host_files(where)
        if not killed_at_fsync(host, store, lambda host, store: apply(host, store, "aa", {SWAP: "10"}), at):
            break
        records, damaged = store.survey_records()
        names = [path.parent.name for path in store.directory.glob("transactions/[0-9]*/rollback.sh")]
        assert (names, damaged) == ([one.id for one in records], ())
        if not records or not records[0].is_unfinished:
            continue
        journal = journal_of(store, "0001")
        whole = journal.read_bytes()
        start = whole.rfind(b"\n", 0, -1) + 1
        # What a line announces is done only once the line is on disk: no power cut tears that one any more.
        is_flushed = b'"doing"' in whole[start:] and host_files(where) != before
        if start and not is_flushed:
            journal.write_bytes(whole[: start + (len(whole) - start) * (at % 7) // 7])
        assert host_status(host, store).unreadable == ()
        rollback_transactions(host, None, everything=False, force=False, store=store)
        assert host_files(where) == before, at
    assert at > 12
    assert live(host) == {**BASE, SWAP: "10"}
    assert listing(where)
