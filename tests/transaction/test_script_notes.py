"""What a rollback script has restored is noted: other scripts and advisor go by it, and report no modification."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advisor.host import Host
from advisor.transaction.journal import Confirmed, Store, encode_entry
from advisor.transaction.status import host_status, rollback_transactions, verify_transactions
from tests.transaction.layered import BASE, LLTTAB, apply, build, live
from tests.transaction.test_layers import HIGH, LOW, QUEUE, SWAP
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import listing

each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])


def store_in(where: Path) -> Store:
    """Below the root, as on a host: a script that works on a tree notes nothing outside of it."""
    return Store(str(where / "root/var/lib/advisor"))


def host_files(where: Path) -> dict[str, object]:
    return {path: one for path, one in listing(where / "root").items() if not path.startswith("var")}


def two(where: Path) -> tuple[Host, Store]:
    host, store = build(where), store_in(where)
    apply(host, store, "aa", {SWAP: "10", HIGH: "1000", QUEUE: "8192"})
    apply(host, store, "bb", {SWAP: "20", HIGH: "1000", LOW: "900"})
    return host, store


def run(store: Store, where: Path, identity: str, *options: str, shell: list[str] = SHELLS[0]) -> tuple[int, str]:
    done = run_script(store.script_path(identity), where, *options, shell=shell)
    return done.returncode, done.stdout + done.stderr


def note(store: Store, identity: str) -> Path:
    return store.script_path(identity).with_name("put-back")


@each_shell
def test_before_the_later_one_is_back_the_earlier_keeps_what_it_holds(tmp_path: Path, shell: list[str]) -> None:
    host, store = two(tmp_path)
    for options in ((), ("--force",)):
        code, said = run(store, tmp_path, "0001", *options, shell=shell)
        assert code == 5
        assert f"kept      {SWAP}: held by the later transaction 0002" in said
        assert not note(store, "0001").exists()
    assert live(host)[SWAP] == "20"
    assert live(host)[QUEUE] == BASE[QUEUE]
    assert run(store, tmp_path, "0002", shell=shell)[0] == 0
    assert run(store, tmp_path, "0001", shell=shell)[0] == 0
    assert (live(host), (tmp_path / "root/etc/llttab").read_text()) == (BASE, LLTTAB)


def test_advisor_knows_what_the_script_did(tmp_path: Path) -> None:
    host, store = two(tmp_path)
    assert run(store, tmp_path, "0002")[0] == 0
    status = host_status(host, store)
    assert [(one.state, one.why_undone) for one in status.records] == [
        ("applied", None),
        ("rolled-back", "rolled back by its rollback script"),
    ]
    assert status.drift == ()
    assert verify_transactions(host, None, store).is_as_set
    done = rollback_transactions(host, None, everything=False, force=False, store=store)
    assert [(record.id, {one.state for one in outcomes}) for record, outcomes in done] == [("0001", {"restored"})]
    assert live(host) == BASE
    # By now the journal says it, and of a closed transaction nothing else is left.
    assert not note(store, "0002").exists()
    assert store.find_record("2").why_undone == "rolled back by its rollback script"


def test_a_partial_rollback_leaves_no_note_and_force_does(tmp_path: Path) -> None:
    host, store = two(tmp_path)
    (tmp_path / "root/proc/sys/vm/swappiness").write_text("77\n")
    assert run(store, tmp_path, "0002")[0] == 5
    assert not note(store, "0002").exists()
    assert store.find_record("2").state == "applied"
    assert run(store, tmp_path, "0001")[0] == 5
    assert run(store, tmp_path, "0002", "--force")[0] == 0
    assert store.find_record("2").state == "rolled-back"
    assert run(store, tmp_path, "0001")[0] == 0
    assert live(host) == BASE


def test_killed_anywhere_a_note_is_there_only_when_all_is_back(tmp_path: Path) -> None:
    """The script is cut short at each of its commands, as by a kill."""
    _, store = two(tmp_path)
    lines = store.script_path("0002").read_text().splitlines()
    plan = store.find_record("2").plan
    # Before that it takes the lock and the transaction, which is not open here.
    first = lines.index("still_ours() {")
    places = []
    for at, line in enumerate(lines):
        if at > first and line.strip().startswith(("sync", "mv ", '[ "$files" = 0 ] || sync')):
            places.append((at, "kill -9 $$"))
        for call, items in (("value", plan.changes), ("file", plan.files)):
            if line.strip() == f'with_fields "$record" {call} "$current"':
                places += [(at, f'[ "$current" != {number} ] || kill -9 $$') for number in range(1, len(items) + 1)]
    assert len(places) == 3 + len(plan.changes) + len(plan.files)
    for number, (at, kill) in enumerate(places):
        copy = tmp_path / f"at{number}"
        shutil.copytree(tmp_path / "root", copy / "root", symlinks=True)
        shutil.copytree(tmp_path / "bin", copy / "bin")
        kept = store_in(copy)
        kept.script_path("0002").write_text("\n".join((*lines[:at], kill, *lines[at:])) + "\n")
        assert run_script(kept.script_path("0002"), copy).returncode == -9
        assert not note(kept, "0002").exists()


def test_what_somebody_else_could_have_noted_is_not_believed(tmp_path: Path) -> None:
    host, store = two(tmp_path)
    there = note(store, "0002")
    there.write_text(f"{there.with_name('journal').stat().st_size} 1\n")
    there.chmod(0o666)
    assert store.find_record("2").state == "applied"
    there.chmod(0o600)
    assert store.find_record("2").state == "rolled-back"
    for text in ("", "x", "0 1\n", "999999999999999999 1\n", f"{there.with_name('journal').stat().st_size} 1"):
        there.write_text(text)
        assert store.find_record("2").state == "applied"
    there.write_text(f"{there.with_name('journal').stat().st_size} 1\n")
    there.parent.chmod(0o770)
    assert run(store, tmp_path, "0001")[0] == 5
    assert live(host)[SWAP] == "20"


def test_what_came_into_the_journal_since_counts_more_than_a_note(tmp_path: Path) -> None:
    host, store = two(tmp_path)
    assert run(store, tmp_path, "0002")[0] == 0
    with note(store, "0002").with_name("journal").open("ab") as journal:
        journal.write(encode_entry(Confirmed(1.0)))
    assert store.find_record("2").state == "applied"
    assert run(store, tmp_path, "0001")[0] == 5
    assert live(host)[HIGH] == "1000"
