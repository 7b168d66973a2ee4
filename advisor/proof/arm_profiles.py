"""Several profiles as the arms of one session: ``advisor prove --arms none,P,Q``.

Every arm's live values are part of one plan and so of one transaction: one journal, one watchdog, one rollback.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host
from advisor.i18n import msg
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile, load
from advisor.proof import schedule as scheduling
from advisor.proof.arms_session import ArmsRunner
from advisor.proof.blocks import NONE, ArmsProof, ArmsSession, smallest_blocks
from advisor.proof.covariates import read_gate
from advisor.proof.fio import read_version
from advisor.proof.identity import read_identity
from advisor.proof.interrupt import caught_signals
from advisor.proof.path import PathCheck, path_check, require_other_way_in
from advisor.proof.profile import (
    Means,
    SecondHost,
    fio_node,
    ground_for,
    live_changes,
    measurable_claims,
    mounted_again,
    path_notes,
    reconnect_hook,
    require_changes,
)
from advisor.proof.records import ArmSetting, Claim, ProofSubject, ToggleClass
from advisor.proof.relevance import TOGGLE_CLASSES, require_visible, toggle_class
from advisor.proof.schedule import Mode, Schedule
from advisor.proof.scratch import require_space
from advisor.proof.session import (
    PLACE_SECONDS,
    chosen_mode,
    layout_notes,
    reconnects_itself,
    require_calm,
    require_measurable,
)
from advisor.proof.session_runner import Progress, ProgressEvent, Settings, silent
from advisor.proof.target import MeasuredTarget
from advisor.proof.workloads import get_workload
from advisor.transaction.journal import Store
from advisor.transaction.requests import refuse_while_one_waits
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.trial import Trial, run_trial

MAX_ARMS = 8
BLOCKS = {"quick": 12, "default": 16, "deep": 32}


class ArmPlan(msgspec.Struct, frozen=True):
    """One profile as an arm: the live changes that it means on this host, and where fio runs under it."""

    name: str
    profile: Profile
    plan: Plan
    node: int | None = None

    @property
    def tunables(self) -> frozenset[str]:
        """The tunables that it sets."""
        return frozenset(change.tunable for change in self.plan.changes)


class ProfileSwitch:
    """Makes one arm active at a time: the others' values are restored first, every one read back."""

    def __init__(self, running: Trial, arms: Sequence[ArmPlan], paths: Mapping[str, PathCheck]) -> None:
        self._running = running
        self._arms = {one.name: one for one in arms}
        self._paths = paths

    def place(self, arm: str) -> None:
        """Restore what another arm has set, then set this one's values. Raises CommandError."""
        self._running.restore_values()
        if arm != NONE:
            self._running.set_values(self._arms[arm].tunables)
        for name, path in self._paths.items():
            path.check("B" if name == arm else "A")

    def fio_options(self, arm: str) -> tuple[str, ...]:
        """fio on the node of an arm that places services."""
        node = self._arms[arm].node if arm in self._arms else None
        return () if node is None else (f"--numa_cpu_nodes={node}", f"--numa_mem_policy=bind:{node}")

    def settle_seconds(self, before: str | None, after: str) -> float:
        """The longer of what the two arms ask for."""
        return max(
            (_settle_seconds(self._arms[one].profile) for one in (before, after) if one in self._arms), default=0.0
        )


def _settle_seconds(profile: Profile) -> float:
    return profile.proof.settle_seconds if profile.proof is not None else 0.0


def parse_arms(text: str) -> tuple[str, ...]:
    """``none,P,Q`` as names, ``none`` first whether it was named or not. Raises UsageError."""
    names = [word.strip() for word in text.split(",")]
    if "" in names:
        raise UsageError(
            msg("--arms {text}: expected profile names with commas between, found an empty name", text=text)
        )
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise UsageError(msg("--arms {text}: {doubled} is named twice", text=text, doubled=doubled[0]))
    found = (NONE, *(name for name in names if name != NONE))
    if len(found) < 2:
        raise UsageError("--arms: expected at least one profile besides none", hint="advisor profiles lists them")
    if len(found) > MAX_ARMS:
        raise UsageError(
            msg("--arms: expected at most {max_arms} arms, found {count}", max_arms=MAX_ARMS, count=len(found))
        )
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
    allow_remount: bool = False,
    second: SecondHost | None = None,
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
    names = measurable_claims(workloads, has_target=bool(settings.target or settings.raw), has_peer=second is not None)
    kept = store or Store()
    with kept.hold_lock():
        refuse_while_one_waits(kept)
        for record, _ in recover_unfinished(host, kept):
            say(f"{record.id} had been interrupted and has been rolled back")
        facts = scan(host)
        planned = [_plan_arm(host, name, values, settings, facts, kept) for name in arms[1:]]
        union = _join_plans(host, planned, values, facts, kept)
        means = Means(second, reconnect, allow_remount, progress, say)
        return _measure_arms(host, planned, union, facts, names, settings, means, kept, options)


