"""What a search races: candidates as plans of this host, those that cannot be raced left out with the reason, and the
switch that makes one of them active at a time under the transaction journal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.errors import AdvisorError, RefusedError
from advisor.facts.host_facts import Facts
from advisor.host import Host, Missing
from advisor.planning.records import Change, Plan
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof.profile import check_unchanged, plan_arm, settings_of
from advisor.proof.tuning_load import RaceLoad
from advisor.proof.tuning_records import LeftOutCandidate, TuneCandidate
from advisor.transaction.journal import Store
from advisor.transaction.trial import Trial, run_trial


class Offer(msgspec.Struct, frozen=True):
    """A candidate before it is planned here: what asks for it, and the source that it is taken from. ``settings`` are
    parameters of its profile."""

    name: str
    asked: RequestedProfile
    source: str
    settings: tuple[tuple[str, str], ...] = ()


class Candidates(msgspec.Struct, frozen=True):
    """What may be raced, and what cannot be, with the reason."""

    offers: tuple[Offer, ...]
    left_out: tuple[LeftOutCandidate, ...] = ()


class RaceArm(msgspec.Struct, frozen=True):
    """A candidate with its plan on this host, and the seconds that it settles for."""

    candidate: TuneCandidate
    asked: RequestedProfile
    plan: Plan
    settle_seconds: float


def plan_offers(
    host: Host, offers: Iterable[Offer], facts: Facts, store: Store, load: RaceLoad
) -> tuple[tuple[RaceArm, ...], tuple[LeftOutCandidate, ...]]:
    """The offers that can be raced here by ``load``, and the others with the reason. Changes nothing."""
    arms: list[RaceArm] = []
    left: list[LeftOutCandidate] = []
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for offer in offers:
        try:
            arm = _plan_offer(host, offer, facts, store, load)
        except AdvisorError as error:
            left.append(LeftOutCandidate(offer.name, offer.source, error.message))
            continue
        values = tuple(sorted((one.tunable, one.after) for one in arm.plan.changes))
        if values in seen:
            reason = f"sets the same values as {seen[values]}"
            left.append(LeftOutCandidate(offer.name, offer.source, reason))
            continue
        seen[values] = offer.name
        arms.append(arm)
    return tuple(arms), tuple(left)


def _plan_offer(host: Host, offer: Offer, facts: Facts, store: Store, load: RaceLoad) -> RaceArm:
    """Raises AdvisorError where it cannot be raced."""
    arm = plan_arm(host, offer.asked, dict(offer.settings), facts, store)
    profile, plan = offer.asked.profile, arm.plan
    match arm.toggle_class:
        case "T3":
            raise RefusedError("needs a reboot or a rebuild: it cannot be switched between two runs")
        case "T2":
            raise RefusedError("interrupts a link each time it is switched")
        case _:
            load.require_shown(host, plan, arm.declared)
    candidate = TuneCandidate(
        name=offer.name,
        words=offer.asked.words,
        source=offer.source,
        sources=profile.sources,
        values=settings_of(plan),
        why=profile.summary,
        hurts_when=profile.hurts_when,
        settings=offer.settings,
    )
    return RaceArm(candidate, offer.asked, plan, arm.settle_seconds)


def reduce_arm(arm: RaceArm, kept: Sequence[str]) -> RaceArm:
    """The same with these tunables alone, each asked for as a value."""
    plan = msgspec.structs.replace(arm.plan, changes=tuple(one for one in arm.plan.changes if one.tunable in kept))
    words = [f"{one.tunable}={one.after}" for one in plan.changes]
    candidate = msgspec.structs.replace(
        arm.candidate,
        name=f"{arm.candidate.name} (reduced)",
        words=tuple(words),
        values=tuple(one for one in arm.candidate.values if one.tunable in kept),
        settings=(),
    )
    asked = load_one(words, only_trusted=True)
    # It is measured as the arm was in the race: with its settling time, path and place.
    profile = msgspec.structs.replace(asked.profile, proof=arm.asked.profile.proof)
    return msgspec.structs.replace(
        arm, candidate=candidate, asked=msgspec.structs.replace(asked, profile=profile), plan=plan
    )


class _Group(msgspec.Struct):
    """Arms that one transaction can hold. ``varied`` is the tunable of which they set different values."""

    plan: Plan
    arms: list[str]
    varied: str | None = None

    def add_arm(self, name: str, plan: Plan) -> bool:
        """Whether the arm is part of the group now: after a crash one tunable alone may have another value than the
        transaction's."""
        varied = {one.tunable for one in _variants(self.plan, plan)} | ({self.varied} if self.varied else set())
        if len(varied) > 1:
            return False
        self.plan = _add_plan(self.plan, plan)
        self.varied = next(iter(varied), None)
        self.arms.append(name)
        return True


