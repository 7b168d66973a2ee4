"""Restore the values and files of a transaction.

Three values are compared, before, after and live; what was modified externally is skipped.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from advisor.errors import CommandError, NotRestoredError
from advisor.host import Host, Missing, Probe, ReadFile, RunCommand, WriteFile, observe
from advisor.host.config_text import or_empty
from advisor.host.device_identity import located
from advisor.host.irqs import is_gone_since_boot, is_interrupt
from advisor.host.would_be import other_names
from advisor.planning.records import Change, FileChange, Plan
from advisor.shell.rollback_script import commands_by_hand, hand_command, queue_file
from advisor.transaction.journal import Bottom, Entry, Journal, Undoing, Undone
from advisor.transaction.layers import LayerRollback
from advisor.transaction.side_effects import (
    Coupled,
    ItemOutcome,
    OwnLinks,
    on_own_link,
    on_own_links,
    read_side_effects,
    restore_lost,
    restore_released,
    restore_side_effects,
)
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import LostLink, link_of, place_of
from advisor.tunables.sysctl_group import can_be_moved
from advisor.tunables.udev import RULES as APPEARING
from advisor.tunables.udev import (
    ClassDevice,
    DeviceClass,
    device_value,
    find_again,
    plain_value,
    restored_value,
    without_rules,
)

# Devices of a class that appeared after the transaction: those that its udev rule has not reached, and how those that
# it reached get back what they had.


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


Progress = Callable[[str], None]


def not_restored_error(reason: str, lost: tuple[ItemOutcome, ...]) -> NotRestoredError:
    return NotRestoredError(
        f"{reason}; not restored: {len(lost)}", items=tuple((one.what, one.by_hand or one.detail) for one in lost)
    )


def file_content(host: Host, path: str) -> bytes | Missing | None:
    content = host.read_bytes(path)
    return None if isinstance(content, Missing) and content.is_absent else content


MOVING_KINDS = ("link:", "irq:")
"""Where one attribute moves another: a ring with the MTU, a queue's CPUs with the channels, a member with its bond."""


def may_have_begun(name: str, announced: Collection[str] | None) -> bool:
    """Whether a transaction that was cut off may have changed an item: it came to it, or to one that moves it."""
    if announced is None or name in announced or can_be_moved(name, announced):
        return True
    return name.startswith(MOVING_KINDS) and any(one.startswith("link:") for one in announced)


def restore_plan(
    host: Host,
    plan: Plan,
    journal: Journal,
    *,
    why: str,
    force: bool = False,
    force_one: str | None = None,
    side_effects_after: Mapping[str, str] | None = None,
    taken: LayerRollback | None = None,
    bottom: Bottom | None = None,
    announced: Collection[str] | None = None,
    external: str | None = None,
    reloads: bool = False,
    check: Callable[[], None] = lambda: None,
) -> tuple[ItemOutcome, ...]:
    """Files first, then live values, each in the reverse order of apply; then side effects.

    ``announced`` are the items that were begun, None for all; ``external`` is one that another process has set before
    its step. With ``reloads`` files are loaded again though none is restored. ``check`` is called before each item and
    after the last one.
    Raises TakenOverError, as that does.
    """
    check()
    ends = bottom or Bottom({}, {})
    note_entry(journal, Undoing(time.time(), why))
    outcomes: list[ItemOutcome] = []
    reached = list_reached(host, plan)
    held = _held_places(host, taken)
    outcomes += restore_early(host, plan, reached, held)
    for file in reversed(plan.files):
        check()
        is_begun = may_have_begun(file.path, announced)
        if file.before != (end := ends.files.get(file.path, file.before)) and file_content(host, file.path) == end:
            outcomes.append(ItemOutcome(file.path, "already", "as before all transactions"))
            continue
        outcomes.append(restore_file(host, file, force=force or file.path == force_one, is_begun=is_begun))
    restored_files = {one.what for one in outcomes if one.state == "restored"}
    if restored_files or reloads:
        outcomes += _reload_again(host, plan.files)
    own = on_own_links(host, plan)
    standing, coupled = read_side_effects(host, own.plan.side_effects), Coupled(host, own.plan)
    for change in reversed(plan.changes):
        check()
        is_begun = may_have_begun(change.tunable, announced)
        first = ends.values.get(change.tunable, change.before)
        found = on_own_link(host, plan.links, change)
        if first != change.before and not isinstance(found, LostLink) and observe(host, found.probe) == first:
            outcomes.append(ItemOutcome(change.tunable, "already", "as before all transactions"))
            continue
        begun = None if change.tunable == external else announced
        is_own = change.tunable == force_one or coupled.is_own(change, (one.what for one in outcomes), begun)
        outcome = restore_change(host, plan, change, force=force or is_own, is_begun=is_begun)
        if outcome.state == "already" and not change.undo and change.persist in restored_files:
            # The file and its reload were what brought the value about, and back.
            outcome = ItemOutcome(change.tunable, "restored", f"{or_empty(change.after)} → {or_empty(change.before)}")
        outcomes.append(outcome)
    check()
    outcomes = _tried_again(host, plan, outcomes)
    outcomes += restore_reached(host, plan, reached, held)
    own, after = on_own_links(host, plan), side_effects_after or {}
    standing = {**read_side_effects(host, own.plan.side_effects), **standing}
    outcomes += restore_side_effects(host, own.plan, outcomes, after, standing, force=force)
    again = coupled.restore_group(outcomes, after, force=force)
    outcomes = [one for one in outcomes if one.what not in {other.what for other in again}] + again
    outcomes += restore_lost(host, own.plan, after, standing)
    outcomes = own.note_renames((*outcomes, *_lost_side_effects(plan, own, after)))
    if taken is not None:
        places = ((on_own_link(host, plan.links, one), left) for one, left in taken.side_effects.released)
        given = [(one, left) for one, left in places if not isinstance(one, LostLink)]
        outcomes += (*restore_released(host, given), *taken.outcomes)
    check()
    note_entry(journal, Undone(time.time(), kept_outcomes(outcomes), taken.passed if taken else ()))
    return tuple(outcomes)


