"""What administrators meet is answered first, and what resembles it raises no alarm."""

from __future__ import annotations

import pytest

from tests.diagnosis.field import LOOK_ALIKES, MET
from tests.diagnosis.moments import diagnose_machine


@pytest.mark.parametrize("name", MET)
def test_what_is_met_is_named_first(name: str) -> None:
    case = MET[name]
    found = [one.id for one in diagnose_machine(case.machine).binds]
    assert found[:1], "nothing binds"
    assert found[0] in case.first.split(), found
    assert set(case.all.split()) <= set(found)
    assert set(case.never.split()).isdisjoint(found), found


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_resembles_it_is_no_alarm(name: str) -> None:
    found = diagnose_machine(LOOK_ALIKES[name])
    assert found.binds == (), [(one.id, one.device, one.share, one.evidence) for one in found.binds]