def _variants(union: Plan, plan: Plan) -> list[Change]:
    """The changes of a plan that set another value than the union does."""
    after = {one.tunable: one.after for one in union.changes}
    return [one for one in plan.changes if after.get(one.tunable, one.after) != one.after]


def _add_plan(union: Plan, plan: Plan) -> Plan:
    known = {one.tunable for one in union.changes}
    moved = {one.tunable for one in union.side_effects}
    marks = {one.name for one in union.links}
    return msgspec.structs.replace(
        union,
        profiles=tuple(dict.fromkeys((*union.profiles, *plan.profiles))),
        changes=(*union.changes, *(one for one in plan.changes if one.tunable not in known)),
        side_effects=(*union.side_effects, *(one for one in plan.side_effects if one.tunable not in moved)),
        links=(*union.links, *(one for one in plan.links if one.name not in marks)),
        words=(),
    )


def group_plans(plans: Mapping[str, Plan]) -> list[_Group]:
    """The plans in as few transactions as there may be."""
    groups: list[_Group] = []
    for name, plan in plans.items():
        if not any(one.add_arm(name, plan) for one in groups):
            groups.append(_Group(plan, [name]))
    return groups


class CandidateSwitch:
    """Makes one candidate active at a time; every value of the one before is restored and read back first. The
    transaction of a group is open as long as arms of that group run."""

    def __init__(self, host: Host, arms: Sequence[RaceArm], store: Store) -> None:
        self._host = host
        self._store = store
        self._plans = {one.candidate.name: one.plan for one in arms}
        self._groups = group_plans(self._plans)
        self._open: tuple[_Group, Trial, contextlib.ExitStack] | None = None
        self._placed: Mapping[str, str | Missing] = {}
        self._is_placed = False

    @contextlib.contextmanager
    def hold(self) -> Iterator[CandidateSwitch]:
        """However the block ends, every value is restored. Raises NotRestoredError."""
        try:
            yield self
        finally:
            self._close()

    def _close(self) -> None:
        if self._open is None:
            return
        _, running, stack = self._open
        self._open = None
        varied = running.pending if self._is_placed else None
        if varied is not None and running.observe_values()[varied] != self._placed[varied]:
            # Of a variant the trial would restore any value: one that somebody else has set is not its own.
            running.pending = None
        self._is_placed = False
        stack.close()

    def _open_group(self, group: _Group) -> Trial:
        if self._open is not None and self._open[0] is group:
            return self._open[1]
        self._close()
        stack = contextlib.ExitStack()
        running = stack.enter_context(run_trial(self._host, group.plan, self._store, varied=group.varied))
        self._open = (group, running, stack)
        return running

    def place(self, name: str | None) -> None:
        """Restore the values of the arm before, then set those of a candidate; None is the present state. Raises
        CommandError, also where a value was modified externally since the last arm."""
        if self._open is not None:
            running = self._open[1]
            if self._is_placed:
                check_unchanged(self._placed, running)
            self._is_placed = False
            running.restore_values()
        if name is None:
            # Also a run of the present state is one under the journal and the watchdog.
            running = self._open[1] if self._open is not None else self._open_group(self._groups[0])
        else:
            group = next(one for one in self._groups if name in one.arms)
            running = self._open_group(group)
            plan = self._plans[name]
            variants = _variants(group.plan, plan)
            running.set_values(frozenset(one.tunable for one in plan.changes) - {one.tunable for one in variants})
            for one in variants:
                running.set_variant(one)
        self._placed = running.observe_values()
        self._is_placed = True
