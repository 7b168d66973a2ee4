"""Settings of a link's queues that cannot be restored: each is reported, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.rules.build import link
from tests.transaction.queues import LINK, WAYS, applied, back, build, call, plan_of, state
from tests.transaction.system import bare_facts, roll_back_locked


def renamed(where: Path) -> None:
    (where / "root/run/names").write_text("other-N")


def more_vectors(where: Path) -> None:
    """As where something else of the same function has asked for one."""
    (where / "root/run/extra").touch()


UNLIKE: dict[str, tuple[Callable[[Path], None], str]] = {
    "names": (renamed, "its interrupts have other names than before, so that none can be identified"),
    "count": (more_vectors, "it has 5 interrupts now and had 4"),
}


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("unlike", UNLIKE)
def test_interrupts_that_are_not_the_same_ones_are_left_and_told(tmp_path: Path, way: str, unlike: str) -> None:
    host = build(tmp_path)
    before = state(tmp_path)
    record, store = applied(tmp_path, host)
    change, why = UNLIKE[unlike]
    change(tmp_path)
    code, said = back(tmp_path, host, record, store, way)
    assert code == 5
    assert f"failed    link:{LINK}:irqs: {why}" in said
    now = state(tmp_path)
    live = (tmp_path / "root/proc/irq").glob("*/smp_affinity_list")
    assert {one.read_text() for one in live} == {"0-7\n"}, "none of them was touched"
    assert {**now, "irqs": ()} == {**before, "irqs": ()}


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_table_that_no_command_can_set_is_told_in_the_plan_and_after(tmp_path: Path, way: str) -> None:
    host = build(tmp_path)
    (tmp_path / "root/run/table").write_text("3 1 2 0 3 1 2 0 0 0 0 0 0 0 0 0\n")
    assert any("ethtool -X cannot set an RSS indirection table such as its own" in one for one in plan_of(host).notes)
    record, store = applied(tmp_path, host)
    code, said = back(tmp_path, host, record, store, way)
    assert code == 5
    was = "table 3 1 2 0 3 1 2 0 0 0 0 0 0 0 0 0 of 16"
    assert f"failed    link:{LINK}:rss: was {was}, which no command can set; is default 4 of 16" in said


@pytest.mark.parametrize("way", WAYS[:2])
def test_what_somebody_set_since_and_the_driver_leaves_is_kept_and_told(tmp_path: Path, way: str) -> None:
    host = build(tmp_path)
    record, store = applied(tmp_path, host, {f"link:{LINK}:channels.combined": "8"})
    queues = tmp_path / "root/sys/class/net/eth1/queues"
    theirs, lost = queues / "rx-1/rps_cpus", queues / "tx-1/xps_cpus"
    theirs.write_text("ff\n")
    lost.write_text("ff\n")
    code, said = back(tmp_path, host, record, store, way)
    assert (code, theirs.read_text(), lost.read_text()) == (5, "ff\n", "30\n")
    assert f"kept      link:{LINK}:rps.rx-1: modified externally (0-7)" in said


@pytest.mark.parametrize("way", WAYS[:2])
def test_where_the_channels_stay_what_hangs_on_them_stays(tmp_path: Path, way: str) -> None:
    host = build(tmp_path)
    record, store = applied(tmp_path, host)
    call(tmp_path, "-L", LINK, "combined", "6")
    before = state(tmp_path)
    code, said = back(tmp_path, host, record, store, way)
    assert (code, state(tmp_path)) == (5, before)
    assert said.count("kept ") == 1
    assert "failed" not in said


def test_a_table_that_could_not_be_read_is_said_to_be_lost(tmp_path: Path) -> None:
    host = build(tmp_path)
    (tmp_path / "root/run/silent").touch()
    plan = plan_of(host)
    assert any("could not be recorded, and would not be restored" in one for one in plan.notes)
    assert f"link:{LINK}:rss" not in {one.tunable for one in plan.side_effects}


def test_after_a_boot_interrupts_and_tables_are_the_boots(tmp_path: Path) -> None:
    host = build(tmp_path)
    record, store = applied(tmp_path, host)
    (tmp_path / "root/proc/sys/kernel/random/boot_id").write_text("another\n")
    call(tmp_path, "-L", LINK, "combined", "4")
    booted = state(tmp_path)
    outcomes = roll_back_locked(host, record, store)
    assert [one.state for one in outcomes] == ["already"]
    assert state(tmp_path) == booted


def test_an_interrupt_is_not_named_beside_what_gives_it_another_number(tmp_path: Path) -> None:
    host = build(tmp_path)
    known = msgspec.structs.replace(bare_facts(), links=(link(LINK, irqs=(40, 41)),))
    values = {f"link:{LINK}:channels.combined": "2", "irq:40:affinity": "1-3"}
    plan = plan_of(host, values, known)
    assert [one.tunable for one in plan.changes] == [f"link:{LINK}:channels.combined"]
    assert [(one.tunable, one.reason) for one in plan.blocking] == [
        ("irq:40:affinity", "eth1 gets other interrupts with its channels: apply those first, then this")
    ]
    assert plan_of(host, {"irq:40:affinity": "1-3"}, known).blocking == ()
