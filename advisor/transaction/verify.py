"""Which live values and files drifted from what the active transactions set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from advisor.facts.writers import overriding_write, read_boot_settings
from advisor.host import Host, Missing, observe
from advisor.planning.records import Change, FileChange
from advisor.planning.unmerge import holds_edit, settings_of
from advisor.transaction.appeared import classes_of, own_places, unreached_devices
from advisor.transaction.journal import Record, sequence_of
from advisor.transaction.layer_ownership import files_of, values_of
from advisor.transaction.layers import overlaid_settings
from advisor.transaction.origin import find_elsewhere
from advisor.transaction.own_links import now_named, on_own_link
from advisor.transaction.restore import file_content
from advisor.tunables.link_identity import LostLink, link_of


class Drift(msgspec.Struct, frozen=True):
    """A live or persisted value that is not what the transaction set. ``live`` is None where it could not be read."""

    transaction: str
    what: str
    wanted: str
    live: str | None
    reason: str


def find_drift(host: Host, records: Iterable[Record]) -> tuple[Drift, ...]:
    """What drifted from the active transactions; where several set one tunable, or one line of a file, the last one
    counts."""
    everywhere = [record for record in records if record.is_active]
    held: dict[object, Drift | None] = {}
    in_force: list[Record] = []
    for record in everywhere:
        place = find_elsewhere(host, record.id, record.plan, record.origin)
        if place is None:
            in_force.append(record)
            continue
        why = f"cannot be read: the transaction {place.why}"
        for change in values_of(record).values():
            held[record.id, change.tunable] = Drift(record.id, change.tunable, change.after, None, why)
    for record in in_force:
        for name, change in values_of(record).items():
            # Two transactions can mean one link by two names, and two links by one.
            found = on_own_link(host, record.plan.links, change)
            if isinstance(found, LostLink):
                lost = Drift(record.id, name, change.after, None, f"cannot be read: {found.why}")
                held[record.id, name] = lost
            else:
                key = (found.probe, None if link_of(name) else name)
                held.pop(key, None)
                held[key] = _value_drift(host, record, change, found, in_force)
    drifted = [*held.values(), *_appeared_drift(host, in_force)]
    files: dict[str, Drift] = {}
    for record in in_force:
        for path, file in files_of(record).items():
            drift = _file_drift(host, record.id, file, overlaid_settings(in_force, record, path))
            if drift is not None:
                files[path] = drift
    drifted += files.values()
    return tuple(sorted((one for one in drifted if one is not None), key=lambda one: one.what))


def find_boot_drift(host: Host, records: Iterable[Record]) -> tuple[Drift, ...]:
    """What the next boot would set otherwise than the active transactions have it: a file that came later, for one.
    ``live`` is the value then. What was known when a plan was made is not said again."""
    held = {
        name: (record, change) for record in records if record.is_active for name, change in values_of(record).items()
    }
    kept = {name: each for name, each in held.items() if each[1].persist is not None}
    if not kept:
        return ()
    found = read_boot_settings(host, kept)
    drifted: list[Drift] = []
    for name, (record, change) in sorted(kept.items()):
        write = overriding_write(found, name, change.after, change.persist)
        if write is not None and write.value is not None and write.word != change.last_word:
            drifted.append(Drift(record.id, name, change.after, write.value, write.sentence))
    return tuple(drifted)


def _appeared_drift(host: Host, in_force: Iterable[Record]) -> Iterator[Drift]:
    """Devices of a class that have appeared and have not its value; those that are set one by one are judged so."""
    records = tuple(in_force)
    known = own_places(host, (change for record in records for change in values_of(record).values()))
    # The last one that sets a class counts.
    rules = {
        change.tunable: (record, change, one)
        for record in records
        for change, one in classes_of(values_of(record).values())
    }
    for record, change, one in rules.values():
        left_out = {each.tunable for each in record.plan.skipped}
        for device, why in unreached_devices(host, change, one, left_out=left_out, known=known):
            live = None if isinstance(device.live, Missing) else device.live
            yield Drift(record.id, device.tunable, change.after, live, why)


def _value_drift(host: Host, record: Record, change: Change, found: Change, in_force: Iterable[Record]) -> Drift | None:
    """``found`` is the change on the link that it was made on."""
    live = observe(host, found.probe)
    if live == change.after:
        return None
    named = "" if found is change else now_named(host, record.plan.links, change.tunable)
    if isinstance(live, Missing):
        why = f"cannot be read: {live.why}"
        return Drift(record.id, change.tunable, change.after, None, f"{why}{named}")
    reason = "is as before the transaction" if live == change.before else "modified externally"
    if live == change.before and change.persist is None and change.persist_note:
        reason = f"is as before the transaction; {change.persist_note}"
    later = (one for one in in_force if sequence_of(one.id) > sequence_of(record.id))
    moved = [one.id for one in later if one.side_effects_after.get(change.tunable) == live]
    if moved:
        reason = f"side effect of {moved[-1]}"
    return Drift(record.id, change.tunable, change.after, live, f"{reason}{named}")


def _file_drift(host: Host, identity: str, file: FileChange, overlaid: frozenset[tuple[str, ...]]) -> Drift | None:
    content = file_content(host, file.path)
    if isinstance(content, Missing):
        return Drift(identity, file.path, "its content", None, f"cannot be read: {content.why}")
    if content is None:
        return Drift(identity, file.path, "its content", None, "was removed")
    if all(holds_edit(content, edit) for edit in file.edits if not settings_of(edit) & overlaid):
        return None
    return Drift(identity, file.path, "its content", None, "no longer holds what the transaction wrote")
