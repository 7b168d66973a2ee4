"""A profile that is applied again, since somebody has changed what it set: it goes back to itself, not to theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Host
from advisor.transaction.journal import Store
from advisor.transaction.layers import layers_by_tunable
from advisor.transaction.status import find_drift, rollback_transactions, verify_transactions
from tests.transaction.layered import BASE, apply, at_boot, build, live
from tests.transaction.test_layers import HIGH, QUEUE, SWAP, out
from tests.transaction.test_script import run_script
from tests.transaction.test_script_notes import host_files, store_in

WANTED = {SWAP: "31", QUEUE: "8192", HIGH: "1000"}


def drifted(where: Path) -> tuple[Host, Store]:
    host, store = build(where), store_in(where)
    apply(host, store, "aa", WANTED)
    (where / "root/proc/sys/vm/swappiness").write_text("99\n")
    (where / "root/etc/sysctl.d/90-advisor-aa.conf").unlink()
    assert len(find_drift(host, store.read_records())) == 2
    return host, store


@pytest.mark.parametrize("by_hand", [False, True], ids=["advisor", "scripts"])
def test_putting_all_back_ends_where_it_began(tmp_path: Path, by_hand: bool) -> None:
    build(tmp_path)
    before = host_files(tmp_path)
    host, store = drifted(tmp_path)
    apply(host, store, "aa", WANTED)
    assert verify_transactions(host, None, store).is_as_set
    if by_hand:
        for identity in ("0002", "0001"):
            done = run_script(store.script_path(identity), tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
    else:
        found = rollback_transactions(host, None, everything=True, force=False, store=store)
        assert all(one.is_back for _, outcomes in found for one in outcomes)
    assert (live(host), at_boot(tmp_path), host_files(tmp_path)) == (BASE, BASE, before)


def test_another_profile_or_another_value_goes_back_to_what_it_found(tmp_path: Path) -> None:
    for number, (profile, value) in enumerate((("bb", "31"), ("aa", "32"))):
        host, store = drifted(tmp_path / str(number))
        apply(host, store, profile, {SWAP: value})
        (top,) = (change for identity, change in layers_by_tunable(store.read_records())[SWAP] if identity == "0002")
        assert top.before == "99"
        out(host, store, "2")
        assert live(host)[SWAP] == "99"
