"""Damage of a journal, as the script of a plan sees it: named with 2, nothing applied over it, nothing rolled back."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from advisor.errors import InvalidInputError
from tests.exporters.apply_script.stage import SHELLS, Stage
from tests.transaction import system
from tests.transaction.test_damage import KINDS

AT_ONCE = ("apply", "--confirm-within", "0")


def applied(where: Path) -> Stage:
    host = system.build(where)
    stage = Stage(where, lambda _: host, system.plan_of(host, (0,)))
    assert stage.call(*AT_ONCE).code == 0
    return stage


# In the short form, each kind of damage is read by one of the shells.
MATRIX = [
    pytest.param(
        kind, shell, part, id=f"{kind}-{shell[0]}-{part}", marks=[pytest.mark.thorough] * (part > 0 or at != number)
    )
    for part in range(8)
    for number, kind in enumerate(KINDS)
    for at, shell in enumerate(SHELLS)
]


@pytest.mark.repeats(4)
@pytest.mark.parametrize(("kind", "shell", "part"), MATRIX)
def test_damage_is_named_and_changes_nothing(tmp_path: Path, kind: str, shell: list[str], part: int) -> None:
    stage = applied(tmp_path)
    journal, after = stage.transaction / "journal", stage.listing()
    whole = journal.read_bytes()
    places = list(KINDS[kind](whole, 211))
    for what, data in places[part :: max(8, len(places) // 6)]:
        journal.write_bytes(data)
        with pytest.raises(InvalidInputError):
            stage.store.read_records()
        for verb in ("status", "verify", "rollback"):
            done = stage.call(verb, under=shell)
            assert (done.code, done.state) == (2, "damaged"), (what, verb)
        refused = stage.call("apply", under=shell)
        assert (refused.code, refused.state) == (3, "refused"), what
        assert "to roll it back: sh " in refused.last["message"], what
        assert (stage.listing(), journal.read_bytes()) == (after, data), what
    journal.write_bytes(whole[:-1])
    assert stage.call("verify", under=shell).code == 0, "a line end that is missing alone"


@pytest.mark.parametrize("way", [0, 1])
def test_the_commands_of_the_refusal_settle_it(tmp_path: Path, way: int) -> None:
    host = system.build(tmp_path)
    stage = Stage(tmp_path, lambda _: host, system.plan_of(host, (0,)))
    before = stage.plan.changes[0].before
    # Below the root, as on a host: a script that works on a tree notes nothing outside of it.
    state = {"ADVISOR_STATE_DIR": str(stage.root / "var/lib/advisor")}
    assert stage.call(*AT_ONCE, more=state).code == 0
    journal = stage.root / "var/lib/advisor/transactions/0001/journal"
    journal.write_bytes(journal.read_bytes().replace(b"applied", b"Applied"))
    message = stage.call("apply", more=state).last["message"]
    found = re.search(r"to roll it back: (.*?); to keep its values, and set its records aside: (.*)", message)
    assert found is not None
    command = f"{found[1]} --root {stage.root}" if way == 0 else found[2]
    subprocess.run(["sh", "-c", command], check=True, env=stage.environment())
    if way == 0:
        assert (stage.root / "proc/sys/net/core/rmem_max").read_text().strip() == before
    # Nothing is refused any more.
    assert stage.call("apply", more=state).code == 0
