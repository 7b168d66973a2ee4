"""Side effects of a change, what hangs on a link's queues, and the interrupts that the kernel keeps to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.transaction.apply import apply_plan
from advisor.transaction.status import find_drift
from tests.exporters.apply_script.stage import SHELLS, Stage, reported
from tests.transaction import queues, system
from tests.transaction.system import store_of
from tests.trees import make_command

AT_ONCE = ("apply", "--confirm-within", "0")
shells = pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])


def staged(where: Path, values: dict[str, str] | None = None) -> Stage:
    host = queues.build(where)
    return Stage(where, lambda _: host, queues.plan_of(host, values))


@shells
def test_what_hangs_on_the_queues_comes_back(tmp_path: Path, shell: list[str]) -> None:
    stage = staged(tmp_path / "ours")
    before = queues.state(stage.where)
    done = stage.call(*AT_ONCE, under=shell)
    assert (done.code, done.state) == (0, "applied"), done
    assert queues.state(stage.where) != before
    other = staged(tmp_path / "theirs")
    store = store_of(other.where)
    with store.hold_lock():
        wanted = apply_plan(other.host, other.plan, store)
    assert wanted.side_effects_after
    assert reported(stage.record()) == reported(wanted)
    theirs = store.script_path("0001").with_name("rollback.data").read_bytes()
    assert (stage.transaction / "rollback.data").read_bytes() == theirs, "with the side effects in it"
    back = stage.call("rollback", under=shell)
    assert (back.code, queues.state(stage.where)) == (0, before), back
    assert back.states()["link:eth1:irqs"] == "restored"


def test_a_failure_after_the_channels_brings_all_of_it_back(tmp_path: Path) -> None:
    stage = staged(tmp_path, {"link:eth1:channels.combined": "2", "link:eth1:mtu": "9000"})
    before = queues.state(tmp_path)
    make_command(
        tmp_path / "bin",
        "cat",
        'text=$(/bin/cat "$@"; echo x)\n'
        '[ "${text%?x}" != 9000 ] || { echo 1500; echo "cat: write error: Invalid argument" >&2; exit 1; }\n'
        'printf %s "${text%x}"',
    )
    done = stage.call(*AT_ONCE, under=["dash"])
    assert (done.code, done.state) == (4, "rolled-back"), done
    assert "Invalid argument" in done.last["message"]
    assert queues.state(tmp_path) == before


@pytest.mark.parametrize("words", ["Input/output error", "Operation not permitted"])
def test_an_interrupt_that_the_kernel_manages_is_left_and_no_failure(tmp_path: Path, words: str) -> None:
    stage = Stage(tmp_path)
    before = stage.listing()
    refuses = f'[ "${{text%?x}}" != 0-3 ] || {{ echo 0-7; echo "cat: write error: {words}" >&2; exit 1; }}\n'
    make_command(tmp_path / "bin", "cat", f'text=$(/bin/cat "$@"; echo x)\n{refuses}printf %s "${{text%x}}"')
    done = stage.call(*AT_ONCE, under=["dash"])
    assert (done.code, done.state) == (0, "applied"), done
    record = stage.record()
    assert record.left == (("irq:40:affinity", f"irq:40:affinity: {words}"),)
    assert find_drift(stage.host, [record]) == ()
    checked = stage.call("verify", under=["dash"])
    assert (checked.code, checked.states()["irq:40:affinity"]) == (0, "left")
    assert stage.call("rollback", under=["dash"]).code == 0
    assert stage.listing() == before


def test_the_same_words_of_another_value_are_a_failure(tmp_path: Path) -> None:
    stage = Stage(tmp_path, plan=None)
    before = stage.listing()
    value = system.TARGETS[0][1]
    refuses = f'[ "${{text%?x}}" != {value} ] || {{ echo 212992; echo "cat: Input/output error" >&2; exit 1; }}\n'
    make_command(tmp_path / "bin", "cat", f'text=$(/bin/cat "$@"; echo x)\n{refuses}printf %s "${{text%x}}"')
    done = stage.call(*AT_ONCE, under=["dash"])
    assert (done.code, done.state) == (4, "rolled-back"), done
    assert stage.listing() == before


def test_a_later_transaction_that_set_a_queue_anew_goes_first(tmp_path: Path) -> None:
    stage = staged(tmp_path, {"link:eth1:xps.tx-1": "0-2"})
    assert stage.call(*AT_ONCE).code == 0
    queues.applied(tmp_path, stage.host, {"link:eth1:channels.combined": "2"})
    done = stage.call("rollback")
    assert (done.code, done.states()) == (3, {"link:eth1:xps.tx-1": "held"}), done
    assert "the later transaction 0002 holds link:eth1:xps.tx-1: roll back 0002 first" in done.last["message"]