def _plan_arm(
    host: Host, name: str, values: Mapping[str, str], settings: Settings, facts: Facts, store: Store
) -> ArmPlan:
    profile = load(name)
    if profile.proof is None:
        raise UsageError(msg("profile {name} does not say how it is proven", name=name), hint="it has no [proof] table")
    own = {key: value for key, value in values.items() if key in profile.parameters}
    plan = live_changes(plan_profiles(host, [name], own, runtime_only=True, store=store, facts=facts))
    if toggle_class(profile.proof.toggle, plan.changes) == "T3":
        raise RefusedError(
            msg("{name}: its values need a reboot or a rebuild, so it cannot be an arm of a session", name=name)
        )
    require_changes(plan, profile)
    return ArmPlan(name, profile, plan, fio_node(profile, settings, facts))


def _join_plans(host: Host, arms: Sequence[ArmPlan], values: Mapping[str, str], facts: Facts, store: Store) -> Plan:
    """All arms' changes as one plan, in the order in which a host takes them. Raises RefusedError where two arms set
    one tunable to different values: a rollback could not attribute the value that it finds."""
    union = live_changes(
        plan_profiles(host, [one.name for one in arms], values, runtime_only=True, store=store, facts=facts)
    )
    wanted = {change.tunable: change.after for change in union.changes}
    for one in arms:
        for change in one.plan.changes:
            if wanted.get(change.tunable) != change.after:
                other = next(
                    (two.name for two in arms if two is not one and change.tunable in two.tunables), "the other arms"
                )
                raise RefusedError(
                    msg(
                        "{tunable}: {name} sets {after}, together with {other} it would be {wanted}",
                        tunable=change.tunable,
                        name=one.name,
                        after=change.after,
                        other=other,
                        wanted=wanted.get(change.tunable, "left alone"),
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
) -> ArmsProof:
    require_other_way_in(host, facts, union, force=settings.force)
    ground = ground_for(host, workloads, settings, means.second)
    subjects = [_make_subject(one, workloads) for one in arms]
    hooks = [
        reconnect_hook(host, one.profile, subject, ground.target, means)
        for one, subject in zip(arms, subjects, strict=True)
    ]
    hook = next((one for one in hooks if one is not None), None)
    loads, hidden = [get_workload(name) for name in workloads], list[str]()
    for one, subject in zip(arms, subjects, strict=True):
        can_reconnect = hook is not None or reconnects_itself(subject)
        require_measurable(subject, _Class(one), ground.target, settings, can_reconnect=can_reconnect)
        hidden += require_visible(host, one.plan, ground.target, loads)
    checks = {one.name: path_check(host, facts, one.plan, ground.target, means.say) for one in arms}
    paths = {name: check for name, check in checks.items() if check is not None}
    with caught_signals() as stop:
        version = read_version(ground.runner, stop)
        schedule = _make_schedule(arms, workloads, settings, ground.target)
        if schedule.scratch_bytes:
            require_space(ground.target, schedule.scratch_bytes, settings.keep)
        gate = read_gate(host)
        require_calm(gate, force=settings.force)
        count = len(arms) + 1
        notes = (
            *layout_notes(host, ground.target, schedule, settings, workloads, arms=count),
            *(note for check in paths.values() for note in path_notes(check)),
            *hidden,
        )
        target = ground.target
        session = ArmsSession(
            arms=(NONE, *(one.name for one in arms)),
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
            values={one.name: _settings_of(one.plan) for one in arms},
            host=read_identity(host),
            gate=gate,
            forced=bool(gate.busy),
            notes=tuple(dict.fromkeys(notes)),
            peer_ssh=target.peer_ssh,
            peer_address=target.peer_address,
            raw_device=target.raw,
            options=tuple(options),
        )
        seconds = schedule.predicted_seconds
        means.progress(ProgressEvent("plan", 0, schedule.pairs, seconds, schedule=schedule, workloads=len(workloads)))
        with mounted_again(hook), run_trial(host, union, store) as running:
            switch = ProfileSwitch(running, arms, paths)
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


def _settings_of(plan: Plan) -> tuple[ArmSetting, ...]:
    return tuple(ArmSetting(one.tunable, one.before, one.after, one.why) for one in plan.changes)


def _make_schedule(
    arms: Sequence[ArmPlan], workloads: Sequence[str], settings: Settings, target: MeasuredTarget
) -> Schedule:
    comparisons = len(arms) * len(workloads)
    settle = max(_settle_seconds(one.profile) for one in arms)
    return scheduling.make_schedule(
        _choose_mode(settings, comparisons),
        [get_workload(name) for name in workloads],
        device_bytes=target.size_bytes,
        place_seconds=PLACE_SECONDS + settle,
        budget_seconds=settings.budget_seconds,
        byte_budget=settings.byte_budget,
        scratch_bytes=settings.scratch_bytes,
        is_raw=target.raw is not None,
        files=1 + len(settings.places),
        arms=len(arms) + 1,
    )


def _choose_mode(settings: Settings, comparisons: int) -> Mode:
    """Blocks of the chosen mode, and as many as a significant result of so many comparisons needs, with one to
    spare."""
    mode = chosen_mode(settings)
    blocks = max(BLOCKS[settings.mode], smallest_blocks(comparisons) + 1)
    return msgspec.structs.replace(mode, pairs=blocks, looks=(blocks,))
