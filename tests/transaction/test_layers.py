"""Transactions as layers: a lower one is rolled back, the upper ones stay active and later restore what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from advisor.host import Host, Step
from advisor.transaction.journal import Store, first_seen
from advisor.transaction.layers import layers_by_tunable
from advisor.transaction.status import verify_transactions
from advisor.transaction.verify import find_drift
from tests.transaction.layered import BASE, LLTTAB, apply, at_boot, build, live, plan_of, store_of
from tests.transaction.system import roll_back_locked
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import listing

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.planning.records import Change

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


def test_a_line_of_its_own_that_somebody_else_changed_is_kept_and_told(tmp_path: Path) -> None:
    host, store = three(tmp_path)
    table = tmp_path / "root/etc/llttab"
    theirs = table.read_text().replace("highwater:2000", "highwater:1234", 1)
    table.write_text(theirs)
    lost = [one for one in roll_back_locked(host, store.find_record("2"), store) if not one.is_back]
    assert [(one.what, one.state) for one in lost] == [("/etc/llttab", "kept")]
    assert lost[0].detail == "highwater was modified externally since"
    assert "remove highwater 2000" in (lost[0].by_hand or "")
    assert table.read_text() == theirs
    assert store.find_record("2").state == "partly-rolled-back"


def test_what_somebody_set_is_kept_in_its_layer_and_the_others_go_on(tmp_path: Path) -> None:
    host, store = three(tmp_path)
    (tmp_path / "root/proc/sys/vm/swappiness").write_text("77\n")
    drift = find_drift(host, store.read_records())
    assert [(one.transaction, one.what) for one in drift] == [("0003", SWAP)]
    assert verify_transactions(host, "1", store).drift == (), "the last one answers for it"
    assert out(host, store, "1")[SWAP] == "passed"
    assert SWAP not in out(host, store, "3"), "it held what the one below it had set"
    assert out(host, store, "2")[SWAP] == "kept"
    assert live(host) == {**BASE, SWAP: "77"}
    assert out(host, store, "2", force=True)[SWAP] == "restored"
    assert live(host) == BASE
    assert {record.state for record in store.read_records()} == {"rolled-back"}


def test_forced_out_of_the_middle_the_later_one_goes_back_to_before_it(tmp_path: Path) -> None:
    host, store = build(tmp_path), store_of(tmp_path)
    apply(host, store, "one", {SWAP: "10"})
    (tmp_path / "root/proc/sys/vm/swappiness").write_text("15\n")
    apply(host, store, "two", {SWAP: "20"})
    assert out(host, store, "1")[SWAP] == "kept"
    assert held(store, "0002")[SWAP].before == "15"
    assert out(host, store, "1", force=True)[SWAP] == "passed"
    assert store.find_record("1").state == "rolled-back"
    assert out(host, store, "2")[SWAP] == "restored"
    assert live(host) == BASE


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
