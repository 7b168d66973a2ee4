"""Status and verify of a host from its capture: the same as on the host itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.errors import InvalidInputError, PermissionDeniedError
from advisor.host import DirectoryFiles, Host, LiveCommands, MemoryFiles, NoCommands
from advisor.snapshot.archive import capture_host, open_snapshot
from advisor.snapshot.remote.store import CapturedStore, Sought, captured_status
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.status import host_status
from tests.transaction.system import build, plan_of

STATE = "var/lib/advisor"


def applied(where: Path) -> tuple[Host, Store]:
    """The small system with a active transaction, its journal where a host has it."""
    host = build(where)
    store = Store(str(where / "root" / STATE))
    with store.hold_lock():
        apply_plan(host, plan_of(host), store)
    return host, store


def captured(host: Host, where: Path) -> Host:
    path = where / "capture.tar.gz"
    path.write_bytes(capture_host(host, captured_status))
    return open_snapshot(path)


def test_what_is_in_force_is_told_as_on_the_host(tmp_path: Path) -> None:
    host, store = applied(tmp_path)
    status = captured_status(captured(host, tmp_path))
    assert status == host_status(host, store)
    assert [record.state for record in status.records] == ["applied"]
    assert status.is_as_set


@pytest.mark.parametrize("path", ["proc/sys/net/core/rmem_max", "etc/llttab"])
def test_drift_is_named_as_on_the_host(tmp_path: Path, path: str) -> None:
    host, store = applied(tmp_path)
    (tmp_path / "root" / path).write_text("4711\n")
    status = captured_status(captured(host, tmp_path))
    assert status.drift == host_status(host, store).drift
    assert len(status.drift) == 1


def test_a_transaction_is_found_by_its_plan_and_never_an_earlier_one(tmp_path: Path) -> None:
    host, store = applied(tmp_path)
    fingerprint = store.read_records()[0].plan.fingerprint
    records = CapturedStore(host).read_records
    assert Sought(fingerprint, after=0).among(records()) is not None
    assert Sought(fingerprint, after=1).among(records()) is None
    assert Sought("other", after=0).among(records()) is None
    with store.hold_lock():
        roll_back(host, store.find_record("1"), store)
    found = Sought(fingerprint).among(records())
    assert found is not None
    assert found.state == "rolled-back"


def test_what_only_root_can_read_is_not_taken_for_nothing() -> None:
    nobody = Host(MemoryFiles({"/etc/hostname": b"x"}), NoCommands(), is_root=False)
    with pytest.raises(PermissionDeniedError):
        captured_status(nobody)
    assert captured_status(Host(MemoryFiles({"/etc/hostname": b"x"}), NoCommands(), is_root=True)).records == ()


def test_a_damaged_journal_is_no_transaction_that_never_was(tmp_path: Path) -> None:
    applied(tmp_path)
    journal = tmp_path / "root" / STATE / "transactions/0001/journal"
    data = journal.read_bytes()
    os.chmod(journal, 0o600)
    journal.write_bytes(data[:20] + b"x" + data[21:])
    with pytest.raises(InvalidInputError, match="damaged"):
        captured_status(Host(DirectoryFiles(str(tmp_path / "root")), LiveCommands(), is_root=True))
