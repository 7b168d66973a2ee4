"""The store: nobody but its owner can have written what it gives, and leftovers of a power cut do no harm."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import pytest

from advisor.errors import InvalidInputError, RefusedError, UsageError
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import (
    CLOSED_DAYS,
    MAX_JOURNAL_BYTES,
    MOST_CLOSED,
    Record,
    Store,
    decode_journal,
    unpack_journal,
)
from advisor.transaction.rollback import recover_unfinished, roll_back
from advisor.transaction.status import rollback_transactions
from tests.transaction.system import apply_locked, build, plan_of, store_of
from tests.trees import listing

NOBODY = 65534


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """An active transaction."""
    host, store = build(tmp_path), store_of(tmp_path)
    return apply_locked(host, plan_of(host), store)


def journal_of(where: Path) -> Path:
    return where / "state/transactions/0001/journal"


def belongs_to_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    os.chown(path, NOBODY, NOBODY)


def is_a_link(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")


def instead(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


Forge = Callable[[Path], object]
FORGED: dict[str, Forge] = {
    "others may write": lambda path: path.chmod(0o660),
    "belongs to another": belongs_to_another,
    "is a link": is_a_link,
    "all may write": lambda path: path.chmod(0o602),
    "is a FIFO": lambda path: instead(path, os.mkfifo),
    "is a directory": lambda path: instead(path, os.mkdir),
}


@pytest.fixture
def unbothered(tmp_path: Path) -> Iterator[None]:
    yield
    assert journal_of(tmp_path).lstat()


@pytest.mark.usefixtures("record", "unbothered")
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_journal_that_others_could_have_written_is_not_read(forge: Forge, tmp_path: Path) -> None:
    forge(journal_of(tmp_path))
    before = listing(tmp_path / "root")
    for call in (store_of(tmp_path).read_records, lambda: store_of(tmp_path).reopen_journal("0001")):
        with pytest.raises((RefusedError, IsADirectoryError)) as caught:
            call()
        if isinstance(caught.value, RefusedError):
            assert str(journal_of(tmp_path)) in caught.value.message
            assert str(journal_of(tmp_path)) in (caught.value.hint or "")
    assert listing(tmp_path / "root") == before


@pytest.mark.usefixtures("record")
@pytest.mark.parametrize("name", ["state", "state/transactions", "state/transactions/0001"])
@pytest.mark.parametrize("forge", [*FORGED.values()][:3], ids=[*FORGED][:3])
def test_a_directory_that_others_could_write_to_is_not_used(forge: Forge, name: str, tmp_path: Path) -> None:
    forge(tmp_path / name)
    with pytest.raises(RefusedError, match=r"only its owner can write to|symbolic link") as caught:
        store_of(tmp_path).read_records()
    with pytest.raises(RefusedError), store_of(tmp_path).hold_lock():
        store_of(tmp_path).read_records()
    assert f"{tmp_path / name}" in caught.value.message


def test_what_it_makes_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Store(str(tmp_path / "a/b/state")).hold_lock():
            pass
    finally:
        os.umask(before)
    assert {path: oct(mode) for path, (_, mode, _) in listing(tmp_path).items()} == {
        "a": "0o755",
        "a/b": "0o755",
        "a/b/state": "0o700",
        "a/b/state/transactions": "0o700",
        "a/b/state/lock": "0o600",
    }


@pytest.mark.usefixtures("record")
def test_a_journal_has_a_bound(tmp_path: Path) -> None:
    os.truncate(journal_of(tmp_path), MAX_JOURNAL_BYTES + 1)
    with pytest.raises(InvalidInputError, match="journal: larger than 64 MiB") as caught:
        store_of(tmp_path).read_records()
    assert f"to roll it back: sh {store_of(tmp_path).script_path('0001')}\n" in (caught.value.hint or "")


def test_a_transaction_without_a_whole_first_line_is_none(tmp_path: Path, record: Record) -> None:
    transactions = tmp_path / "state/transactions"
    whole = journal_of(tmp_path).read_bytes()
    first = whole[: whole.index(b"\n")]
    for number, content in enumerate((b"", first[:1], first[:40], first[:-1], None), 2):
        (transactions / f"{number:04d}").mkdir(mode=0o700)
        if content is not None:
            (transactions / f"{number:04d}" / "journal").write_bytes(content)
            (transactions / f"{number:04d}" / "journal").chmod(0o600)
    for name in ("lost+found", "x0007", "0008.old", ".hidden"):
        (transactions / name).mkdir()
        (transactions / name / "journal").write_bytes(whole)
    (transactions / "note").write_bytes(b"x")
    store = store_of(tmp_path)
    assert [one.id for one in store.read_records()] == [record.id]
    host = build(tmp_path / "again")
    with store.hold_lock():
        assert apply_plan(host, plan_of(host, [0]), store).id == "0007"


@pytest.mark.usefixtures("record")
@pytest.mark.parametrize("identity", ["9" * 5000, "-1", "", "0", "²", "٣", "0x1", "1\n", "../0001"])
def test_an_id_that_is_none(identity: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no transaction"):
        store_of(tmp_path).find_record(identity)


def test_a_line_end_that_is_missing_comes_back(record: Record, tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    journal.write_bytes(journal.read_bytes()[:-1])
    store, host = store_of(tmp_path), build(tmp_path)
    with store.hold_lock():
        recover_unfinished(host, store)
        (after,) = store.read_records()
        assert after.state == "applied", "what it says still holds"
        roll_back(host, after, store)
    assert [one.state for one in store.read_records()] == ["rolled-back"]
    assert all(line[8:9] == b" " for line in journal.read_bytes().splitlines())


def test_nobody_reads_the_journals_of_what_is_closed_for_good(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    for _ in range(2):
        apply_locked(host, plan_of(host), store)
        with store.hold_lock():
            recover_unfinished(host, store)
        rollback_transactions(host, None, everything=False, force=False, store=store)
    first, second = (tmp_path / "state/transactions" / name for name in ("0001", "0002"))
    assert [path.name for path in first.iterdir()] == ["closed"], "the journal alone, compressed"
    assert (first / "closed").stat().st_size < 4096
    assert [(one.id, one.state) for one in store.read_records()] == [("0001", "rolled-back"), ("0002", "rolled-back")]
    packed, journal = (
        (first / "closed").read_bytes(),
        subprocess.run(
            ["sh", "-c", 'tail -n +2 "$1" | gzip -dc', "sh", str(first / "closed")], capture_output=True, check=True
        ).stdout,
    )
    assert decode_journal(journal, "")
    assert not (second / "closed").exists()
    (first / "closed").write_bytes(packed[:-9])
    assert [one.id for one in store.open_records()] == ["0002"]
    record = apply_locked(host, plan_of(host), store)
    (outcomes,) = [
        done for _, done in rollback_transactions(host, record.id, everything=False, force=False, store=store)
    ]
    assert all(one.is_back for one in outcomes)
    assert [one.id for one in store.survey_records()[1]] == ["0001"]
    with pytest.raises(RefusedError):
        rollback_transactions(host, "2", everything=False, force=False, store=store)


@pytest.mark.usefixtures("record")
def test_the_oldest_of_what_is_closed_goes(tmp_path: Path) -> None:
    host, store, transactions = build(tmp_path), store_of(tmp_path), tmp_path / "state/transactions"

    def closed_after(count: int, *, days: int) -> list[str]:
        for number in range(2, 2 + count):
            copytree(transactions / "0001", transactions / f"{number:04d}", dirs_exist_ok=True)
        for path in transactions.glob("*/closed"):
            os.utime(path, (time.time() - days * 86400,) * 2)
        with store_of(tmp_path).hold_lock():
            recover_unfinished(host, store_of(tmp_path))
        return sorted(path.parent.name for path in transactions.glob("*/closed"))

    rollback_transactions(host, None, everything=False, force=False, store=store)
    assert closed_after(0, days=0) == ["0001"]
    # As a version before has left it.
    journal = unpack_journal((transactions / "0001/closed").read_bytes(), "")
    (transactions / "0001/journal").write_bytes(journal)
    (transactions / "0001/journal").chmod(0o600)
    (transactions / "0001/closed").write_bytes(b"")
    assert closed_after(0, days=0) == ["0001"]
    assert {path.name for path in (transactions / "0001").iterdir()} == {"closed"}
    assert closed_after(MOST_CLOSED + 1, days=CLOSED_DAYS - 1) == [f"{number:04d}" for number in range(3, 1003)]
    assert closed_after(0, days=CLOSED_DAYS + 1) == ["1002"], "the next one goes on from the last number"
