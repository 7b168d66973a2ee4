"""Proving profiles: the live values of their plans as arms, under one transaction: one journal, watchdog, rollback."""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, Missing
from advisor.planner import plan_profiles
from advisor.planning.placement import node_of
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile, ProofDeclaration, load
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof.arms import Obstacles, Reconnect
from advisor.proof.blocks import design_words, group_changes
from advisor.proof.command_runner import CommandProcess
from advisor.proof.fio import FioProcess
from advisor.proof.own_command import COMMAND_WORKLOAD
from advisor.proof.path import PathCheck, path_check, require_other_way_in
from advisor.proof.process import caught_signals
from advisor.proof.records import (
    NONE,
    PAIRED,
    Ablation,
    Arm,
    ArmSetting,
    Claim,
    Proof,
    ProofSubject,
    ToggleClass,
    claims_for,
    command_subject,
)
from advisor.proof.relevance import TOGGLE_CLASSES, class_of, find_unseen, require_visible, toggle_class
from advisor.proof.session import conduct, open_session, self_test
from advisor.proof.session_runner import Progress, Settings, Site, silent
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import command_pattern, get_workload
from advisor.transaction.approvals import refuse_while_one_waits
from advisor.transaction.journal import Store
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.trial import Trial, run_trial

MAX_ARMS = 8
RECONNECT_SECONDS = 60.0
NETWORK_COMMAND = (
    "advisor prove PROFILE --command 'iperf3 -c PEER -t 2 -J' --metric"
    " json:.end.sum_received.bits_per_second:higher:bit/s --peer PEER, with iperf3 -s running on that host"
)


class ArmPlan(msgspec.Struct, frozen=True):
    """One profile as an arm: the live changes that it means on this host, and where fio runs under it."""

    name: str
    asked: RequestedProfile
    plan: Plan
    node: int | None = None

    @property
    def declared(self) -> ProofDeclaration:
        """How its profile says that it is proven. Raises UsageError where it does not."""
        return _require_declared(self.asked)

    @property
    def toggle_class(self) -> ToggleClass:
        """What switching it takes: the stricter of what it declares and of what it sets here."""
        return toggle_class(self.declared.toggle, self.plan.changes)

    @property
    def settle_seconds(self) -> float:
        """What it asks for after each switch."""
        return self.declared.settle_seconds


class ArmsSwitching:
    """How arms are switched: as the strictest of them."""

    def __init__(self, arms: Sequence[ArmPlan]) -> None:
        self.toggle_class: ToggleClass = max((one.toggle_class for one in arms), key=TOGGLE_CLASSES.index)
        self.settle_seconds = max(one.settle_seconds for one in arms)


class PlanToggle(ArmsSwitching):
    """Makes one arm active at a time: what it leaves alone is restored first, every value read back. Where single
    values are switched the arms are the digits of `combination_digits`. ``paths`` ask whether the way to the other end
    carries an arm."""

    def __init__(
        self,
        running: Trial,
        arms: Sequence[ArmPlan],
        ablation: Ablation | None = None,
        paths: Mapping[str, PathCheck] = {},
    ) -> None:
        super().__init__(arms)
        self._running = running
        self._arms = {one.name: one for one in arms}
        self._ablation = ablation
        self._paths = paths
        self._placed: Mapping[str, str | Missing] = {}

    def _tunables(self, arm: Arm) -> frozenset[str]:
        if arm in self._arms:
            return frozenset(change.tunable for change in self._arms[arm].plan.changes)
        if self._ablation is None or arm == NONE:
            return frozenset()
        units = zip(self._ablation.units.values(), arm, strict=True)
        return frozenset(tunable for unit, digit in units if digit == "1" for tunable in unit)

    def place(self, arm: Arm) -> None:
        """Restore what the arm leaves alone, then set its values. Raises CommandError."""
        active = self._tunables(arm)
        self._running.restore_values({one.tunable for one in self._running.changes} - active)
        self._running.set_values(active)
        self._placed = self._running.observe_values()

    def require_unchanged(self) -> None:
        """Raise CommandError where a value is no longer what the last arm made it: it was modified externally."""
        check_unchanged(self._placed, self._running)

    def check(self, arm: Arm) -> None:
        """Where links were interrupted: wait for carrier, and ask the other end at the arm's MTU."""
        active = self._tunables(arm)
        interrupts = any(one.tunable in active and class_of(one) == "T2" for one in self._running.changes)
        for name, path in self._paths.items():
            path.check("B" if name == arm or (self._ablation is not None and interrupts) else "A")

    def fio_options(self, arm: Arm) -> tuple[str, ...]:
        """How fio is placed: on the node of an arm that places services, else on no node in particular."""
        node = self._arms[arm].node if arm in self._arms else None
        return () if node is None else (f"--numa_cpu_nodes={node}", f"--numa_mem_policy=bind:{node}")


