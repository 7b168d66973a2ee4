"""Bottlenecks as an adversary hides them have their answer first; hosts that only look held up have none."""

from __future__ import annotations

import msgspec
import pytest

from advisor.diagnosis.diagnose import diagnose
from advisor.diagnosis.observation import read_context
from tests.diagnosis.hidden import HIDDEN, WELL_BUT_BUSY
from tests.diagnosis.moments import diagnose_machine, host_at, span_of
from tests.diagnosis.test_degraded import DEGRADED, NARROWER


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


@pytest.mark.repeats(2)
@pytest.mark.parametrize("how", DEGRADED)
def test_with_less_to_read_nothing_else_is_named(how: str) -> None:
    wrong = {}
    for name, case in HIDDEN.items():
        if callable(case.machine):
            continue
        right = {*case.first.split(), *case.all.split()}
        right |= {narrower for identity in right for narrower in NARROWER.get(identity, set())}
        found = DEGRADED[how](case.machine).binds
        if found and found[0].id not in right:
            wrong[name] = found[0].id
    alarms = {
        name: found[0].id
        for name, machine in WELL_BUT_BUSY.items()
        if not callable(machine) and (found := DEGRADED[how](machine).binds)
    }
    assert wrong | alarms == {}


def test_usb_storage_takes_one_request_at_a_time_by_design() -> None:
    machine = HIDDEN["SSD that is given one request at a time by its driver"].machine
    assert not callable(machine)
    context = read_context(host_at(machine, 1000))
    disks = tuple(
        msgspec.structs.replace(disk, detail={**disk.detail, "transport": "usb"}) for disk in context.facts.disks
    )
    on_usb = msgspec.structs.replace(context, facts=msgspec.structs.replace(context.facts, disks=disks))
    assert [one.id for one in diagnose(span_of(machine), on_usb, 0.0).binds] == ["disk.saturated"]
