"""Devices of a class that appeared after the transaction: those that its udev rule has not reached, and how those that
it reached get back what they had."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator

import msgspec

from advisor.errors import CommandError
from advisor.host import Host, Missing, ReadFile, RunCommand, WriteFile
from advisor.host.device_identity import located
from advisor.host.text_words import or_empty
from advisor.planning.records import Change, Plan
from advisor.shell.rollback_script import hand_command
from advisor.transaction.side_effects import ItemOutcome
from advisor.tunables import parse_tunable
from advisor.tunables.link_identity import LostLink, place_of
from advisor.tunables.udev import ClassDevice, DeviceClass, device_value, find_again, plain_value, restored_value


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


class Reached(msgspec.Struct, frozen=True):
    """A device that a rule has reached, with what it gets when the rule goes."""

    device: ClassDevice
    change: Change
    wanted: str


def list_reached(host: Host, plan: Plan) -> dict[str, Reached]:
    """The devices that rules of the plan have reached, by the rule, the file and the device. Read before the rules go:
    with the next event of a device udev forgets what they recorded."""
    found: dict[str, Reached] = {}
    for change, one in classes_of(reversed(plan.changes)):
        devices = [device for device in one.list_devices(host) if device.recorded is not None]
        planned = dict(_planned_values(host, change)) if devices else {}
        for device in devices:
            wanted = restored_value(change.before, device, planned.get(device.path))
            found[f"{change.tunable} {device.path} {device.token}"] = Reached(device, change, wanted)
    return found


def _planned_values(host: Host, change: Change) -> Iterator[tuple[str, str]]:
    """What devices had that were there when the rule was planned, by the files that they have now."""
    for member in change.members:
        if member.link is not None:
            name = place_of(host, member.link)
            place = Missing("absent", "") if isinstance(name, LostLink) else _moved(member.path, name)
        else:
            place = located(host, member.path, member.identity)
        if isinstance(place, str):
            yield place, member.value


def _moved(path: str, link: str) -> str:
    """The file of a link that has another name now."""
    _, sys, kind, net, _, *rest = path.split("/")
    return "/".join(("", sys, kind, net, link, *rest))


def restore_early(host: Host, plan: Plan, reached: dict[str, Reached], held: Collection[str] = ()) -> list[ItemOutcome]:
    """Restore reached devices while the rules are there, with which udev keeps what they recorded: whatever ends the
    rollback from here on, nothing of it is lost. Devices that the plan sets itself follow their own order; ``held`` are
    files that upper layers have set."""
    places = own_places(host, plan.changes) | frozenset(held)
    outcomes = [_restore_device(host, one) for one in reached.values() if one.device.path not in places]
    return [one for one in outcomes if one is not None and one.state == "restored"]


def restore_reached(host: Host, plan: Plan, known: dict[str, Reached], held: Collection[str] = ()) -> list[ItemOutcome]:
    """Restore what the devices had when they appeared: those that are ``known``, and those reached since."""
    if not any(classes_of(plan.changes)):
        return []
    # A process of udev may still work on a device by the rules that it has read before.
    with contextlib.suppress(CommandError):
        host.do(_SETTLE)
    places = own_places(host, plan.changes) | frozenset(held)
    reached = {**known, **list_reached(host, plan)}
    outcomes = [_restore_device(host, one) for one in reached.values() if one.device.path not in places]
    return [one for one in outcomes if one is not None] + _unrecorded(host, plan)


_SETTLE = RunCommand(("udevadm", "settle", "--timeout=10"))


def _restore_device(host: Host, one: Reached) -> ItemOutcome | None:
    name, given = one.device.tunable, plain_value(one.change.after)
    path = find_again(host, one.device)
    if path is None:
        is_taken = host.exists(one.device.path)
        why = "is gone: another device has its name now, and gets nothing of it" if is_taken else "is gone"
        return ItemOutcome(name, "already", why)
    device = msgspec.structs.replace(one.device, path=path)
    live = device_value(host, device)
    # One that had the rule's value by itself got nothing from it.
    if isinstance(live, Missing) or one.wanted in (live, given):
        return None
    if live != given:
        return ItemOutcome(name, "already", f"is {live}, not what its udev rule gave it")
    step = WriteFile(path, one.wanted)
    try:
        host.do(step)
    except CommandError as error:
        return ItemOutcome(name, "failed", error.message, hand_command(step))
    if device_value(host, device) != one.wanted:
        return ItemOutcome(name, "failed", "written, but reads otherwise", hand_command(step))
    return ItemOutcome(name, "restored", f"{or_empty(live)} → {or_empty(one.wanted)}")


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
