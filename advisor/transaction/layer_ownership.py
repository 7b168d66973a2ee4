"""What a transaction holds, and later transactions as they become when an earlier one is taken out from under them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.planning.records import Bystander, Change, FileChange, Plan
from advisor.transaction.journal import Record

_replace = msgspec.structs.replace


def values_of(record: Record) -> Mapping[str, Change]:
    """Each tunable that a transaction holds, made or claimed; not what the kernel kept to itself."""
    left = dict(record.left)
    return {one.tunable: one for one in (*record.plan.changes, *record.plan.claims) if one.tunable not in left}


def files_of(record: Record) -> Mapping[str, FileChange]:
    """Each file that a transaction holds lines of."""
    return {file.path: file for file in (*record.plan.claimed_files, *record.plan.files)}


def beside(record: Record) -> Mapping[str, Bystander]:
    """Each tunable that may have moved along with a transaction."""
    return {one.tunable: one for one in record.plan.bystanders}


def moves(record: Record, name: str) -> bool:
    """Whether a tunable moved along with a transaction: what it reads since is that one's doing, and nobody's wish."""
    one = beside(record).get(name)
    if one is None or one.keeps:
        return False
    # A queue that is not there any more went with the channels.
    after = record.bystanders_after.get(name, None if one.resets else one.before)
    return after != one.before


class Later:
    """Transactions in force, the oldest first, as each would be had an earlier one never been."""

    def __init__(self, records: tuple[Record, ...]) -> None:
        self._before = records
        self._now = {record.id: record for record in records}

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._now.values())

    @property
    def changed(self) -> tuple[Record, ...]:
        """Those that are no longer as they were."""
        return tuple(self._now[record.id] for record in self._before if self._now[record.id] != record)

    def set_value(self, identity: str, change: Change) -> None:
        plan = self._now[identity].plan
        if any(one.tunable == change.tunable for one in plan.changes):
            changes = tuple(change if one.tunable == change.tunable else one for one in plan.changes)
            self._set_plan(identity, _replace(plan, changes=changes))
        elif change.before != change.after:
            # What it only claimed is its own from now on.
            claims = tuple(one for one in plan.claims if one.tunable != change.tunable)
            self._set_plan(identity, _replace(plan, changes=(*plan.changes, change), claims=claims))

    def set_beside(self, identity: str, one: Bystander, after: str | None) -> None:
        """Replace or add what may have moved along; ``after`` is its value since, None where that is to be unknown."""
        plan = self._now[identity].plan
        others = tuple(one if other.tunable == one.tunable else other for other in plan.bystanders)
        if one not in others:
            # Addresses come before the routes that go by them.
            kept = sorted((*(other for other in others if other.keeps), one), key=lambda other: other.tunable)
            others = (*(other for other in others if not other.keeps), *kept) if one.keeps else (*others, one)
        known = {name: value for name, value in self._now[identity].bystanders_after.items() if name != one.tunable}
        if after is not None:
            known[one.tunable] = after
        self._set_plan(identity, _replace(plan, bystanders=others))
        self._now[identity] = _replace(self._now[identity], bystanders_after=known)

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
