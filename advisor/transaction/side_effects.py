"""Restore the side effects of changes: the MTU of a stacked link, addresses and routes that a link lost, and the
settings of a link's queues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeVar

import msgspec

from advisor.errors import CommandError
from advisor.host import Host, Missing, Probe, ReadFile, Step, WriteFile, observe
from advisor.planning.records import Change, Plan
from advisor.shell.rollback_script import commands_by_hand, coupled_changes, hand_command
from advisor.tunables.link_persist import renamed_probe, renamed_step
from advisor.tunables.preflight import LinkMark, LostLink, SideEffect, link_of, place_of
from advisor.tunables.sysctl_group import can_be_moved, can_move, coupled_among, restore_rank, twin_of

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


# Sysctls that the kernel changes together: restored as a group, since setting one of them can change another.

ROUNDS = 4
"""How often a group is written before it counts as one that does not settle."""


class _Wanted(msgspec.Struct, frozen=True):
    """What one tunable is to read at the end, and the steps for it."""

    name: str
    probe: Probe
    value: str
    steps: tuple[Step, ...]


class Coupled:
    """The values of a plan that setting others of it can change, as they read before the rollback."""

    def __init__(self, host: Host, plan: Plan) -> None:
        self._host = host
        self._changes = {one.tunable: one for one in coupled_changes(plan)}
        self._side_effects = [one for one in plan.side_effects if one.coupled]
        probes = [(one.tunable, one.probe) for one in self._changes.values()]
        probes += [(one.tunable, one.probe) for one in self._side_effects]
        self._standing = {name: observe(host, probe) for name, probe in probes}

    def is_own(self, change: Change, done: Iterable[str], announced: Iterable[str] | None) -> bool:
        """Whether a value is the transaction's although it reads otherwise now: the rollback of another one of it,
        which is among ``done``, can have changed it. So can one of those ``announced`` before a transaction was cut
        off; nobody has set again by then what that one had changed."""
        if change.tunable not in self._changes:
            return False
        if announced is not None and can_be_moved(change.tunable, announced):
            return True
        was_own = self._standing[change.tunable] == change.after
        return was_own and any(can_move(name, change.tunable) for name in done)

    def restore_group(
        self, outcomes: Collection[ItemOutcome], after: Mapping[str, str], *, force: bool
    ) -> list[ItemOutcome]:
        """Restore the group once the changes are rolled back, and whatever of them that has changed again.

        ``outcomes`` are those of the changes, ``after`` the values of the others once the plan was applied, as far as
        they are known. What was modified externally since is restored to that. The result has what is not among
        ``outcomes`` yet, or failed now.
        """
        states = {one.what: one.state for one in outcomes}
        wanted = [
            _Wanted(one.tunable, one.probe, value, _make_steps(one, one.undo, value))
            for one in self._changes.values()
            if (value := self._value_of(one, states.get(one.tunable))) is not None
        ]
        found: list[ItemOutcome] = []
        for one in self._side_effects:
            value = self._choose_target(one, after.get(one.tunable), force=force)
            wanted.append(_Wanted(one.tunable, one.probe, value, _make_steps(one, one.undo, value)))
            if value != one.before:
                by_hand = "; ".join(hand_command(step) for step in one.undo)
                found.append(ItemOutcome(one.tunable, "kept", f"modified externally ({value})", by_hand))
        written = settle_group(self._host, wanted)
        for each in wanted:
            live = observe(self._host, each.probe)
            if isinstance(live, Missing):
                # It goes with its link, and what cannot be read of a change is reported with that.
                continue
            if live != each.value:
                by_hand = "; ".join(hand_command(step) for step in each.steps)
                why = written.get(each.name) or f"written, but reads {live}"
                found.append(ItemOutcome(each.name, "failed", why, by_hand))
            elif each.name in written and each.name not in {*states, *(one.what for one in found)}:
                found.append(ItemOutcome(each.name, "restored", f"side effect reversed: {each.value}"))
        return found

    def _value_of(self, change: Change, state: str | None) -> str | None:
        """What a change is to read at the end; None where that is not known."""
        if state in ("restored", "already"):
            return change.before
        live = self._standing[change.tunable]
        return live if state == "kept" and isinstance(live, str) else None

    def _choose_target(self, one: SideEffect, after: str | None, *, force: bool) -> str:
        standing = self._standing[one.tunable]
        is_external = isinstance(standing, str) and after is not None and standing != after
        return standing if is_external and isinstance(standing, str) and not force else one.before


def settle_changes(host: Host, changes: Iterable[Change]) -> None:
    """Set again what a later step of the same plan has changed. `read_back` checks the result."""
    among = coupled_among([one.tunable for one in changes])
    wanted = [_Wanted(one.tunable, one.probe, one.after, one.steps) for one in changes if one.tunable in among]
    settle_group(host, wanted)


def settle_group(host: Host, wanted: Collection[_Wanted]) -> Mapping[str, str]:
    """Write what differs, the wider first, until nothing does. Returns what was written, with the kernel's refusal."""
    written: dict[str, str] = {}
    ordered = sorted(wanted, key=lambda one: restore_rank(one.name.removeprefix("sysctl:")))
    for _ in range(ROUNDS):
        is_settled = True
        for one in ordered:
            live = observe(host, one.probe)
            if isinstance(live, Missing) or live == one.value:
                continue
            is_settled = False
            written[one.name] = ""
            try:
                for step in one.steps:
                    host.do(step)
            except CommandError as error:
                written[one.name] = error.message
        if is_settled:
            break
    return written


