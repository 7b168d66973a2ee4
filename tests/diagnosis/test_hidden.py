"""Bottlenecks as an adversary hides them have their answer first; hosts that only look held up have none."""

from __future__ import annotations

import pytest

from tests.diagnosis.hidden import HIDDEN, WELL_BUT_BUSY
from tests.diagnosis.moments import diagnose_machine


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_is_named(name: str) -> None:
    case = HIDDEN[name]
    found = [one.id for one in diagnose_machine(case.machine).binds]
    assert found[:1], "nothing binds"
    assert found[0] in case.first.split()
    assert set(case.all.split()) <= set(found)
    assert set(case.never.split()).isdisjoint(found)


@pytest.mark.parametrize("name", WELL_BUT_BUSY)
def test_what_only_looks_held_up_is_no_alarm(name: str) -> None:
    found = diagnose_machine(WELL_BUT_BUSY[name])
    assert found.binds == (), [(one.id, one.device, one.share, one.evidence) for one in found.binds]


def test_niced_time_is_said() -> None:
    near = diagnose_machine(WELL_BUT_BUSY["more niced tasks than CPUs"]).near
    assert any("92 % niced" in text for text in near)