def _held_places(host: Host, taken: LayerRollback | None) -> frozenset[str]:
    """Files of single devices that upper layers hold in the place of this transaction."""
    if taken is None:
        return frozenset()
    passed = {name for name, _ in taken.passed}
    return own_places(host, (one for upper in taken.upper for one in upper.plan.changes if one.tunable in passed))


def _lost_side_effects(plan: Plan, own: OwnLinks, after: Mapping[str, str]) -> list[ItemOutcome]:
    """Side effects on a link that cannot be identified; what was on one that is gone needs nothing."""
    lost = {name: one.why for name, one in own.lost.items() if not one.is_gone}
    return [
        ItemOutcome(one.tunable, "failed", lost[name])
        for one in plan.side_effects
        if (name := link_of(one.tunable) or "") in lost and after.get(one.tunable) != one.before
    ]


def kept_outcomes(outcomes: Iterable[ItemOutcome]) -> tuple[tuple[str, str], ...]:
    return tuple((one.what, f"{one.state}: {one.detail}") for one in outcomes if not one.is_back)


def _tried_again(host: Host, plan: Plan, outcomes: list[ItemOutcome]) -> list[ItemOutcome]:
    """Values that did not go back while others were still changed: a ring's size fits one MTU and not another."""
    failed = {one.what for one in outcomes if one.state == "failed"}
    again = {
        change.tunable: restore_change(host, plan, change, force=True)
        for change in plan.changes
        if change.tunable in failed
    }
    return [again.get(one.what, one) for one in outcomes]


def note_entry(journal: Journal, entry: Entry) -> None:
    """Journal an entry of a rollback; a full disk does not prevent the rollback."""
    with contextlib.suppress(OSError):
        journal.write_entry(entry)


def restore_file(host: Host, file: FileChange, *, force: bool, is_begun: bool = True) -> ItemOutcome:
    live = file_content(host, file.path)
    host.remove_leftovers(file.undo, prune=is_begun and live is None and file.before is None)
    if live == file.before:
        return ItemOutcome(file.path, "already", "as before")
    by_hand = hand_command(file.undo)
    if not is_begun:
        return ItemOutcome(file.path, "already", _NOT_BEGUN)
    if file.path == APPEARING and live != file.after and not isinstance(live, Missing):
        return _remove_rules(host, file, live, force=force)
    if live != file.after and not force:
        return ItemOutcome(file.path, "kept", "modified externally", by_hand)
    if file.before is not None and (why := other_names(host.locate(file.path))):
        return ItemOutcome(file.path, "kept", why, by_hand)
    try:
        host.do(file.undo)
    except CommandError as error:
        return ItemOutcome(file.path, "failed", error.message, by_hand)
    if file_content(host, file.path) != file.before:
        return ItemOutcome(file.path, "failed", "written, but reads otherwise", by_hand)
    return ItemOutcome(file.path, "restored", "removed" if file.before is None else "earlier content")


