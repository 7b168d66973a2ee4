"""A kill after every write to disk and at every step while a layer below others is rolled back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transaction.killing import killers, points, together
from tests.transaction.layered import apply, build, host_at, store_of
from tests.transaction.test_layers import HIGH, LOW, A, B, C, out
from tests.trees import listing


@pytest.mark.repeats(2)
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