def check_unchanged(placed: Mapping[str, str | Missing], running: Trial) -> None:
    """Raise CommandError where a value is no longer the one that was placed: it was modified externally."""
    now = running.observe_values()
    for tunable, before in placed.items():
        if now[tunable] != before:
            shown = [one.why if isinstance(one, Missing) else one for one in (before, now[tunable])]
            raise CommandError(
                f"{tunable}: expected {shown[0]}, found {shown[1]}: modified externally during the session"
            )


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What the user permits and names in addition to the settings. ``peer`` is the address that is asked whether the
    path carries the MTU of each arm, ``reconnect`` a command that reconnects or remounts after each toggle, ``command``
    what is measured in place of fio. ``options`` are recorded, as the words that repeat the call."""

    peer: str | None = None
    reconnect: str | None = None
    command: CommandProcess | None = None
    options: Sequence[str] = ()
    progress: Progress = silent
    say: Callable[[str], None] = lambda _: None


NO_MEANS = Means()


class Ground(msgspec.Struct, frozen=True):
    """Where a session measures, and with which fio."""

    target: MeasuredTarget
    runner: FioProcess


def ground_for(host: Host, settings: Settings, peer: str | None = None) -> Ground:
    """Target and runner of workloads on storage; ``peer`` is asked about the path. Raises UsageError and
    RefusedError."""
    return Ground(msgspec.structs.replace(read_target(host, settings.target), peer_address=peer), FioProcess())


def ground_for_command(command: CommandProcess, peer: str | None = None) -> Ground:
    """Where a command of the user's own measures: nothing is known of what it touches, so that no disk is watched."""
    own = command.command
    target = MeasuredTarget(
        path=own.directory,
        file_system="command",
        mount_point="",
        source=own.words,
        device=None,
        is_network=True,
        size_bytes=0,
        free_bytes=0,
        peer_address=peer,
    )
    return Ground(target, command)


def measurable_claims(names: Sequence[str], *, are_chosen: bool = True) -> tuple[str, ...]:
    """The workloads on storage. Of the claims of a profile those over the network are left out; one that the user named
    himself is missed. Raises UsageError with the command that measures it."""
    left = [name for name in names if get_workload(name).is_network]
    if left and (are_chosen or len(left) == len(names)):
        raise UsageError(f"{left[0]}: the network is measured by a command of yours", hint=NETWORK_COMMAND)
    return tuple(name for name in names if name not in left)


def noise_floor(host: Host, workloads: Sequence[str], settings: Settings, means: Means) -> Proof:
    """`self_test` on a target, or of a command of the user's own."""
    own = means.command
    ground = ground_for(host, settings) if own is None else ground_for_command(own)
    return self_test(
        host,
        measurable_claims(workloads) if own is None else (),
        settings,
        runner=ground.runner,
        target=ground.target,
        command=None if own is None else own.command,
        options=means.options,
        progress=means.progress,
    )


def prove_profile(
    host: Host,
    asked: str | RequestedProfile,
    values: Mapping[str, str],
    settings: Settings,
    means: Means = NO_MEANS,
    *,
    workloads: Sequence[str] = (),
    store: Store | None = None,
    are_values: bool = False,
) -> Proof:
    """Measure a profile on this host and judge it, or with ``are_values`` which of its values have an effect;
    ``workloads`` replace the profile's own claims. Raises what planning, `run_trial` and `prove` raise."""
    if isinstance(asked, str):
        asked = load_one([asked], only_trusted=True)
    claims = _claims_of(asked, workloads, means)
    with locked_store(host, store, means.say) as kept:
        facts = scan(host)
        arm = plan_arm(host, asked, values, facts, kept)
        arm = arm if are_values else _placed(arm, settings, facts, means)
        return measure_arms(host, [arm], facts, claims, settings, means, kept, are_values=are_values)


