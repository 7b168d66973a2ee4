"""Layers over side effects: the queues of a link, whose driver resets all their settings."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.host import Host
from advisor.transaction.journal import Record, Store
from advisor.transaction.rollback import recover_unfinished, roll_back
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import find_drift
from tests.cases import cases
from tests.transaction.queues import LINK, WAYS, applied, back, build, state
from tests.transaction.system import roll_back_locked, store_of
from tests.transaction.test_channels import Dying
from tests.transaction.test_script import SHELLS, run_script
from tests.transaction.test_transaction import in_child

CASES = cases(__file__)

CHANNELS, XPS, RPS = f"link:{LINK}:channels.combined", f"link:{LINK}:xps.tx-1", f"link:{LINK}:rps.rx-0"
PLACES = {XPS: "tx-1/xps_cpus", RPS: "rx-0/rps_cpus", f"link:{LINK}:xps.tx-0": "tx-0/xps_cpus"}


def out(host: Host, store: Store, identity: str) -> dict[str, ItemOutcome]:
    return {one.what: one for one in roll_back_locked(host, store.find_record(identity), store)}


def queue(where: Path, name: str) -> int:
    return int(state(where)["queues"][PLACES[name]])  # type: ignore[index]


def layers(where: Path, *wanted: dict[str, str]) -> tuple[Host, Store, dict[str, object]]:
    """The host with these layers, its transactions, and its state before them."""
    host, store = build(where), store_of(where)
    before = state(where)
    for values in wanted:
        applied(where, host, values)
    return host, store, before


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_of_the_channels_leaves_the_queue_as_the_later_layer_set_it(
    tmp_path: Path, shell: list[str]
) -> None:
    _, store, before = layers(tmp_path, {CHANNELS: "2"}, {XPS: "0-2"})
    run_script(store.script_path("0001"), tmp_path, shell=shell)
    assert queue(tmp_path, XPS) == 7
    assert state(tmp_path)["channels"] == before["channels"]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_of_a_queue_that_a_later_layer_reset_leaves_it(tmp_path: Path, shell: list[str]) -> None:
    _, store, _ = layers(tmp_path, {XPS: "0-2"}, {CHANNELS: "2"})
    was = state(tmp_path)
    done = run_script(store.script_path("0001"), tmp_path, shell=shell)
    assert (done.returncode, state(tmp_path)) == (5, was)
    assert f"kept      {XPS}: held by the later transaction 0002" in done.stdout


@pytest.mark.parametrize("die_at", [1, 2, 3, 4])
def test_a_kill_while_the_lower_one_goes_back_is_ended_by_the_next_run(tmp_path: Path, die_at: int) -> None:
    host, store, before = layers(tmp_path, {CHANNELS: "2"}, {XPS: "0-2"})

    def dying_rollback() -> None:
        with store_of(tmp_path).hold_lock():
            roll_back(Dying(host, die_at, after=True), store_of(tmp_path).find_record("1"), store_of(tmp_path))

    assert in_child(dying_rollback) == signal.SIGKILL
    with store.hold_lock():
        assert all(one.is_back for _, outcomes in recover_unfinished(host, store) for one in outcomes)
    now = state(tmp_path)
    assert ({**now, "queues": ()}, queue(tmp_path, XPS)) == ({**before, "queues": ()}, 7)
    assert find_drift(host, store.read_records()) == ()
    out(host, store, "2")
    assert state(tmp_path) == before


@pytest.mark.parametrize("way", WAYS)
def test_what_was_set_of_a_queue_that_is_gone_is_gone_with_it(tmp_path: Path, way: str) -> None:
    host, store, before = layers(tmp_path, {CHANNELS: "8"}, {f"link:{LINK}:xps.tx-6": "0"})
    out(host, store, "1")
    (drift,) = find_drift(host, store.read_records())
    assert (drift.transaction, drift.live) == ("0002", None)
    code, said = back(tmp_path, host, store.find_record("2"), store, way)
    # A script that works on a tree keeps no note of what it has found: nothing to do is all that it can say.
    assert (code, state(tmp_path)) == (0 if way == "rollback" else 3, before), said
    assert "already   link:eth1:xps.tx-6" in said


@pytest.mark.parametrize(("wanted", "order"), CASES["channels above channels that go from below"])
def test_channels_above_channels_that_go_from_below(tmp_path: Path, wanted: list[dict[str, str]], order: str) -> None:
    host, store, before = layers(tmp_path, *wanted)
    for number in order:
        out(host, store, number)
    assert state(tmp_path) == before


WANTED = st.dictionaries(st.sampled_from(sorted(PLACES)), st.sampled_from(["0", "1", "0-2", "5-7"]), max_size=2)
LAYER = st.tuples(st.sampled_from([None, None, "2", "3", "8"]), WANTED).filter(lambda one: one[0] or one[1])


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.lists(LAYER, min_size=2, max_size=4), order=st.randoms(use_true_random=False))
def test_in_any_order_what_is_left_is_in_force_and_all_is_as_before_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[str | None, dict[str, str]]], order: Random
) -> None:
    where = tmp_path_factory.mktemp("layers")
    host, store = build(where), store_of(where)
    before = state(where)
    for channels, values in wanted:
        asked = {**({CHANNELS: channels} if channels else {}), **values}
        live = {name for name, value in asked.items() if wanted_as(name, value) != current(where, name)}
        if live:
            applied(where, host, {name: value for name, value in asked.items() if name in live})
    left = {record.id: record for record in store.read_records()}
    for identity in order.sample(sorted(left), len(left)):
        found = out(host, store, identity)
        assert all(one.is_back for one in found.values()), found
        del left[identity]
        for name, value in lasting(left.values()).items():
            assert current(where, name) == wanted_as(name, value), (identity, name)
    assert state(where) == before


def current(where: Path, name: str) -> int:
    return int((where / "root/run/channels").read_text()) if name == CHANNELS else queue(where, name)


def wanted_as(name: str, value: str) -> int:
    """A number of channels, or the mask of a list of CPUs."""
    if name == CHANNELS:
        return int(value)
    first, _, last = value.partition("-")
    return sum(1 << cpu for cpu in range(int(first), int(last or first) + 1))


def lasting(records: Iterable[Record]) -> dict[str, str]:
    """What layers hold, but for the queues that later channels have reset."""
    found: dict[str, str] = {}
    for record in records:
        values = {one.tunable: one.after for one in record.plan.changes}
        found = values if CHANNELS in values else found | values
    return found
