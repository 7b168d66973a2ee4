"""A plan says where each value persists, and who sets it again: every key, files and programs alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.operations.imports import import_profile
from advisor.transaction.journal import Store
from advisor.transaction.status import verify_transactions
from tests.cases import cases
from tests.planning.system import applied, change, host, planned, skipped, system
from tests.trees import make_tree

CASES = cases(__file__)


@pytest.mark.parametrize("name", CASES)
def test_where_a_value_persists(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    system(tmp_path, files=case["files"])
    plan = planned(tmp_path, *case["words"], runtime_only=case.get("runtime", ""))
    assert {one.tunable for one in plan.blocking} == case.get("refused", {}).keys()
    for tunable, why in case.get("refused", {}).items():
        found = skipped(plan, tunable)
        assert found.state == "overridden"
        assert why in found.reason
    for tunable, (value, writer) in case.get("next", {}).items():
        made = change(plan, tunable)
        assert (made.next_boot, made.last_word and made.last_word.writer) == (value, writer)
        assert bool(made.persist_note) == bool(writer or case.get("runtime"))


@pytest.mark.parametrize("path", ["/etc/sysctl.d/99-later.conf", "/etc/rc.local", "/usr/lib/sysctl.d/99-later.conf"])
def test_verify_tells_what_came_after_the_plan(path: str, tmp_path: Path) -> None:
    live = {f"/proc/sys/net/ipv4/conf/eth1/{name}": "0\n" for name in ("arp_ignore", "arp_announce")}
    system(tmp_path, files=live)
    applied(tmp_path, "sysctl:net.ipv4.conf.eth1.arp_ignore=1", "sysctl:net.ipv4.conf.eth1.arp_announce=2")
    store = Store(str(tmp_path / "state"))
    assert verify_transactions(host(tmp_path), None, store).is_as_set
    line = "net.ipv4.conf.eth1.arp_ignore = 2\n"
    make_tree(tmp_path / "root", {path: f"sysctl -w {line.replace(' ', '')}" if path.endswith("local") else line})
    found = verify_transactions(host(tmp_path), None, store)
    assert [(one.what, one.wanted, one.live) for one in found.next_boot] == [
        ("sysctl:net.ipv4.conf.eth1.arp_ignore", "1", "2")
    ]
    assert f"{path}:1" in found.next_boot[0].reason
    assert (found.drift, found.is_as_set) == ((), False)


def test_verify_does_not_repeat_what_the_plan_told(tmp_path: Path) -> None:
    system(tmp_path, files=CASES["a program sets it again"]["files"])
    applied(tmp_path, *CASES["a program sets it again"]["words"])
    assert verify_transactions(host(tmp_path), None, Store(str(tmp_path / "state"))).is_as_set


def test_an_import_tells_what_sets_its_values_again(tmp_path: Path) -> None:
    article = "net.core.rmem_max = 8388608\nnet.core.wmem_max = 8388608\n"
    files = {"/etc/rc.local": "sysctl -w net.core.rmem_max=1\n", "/root/article.conf": article}
    here = system(tmp_path, files=files)
    notes = {one.key: one.note for one in import_profile("sysctl:/root/article.conf", host=here).settings}
    assert "/etc/rc.local:1" in notes["net.core.rmem_max"]
    assert notes["net.core.wmem_max"] == ""