def prove_arms(
    host: Host,
    arms: Sequence[str],
    workloads: Sequence[str],
    values: Mapping[str, str],
    settings: Settings,
    means: Means = NO_MEANS,
    *,
    store: Store | None = None,
) -> Proof:
    """Measure profiles against the host as it is, all in the same randomised blocks, and compare each with ``none``.

    ``arms`` are those of `arms_of_words`. Raises UsageError and RefusedError before anything is changed,
    InterruptedSessionError with the partial result after a signal, NotRestoredError where something is not restored.
    """
    names = (COMMAND_WORKLOAD,) if means.command is not None else measurable_claims(workloads)
    with locked_store(host, store, means.say) as kept:
        facts = scan(host)
        planned = []
        for asked in [load_one([name], only_trusted=True) for name in arms[1:]]:
            own = {key: value for key, value in values.items() if key in asked.profile.parameters}
            arm = plan_arm(host, asked, own, facts, kept)
            if arm.toggle_class == "T3":
                raise RefusedError(
                    f"{arm.name}: its values need a reboot or a rebuild, so it cannot be an arm of a session"
                )
            planned.append(_placed(arm, settings, facts, means))
        union = _join_plans(host, planned, values, facts, kept)
        return measure_arms(host, planned, facts, names, settings, means, kept, union=union)


def arms_of_words(names: Sequence[str]) -> tuple[str, ...]:
    """Names of profiles, with ``none`` first whether it was named or not. Raises UsageError."""
    doubled = sorted(name for name, times in Counter(names).items() if times > 1)
    if doubled:
        raise UsageError(f"{doubled[0]}: is named twice")
    found = (NONE, *(name for name in names if name != NONE))
    if len(found) < 2:
        raise UsageError("expected at least one profile besides none", hint="advisor profiles lists them")
    if len(found) > MAX_ARMS:
        raise UsageError(f"expected at most {MAX_ARMS} arms, found {len(found)}")
    for name in found[1:]:
        load(name)
    return found


@contextlib.contextmanager
def locked_store(host: Host, store: Store | None, say: Callable[[str], None]) -> Iterator[Store]:
    """Hold the lock of the store, with every transaction that had been interrupted rolled back. Raises RefusedError."""
    kept = store or Store()
    with kept.hold_lock():
        refuse_while_one_waits(kept)
        for record, _ in recover_unfinished(host, kept):
            say(f"{record.id} had been interrupted and was rolled back")
        yield kept


def _claims_of(asked: RequestedProfile, workloads: Sequence[str], means: Means) -> tuple[str, ...]:
    declared = _require_declared(asked)
    if means.command is not None:
        return (COMMAND_WORKLOAD,)
    return measurable_claims(workloads or declared.claims, are_chosen=bool(workloads))


def _require_declared(asked: RequestedProfile) -> ProofDeclaration:
    declared = asked.profile.proof
    if declared is None:
        name = asked.profile.name
        raise UsageError(f"profile {name} does not say how it is proven", hint="it has no [proof] table")
    return declared


def plan_arm(host: Host, asked: RequestedProfile, values: Mapping[str, str], facts: Facts, store: Store) -> ArmPlan:
    """A profile as an arm of this host. Raises UsageError for one that declares no proof, and RefusedError."""
    _require_declared(asked)
    plan = live_changes(
        plan_profiles(host, [asked], values, runtime_only=True, store=store, facts=facts, foresees=False)
    )
    require_changes(plan, asked.profile)
    return ArmPlan(asked.profile.name, asked, plan)


def _placed(arm: ArmPlan, settings: Settings, facts: Facts, means: Means) -> ArmPlan:
    node = fio_node(arm.asked.profile, settings, facts) if means.command is None else None
    return msgspec.structs.replace(arm, node=node)


