"""Sysctls that the kernel changes together: restored as a group, since setting one of them can change another.

After each write the whole group is read again, until nothing of it differs or it is clear that it will not settle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from advisor.errors import CommandError
from advisor.host import Host, Missing, Probe, ReadFile, Step, WriteFile, observe
from advisor.planning.records import Change, Plan
from advisor.shell.rollback_script import coupled_changes, hand_command
from advisor.transaction.side_effects import ItemOutcome
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl_group import can_be_moved, can_move, coupled_among, restore_rank

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
