"""What moved along with a change, put back after it: the MTU of a stacked link, addresses and routes that a link lost,
and what hangs on the queues of a link.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from advisor.errors import CommandError
from advisor.host import Host, Missing, ReadFile, observe
from advisor.i18n import N_, msg
from advisor.planning.records import Bystander, Plan
from advisor.shell.rollback_script import commands_by_hand, hand_command
from advisor.tunables.sysctl_group import twin_of

_SHOWN: Final = 80
_NOT_BACK: Final = ("kept", "failed")


class ItemOutcome(msgspec.Struct, frozen=True):
    """What became of one item of a rollback. ``by_hand`` is the command that would put it back. *passed*: a later
    transaction in force holds it, and it goes back with that one."""

    what: str
    state: Literal["restored", "already", "passed", "kept", "failed"]
    detail: str
    by_hand: str | None = None

    @property
    def is_back(self) -> bool:
        return self.state in ("restored", "already", "passed")


Standing = Mapping[str, str | Missing]
"""Values just before anything is put back, by tunable."""


def standing_of(host: Host, bystanders: Iterable[Bystander]) -> Standing:
    """To be asked before the first change is put back."""
    return {one.tunable: observe(host, one.probe) for one in bystanders if not one.coupled}


def restore_surroundings(
    host: Host,
    plan: Plan,
    outcomes: Iterable[ItemOutcome],
    after: Mapping[str, str],
    standing: Standing,
    *,
    force: bool,
) -> list[ItemOutcome]:
    """Put back what is not as it was. ``outcomes`` are those of the changes; ``after`` are the values once all of them
    were in force, as far as they are known. What is as it was is not among the result; `restore_lost` comes later, for
    what a link has lost."""
    states = {one.what: one.state for one in outcomes}
    found: list[ItemOutcome | None] = []
    for one in plan.bystanders:
        if one.coupled or one.keeps:
            continue
        before_undo = standing[one.tunable]
        if not one.resets and states.get(f"sysctl:{twin_of(one.tunable.removeprefix('sysctl:'))}") in _NOT_BACK:
            # To write it would zero its twin.
            continue
        if not one.resets:
            found.append(_restore_moved(host, one, after.get(one.tunable), before_undo, force=force))
        elif not (channels := _channels(plan, one, states)) & {"kept", "failed"}:
            known = after.get(one.tunable) if "restored" in channels and not force else None
            found.append(_restore_reset(host, one, known, before_undo))
    return [one for one in found if one is not None]


def restore_lost(host: Host, plan: Plan, after: Mapping[str, str], standing: Standing) -> list[ItemOutcome]:
    """Restore addresses and routes that a link has lost with the changes or with their rollback; last of all, as
    settings of the link can take them, too."""
    kept = (one for one in plan.bystanders if one.keeps)
    found = (_restore_kept(host, one, after.get(one.tunable), standing[one.tunable]) for one in kept)
    return [one for one in found if one is not None]


def give_back(host: Host, given: Iterable[tuple[Bystander, str | None]]) -> list[ItemOutcome]:
    """Put back what can be had again now; each comes with the value that it was left at.

    What cannot be had (IPv6 below 1280 bytes of MTU) comes back with the later transaction that was told of it.
    """
    found: list[ItemOutcome] = []
    for one, left in given:
        live = observe(host, one.probe)
        if isinstance(live, str) and live != one.before and (one.keeps or live == left):
            outcome = _undone(host, one, live)
            if outcome.state == "restored" and observe(host, one.probe) == one.before:
                found.append(outcome)
    return found


def _channels(plan: Plan, one: Bystander, states: Mapping[str, str]) -> set[str]:
    """What became of the numbers of channels that it hangs on. Where they stay, it stays with them."""
    beginning = f"{one.tunable.rpartition(':')[0]}:channels."
    return {states[change.tunable] for change in plan.changes if change.tunable.startswith(beginning)}


def _restore_moved(
    host: Host, one: Bystander, after: str | None, standing: str | Missing, *, force: bool
) -> ItemOutcome | None:
    """None where it is as it was. One that moved with the change is restored; one that was modified externally is left.

    ``after`` is its value once the change was in force (None where that is not known), ``standing`` the one just before
    the change was put back.
    """
    live = observe(host, one.probe)
    if isinstance(live, Missing) or live == one.before:
        return None
    if after and live not in (after, standing):
        # The kernel has just set it to something else by itself: a bridge follows its ports.
        return None
    if after and standing != after and not force:
        return ItemOutcome(one.tunable, "kept", msg("modified externally ({value})", value=_short(live)), _by_hand(one))
    return _undone(host, one, live)


def _restore_kept(host: Host, one: Bystander, after: str | None, standing: str | Missing) -> ItemOutcome | None:
    """None where it is as it was, or was as it was once the change was active: then it was modified externally."""
    live = observe(host, one.probe)
    if isinstance(live, Missing) or live == one.before or (live == standing and after == one.before):
        return None
    return _undone(host, one, live)


def _by_hand(one: Bystander) -> str | None:
    return "; ".join(hand_command(step) for step in one.undo) or None


def _restore_reset(host: Host, one: Bystander, after: str | None, standing: str | Missing) -> ItemOutcome | None:
    """None where it is as it was. What going back has set anew is put back, and read back.

    ``after`` is None where the number of channels was back before: an earlier attempt may have ended in between, and
    what it reads is the driver's.
    """
    live = observe(host, one.probe)
    by_hand = _by_hand(one)
    if live == one.before:
        return None
    if isinstance(live, Missing):
        # A queue goes with the channels, which speak for themselves.
        gone = ItemOutcome(one.tunable, "failed", msg("cannot be read: {why}", why=live.why), by_hand)
        return None if isinstance(one.probe, ReadFile) else gone
    if after and standing != after and live == standing:
        return ItemOutcome(one.tunable, "kept", msg("modified externally ({value})", value=_short(live)), by_hand)
    if not one.undo:
        return ItemOutcome(
            one.tunable,
            "failed",
            msg("was {short}, which no command can set; is {short_2}", short=_short(one.before), short_2=_short(live)),
        )
    outcome = _undone(host, one, live)
    if outcome.state == "restored" and observe(host, one.probe) != one.before:
        return ItemOutcome(one.tunable, "failed", N_("written, but reads otherwise"), by_hand)
    return outcome


def _undone(host: Host, one: Bystander, live: str) -> ItemOutcome:
    try:
        for step in one.undo:
            host.do(step)
    except CommandError as error:
        return ItemOutcome(one.tunable, "failed", error.message, commands_by_hand(host, one.undo))
    return ItemOutcome(
        one.tunable,
        "restored",
        msg("side effect reversed: {live} -> {before}", live=_short(live), before=_short(one.before)),
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