def _reload_again(host: Host, files: Iterable[FileChange]) -> list[ItemOutcome]:
    failed: list[ItemOutcome] = []
    for step in dict.fromkeys(step for file in files for step in file.reload):
        try:
            host.do(step)
        except CommandError as error:
            failed.append(ItemOutcome(" ".join(step.argv), "failed", error.message, hand_command(step)))
    return failed


def _remove_rules(host: Host, file: FileChange, live: bytes | None, *, force: bool) -> ItemOutcome:
    """Remove the rules for classes that the transaction wrote from a file that others have changed since; every other
    line stays as it is, byte for byte."""
    rest = without_rules(live, file.before, file.after)
    if rest.edited and not force:
        by_hand = f"edit {file.path}: remove {', '.join(rest.edited)}"
        return ItemOutcome(file.path, "kept", "modified externally", by_hand)
    content = rest.without_edited if rest.edited else rest.content
    if content == live:
        return ItemOutcome(file.path, "already", "its lines are removed")
    step = msgspec.structs.replace(file.undo, content=content)
    try:
        host.do(step)
    except CommandError as error:
        return ItemOutcome(file.path, "failed", error.message, hand_command(step))
    if file_content(host, file.path) != content:
        return ItemOutcome(file.path, "failed", "written, but reads otherwise", hand_command(step))
    return ItemOutcome(file.path, "restored", "removed" if content is None else "its lines are removed")


_NOT_BEGUN = "was not changed by this transaction"


def _is_gone_since_boot(host: Host, probe: Probe) -> bool:
    """Whether it is of an interrupt that is not there yet: a driver that requests it gives it CPUs of its own."""
    identity = probe.identity if isinstance(probe, ReadFile) and is_interrupt(probe.path) else None
    return identity is not None and is_gone_since_boot(host, identity)


def restore_change(host: Host, plan: Plan, change: Change, *, force: bool, is_begun: bool = True) -> ItemOutcome:
    """Restore a value on the link that it was set on, whatever the name of that is now."""
    found = on_own_link(host, plan.links, change)
    if not isinstance(found, LostLink):
        live = observe(host, found.probe)
        if live == found.before:
            return ItemOutcome(found.tunable, "already", f"is {found.before}")
        if isinstance(live, Missing) and live.is_absent and queue_file(found.probe) is not None:
            return ItemOutcome(found.tunable, "already", "is gone with its queue")
        if isinstance(live, Missing) and _is_gone_since_boot(host, found.probe):
            return ItemOutcome(found.tunable, "already", "is not there since the boot")
        by_hand = commands_by_hand(host, found.undo)
        if by_hand == "":
            by_hand = f"set it to {found.before}"
        if isinstance(live, Missing):
            return ItemOutcome(found.tunable, "failed", f"cannot be read: {live.why}", by_hand)
        if not is_begun:
            return ItemOutcome(found.tunable, "already", _NOT_BEGUN)
        if live != found.after and not force:
            return ItemOutcome(found.tunable, "kept", f"modified externally ({live})", by_hand)
        try:
            for step in found.undo:
                host.do(step)
        except CommandError as error:
            return ItemOutcome(found.tunable, "failed", error.message, by_hand)
        now = observe(host, found.probe)
        if now != found.before:
            shown = now.why if isinstance(now, Missing) else now
            return ItemOutcome(found.tunable, "failed", f"written, but reads {shown}", by_hand)
        return ItemOutcome(found.tunable, "restored", f"{or_empty(live)} → {or_empty(found.before)}")
    if not is_begun:
        return ItemOutcome(change.tunable, "already", _NOT_BEGUN)
    # A value went with its link: no later rollback has anything left to do.
    return ItemOutcome(change.tunable, "kept" if found.is_gone else "failed", found.why)