def _join_plans(host: Host, arms: Sequence[ArmPlan], values: Mapping[str, str], facts: Facts, store: Store) -> Plan:
    """All arms' changes as one plan, in the order in which a host takes them. Raises RefusedError where two arms set
    one tunable to different values: a rollback could not attribute the value that it finds."""
    names = [one.name for one in arms]
    union = live_changes(
        plan_profiles(host, names, values, runtime_only=True, store=store, facts=facts, foresees=False)
    )
    wanted = {change.tunable: change.after for change in union.changes}
    for one in arms:
        for change in one.plan.changes:
            if wanted.get(change.tunable) != change.after:
                others = (two.name for two in arms if two is not one and change.tunable in _named(two.plan))
                raise RefusedError(
                    (
                        f"{change.tunable}: {one.name} sets {change.after}, together with"
                        f" {next(others, 'the other arms')} it would be {wanted.get(change.tunable, 'left alone')}"
                    ),
                    hint="measure these two arms in sessions of their own",
                )
    return union


def _named(plan: Plan) -> set[str]:
    return {change.tunable for change in plan.changes}


def measure_arms(
    host: Host,
    arms: Sequence[ArmPlan],
    facts: Facts,
    workloads: Sequence[str],
    settings: Settings,
    means: Means,
    store: Store,
    *,
    union: Plan | None = None,
    are_values: bool = False,
) -> Proof:
    """The session itself, by who holds the lock of the store, after the refusals that depend on this host.

    One arm is measured in pairs; with ``union``, the changes of all arms, in blocks; with ``are_values`` the values of
    the one arm in combinations.
    """
    plan = arms[0].plan if union is None else union
    found = Obstacles()
    with found.noted():
        require_other_way_in(host, facts, plan, force=settings.force)
    if means.command is None:
        ground, loads = ground_for(host, settings, means.peer), [get_workload(name) for name in workloads]
    else:
        ground, loads = ground_for_command(means.command, means.peer), [command_pattern(means.command.command)]
    ablation: Ablation | None = None
    if are_values:
        (whole,) = arms
        unseen = {} if means.command is not None else dict(find_unseen(host, whole.plan, ground.target, loads))
        units, left_out = group_changes(whole.plan.changes, unseen)
        ablation = Ablation(whole.name, units, design_words(len(units)), left_out, whole.asked.words)
        switched = {tunable for tunables in units.values() for tunable in tunables}
        plan = msgspec.structs.replace(plan, changes=tuple(one for one in plan.changes if one.tunable in switched))
        # The name of no turn: a turn is told by its digits.
        arms = [msgspec.structs.replace(whole, plan=plan)]
    is_paired = union is None and not are_values
    subjects, hidden, paths = [], list[str](), dict[str, PathCheck]()
    for one in arms:
        subjects.append(_make_subject(one, workloads, means, limited=is_paired))
        with found.noted():
            _require_fresh(one, means)
        with found.noted():
            hidden += require_visible(host, one.plan, ground.target, loads) if means.command is None else ()
        with found.noted():
            # without that permission the session is refused anyway
            check = path_check(host, facts, one.plan, ground.target, means.say) if settings.allow_link_flap else None
            paths |= {} if check is None else {one.name: check}
    hook = reconnect_hook(host, means.reconnect)
    subject, names, values = subjects[0], PAIRED, settings_of(plan)
    arm_values: dict[str, tuple[ArmSetting, ...]] = {}
    if is_paired:
        arms = [msgspec.structs.replace(arms[0], name="B")]
        paths = dict(zip("B", paths.values(), strict=False))
    else:
        title = ablation.profile if ablation is not None else ", ".join(one.name for one in arms)
        is_network = any(one.path == "network" for one in subjects)
        subject = msgspec.structs.replace(subject, profile=title, path="network" if is_network else "any", words=())
        names = (NONE, *(ablation.units if ablation is not None else (one.name for one in arms)))
        arm_values = {one.name: settings_of(one.plan) for one in arms}
        if ablation is not None:
            arm_values = {
                name: tuple(one for one in values if one.tunable in tunables)
                for name, tunables in ablation.units.items()
            }
    notes = [note for check in paths.values() for note in path_notes(check)]
    for one in arms:
        notes += _arm_notes(one)
    with caught_signals() as stop:
        chosen = msgspec.structs.replace(settings, keep_if_gain=False)
        site = Site(host, ground.target, chosen, ground.runner, stop, means.progress)
        session = open_session(
            site,
            subject,
            ArmsSwitching(arms),
            can_reconnect=hook is not None,
            notes=dict.fromkeys((*notes, *hidden)),
            options=means.options,
            values=values,
            arms=names,
            arm_values=arm_values,
            ablation=ablation,
            obstacles=found,
        )
        with run_trial(host, plan, store) as running:
            toggle = PlanToggle(running, arms, ablation, paths)
            return conduct(site, toggle, session, hook)


