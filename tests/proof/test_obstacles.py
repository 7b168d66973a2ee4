"""All that stands in the way of a session is named at once, and a check changes nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.host import Host
from advisor.proof.arms import CheckedError, Obstacles
from advisor.proof.fio import FioProcess
from advisor.proof.records import Claim, ProofSubject
from advisor.proof.schedule import MODES, make_schedule
from advisor.proof.scratch import GIB, MIB, Keep, require_space
from advisor.proof.session import prove
from advisor.proof.target import read_target
from advisor.proof.workloads import get_workload

from .fakes import FakeFio, SpeedToggle
from .sessions import WORKLOAD
from .test_bench import settings
from .test_protocol import SUBJECT

WRITE = "infoscale.4k-rand-w100"


def test_every_obstacle_is_named_with_its_hint(host: Host, disk: Path, fake_fio: FakeFio, tmp_path: Path) -> None:
    toggle = SpeedToggle(fake_fio, 1.3, toggle_class="T2")
    chosen = settings(disk, byte_budget=2 * MIB, is_check=True)
    subject = ProofSubject("jumbo", (Claim(WRITE),))
    with pytest.raises(RefusedError) as caught:
        prove(host, subject, toggle, chosen, runner=FioProcess(search_path=str(tmp_path)))
    words, hint = caught.value.message, caught.value.hint or ""
    assert words.startswith("3 obstacles: 1. jumbo interrupts links")
    assert "2. fio" in words
    assert "3. the byte budget of 2 MiB" in words
    assert "--allow-link-flap" in hint
    # what the hint says is enough
    enough = int(hint.rpartition("--byte-budget ")[2].split()[0])
    for budget, is_refused in ((enough, False), (enough - 2, True)):
        try:
            make_schedule(
                MODES["quick"],
                [get_workload(WRITE)],
                free_bytes=GIB,
                place_seconds=0.2,
                byte_budget=budget * MIB,
                scratch_bytes=MIB,
                hold_seconds=0.1,
            )
        except RefusedError:
            assert is_refused
        else:
            assert not is_refused


def test_a_check_says_what_would_be_measured_and_places_nothing(host: Host, disk: Path, fake_fio: FakeFio) -> None:
    toggle = SpeedToggle(fake_fio, 1.3)
    with pytest.raises(CheckedError) as caught:
        prove(host, SUBJECT, toggle, settings(disk, is_check=True), runner=fake_fio.runner)
    check = caught.value.check
    assert (check.layout.pairs, check.workloads, check.gate.busy) == (8, (WORKLOAD,), ())
    assert toggle.placed == []
    assert list(disk.iterdir()) == []


def test_one_error_keeps_its_kind() -> None:
    found = Obstacles()
    found.require_none()
    with found.noted():
        raise UsageError("no such directory")
    with pytest.raises(UsageError, match="no such directory"):
        found.require_none()
    with found.noted():
        raise AdvisorError("another")
    with pytest.raises(RefusedError, match=r"2 obstacles: 1\. no such directory; 2\. another"):
        found.require_none()


@pytest.mark.parametrize("size", [8 * GIB, 12 * GIB, 100 * GIB])
def test_a_small_file_system_has_room_by_default(size: int, disk: Path, host: Host) -> None:
    target = msgspec.structs.replace(read_target(host, str(disk)), size_bytes=size, free_bytes=size * 9 // 10)
    keep = Keep()
    free = keep.room_of(target.size_bytes, target.free_bytes)
    plan = make_schedule(MODES["default"], [get_workload(WRITE)], free_bytes=free, place_seconds=0.2)
    require_space(target, plan.scratch_bytes, keep)
    assert plan.byte_budget > 2 * GIB
    with pytest.raises(RefusedError) as caught:
        require_space(target, size, keep)
    enough = int((caught.value.hint or "").removeprefix("--file-size ").partition("MiB")[0])
    require_space(target, enough * MIB, keep)
