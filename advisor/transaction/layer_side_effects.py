"""What moved along with a transaction (queues, rings, the MTU of stacked links, addresses, routes) while later ones are
in force: which of it goes back with this one, which with a later one, and what of a later one is to stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from advisor.planning.neighbours import with_lost
from advisor.planning.records import Bystander, Change
from advisor.transaction.journal import Record
from advisor.transaction.layer_ownership import Later, beside, moves, values_of
from advisor.tunables.sysctl_group import can_move, disables_ipv6, is_moved, twin_of

_replace = msgspec.structs.replace
_WHOLE = (":irqs", ":rss")
"""What belongs to one number of channels and means nothing under another."""


class LayerSideEffects(msgspec.Struct, frozen=True):
    """What there is to be done beside the changes of a transaction that is put back.

    ``bystanders`` go back with them, ``after`` are their values while they were in force, as far as those count.
    ``given`` are to be had back at once if they can be, as what took them is a later one's now; each with the value
    that it was left at.
    """

    bystanders: tuple[Bystander, ...]
    after: Mapping[str, str]
    given: tuple[tuple[Bystander, str | None], ...] = ()


def put_beside(
    record: Record, later: Later, changes: Collection[Change], receivers: Mapping[str, str], *, again: bool
) -> LayerSideEffects:
    """Hand over to the later transactions what is theirs to put back from now on; the rest is the answer.

    ``changes`` are those that this transaction puts back itself, ``receivers`` the ids of the later ones that hold the
    others, by tunable. ``again``: an earlier attempt may have ended half-way, so that what is live tells nothing.
    """
    bystanders: list[Bystander] = []
    given: list[tuple[Bystander, str | None]] = []
    after = dict(record.bystanders_after)
    for one in record.plan.bystanders:
        was = record.bystanders_after.get(one.tunable)
        is_own = hangs_on(one, changes)
        is_passed = _hand_over(one, was, later, receivers, is_own=is_own)
        top, is_moved = _top(one.tunable, later)
        if is_own and top is not None:
            bystanders.append(_standing(one, top, again=again))
            if not one.resets:
                after[one.tunable] = top.after
                if again:
                    del after[one.tunable]
        elif is_own and not is_moved:
            bystanders.append(one)
        elif not (is_own or is_passed or one.resets or one.coupled) and _is_moved(one, was):
            given.append((one, was))
    return LayerSideEffects(tuple(bystanders), after, tuple(given))


def _is_moved(one: Bystander, was: str | None) -> bool:
    return was != one.before and (one.keeps or was is not None)


def _standing(one: Bystander, top: Change, *, again: bool) -> Bystander:
    """A value that a later transaction has set, to be set again should it move when the change goes back."""
    keeps = not (one.resets or one.coupled or again)
    return _replace(one, before=top.after, undo=top.steps, keeps=keeps)


def _top(name: str, later: Later) -> tuple[Change | None, bool]:
    """The later transaction's change that is in force; and whether the last word is what something else made of it."""
    for upper in reversed(later.records):
        if name in values_of(upper):
            return values_of(upper)[name], False
        if moves(upper, name):
            return None, True
    return None, False


def _hand_over(one: Bystander, was: str | None, later: Later, receivers: Mapping[str, str], *, is_own: bool) -> bool:
    """Tell the later transactions what there was before this one; whether one of them has set or moved it since."""
    receiver = None if is_own else _receiver(one, receivers)
    # To restore it at once would zero what the later one has set.
    is_twin = twin_of(one.tunable.removeprefix("sysctl:")) is not None
    for upper in later.records:
        name, theirs = one.tunable, beside(upper).get(one.tunable)
        above = values_of(upper).get(name)
        if above is not None and (above.before == was or _is_unseen(one, was)) and one.undo:
            later.set_value(upper.id, _replace(above, before=one.before, undo=one.undo))
        if theirs is None and above is None and (upper.id == receiver or _is_lost_to(one, was, upper)):
            later.set_beside(upper.id, one, one.before if is_own else None)
        elif theirs is not None and one.keeps:
            _merge(one, was, later, upper, is_own=is_own)
        elif theirs is not None:
            _replace_before(one, was, later, upper, is_own=is_own)
        is_theirs = (one.resets or is_twin) and upper.id == receiver
        if above is not None or is_theirs or (theirs is not None and moves(upper, name)):
            return True
    return False


def _is_unseen(one: Bystander, was: str | None) -> bool:
    """Whether nobody read what its channels had left of a queue: it had been handed over from a layer below, before
    which it was there. Whatever the next one found of it is then the driver's."""
    return one.resets and was is None


def _replace_before(one: Bystander, was: str | None, later: Later, upper: Record, *, is_own: bool) -> None:
    theirs = beside(upper)[one.tunable]
    if theirs.before != was and not _is_unseen(one, was) and not one.tunable.endswith(_WHOLE):
        return
    after = upper.bystanders_after.get(one.tunable)
    if not moves(upper, one.tunable):
        after = one.before if is_own else None
    later.set_beside(upper.id, _replace(theirs, before=one.before, undo=one.undo), after)


def _merge(one: Bystander, was: str | None, later: Later, upper: Record, *, is_own: bool) -> None:
    """Addresses and routes that this one took stand beside those that the later one found."""
    theirs = beside(upper)[one.tunable]
    merged = with_lost(theirs, one, was)
    if merged != theirs:
        after = upper.bystanders_after.get(one.tunable)
        later.set_beside(upper.id, merged, merged.before if is_own and after == theirs.before else None)


def _is_lost_to(one: Bystander, was: str | None, upper: Record) -> bool:
    """Whether a later transaction keeps what a link has, and could not see this, as it was gone by then."""
    link = f"{one.tunable.rpartition(':')[0]}:"
    return (
        one.keeps
        and was != one.before
        and any(other.keeps and name.startswith(link) for name, other in beside(upper).items())
    )


def _receiver(one: Bystander, receivers: Mapping[str, str]) -> str | None:
    """The later transaction that holds what took it along."""
    causes = [identity for name, identity in sorted(receivers.items()) if _takes_along(name, one)]
    return causes[0] if causes else None


def hangs_on(one: Bystander, changes: Iterable[Change]) -> bool:
    """Whether one of the changes is what takes it along."""
    if one.coupled:
        return is_moved(one.tunable, [change.tunable for change in changes])
    if one.keeps:
        return any(change.risk == "link" or _takes_along(change.tunable, one) for change in changes)
    return any(_takes_along(change.tunable, one) for change in changes)


def _takes_along(name: str, one: Bystander) -> bool:
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
