"""A kill after every write to disk and at every step while a layer below others is rolled back, and while one
transaction takes another's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transaction.killing import Work, killers, points, together
from tests.transaction.layered import BASE, apply, build, host_at, store_of
from tests.transaction.test_layers import HIGH, LOW, PAGES, QUEUE, SWAP, A, B, C, out
from tests.trees import listing


@pytest.mark.repeats(1)
@pytest.mark.parametrize(("word", "number"), [("fsync", "2"), ("before", "2"), ("after", "2"), ("fsync", "1")])
def test_taking_out_a_layer_from_under_others(tmp_path: Path, word: str, number: str) -> None:
    where = tmp_path / "where"
    build(where)
    before = listing(where / "root")
    layers = {"1": A, "2": B, "3": C} if number == "2" else {"1": {HIGH: "1000"}, "2": {LOW: "900"}, "3": {LOW: "800"}}
    for profile, wanted in zip(("zeta", "mid", "alpha"), layers.values(), strict=True):
        apply(host_at(where), store_of(where), profile, wanted)
    possible = {"as it was": together(layers.values())}
    del layers[number]
    possible["as asked"] = together(layers.values())
    found = points(where, killers(word, lambda host, store: out(host, store, number)), possible, before)
    print(word, found)
    assert len(found) >= 5
    # From the first entry of its journal on it goes on to the end; before that its directory alone is flushed.
    # Until the journal says that it is to go, nothing has happened.
    assert found == sorted(found, reverse=True)
    assert ("as it was" in found, "as asked" in found) == (word == "fsync", True)


NEW = {SWAP: "10", QUEUE: "16384", HIGH: "1000", LOW: "900"}
FIRST = {SWAP: "10", QUEUE: "8192", HIGH: "1000", PAGES: "512"}


@pytest.mark.repeats(1)
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
