"""A kill after every write to disk and at every step while one transaction takes another's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transaction.killing import Work, killers, points
from tests.transaction.layered import BASE, apply, build, store_of
from tests.transaction.test_layers import HIGH, LOW, PAGES, QUEUE, SWAP
from tests.trees import listing

NEW = {SWAP: "10", QUEUE: "16384", HIGH: "1000", LOW: "900"}
FIRST = {SWAP: "10", QUEUE: "8192", HIGH: "1000", PAGES: "512"}


@pytest.mark.parametrize("word", ["fsync", "before", "after"])
def test_a_switch(tmp_path: Path, word: str) -> None:
    where = tmp_path / "where"
    host = build(where)
    before = listing(where / "root")
    apply(host, store_of(where), "one", FIRST)
    possible = {"as it was": {**BASE, **FIRST}, "as asked": {**BASE, **NEW}}
    work: Work = lambda host, store: apply(host, store, "two", NEW, instead_of=("0001",))  # noqa: E731
    found = points(where, killers(word, work), possible, before)
    print(word, found)
    assert len(found) >= 5
    assert set(found) == {"as it was", "as asked"}
    assert found == sorted(found, reverse=True), "one moment decides"
