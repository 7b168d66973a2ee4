"""What a transaction holds, and upper layers as they become when a lower one is rolled back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.planning.records import Change, FileChange, Plan
from advisor.transaction.journal import Record
from advisor.tunables.preflight import SideEffect

_replace = msgspec.structs.replace


def values_of(record: Record) -> Mapping[str, Change]:
    """Each tunable that a transaction holds, made or claimed; not what the kernel kept to itself."""
    left = dict(record.left)
    return {one.tunable: one for one in (*record.plan.changes, *record.plan.claims) if one.tunable not in left}


def files_of(record: Record) -> Mapping[str, FileChange]:
    """Each file that a transaction holds lines of."""
    return {file.path: file for file in (*record.plan.claimed_files, *record.plan.files)}


def side_effects_of(record: Record) -> Mapping[str, SideEffect]:
    """Each possible side effect of a transaction, by tunable."""
    return {one.tunable: one for one in record.plan.side_effects}


def is_side_effect(record: Record, name: str) -> bool:
    """Whether a transaction changed a tunable as a side effect: nobody asked for the value that it has since."""
    one = side_effects_of(record).get(name)
    if one is None or one.keeps:
        return False
    # A queue that does not exist any more was removed with the channels.
    after = record.side_effects_after.get(name, None if one.resets else one.before)
    return after != one.before


class UpperLayers:
    """Upper layers, the oldest first, each as it would be without a lower one that is rolled back."""

    def __init__(self, records: tuple[Record, ...]) -> None:
        self._before = records
        self._now = {record.id: record for record in records}

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._now.values())

    @property
    def changed_records(self) -> tuple[Record, ...]:
        """Those that differ from the journal."""
        return tuple(self._now[record.id] for record in self._before if self._now[record.id] != record)

    def set_value(self, identity: str, change: Change) -> None:
        plan = self._now[identity].plan
        if any(one.tunable == change.tunable for one in plan.changes):
            changes = tuple(change if one.tunable == change.tunable else one for one in plan.changes)
            self._set_plan(identity, _replace(plan, changes=changes))
        elif change.before != change.after:
            # A value that it only claimed becomes a change of its own.
            claims = tuple(one for one in plan.claims if one.tunable != change.tunable)
            self._set_plan(identity, _replace(plan, changes=(*plan.changes, change), claims=claims))

    def set_side_effect(self, identity: str, one: SideEffect, after: str | None) -> None:
        """Replace or add a side effect; ``after`` is its value since, None for unknown."""
        plan = self._now[identity].plan
        others = tuple(one if other.tunable == one.tunable else other for other in plan.side_effects)
        if one not in others:
            # Addresses come before the routes that go by them.
            kept = sorted((*(other for other in others if other.keeps), one), key=lambda other: other.tunable)
            others = (*(other for other in others if not other.keeps), *kept) if one.keeps else (*others, one)
        known = {name: value for name, value in self._now[identity].side_effects_after.items() if name != one.tunable}
        if after is not None:
            known[one.tunable] = after
        self._set_plan(identity, _replace(plan, side_effects=others))
        self._now[identity] = _replace(self._now[identity], side_effects_after=known)

    def set_file(self, identity: str, new: FileChange) -> None:
        plan = self._now[identity].plan
        if any(file.path == new.path for file in plan.files):
            files = tuple(new if file.path == new.path else file for file in plan.files)
            self._set_plan(identity, _replace(plan, files=files))
            return
        claimed = tuple(file for file in plan.claimed_files if file.path != new.path)
        if new.before == new.after:
            self._set_plan(identity, _replace(plan, claimed_files=(*claimed, new)))
        else:
            self._set_plan(identity, _replace(plan, claimed_files=claimed, files=(*plan.files, new)))

    def _set_plan(self, identity: str, plan: Plan) -> None:
        self._now[identity] = _replace(self._now[identity], plan=plan)
