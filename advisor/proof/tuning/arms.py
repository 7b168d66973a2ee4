"""What a search measures its arms by: a command of the user's own, or a pattern of fio on a scratch file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.facts.host_facts import Facts
from advisor.host import Host, Missing
from advisor.planning.records import Change, Plan
from advisor.profiles.profile import ProofDeclaration
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof.command_runner import CommandProcess
from advisor.proof.fio import read_version
from advisor.proof.measurer import Measurer
from advisor.proof.metrics import METRICS, Metric
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.process import Stop
from advisor.proof.profile import check_unchanged, ground_for, ground_for_command, plan_arm, settings_of
from advisor.proof.relevance import class_of, require_visible
from advisor.proof.schedule import MODES, Schedule, looks_for
from advisor.proof.session import PLACE_SECONDS, chosen_mode, lay_out_runs
from advisor.proof.session_runner import Settings
from advisor.proof.tuning.records import LeftOutCandidate, TuneCandidate, TunePattern, TuneSession
from advisor.proof.workloads import command_pattern, get_workload
from advisor.transaction.journal import Store
from advisor.transaction.trial import Trial, run_trial

MAX_BLOCKS = 24
"""Of a race."""


class RaceLoad:
    """A command, ready to run, or a pattern; the other one is None."""

    def __init__(
        self, host: Host, *, process: CommandProcess | None = None, pattern: TunePattern | None = None
    ) -> None:
        self.process = process
        self.pattern = pattern
        self._host = host
        self._settings = Settings()
        self._measurer: Measurer | None = None
        if process is not None:
            self._workload, self.claims = command_pattern(process.command), (COMMAND_WORKLOAD,)
            self._ground = ground_for_command(process)
            return
        assert pattern is not None
        self._workload, self.claims = get_workload(pattern.workload), (pattern.workload,)
        if self._workload.is_network:
            raise UsageError(
                f"--workload {pattern.workload}: the network is measured by a command of yours",
                hint="--command 'iperf3 -c HOST -t 5 -J' --metric json:.end.sum_received.bits_per_second",
            )
        self._settings = self.complete(self._settings)
        self._ground = ground_for(host, self._settings)

    @property
    def command(self) -> OwnCommand | None:
        """The command as it is recorded."""
        return None if self.process is None else self.process.command

    def require_shown(self, host: Host, plan: Plan, proof: ProofDeclaration) -> None:
        """Raise RefusedError where a run would show nothing of the plan."""
        late = [one for one in plan.changes if class_of(one) == "T1"]
        # A run of a command opens sockets of its own; what acts on mounts or sessions would be unseen.
        stale = [one for one in late if self.process is None or not one.tunable.startswith("sysctl:net.")]
        if stale or (proof.toggle == "T1" and not (late and self.process is not None)):
            raise RefusedError("acts on new sessions or mounts only, and a search does not make them")
        if self.process is None and proof.place_fio:
            raise RefusedError("moves fio to a node, which advisor prove measures")
        if self.process is None:
            require_visible(host, plan, self._ground.target, [self._workload])

    def _schedule(self, pairs: int, arms: int, run_seconds: float | None = None) -> Schedule:
        mode, looks = chosen_mode(self._settings), looks_for(pairs, MODES["default"])
        return lay_out_runs(
            msgspec.structs.replace(mode, pairs=pairs, looks=looks),
            [self._workload],
            self._settings,
            self._ground.target,
            run_seconds=run_seconds,
            place_seconds=PLACE_SECONDS if run_seconds is None else 0.0,
            arms=arms,
        )

    def try_out(self, stop: Stop) -> float:
        """One run before anything is changed: its wall seconds."""
        if self.process is not None:
            return self.process.try_out(stop)
        read_version(self._ground.runner, stop)
        with self.hold(1, stop):
            return self.run(stop)[1]

    @contextlib.contextmanager
    def hold(self, arms: int, stop: Stop) -> Iterator[None]:
        """What the runs of ``arms`` arms need, and no longer than they do."""
        schedule = self._schedule(MAX_BLOCKS, arms)
        target, runner = self._ground.target, self._ground.runner
        self._measurer = Measurer(self._host, target, schedule, self._settings.keep, runner, stop)
        try:
            self._measurer.make_scratch()
            yield
        finally:
            self._measurer.remove_scratch()
            self._measurer = None

    def run(self, stop: Stop) -> tuple[Mapping[str, float], float]:
        """One run: its figures by the names of the metrics, the first of which judges, and its wall seconds."""
        assert self._measurer is not None, "a run outside of hold"
        began = time.monotonic()
        figures = self._measurer.run("A", self._workload, chosen_mode(self._settings).seconds).figures
        own = {} if self.pattern is None else {self.pattern.metric.name: figures.value(self.pattern.metric.name)}
        return {**figures.measures, **own}, time.monotonic() - began

    def confirmation_seconds(self, turn: float, pairs: int) -> float:
        """What a confirmation of so many pairs takes, where a run with its switch takes ``turn``."""
        if self.process is None:
            return self._schedule(pairs, 2).predicted_seconds
        return turn + self._schedule(pairs, 2, turn).predicted_seconds

    def complete(self, settings: Settings) -> Settings:
        """The settings of a proof with what the load is."""
        if self.pattern is None:
            return settings
        return msgspec.structs.replace(
            settings,
            target=self.pattern.target,
            seconds=self.pattern.seconds,
            scratch_bytes=self.pattern.scratch_bytes,
            byte_budget=self.pattern.byte_budget,
        )


def metric_of(session: TuneSession) -> Metric:
    """What a search is judged by."""
    if session.pattern is not None:
        return session.pattern.metric
    assert session.command is not None
    return session.command.metrics[0].described


def pattern_metric(workload: str) -> Metric:
    """What a workload of fio is judged by. Raises as `advisor.proof.workloads.get_workload`."""
    return METRICS[get_workload(workload).metric]


# What a search races: candidates as plans of this host, those that cannot be raced left out with the reason, and the
# switch that makes one of them active at a time under the transaction journal.


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
