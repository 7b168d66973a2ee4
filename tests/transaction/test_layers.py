"""Transactions as layers: a lower one is rolled back, the upper ones stay active and later restore what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Host, Step
from advisor.planning.records import Change
from advisor.transaction.journal import Store, first_seen
from advisor.transaction.layers import layers_by_tunable
from advisor.transaction.status import find_drift
from tests.transaction.layered import BASE, LLTTAB, apply, at_boot, build, live, plan_of, store_of
from tests.transaction.system import roll_back_locked
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import listing

SWAP, QUEUE, HIGH, LOW = "sysctl:vm.swappiness", "sysctl:net.core.somaxconn", "llt:highwater", "llt:rporthighwater"
PAGES = "thp:khugepaged/pages_to_scan"
A = {SWAP: "10", QUEUE: "8192", HIGH: "1000"}
B = {SWAP: "20", HIGH: "2000", LOW: "1800", PAGES: "512"}
C = {SWAP: "20", QUEUE: "8192", LOW: "1700"}


def out(host: Host, store: Store, identity: str, *, force: bool = False) -> dict[str, str]:
    return {one.what: one.state for one in roll_back_locked(host, store.find_record(identity), store, force=force)}


def three(where: Path) -> tuple[Host, Store]:
    host, store = build(where), store_of(where)
    for profile, wanted in (("zeta", A), ("mid", B), ("alpha", C)):
        apply(host, store, profile, wanted)
    return host, store


@pytest.mark.parametrize("order", ["123", "132", "213", "231", "312", "321"])
def test_in_any_order_the_others_stay_in_force_and_all_is_as_before_in_the_end(tmp_path: Path, order: str) -> None:
    build(tmp_path)
    before = listing(tmp_path / "root")
    host, store = three(tmp_path)
    layers = {"0001": A, "0002": B, "0003": C}
    for number in order:
        out(host, store, number)
        del layers[f"000{number}"]
        expected = dict(BASE)
        for wanted in layers.values():
            expected |= wanted
        assert (live(host), at_boot(tmp_path)) == (expected, expected)
        assert find_drift(host, store.read_records()) == ()
    assert listing(tmp_path / "root") == before
    assert first_seen(store.read_records()) == {}


def held(store: Store, identity: str) -> dict[str, Change]:
    return {
        name: change
        for name, layers in layers_by_tunable(store.read_records()).items()
        for one, change in layers
        if one == identity
    }


class Recording(Host):
    """Notes every step."""

    def __init__(self, host: Host, steps: list[Step]) -> None:
        super().__init__(host.files, host.commands, is_root=True)
        self._steps = steps

    def do(self, step: Step) -> None:
        self._steps.append(step)
        super().do(step)


def recording(host: Host, steps: list[Step]) -> Host:
    return Recording(host, steps)


def test_a_value_that_two_want_stays_when_the_first_is_taken_out(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    before = listing(tmp_path / "root")
    apply(host, store, "one", {SWAP: "10", HIGH: "1000"})
    plan = plan_of(host, store, "two", {SWAP: "10", HIGH: "1000"})
    assert [one.tunable for one in plan.claims] == [HIGH, SWAP]
    assert plan.changes == ()
    assert "2 values are held already by 0001 (one): added as a layer" in plan.notes[-1]
    steps: list[Step] = []
    apply(recording(host, steps), store, "two", {SWAP: "10", HIGH: "1000"})
    assert [type(step).__name__ for step in steps] == ["PutFile"], "its own file, and no value"
    assert plan_of(host, store, "two", {SWAP: "10", HIGH: "1000"}).is_empty, "what it holds it need not hold twice"
    assert set(out(host, store, "1").values()) == {"passed", "restored"}
    wanted = {**BASE, SWAP: "10", HIGH: "1000"}
    assert (live(host), at_boot(tmp_path)) == (wanted, wanted)
    assert set(out(host, store, "2").values()) == {"restored"}
    assert listing(tmp_path / "root") == before


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_of_a_lower_layer_keeps_what_a_later_one_holds_and_names_it(
    tmp_path: Path, shell: list[str]
) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", {SWAP: "10", QUEUE: "8192", HIGH: "1000"})
    apply(host, store, "two", {SWAP: "10", HIGH: "2000"})
    for options in ((), ("--force",)):
        done = run_script(store.script_path("0001"), tmp_path, *options, shell=shell)
        assert done.returncode == 5, done.stdout + done.stderr
        assert f"kept      {SWAP}: held by the later transaction 0002" in done.stdout
        assert live(host) == {**BASE, SWAP: "10", HIGH: "2000"}
    # Once the later one is gone it does all of it.
    out(host, store, "2")
    done = run_script(store.script_path("0001"), tmp_path, shell=shell)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (live(host), (tmp_path / "root/etc/llttab").read_text()) == (BASE, LLTTAB)
