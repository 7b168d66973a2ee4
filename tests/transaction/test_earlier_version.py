"""Transactions whose scripts hold their own data, as versions before data files wrote them, work as they did."""

from __future__ import annotations

import itertools
import random
import tarfile
from pathlib import Path

import pytest

from advisor.host import Host
from advisor.transaction.journal import Store
from advisor.transaction.status import verify_transactions
from tests.transaction.layered import BASE, LLTTAB, apply, at_boot, build, host_at, live, store_of
from tests.transaction.system import roll_back_locked
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import listing

EMBEDDED = Path(__file__).parent.parent / "fixtures/transactions/three-layers-0.1.0.tar.gz"


def three_of_before(where: Path) -> tuple[Host, Store]:
    with tarfile.open(EMBEDDED) as archive:
        archive.extractall(where, filter="data")
    return host_at(where), store_of(where)


def moved_into_tree(where: Path) -> tuple[Host, Store]:
    """Where scripts note what they have restored, for each other: a state directory elsewhere may be another host's."""
    host, store = three_of_before(where)
    return host, Store(str(store.directory.rename(where / "root/advisor")))


def names_of(where: Path) -> set[str]:
    return {path.name for path in where.rglob("*") if path.is_file()}


@pytest.mark.parametrize("order", list(itertools.permutations("123")), ids="".join)
def test_each_engine_rolls_each_of_them_back(tmp_path: Path, order: tuple[str, ...]) -> None:
    build(tmp_path / "before")
    host, store = three_of_before(tmp_path)
    assert "rollback.data" not in names_of(store.directory)
    assert verify_transactions(host, None, store).is_as_set
    chosen = random.Random("".join(order))
    for number in order:
        path = store.script_path(f"000{number}")
        # What a later one holds is left to Python.
        if chosen.random() < 0.5 and (done := run_script(path, tmp_path, shell=chosen.choice(SHELLS))).returncode:
            assert "held by the later transaction" in done.stdout, done.stdout + done.stderr
        outcomes = roll_back_locked(host, store.find_record(number), store)
        assert {one.state for one in outcomes} <= {"already", "passed", "restored"}
    assert (live(host), at_boot(tmp_path)) == (BASE, BASE)
    assert listing(tmp_path / "root") == listing(tmp_path / "before/root")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_layer_of_this_version_on_top_gives_them_data_files(tmp_path: Path, shell: list[str]) -> None:
    host, store = moved_into_tree(tmp_path)
    apply(host, store, "top", {"sysctl:vm.swappiness": "5", "llt:highwater": "3000"})
    assert len({store.script_path(record.id).read_bytes() for record in store.read_records()}) == 1
    for number, code in ((1, 5), (4, 0), (3, 0), (2, 0), (1, 0), (1, 3)):
        done = run_script(store.script_path(f"000{number}"), tmp_path, shell=shell)
        assert done.returncode == code, done.stdout + done.stderr
    assert (live(host), (tmp_path / "root/etc/llttab").read_text()) == (BASE, LLTTAB)
