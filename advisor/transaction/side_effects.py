"""Restore the side effects of changes: the MTU of a stacked link, addresses and routes that a link lost, and the
settings of a link's queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from advisor.errors import CommandError
from advisor.host import Host, Missing, ReadFile, observe
from advisor.planning.records import Plan
from advisor.shell.rollback_script import commands_by_hand, hand_command
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl_group import twin_of

_SHOWN = 80
_NOT_BACK = ("kept", "failed")


class ItemOutcome(msgspec.Struct, frozen=True):
    """The result of a rollback for one item. ``by_hand`` is the command that would restore it. *passed*: an upper layer
    holds it, and its rollback restores it."""

    what: str
    state: Literal["restored", "already", "passed", "kept", "failed"]
    detail: str
    by_hand: str | None = None

    @property
    def is_back(self) -> bool:
        return self.state in ("restored", "already", "passed")


LiveValues = Mapping[str, str | Missing]
"""Values just before the rollback, by tunable."""


def read_side_effects(host: Host, side_effects: Iterable[SideEffect]) -> LiveValues:
    """The values of side effects; read before the first change is rolled back."""
    return {one.tunable: observe(host, one.probe) for one in side_effects if not one.coupled}


def restore_side_effects(
    host: Host,
    plan: Plan,
    outcomes: Iterable[ItemOutcome],
    after: Mapping[str, str],
    standing: LiveValues,
    *,
    force: bool,
) -> list[ItemOutcome]:
    """Restore the side effects that differ from before. ``outcomes`` are those of the changes; ``after`` are the values
    once all of them were active, as far as they are known. What does not differ is not in the result. `restore_lost`
    follows for what a link has lost."""
    states = {one.what: one.state for one in outcomes}
    found: list[ItemOutcome | None] = []
    for one in plan.side_effects:
        if one.coupled or one.keeps:
            continue
        before_undo = standing[one.tunable]
        if not one.resets and states.get(f"sysctl:{twin_of(one.tunable.removeprefix('sysctl:'))}") in _NOT_BACK:
            # A write would zero its twin.
            continue
        if not one.resets:
            found.append(_restore_moved(host, one, after.get(one.tunable), before_undo, force=force))
        elif not (channels := _channel_states(plan, one, states)) & {"kept", "failed"}:
            known = after.get(one.tunable) if "restored" in channels and not force else None
            found.append(_restore_reset(host, one, known, before_undo))
    return [one for one in found if one is not None]


def restore_lost(host: Host, plan: Plan, after: Mapping[str, str], standing: LiveValues) -> list[ItemOutcome]:
    """Restore addresses and routes that a link has lost with the changes or with their rollback; last of all, as
    settings of the link can take them, too."""
    kept = (one for one in plan.side_effects if one.keeps)
    found = (_restore_kept(host, one, after.get(one.tunable), standing[one.tunable]) for one in kept)
    return [one for one in found if one is not None]


def restore_released(host: Host, given: Iterable[tuple[SideEffect, str | None]]) -> list[ItemOutcome]:
    """Restore what can be restored now; each item comes with the value that it was left at.

    What cannot be restored yet (IPv6 below 1280 bytes of MTU) is restored with the upper layer that it was passed to.
    """
    found: list[ItemOutcome] = []
    for one, left in given:
        live = observe(host, one.probe)
        if isinstance(live, str) and live != one.before and (one.keeps or live == left):
            outcome = _undo_side_effect(host, one, live)
            if outcome.state == "restored" and observe(host, one.probe) == one.before:
                found.append(outcome)
    return found


def _channel_states(plan: Plan, one: SideEffect, states: Mapping[str, str]) -> set[str]:
    """Outcomes of the numbers of channels that a side effect depends on. Where they stay, it stays with them."""
    beginning = f"{one.tunable.rpartition(':')[0]}:channels."
    return {states[change.tunable] for change in plan.changes if change.tunable.startswith(beginning)}


def _restore_moved(
    host: Host, one: SideEffect, after: str | None, standing: str | Missing, *, force: bool
) -> ItemOutcome | None:
    """None where it does not differ. A side effect of the change is restored; an external modification is skipped.

    ``after`` is its value once the change was active (None where that is not known), ``standing`` the one just before
    the rollback of the change.
    """
    live = observe(host, one.probe)
    if isinstance(live, Missing) or live == one.before:
        return None
    if after and live not in (after, standing):
        # The kernel has just set it to something else by itself: a bridge follows its ports.
        return None
    if after and standing != after and not force:
        return ItemOutcome(one.tunable, "kept", f"modified externally ({_shorten(live)})", _by_hand(one))
    return _undo_side_effect(host, one, live)


def _restore_kept(host: Host, one: SideEffect, after: str | None, standing: str | Missing) -> ItemOutcome | None:
    """None where it does not differ, or did not while the change was active: then it was modified externally."""
    live = observe(host, one.probe)
    if isinstance(live, Missing) or live == one.before or (live == standing and after == one.before):
        return None
    return _undo_side_effect(host, one, live)


def _by_hand(one: SideEffect) -> str | None:
    return "; ".join(hand_command(step) for step in one.undo) or None


def _restore_reset(host: Host, one: SideEffect, after: str | None, standing: str | Missing) -> ItemOutcome | None:
    """None where it does not differ. What the rollback has reset is restored and read back.

    ``after`` is None where the number of channels was restored before: an earlier attempt may have ended in between,
    and the value is the driver's.
    """
    live = observe(host, one.probe)
    by_hand = _by_hand(one)
    if live == one.before:
        return None
    if isinstance(live, Missing):
        # A queue is removed with its channels, which have an outcome of their own.
        gone = ItemOutcome(one.tunable, "failed", f"cannot be read: {live.why}", by_hand)
        return None if isinstance(one.probe, ReadFile) else gone
    if after and standing != after and live == standing:
        return ItemOutcome(one.tunable, "kept", f"modified externally ({_shorten(live)})", by_hand)
    if not one.undo:
        return ItemOutcome(
            one.tunable, "failed", f"was {_shorten(one.before)}, which no command can set; is {_shorten(live)}"
        )
    outcome = _undo_side_effect(host, one, live)
    if outcome.state == "restored" and observe(host, one.probe) != one.before:
        return ItemOutcome(one.tunable, "failed", "written, but reads otherwise", by_hand)
    return outcome


def _undo_side_effect(host: Host, one: SideEffect, live: str) -> ItemOutcome:
    try:
        for step in one.undo:
            host.do(step)
    except CommandError as error:
        return ItemOutcome(one.tunable, "failed", error.message, commands_by_hand(host, one.undo))
    return ItemOutcome(one.tunable, "restored", f"side effect reversed: {_shorten(live)} -> {_shorten(one.before)}")


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
