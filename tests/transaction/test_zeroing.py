"""Limits in two units, of which the kernel zeroes the one when the other is written; in a tree that does so, too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.host import Host
from advisor.planning.records import Plan
from advisor.transaction.apply import apply_plan
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import find_drift
from tests.cases import cases
from tests.exporters.apply_script.stage import Stage
from tests.transaction.system import MACHINE, plan_of_values, roll_back_locked, store_of
from tests.transaction.test_script import SHELLS, run_script
from tests.transaction.zeroing import PAIRS, zeroing
from tests.trees import host_of, make_tree

CASES = cases(__file__)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="fanotify(7) needs root")

# Bytes and ratio of each pair, as a host has them: one of the two is zero, and both only where somebody set them so.
START = CASES["START"]
OTHER = {"dirty_background_bytes": "0", "dirty_background_ratio": "10", "overcommit_ratio": "50"}
THIRD = {"dirty_bytes": "0", "dirty_ratio": "0", "overcommit_kbytes": "900000", "overcommit_ratio": "0"}
WAYS = [
    "command",
    " ".join(SHELLS[0]),
    *(pytest.param(" ".join(shell), marks=pytest.mark.thorough) for shell in SHELLS[1:2]),
]


def vm(where: Path) -> dict[str, str]:
    """What the tree reads, by key."""
    return {path.name: path.read_text().strip() for path in sorted((where / "root/proc/sys/vm").iterdir())}


def write(where: Path, name: str, value: str) -> None:
    """As an administrator does."""
    (where / "root/proc/sys/vm" / name).write_text(f"{value}\n")


def host(where: Path) -> Host:
    return host_of(where / "root")


@pytest.fixture(params=[{**OTHER}, {**THIRD}], ids=["ratios", "bytes"])
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    found = {**START, **request.param}
    files = {f"/proc/sys/vm/{name}": f"{value}\n" for name, value in found.items()}
    make_tree(
        tmp_path / "root", {"/etc/machine-id": f"{MACHINE}\n", "/proc/sys/kernel/random/boot_id": "1-2\n", **files}
    )
    (tmp_path / "bin").mkdir()
    with zeroing(tmp_path / "root/proc/sys/vm"):
        yield tmp_path


def planned(where: Path, *values: tuple[str, str]) -> Plan:
    wanted = {f"sysctl:vm.{name}": value for name, value in values}
    return plan_of_values(host(where), wanted, runtime_only=True, is_ranked=True)


def applied(where: Path, *values: tuple[str, str]) -> str:
    with store_of(where).hold_lock():
        return apply_plan(host(where), planned(where, *values), store_of(where)).id


def undone(where: Path, identity: str, way: str, *, force: bool = False) -> tuple[dict[str, str], bool]:
    """What the rollback says about each item, and whether all is back."""
    store = store_of(where)
    if way == "command":
        outcomes = roll_back_locked(host(where), store.find_record(identity), store, force=force)
        return {one.what: _said(one) for one in outcomes}, all(one.is_back for one in outcomes)
    done = run_script(store.script_path(f"{int(identity):04}"), where, *["--force"] * force, shell=way.split())
    assert done.returncode in (0, 3, 5), done.stderr
    lines = [line.split(None, 2) for line in done.stdout.splitlines() if " sysctl:" in line]
    return {line[1].rstrip(":"): f"{line[0]} {line[2]}" for line in lines}, done.returncode != 5


def _said(one: ItemOutcome) -> str:
    return f"{one.state} {one.detail}"


def other_value(where: Path, name: str) -> str:
    """One that is neither the present one nor zero, and in the kernel's range."""
    return {"ratio": "13", "bytes": "33554432", "kbytes": "1234567"}[name.rpartition("_")[2]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for pair in PAIRS.items() for name in pair])
def test_either_of_the_two_goes_back_to_what_applied(tree: Path, name: str, way: str) -> None:
    before = vm(tree)
    identity = applied(tree, (name, other_value(tree, name)), ("swappiness", "7"))
    assert vm(tree) == {**before, **_zeroed(name), name: other_value(tree, name), "swappiness": "7"}
    said, is_back = undone(tree, identity, way)
    assert is_back, said
    assert vm(tree) == before


def _zeroed(name: str) -> dict[str, str]:
    return {other: "0" for pair in PAIRS.items() for one, other in (pair, pair[::-1]) if one == name}


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_by_a_script_that_applies_too(tree: Path, shell: list[str]) -> None:
    before = vm(tree)
    names = list(PAIRS) if before["dirty_ratio"] != "0" else list(PAIRS.values())
    plan = planned(tree, *((name, other_value(tree, name)) for name in names))
    stage = Stage(tree, host, plan)
    assert stage.call("apply", under=shell).code == 0
    assert [vm(tree)[name] for name in names] == [other_value(tree, name) for name in names]
    assert stage.call("rollback", under=shell).code == 0
    assert vm(tree) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "changed"), [("dirty_bytes", "dirty_ratio"), ("overcommit_ratio", "overcommit_kbytes")]
)
def test_the_twin_modified_externally_stays_and_is_reported(tree: Path, way: str, name: str, changed: str) -> None:
    before = vm(tree)
    identity = applied(tree, (name, other_value(tree, name)))
    write(tree, changed, "777")
    now = vm(tree)
    said, is_back = undone(tree, identity, way)
    assert vm(tree) == now
    assert not is_back
    assert any("modified externally (" in one for one in said.values()), said
    said, is_back = undone(tree, identity, way, force=True)
    assert is_back, said
    assert vm(tree) == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for pair in PAIRS.items() for name in pair])
def test_the_value_itself_modified_externally_stays(tree: Path, way: str, name: str) -> None:
    """To write the twin as it was would zero it."""
    identity = applied(tree, (name, other_value(tree, name)), ("swappiness", "7"))
    write(tree, name, "999999" if "bytes" in name else "31")
    now = vm(tree)
    said, is_back = undone(tree, identity, way)
    assert vm(tree) == {**now, "swappiness": "60"}
    assert not is_back
    assert "modified externally (" in said[f"sysctl:vm.{name}"]


@pytest.mark.parametrize("order", ["12", "21"])
def test_two_layers_of_one_pair_in_either_order(tree: Path, order: str) -> None:
    before = vm(tree)
    applied(tree, ("dirty_bytes", "33554432"), ("swappiness", "7"))
    applied(tree, ("dirty_bytes", "44040192"))
    for number in order:
        said, is_back = undone(tree, number, "command")
        assert is_back, said
        if number + order == "112":
            assert vm(tree) == {**before, "dirty_ratio": "0", "dirty_bytes": "44040192"}
            assert find_drift(host(tree), store_of(tree).read_records()) == ()
    assert vm(tree) == before
