"""What a transaction holds, and upper layers as they become when a lower one is rolled back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from advisor.planning.links import with_lost
from advisor.planning.records import Change, FileChange, Plan
from advisor.transaction.journal import Record
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl_group import can_be_moved, can_move, disables_ipv6, twin_of

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


# Side effects of a transaction (queues, rings, the MTU of stacked links, addresses, routes) below upper layers: which
# are restored with this transaction, which with an upper layer, and which values of an upper layer stay.

_WHOLE = (":irqs", ":rss")
"""What belongs to one number of channels and means nothing under another."""


class LayerSideEffects(msgspec.Struct, frozen=True):
    """What a rollback restores in addition to the changes of the transaction.

    ``side_effects`` are restored with them, ``after`` are their values while the transaction was active, as far as they
    count. ``released`` are restored at once where that is possible, as an upper layer holds their cause now; each with
    the value that it was left at.
    """

    side_effects: tuple[SideEffect, ...]
    after: Mapping[str, str]
    released: tuple[tuple[SideEffect, str | None], ...] = ()


def split_side_effects(
    record: Record, later: UpperLayers, changes: Collection[Change], receivers: Mapping[str, str], *, again: bool
) -> LayerSideEffects:
    """Hand over to the upper layers what they restore from now on; the result is what is left.

    ``changes`` are those that this transaction restores itself, ``receivers`` the ids of the upper layers that hold the
    others, by tunable. ``again``: an earlier attempt may have ended half-way, so that the live values prove nothing.
    """
    remaining: list[SideEffect] = []
    released: list[tuple[SideEffect, str | None]] = []
    after = dict(record.side_effects_after)
    for one in record.plan.side_effects:
        was = record.side_effects_after.get(one.tunable)
        is_own = depends_on(one, changes)
        is_passed = _hand_over(one, was, later, receivers, is_own=is_own)
        top, is_moved = _find_top(one.tunable, later)
        if is_own and top is not None:
            # A value that an upper layer set, to be set again if the rollback of the change changes it.
            keeps = not (one.resets or one.coupled or again)
            remaining.append(_replace(one, before=top.after, undo=top.steps, keeps=keeps))
            if not one.resets:
                after[one.tunable] = top.after
                if again:
                    del after[one.tunable]
        elif is_own and not is_moved:
            remaining.append(one)
        elif not (is_own or is_passed or one.resets or one.coupled) and (
            was != one.before and (one.keeps or was is not None)
        ):
            released.append((one, was))
    return LayerSideEffects(tuple(remaining), after, tuple(released))


def _find_top(name: str, later: UpperLayers) -> tuple[Change | None, bool]:
    """The active change of an upper layer; and whether the value is a side effect of an upper layer instead."""
    for upper in reversed(later.records):
        if name in values_of(upper):
            return values_of(upper)[name], False
        if is_side_effect(upper, name):
            return None, True
    return None, False


def _hand_over(
    one: SideEffect, was: str | None, later: UpperLayers, receivers: Mapping[str, str], *, is_own: bool
) -> bool:
    """Pass the value before this transaction to the upper layers; whether one of them has set or changed it since."""
    receiver = None if is_own else _find_receiver(one, receivers)
    # To restore it at once would zero what the upper layer has set.
    is_twin = twin_of(one.tunable.removeprefix("sysctl:")) is not None
    for upper in later.records:
        name, theirs = one.tunable, side_effects_of(upper).get(one.tunable)
        above = values_of(upper).get(name)
        if above is not None and (above.before == was or _is_unseen(one, was)) and one.undo:
            later.set_value(upper.id, _replace(above, before=one.before, undo=one.undo))
        if theirs is None and above is None and (upper.id == receiver or _is_lost_to(one, was, upper)):
            later.set_side_effect(upper.id, one, one.before if is_own else None)
        elif theirs is not None and one.keeps:
            _merge_lost(one, was, later, upper, is_own=is_own)
        elif theirs is not None:
            _replace_before(one, was, later, upper, is_own=is_own)
        is_theirs = (one.resets or is_twin) and upper.id == receiver
        if above is not None or is_theirs or (theirs is not None and is_side_effect(upper, name)):
            return True
    return False


def _is_unseen(one: SideEffect, was: str | None) -> bool:
    """Whether the value of a queue after the change of its channels was never read: a lower layer handed it over.

    What the next layer found of it is then the driver's.
    """
    return one.resets and was is None


def _replace_before(one: SideEffect, was: str | None, later: UpperLayers, upper: Record, *, is_own: bool) -> None:
    theirs = side_effects_of(upper)[one.tunable]
    if theirs.before != was and not _is_unseen(one, was) and not one.tunable.endswith(_WHOLE):
        return
    after = upper.side_effects_after.get(one.tunable)
    if not is_side_effect(upper, one.tunable):
        after = one.before if is_own else None
    later.set_side_effect(upper.id, _replace(theirs, before=one.before, undo=one.undo), after)


def _merge_lost(one: SideEffect, was: str | None, later: UpperLayers, upper: Record, *, is_own: bool) -> None:
    """Add the addresses and routes that this transaction removed to those that the upper layer found."""
    theirs = side_effects_of(upper)[one.tunable]
    merged = with_lost(theirs, one, was)
    if merged != theirs:
        after = upper.side_effects_after.get(one.tunable)
        later.set_side_effect(upper.id, merged, merged.before if is_own and after == theirs.before else None)


def _is_lost_to(one: SideEffect, was: str | None, upper: Record) -> bool:
    """Whether an upper layer keeps what a link has, and could not see this, as it was removed by then."""
    link = f"{one.tunable.rpartition(':')[0]}:"
    return (
        one.keeps
        and was != one.before
        and any(other.keeps and name.startswith(link) for name, other in side_effects_of(upper).items())
    )


def _find_receiver(one: SideEffect, receivers: Mapping[str, str]) -> str | None:
    """The upper layer that holds the cause of a side effect."""
    causes = [identity for name, identity in sorted(receivers.items()) if _can_change(name, one)]
    return causes[0] if causes else None


def depends_on(one: SideEffect, changes: Iterable[Change]) -> bool:
    """Whether one of the changes is the cause of a side effect."""
    if one.coupled:
        return can_be_moved(one.tunable, [change.tunable for change in changes])
    if one.keeps:
        return any(change.risk == "link" or _can_change(change.tunable, one) for change in changes)
    return any(_can_change(change.tunable, one) for change in changes)


def _can_change(name: str, one: SideEffect) -> bool:
    device, _, attribute = name.rpartition(":")
    if one.coupled:
        return can_move(name, one.tunable)
    if one.keeps:
        return name.startswith("link:") or disables_ipv6(name, one.tunable.split(":")[1])
    if (twin := twin_of(one.tunable.removeprefix("sysctl:"))) is not None:
        return name == f"sysctl:{twin}"
    if one.resets:
        return name.startswith(f"{one.tunable.rpartition(':')[0]}:channels.")
    if one.tunable.startswith("link:") and one.tunable.endswith(":mtu"):
        return name.startswith("link:") and attribute == "mtu"
    kind = one.tunable.partition(":")[0]
    own = one.tunable.rpartition(":")[0] if kind in ("link", "block") else kind
    return device == own or device.startswith(f"{own}:")
