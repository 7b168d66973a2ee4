"""Devices of a class that appeared after the transaction: those that its udev rule has not reached, and how those that
it reached get back what they had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from advisor.errors import CommandError
from advisor.host import Host, Missing, ReadFile, WriteFile
from advisor.host.device_identity import located
from advisor.i18n import N_, msg
from advisor.planning.records import Change, Plan
from advisor.shell.rollback_script import hand_command
from advisor.transaction.side_effects import ItemOutcome
from advisor.tunables import parse_tunable
from advisor.tunables.udev import ClassDevice, DeviceClass, device_value, plain_value, restored_value


def classes_of(changes: Iterable[Change]) -> Iterator[tuple[Change, DeviceClass]]:
    """The changes that are rules for a class of devices, each with its class."""
    for change in changes:
        if change.tunable.startswith("udev:"):
            one = parse_tunable(change.tunable)
            assert isinstance(one, DeviceClass)
            yield change, one


def own_places(host: Host, changes: Iterable[Change]) -> frozenset[str]:
    """The files that changes of single devices set, by the names that the devices have now."""
    probes = (change.probe for change in changes if change.tunable.startswith(("block:", "link:")))
    found = (located(host, probe.path, probe.identity) for probe in probes if isinstance(probe, ReadFile))
    return frozenset(place for place in found if isinstance(place, str))


def unreached_devices(
    host: Host, change: Change, one: DeviceClass, *, left_out: Collection[str], known: Collection[str]
) -> Iterator[tuple[ClassDevice, str]]:
    """Devices of the class that have not its value, each with the reason. ``left_out`` are ids and ``known`` files of
    devices that the transactions themselves speak of."""
    for device in one.list_devices(host):
        # What a rule has reached appeared later, even under the name of one that was there.
        is_new = device.recorded is not None or device.tunable not in left_out
        if device.is_member and is_new and device.path not in known:
            why = one.explain_missing(host, device, change.after)
            if why is not None:
                yield device, why


def list_reached(host: Host, plan: Plan) -> dict[str, tuple[ClassDevice, Change]]:
    """The devices that rules of the plan have reached, by the file that was set and the rule. Read before the rules go:
    with the next event of a device udev forgets what they recorded."""
    return {
        f"{change.tunable} {device.path}": (device, change)
        for change, one in classes_of(reversed(plan.changes))
        for device in one.list_devices(host)
        if device.recorded is not None
    }


def restore_early(host: Host, plan: Plan, reached: dict[str, tuple[ClassDevice, Change]]) -> list[ItemOutcome]:
    """Restore reached devices while the rules are there, with which udev keeps what they recorded: whatever ends the
    rollback from here on, nothing of it is lost. Devices that the plan sets itself follow their own order."""
    own, places = {change.tunable for change in plan.changes}, own_places(host, plan.changes)
    outcomes = [
        _restore_device(host, device, change, is_own=False)
        for device, change in reached.values()
        if device.tunable not in own and device.path not in places
    ]
    return [one for one in outcomes if one is not None and one.state == "restored"]


def restore_reached(host: Host, plan: Plan, known: dict[str, tuple[ClassDevice, Change]]) -> list[ItemOutcome]:
    """Restore what the devices had when they appeared: those that are ``known``, and those reached since."""
    own = {change.tunable for change in plan.changes}
    outcomes = [
        _restore_device(host, device, change, is_own=device.tunable in own)
        for device, change in {**known, **list_reached(host, plan)}.values()
    ]
    return [one for one in outcomes if one is not None] + _unrecorded(host, plan)


def _restore_device(host: Host, device: ClassDevice, change: Change, *, is_own: bool) -> ItemOutcome | None:
    wanted, given = restored_value(change.before, device), plain_value(change.after)
    live = device_value(host, device)
    # One that had the rule's value by itself got nothing from it.
    if isinstance(live, Missing) or wanted in (live, given):
        return None
    if live != given:
        detail = msg("is {live}, not what its udev rule gave it", live=live)
        return None if is_own else ItemOutcome(device.tunable, "already", detail)
    step = WriteFile(device.path, wanted)
    try:
        host.do(step)
    except CommandError as error:
        return ItemOutcome(device.tunable, "failed", error.message, hand_command(step))
    if device_value(host, device) != wanted:
        return ItemOutcome(device.tunable, "failed", N_("written, but reads otherwise"), hand_command(step))
    return ItemOutcome(device.tunable, "restored", f"{live} → {wanted}")


def _unrecorded(host: Host, plan: Plan) -> list[ItemOutcome]:
    """Devices that have the value of a rule, and of which nothing says what they had before."""
    known = {one.tunable for one in plan.skipped} | {one.tunable for one in plan.changes}
    places = own_places(host, plan.changes)
    return [
        ItemOutcome(device.tunable, "already", one.explain_unrecorded(device))
        for change, one in classes_of(plan.changes)
        for device in one.list_devices(host)
        if device.recorded is None and device.live == plain_value(change.after)
        if device.is_member and device.tunable not in known and device.path not in places
    ]
