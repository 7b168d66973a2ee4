"""Several profiles as the arms of one session: ``advisor prove --arms none,P,Q``.

Every arm's live values are part of one plan and so of one transaction: one journal, one watchdog, one rollback.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, Missing
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile, load
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof import schedule as scheduling
from advisor.proof.ablation import design_words, group_changes, run_count
from advisor.proof.arms_session import ArmsRunner
from advisor.proof.blocks import NONE, Ablation, ArmsProof, ArmsSession, smallest_blocks
from advisor.proof.command_runner import CommandProcess
from advisor.proof.covariates import read_gate
from advisor.proof.fio import RunsCommand, read_version
from advisor.proof.identity import read_identity
from advisor.proof.interrupt import caught_signals
from advisor.proof.own_command import COMMAND_WORKLOAD
from advisor.proof.path import PathCheck, path_check, require_other_way_in
from advisor.proof.profile import (
    Ground,
    Means,
    check_unchanged,
    fio_node,
    ground_for,
    ground_for_command,
    live_changes,
    make_own_subject,
    measurable_claims,
    path_notes,
    reconnect_hook,
    require_changes,
)
from advisor.proof.records import ArmSetting, Claim, ProofSubject, ToggleClass
from advisor.proof.relevance import TOGGLE_CLASSES, class_of, find_unseen, require_visible, toggle_class
from advisor.proof.schedule import Schedule
from advisor.proof.scratch import require_space
from advisor.proof.session import PLACE_SECONDS, chosen_mode, layout_notes, reconnects_itself, require_measurable
from advisor.proof.session_runner import Progress, ProgressEvent, Settings, require_calm, silent
from advisor.proof.target import MeasuredTarget
from advisor.proof.workloads import Pattern, command_pattern, get_workload
from advisor.transaction.journal import Store
from advisor.transaction.requests import refuse_while_one_waits
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.trial import Trial, run_trial

MAX_ARMS = 8
BLOCKS = {"quick": 12, "default": 16, "deep": 32}


class ArmPlan(msgspec.Struct, frozen=True):
    """One profile as an arm: the live changes that it means on this host, and where fio runs under it."""

    name: str
    asked: RequestedProfile
    plan: Plan
    node: int | None = None

    @property
    def profile(self) -> Profile:
        return self.asked.profile

    @property
    def tunables(self) -> frozenset[str]:
        """The tunables that it sets."""
        return frozenset(change.tunable for change in self.plan.changes)


class PlanSwitch:
    """Makes one arm active at a time: what it leaves alone is restored first, every value read back. Where single
    values are switched the arms are the digits of `combination_digits`."""

    def __init__(
        self, running: Trial, arms: Sequence[ArmPlan], ablation: Ablation | None, paths: Mapping[str, PathCheck]
    ) -> None:
        self._running = running
        self._arms = {one.name: one for one in arms}
        self._ablation = ablation
        self._paths = paths
        self._placed: Mapping[str, str | Missing] = {}

    def _tunables(self, arm: str) -> Collection[str]:
        if arm == NONE:
            return ()
        if self._ablation is None:
            return self._arms[arm].tunables
        units = self._ablation.units.values()
        return {tunable for unit, digit in zip(units, arm, strict=True) if digit == "1" for tunable in unit}

    def place(self, arm: str) -> None:
        """Restore what the arm leaves alone, then set its values. Raises CommandError."""
        active = frozenset(self._tunables(arm))
        self._running.restore_values({one.tunable for one in self._running.changes} - active)
        self._running.set_values(active)
        self._placed = self._running.observe_values()
        interrupts = any(one.tunable in active and class_of(one) == "T2" for one in self._running.changes)
        for name, path in self._paths.items():
            path.check("B" if name == arm or (self._ablation is not None and interrupts) else "A")

    def require_unchanged(self) -> None:
        """Raise CommandError where a value is no longer what the last arm made it: it was modified externally."""
        check_unchanged(self._placed, self._running)

    def fio_options(self, arm: str) -> tuple[str, ...]:
        """fio on the node of an arm that places services."""
        node = self._arms[arm].node if arm in self._arms else None
        return () if node is None else (f"--numa_cpu_nodes={node}", f"--numa_mem_policy=bind:{node}")

    def settle_seconds(self, before: str | None, after: str) -> float:
        """The longer of what the two arms ask for; between values of one profile what that asks for."""
        switched = self._arms if self._ablation is not None else (before, after)
        return max((_settle_seconds(self._arms[one].profile) for one in switched if one in self._arms), default=0.0)


def _settle_seconds(profile: Profile) -> float:
    return profile.proof.settle_seconds if profile.proof is not None else 0.0


def parse_arms(text: str) -> tuple[str, ...]:
    """``none,P,Q`` as names, ``none`` first whether it was named or not. Raises UsageError."""
    names = [word.strip() for word in text.split(",")]
    if "" in names:
        raise UsageError(f"--arms {text}: expected profile names with commas between, found an empty name")
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise UsageError(f"--arms {text}: {doubled[0]} is named twice")
    found = (NONE, *(name for name in names if name != NONE))
    if len(found) < 2:
        raise UsageError("--arms: expected at least one profile besides none", hint="advisor profiles lists them")
    if len(found) > MAX_ARMS:
        raise UsageError(f"--arms: expected at most {MAX_ARMS} arms, found {len(found)}")
    for name in found[1:]:
        load(name)
    return found


def prove_arms(
    host: Host,
    arms: Sequence[str],
    workloads: Sequence[str],
    values: Mapping[str, str],
    settings: Settings,
    *,
    reconnect: str | None = None,
    peer: str | None = None,
    command: CommandProcess | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> ArmsProof:
    """Measure profiles against the host as it is, all in the same randomised blocks, and compare each with ``none``.

    ``arms`` are those of `parse_arms`; ``options`` are recorded, as the words that repeat the call. Raises UsageError
    and RefusedError before anything is changed, InterruptedArmsError with the partial result after a signal,
    NotRestoredError where something is not restored.
    """
    means = Means(peer, reconnect, progress, say, command)
    names = _measurable(workloads, means)
    with _locked_store(host, store, say) as kept:
        facts = scan(host)
        own = [load_one([name], only_trusted=True) for name in arms[1:]]
        planned = [
            _plan_arm(
                host,
                asked,
                {key: value for key, value in values.items() if key in asked.profile.parameters},
                settings,
                facts,
                kept,
                means,
            )
            for asked in own
        ]
        union = _join_plans(host, planned, values, facts, kept)
        return _measure_arms(host, planned, union, facts, names, settings, means, kept, options)


def prove_values(
    host: Host,
    asked: RequestedProfile,
    workloads: Sequence[str],
    values: Mapping[str, str],
    settings: Settings,
    *,
    reconnect: str | None = None,
    peer: str | None = None,
    command: CommandProcess | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> ArmsProof:
    """Measure which of a profile's values have an effect: combinations of them in randomised blocks.

    ``workloads`` replace the profile's claims. Raises as `prove_arms`.
    """
    if asked.profile.proof is not None and not workloads:
        workloads = asked.profile.proof.claims
    means = Means(peer, reconnect, progress, say, command)
    names = _measurable(workloads, means)
    with _locked_store(host, store, say) as kept:
        facts = scan(host)
        arm = _plan_arm(host, asked, values, settings, facts, kept, means, has_reboots=True)
        return _measure_arms(host, [arm], arm.plan, facts, names, settings, means, kept, options, is_ablation=True)


def measure_values(
    host: Host,
    asked: RequestedProfile,
    plan: Plan,
    facts: Facts,
    workloads: Sequence[str],
    settings: Settings,
    means: Means,
    store: Store,
    options: Sequence[str],
) -> ArmsProof:
    """`prove_values` of a plan that was made already, by who holds the lock of the store. Raises as `prove_arms`."""
    arm = ArmPlan(asked.profile.name, asked, plan)
    return _measure_arms(host, [arm], plan, facts, workloads, settings, means, store, options, is_ablation=True)


def _measurable(workloads: Sequence[str], means: Means) -> tuple[str, ...]:
    return (COMMAND_WORKLOAD,) if means.command is not None else measurable_claims(workloads)


@contextlib.contextmanager
def _locked_store(host: Host, store: Store | None, say: Callable[[str], None]) -> Iterator[Store]:
    kept = store or Store()
    with kept.hold_lock():
        refuse_while_one_waits(kept)
        for record, _ in recover_unfinished(host, kept):
            say(f"{record.id} had been interrupted and was rolled back")
        yield kept


def _plan_arm(
    host: Host,
    asked: RequestedProfile,
    values: Mapping[str, str],
    settings: Settings,
    facts: Facts,
    store: Store,
    means: Means,
    *,
    has_reboots: bool = False,
) -> ArmPlan:
    profile, name = asked.profile, asked.profile.name
    if profile.proof is None:
        raise UsageError(f"profile {name} does not say how it is proven", hint="it has no [proof] table")
    plan = live_changes(
        plan_profiles(host, [asked], values, runtime_only=True, store=store, facts=facts, foresees=False)
    )
    if not has_reboots and toggle_class(profile.proof.toggle, plan.changes) == "T3":
        raise RefusedError(f"{name}: its values need a reboot or a rebuild, so it cannot be an arm of a session")
    require_changes(plan, profile)
    node = fio_node(profile, settings, facts) if means.command is None and not has_reboots else None
    return ArmPlan(name, asked, plan, node)


def _join_plans(host: Host, arms: Sequence[ArmPlan], values: Mapping[str, str], facts: Facts, store: Store) -> Plan:
    """All arms' changes as one plan, in the order in which a host takes them. Raises RefusedError where two arms set
    one tunable to different values: a rollback could not attribute the value that it finds."""
    union = live_changes(
        plan_profiles(
            host, [one.name for one in arms], values, runtime_only=True, store=store, facts=facts, foresees=False
        )
    )
    wanted = {change.tunable: change.after for change in union.changes}
    for one in arms:
        for change in one.plan.changes:
            if wanted.get(change.tunable) != change.after:
                other = next(
                    (two.name for two in arms if two is not one and change.tunable in two.tunables), "the other arms"
                )
                raise RefusedError(
                    (
                        f"{change.tunable}: {one.name} sets {change.after}, together with {other} it would be "
                        f"{wanted.get(change.tunable, 'left alone')}"
                    ),
                    hint="measure these two arms in sessions of their own",
                )
    return union


def _measure_arms(
    host: Host,
    arms: Sequence[ArmPlan],
    union: Plan,
    facts: Facts,
    workloads: Sequence[str],
    settings: Settings,
    means: Means,
    store: Store,
    options: Sequence[str],
    *,
    is_ablation: bool = False,
) -> ArmsProof:
    require_other_way_in(host, facts, union, force=settings.force)
    if means.command is None:
        ground, loads = ground_for(host, settings, means.peer), [get_workload(name) for name in workloads]
    else:
        ground, loads = ground_for_command(means.command, means.peer), [command_pattern(means.command.command)]
    hidden = list[str]()
    ablation: Ablation | None = None
    if is_ablation:
        (whole,) = arms
        ablation = _make_ablation(host, whole, ground, loads, means)
        switched = {tunable for tunables in ablation.units.values() for tunable in tunables}
        union = _without_others(union, switched)
        arms = [msgspec.structs.replace(whole, plan=_without_others(whole.plan, switched))]
    subjects = [
        _make_subject(one, workloads) if means.command is None else make_own_subject(one.asked, one.plan, means)
        for one in arms
    ]
    hook = reconnect_hook(host, means.reconnect)
    for one, subject in zip(arms, subjects, strict=True):
        can_reconnect = hook is not None or reconnects_itself(subject)
        require_measurable(subject, _Class(one), ground.target, settings, can_reconnect=can_reconnect)
        if means.command is None:
            hidden += require_visible(host, one.plan, ground.target, loads)
    checks = {one.name: path_check(host, facts, one.plan, ground.target, means.say) for one in arms}
    paths = {name: check for name, check in checks.items() if check is not None}
    with caught_signals() as stop:
        version = "" if means.command is not None else read_version(ground.runner, stop)
        schedule = _make_schedule(arms, loads, settings, ground.target, ablation)
        if schedule.scratch_bytes:
            require_space(ground.target, schedule.scratch_bytes, settings.keep)
        gate = read_gate(host)
        require_calm(gate, force=settings.force)
        if means.command is not None:
            seconds = ground.runner.try_out(stop) if isinstance(ground.runner, RunsCommand) else None
            schedule = _make_schedule(arms, loads, settings, ground.target, ablation, run_seconds=seconds)
        notes = (
            *layout_notes(host, ground.target, schedule),
            *(note for check in paths.values() for note in path_notes(check)),
            *hidden,
        )
        target = ground.target
        session = ArmsSession(
            arms=(NONE, *(ablation.units if ablation is not None else (one.name for one in arms))),
            workloads=tuple(workloads),
            schedule=schedule,
            margin=chosen_mode(settings).margin,
            toggle_class=max((_toggle_class(one) for one in arms), key=TOGGLE_CLASSES.index),
            seed=settings.seed if settings.seed is not None else secrets.randbits(32),
            target=target.path,
            file_system=target.file_system,
            device=target.device,
            fio_version=version,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            values=_recorded_values(arms, ablation),
            host=read_identity(host),
            gate=gate,
            forced=bool(gate.busy),
            notes=tuple(dict.fromkeys(notes)),
            peer_address=target.peer_address,
            options=tuple(options),
            command=None if means.command is None else means.command.command,
            ablation=ablation,
        )
        event = ProgressEvent("plan", 0, schedule.pairs, schedule.predicted_seconds, schedule=schedule)
        event = msgspec.structs.replace(event, workloads=len(workloads), are_combined=ablation is not None)
        means.progress(event)
        with run_trial(host, union, store) as running:
            switch = PlanSwitch(running, arms, ablation, paths)
            return ArmsRunner(host, target, switch, settings, session, ground.runner, stop, means.progress, hook).run()


class _Class:
    """What `require_measurable` asks of a toggle."""

    def __init__(self, arm: ArmPlan) -> None:
        self.toggle_class = _toggle_class(arm)
        self.settle_seconds = _settle_seconds(arm.profile)

    def place(self, arm: str) -> None:
        """Nothing is switched here."""


def _toggle_class(arm: ArmPlan) -> ToggleClass:
    return toggle_class(arm.profile.proof.toggle if arm.profile.proof is not None else "T0", arm.plan.changes)


def _make_subject(arm: ArmPlan, workloads: Sequence[str]) -> ProofSubject:
    is_network = arm.profile.proof is not None and arm.profile.proof.network
    claims = tuple(Claim(name) for name in workloads)
    return ProofSubject(arm.name, claims, path="network" if is_network else "any")


def _make_ablation(host: Host, arm: ArmPlan, ground: Ground, loads: Sequence[Pattern], means: Means) -> Ablation:
    """What is switched, and what is not. Raises RefusedError where fewer than two values are left, UsageError for too
    many."""
    unseen = {} if means.command is not None else dict(find_unseen(host, arm.plan, ground.target, loads))
    units, left_out = group_changes(arm.plan.changes, unseen)
    return Ablation(arm.name, units, design_words(len(units)), left_out, arm.asked.words)


def _without_others(plan: Plan, tunables: Collection[str]) -> Plan:
    """The plan with the changes of these tunables alone."""
    return msgspec.structs.replace(plan, changes=tuple(one for one in plan.changes if one.tunable in tunables))


def _recorded_values(arms: Sequence[ArmPlan], ablation: Ablation | None) -> dict[str, tuple[ArmSetting, ...]]:
    found = {
        one.name: tuple(ArmSetting(each.tunable, each.before, each.after, each.why) for each in one.plan.changes)
        for one in arms
    }
    if ablation is None:
        return found
    (whole,) = found.values()
    return {name: tuple(one for one in whole if one.tunable in tunables) for name, tunables in ablation.units.items()}


def _make_schedule(
    arms: Sequence[ArmPlan],
    loads: Sequence[Pattern],
    settings: Settings,
    target: MeasuredTarget,
    ablation: Ablation | None,
    *,
    run_seconds: float | None = None,
) -> Schedule:
    count = len(arms) if ablation is None else len(ablation.units)
    comparisons = count * len(loads)
    is_untried = run_seconds is None and loads[0].name == COMMAND_WORKLOAD
    settle = max(_settle_seconds(one.profile) for one in arms)
    # Blocks of the chosen mode, and as many as a significant result of so many comparisons needs, with one to spare.
    mode = chosen_mode(settings)
    if run_seconds is not None:
        mode = msgspec.structs.replace(mode, seconds=run_seconds)
    blocks = max(BLOCKS[settings.mode], smallest_blocks(comparisons) + 1)
    return scheduling.make_schedule(
        msgspec.structs.replace(mode, pairs=blocks, looks=(blocks,)),
        loads,
        device_bytes=target.size_bytes,
        place_seconds=PLACE_SECONDS + settle,
        # How long a command takes is not known before it was tried out: until then it has no budget to exceed.
        budget_seconds=None if is_untried else settings.budget_seconds,
        byte_budget=settings.byte_budget,
        scratch_bytes=settings.scratch_bytes,
        files=1 + len(settings.places),
        arms=len(arms) + 1 if ablation is None else run_count(ablation.words),
    )
