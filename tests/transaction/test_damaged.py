"""A journal that cannot be read: the transaction is named, its script still rolls it back, the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from advisor.errors import AdvisorError, InvalidInputError, RefusedError
from advisor.host import Host
from advisor.report.transaction import status_text, verify_text
from advisor.transaction.approvals import refuse_while_one_waits
from advisor.transaction.journal import Store
from advisor.transaction.status import host_status, rollback_transactions, verify_transactions
from tests.transaction.layered import BASE, apply, build, live
from tests.transaction.test_layers import HIGH, QUEUE, SWAP
from tests.transaction.test_script_notes import store_in

Damage = Callable[[Path], object]


def is_empty(journal: Path) -> None:
    journal.write_bytes(b"")


def rewritten(change: Callable[[list[bytes]], Iterable[bytes]]) -> Damage:
    """The journal with other lines."""
    return lambda journal: journal.write_bytes(b"".join(change(journal.read_bytes().splitlines(keepends=True))))


DAMAGES: dict[str, Damage] = {
    "is empty": is_empty,
    "is gone": lambda journal: journal.unlink(),
    "its first line is damaged": rewritten(lambda lines: (b"x", lines[0][1:], *lines[1:])),
    "it ends in its first line": rewritten(lambda lines: (lines[0][:-6],)),
    "it begins with another line": rewritten(lambda lines: lines[1:]),
    "it is damaged within": rewritten(lambda lines: (lines[0], b"\0" * 20 + b"\n", *lines[2:])),
}
each_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


def three(where: Path) -> tuple[Host, Store]:
    host, store = build(where), store_in(where)
    for profile, wanted in (("aa", {SWAP: "10"}), ("bb", {SWAP: "20", HIGH: "1000"}), ("cc", {QUEUE: "8192"})):
        apply(host, store, profile, wanted)
    return host, store


def journal_of(store: Store, identity: str) -> Path:
    return store.script_path(identity).with_name("journal")


@each_damage
def test_it_is_named_and_the_others_are_shown(tmp_path: Path, damage: Damage) -> None:
    host, store = three(tmp_path)
    damage(journal_of(store, "0002"))
    found = host_status(host, store)
    assert [one.id for one in found.records] == ["0001", "0003"]
    assert [one.id for one in found.unreadable] == ["0002"]
    assert not verify_transactions(host, None, store).is_as_set
    for text in (status_text(found, width=200, color=False), verify_text(found, width=200, color=False)):
        assert "0002: damaged, presumably active" in text
        assert str(journal_of(store, "0002")) in "".join(text.split()), "a long name is folded"
        assert f"sh {store.script_path('0002')}" in text
    for call in (store.read_records, lambda: store.find_record("2"), lambda: refuse_while_one_waits(store)):
        with pytest.raises(AdvisorError, match="journal") as caught:
            call()
        assert type(caught.value) in (InvalidInputError, RefusedError)
        assert f"to roll it back: sh {store.script_path('0002')}\n" in (caught.value.hint or "")


def test_what_came_later_than_it_can_be_put_back_and_what_came_before_cannot(tmp_path: Path) -> None:
    host, store = three(tmp_path)
    is_empty(journal_of(store, "0002"))
    path = store.script_path("0001").with_name("rollback.data")
    data = path.read_bytes()
    rollback_transactions(host, "3", everything=False, force=False, store=store)
    assert live(host)[QUEUE] == BASE[QUEUE]
    with pytest.raises(RefusedError, match="upper layer 0002 is damaged, and what it holds is unknown") as caught:
        rollback_transactions(host, "1", everything=False, force=True, store=store)
    assert f"to roll it back: sh {store.script_path('0002')}\n" in (caught.value.hint or "")
    assert store.script_path("0001").with_name("rollback.data").read_bytes() == data, (
        "it knows of the damaged one still"
    )
    assert live(host) == {**BASE, SWAP: "20", HIGH: "1000"}