def settings_of(plan: Plan) -> tuple[ArmSetting, ...]:
    return tuple(ArmSetting(one.tunable, one.before, one.after, one.why) for one in plan.changes)


def _arm_notes(arm: ArmPlan) -> Iterable[str]:
    profile, own = arm.asked.profile, arm.toggle_class
    if arm.node is not None:
        yield f"in arm {arm.name} fio, with its memory, is on node {arm.node}; else on no node in particular"
    if arm.declared.toggle != own:
        yield f"{profile.name} declares {arm.declared.toggle}; what it sets here is {own}: the stricter counts"


def path_notes(path: PathCheck | None) -> tuple[str, ...]:
    if path is None:
        return ()
    if not path.asked:
        return ("nobody beyond the changed links could be asked whether the path carries the arm's MTU",)
    return (f"an arm was measured only after {', '.join(path.asked)} had answered at its MTU",)


def live_changes(plan: Plan) -> Plan:
    """The plan without what has no live value of its own: a service's placement waits for its restart."""
    return msgspec.structs.replace(plan, changes=tuple(change for change in plan.changes if change.steps))


def require_changes(plan: Plan, profile: Profile) -> None:
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(f"{first.tunable}: {first.reason}", hint=f"advisor plan {profile.name} shows all")
    if not plan.changes:
        raise RefusedError(
            f"{profile.name} would change no live value here: there are no two states to compare",
            hint="advisor plan says why; roll back an active profile first, then prove it; for what only a reboot"
            " activates: advisor bench, apply, reboot, advisor bench, advisor compare",
        )


def _make_subject(arm: ArmPlan, workloads: Sequence[str], means: Means, *, limited: bool) -> ProofSubject:
    """What is judged of an arm. Raises UsageError for too many claims of one change."""
    asked = arm.asked
    if means.command is None:
        return ProofSubject(
            profile=asked.profile.name,
            words=asked.own_words,
            claims=claims_for(workloads) if limited else tuple(map(Claim, workloads)),
            path="network" if arm.declared.network else "any",
        )
    return command_subject(asked.profile.name, means.command.command, asked.own_words)


def _require_fresh(arm: ArmPlan, means: Means) -> None:
    """Raise RefusedError where each run of the user's own command would find the old state."""
    changes = [one for one in arm.plan.changes if not one.tunable.startswith("sysctl:net.")]
    stale = [one.tunable for one in changes if class_of(one) == "T1"]
    if stale and means.command is not None and means.reconnect is None:
        raise RefusedError(
            (
                f"{stale[0]} acts on new sessions or mounts only, and the command does not make them: a "
                "measurement would compare the old state with itself"
            ),
            hint="--reconnect COMMAND makes them after every toggle",
        )


def fio_node(profile: Profile, settings: Settings, facts: Facts) -> int | None:
    """The node of the device behind the target, for profiles that place services. Raises RefusedError if unknown."""
    if profile.proof is None or not profile.proof.place_fio:
        return None
    mounts = {mount: one.device for one in facts.filesystems for mount in one.mountpoints}
    inside = [mount for mount in mounts if f"{settings.target}/".startswith(f"{mount.rstrip('/')}/")]
    device = mounts[max(inside, key=len)] if inside else None
    node = node_of(device, facts) if device is not None else None
    if node is None:
        raise RefusedError(
            f"the NUMA node of {settings.target or device} is unknown, so fio cannot be placed on it",
            hint="choose a directory on a drive or array whose members are on one node",
        )
    return node


def reconnect_hook(host: Host, command: str | None) -> Reconnect | None:
    """Return what runs the command of ``--reconnect`` after a toggle; None for none."""
    if command is None:
        return None
    argv = shlex.split(command)

    def reconnect(arm: Arm) -> None:
        done = host.run(argv, timeout=RECONNECT_SECONDS)
        if isinstance(done, Missing):
            raise CommandError(f"--reconnect: {done.why}")
        if not done.ok:
            raise CommandError(f"--reconnect: {argv[0]} returned {done.rc}: {done.stderr.strip() or 'no message'}")

    return reconnect