def _make_steps(one: Change | SideEffect, undo: tuple[Step, ...], value: str) -> tuple[Step, ...]:
    if value == one.before or not isinstance(one.probe, ReadFile):
        return undo
    return (WriteFile(one.probe.path, value, one.probe.identity),)


# A plan on the links that it was made for, whatever their names are now.

_Item = TypeVar("_Item", Change, SideEffect)

_replace = msgspec.structs.replace


class OwnLinks(msgspec.Struct, frozen=True):
    """``plan`` has its probes and steps at the names that its links have now, and nothing of ``lost`` ones."""

    plan: Plan
    places: Mapping[str, str]
    lost: Mapping[str, LostLink]

    def note_renames(self, outcomes: Iterable[ItemOutcome]) -> list[ItemOutcome]:
        """Outcomes, each of a renamed link with its name."""
        return [_note_rename(one, self.places.get(link_of(one.what) or "")) for one in outcomes]


def on_own_links(host: Host, plan: Plan) -> OwnLinks:
    """``plan`` on the links that it was made for."""
    found = {mark.name: place_of(host, mark) for mark in plan.links}
    lost = {name: place for name, place in found.items() if isinstance(place, LostLink)}
    places = {name: place for name, place in found.items() if isinstance(place, str)}
    if not lost and all(name == place for name, place in places.items()):
        return OwnLinks(plan, places, lost)
    moved = _replace(
        plan, changes=_on_places(plan.changes, places, lost), side_effects=_on_places(plan.side_effects, places, lost)
    )
    return OwnLinks(moved, places, lost)


def on_own_link(host: Host, links: Collection[LinkMark], one: _Item) -> _Item | LostLink:
    """One item of a plan on the link that it was made for."""
    name = link_of(one.tunable)
    mark = next((mark for mark in links if mark.name == name), None)
    if mark is None:
        return one
    place = place_of(host, mark)
    return place if isinstance(place, LostLink) else _rename_item(one, mark.name, place)


def now_named(host: Host, links: Collection[LinkMark], tunable: str) -> str:
    """`` (OLD is now named NEW)`` where the link of a tunable has another name now, else nothing."""
    places = {mark.name: place_of(host, mark) for mark in links if mark.name == link_of(tunable)}
    return "".join(f" ({old} is now named {new})" for old, new in places.items() if old != new and isinstance(new, str))


def _on_places(items: Iterable[_Item], places: Mapping[str, str], lost: Mapping[str, LostLink]) -> tuple[_Item, ...]:
    kept = ((one, link_of(one.tunable) or "") for one in items)
    return tuple(_rename_item(one, name, places.get(name, name)) for one, name in kept if name not in lost)


def _rename_item(one: _Item, old: str, new: str) -> _Item:
    if old == new:
        return one
    probe, undo = renamed_probe(one.probe, old, new), tuple(renamed_step(step, old, new) for step in one.undo)
    if isinstance(one, SideEffect):
        return _replace(one, probe=probe, undo=undo)
    return _replace(one, probe=probe, undo=undo, steps=tuple(renamed_step(step, old, new) for step in one.steps))


def _note_rename(outcome: ItemOutcome, place: str | None) -> ItemOutcome:
    """An outcome that says so where its link is named ``place`` now."""
    name = link_of(outcome.what)
    if name is None or place is None or place == name:
        return outcome
    return _replace(outcome, detail=f"{outcome.detail} ({name} is now named {place})")
