"""Any sequence of applying, switching and removing, against a model: a stack of values for each tunable."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.host import Host
from advisor.transaction.journal import Record, Store
from advisor.transaction.layer_ownership import values_of
from advisor.transaction.status import find_drift
from tests.transaction.layered import BASE, apply, at_boot, build, live, store_of
from tests.transaction.system import roll_back_locked
from tests.trees import listing

# A limit of the network below what is usual would be refused.
VALUES = {name: ("10", "20", "100") if "swappiness" in name else ("2000", "4000", "8000") for name in BASE}
NAMES = st.sets(st.sampled_from(sorted(BASE)), min_size=1)
WANTED = st.builds(lambda names, place: {name: VALUES[name][place] for name in sorted(names)}, NAMES, st.integers(0, 2))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.sampled_from(["alpha", "mid", "zeta"]), WANTED),
        st.tuples(st.just("out"), st.integers(0, 5)),
        st.tuples(st.just("switch"), st.sampled_from(["alpha", "mid", "zeta"]), WANTED, st.integers(0, 5)),
    ),
    min_size=2,
    max_size=6,
)


class Model:
    """What each active transaction holds, the oldest first."""

    def __init__(self) -> None:
        self.layers: dict[str, dict[str, str]] = {}

    def values(self) -> dict[str, str]:
        found = dict(BASE)
        for layer in self.layers.values():
            found |= layer
        return found

    def put_on(self, record: Record | None, wanted: dict[str, str], instead_of: tuple[str, ...]) -> None:
        held = {} if record is None else {name: one.after for name, one in values_of(record).items()}
        assert held.items() <= wanted.items()
        for identity in instead_of:
            if record is not None:
                del self.layers[identity]
        if record is not None:
            self.layers[record.id] = held
        for name in wanted:
            assert self.values()[name] == wanted[name], "what a profile wants is there, held by it or by others"


def take_out(host: Host, store: Store, identity: str) -> None:
    outcomes = roll_back_locked(host, store.find_record(identity), store)
    assert all(one.is_back for one in outcomes), outcomes
    assert store.find_record(identity).state == "rolled-back"


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, order=st.randoms(use_true_random=False))
def test_live_values_and_files_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]], order: Random
) -> None:
    where = tmp_path_factory.mktemp("layers")
    host, store, model = build(where), store_of(where), Model()
    before = listing(where / "root")
    for word, *rest in steps:
        in_force = list(model.layers)
        if word == "out":
            if not in_force:
                continue
            identity = in_force[rest[0] % len(in_force)]
            take_out(host, store, identity)
            del model.layers[identity]
        else:
            profile, wanted, *number = rest
            replaced = (in_force[number[0] % len(in_force)],) if number and in_force else ()
            record = apply(host, store, profile, wanted, instead_of=replaced)
            model.put_on(record, wanted, replaced)
        assert (live(host), at_boot(where)) == (model.values(), model.values()), (word, rest)
        assert find_drift(host, store.read_records()) == ()
    while model.layers:
        identity = order.choice(list(model.layers))
        take_out(host, store, identity)
        del model.layers[identity]
        assert (live(host), at_boot(where)) == (model.values(), model.values()), identity
    assert listing(where / "root") == before
