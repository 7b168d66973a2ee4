"""Proving a profile: its plan's live values as arms A and B, under the transaction journal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, Missing
from advisor.planner import plan_profiles
from advisor.planning.device_nodes import node_of
from advisor.planning.records import Plan
from advisor.profiles.profile import Profile
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof.arms import Reconnect
from advisor.proof.command_runner import CommandProcess
from advisor.proof.fio import FioProcess
from advisor.proof.path import PathCheck, path_check, require_other_way_in
from advisor.proof.records import (
    Arm,
    ArmSetting,
    Proof,
    ProofSubject,
    ToggleClass,
    claims_for,
    command_subject,
    measured_workloads,
)
from advisor.proof.relevance import class_of, require_visible, toggle_class
from advisor.proof.session import prove, self_test
from advisor.proof.session_runner import Progress, Settings, silent
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import get_workload
from advisor.transaction.journal import Store
from advisor.transaction.requests import refuse_while_one_waits
from advisor.transaction.rollback import recover_unfinished
from advisor.transaction.trial import Trial, run_trial

RECONNECT_SECONDS = 60.0
NETWORK_COMMAND = (
    "advisor prove PROFILE --command 'iperf3 -c PEER -t 2 -J' --metric"
    " json:.end.sum_received.bits_per_second:higher:bit/s --peer PEER, with iperf3 -s running on that host"
)


class ProfileToggle:
    """Arm A is the host as it was, arm B the active plan; ``place_node`` runs fio on a node in arm B, ``path`` asks
    whether the way to the other end carries the arm."""

    def __init__(
        self, running: Trial, profile: Profile, place_node: int | None = None, path: PathCheck | None = None
    ) -> None:
        assert profile.proof is not None
        self._running = running
        self._place_node = place_node
        self._path = path
        self._placed: Mapping[str, str | Missing] = {}
        self.toggle_class: ToggleClass = toggle_class(profile.proof.toggle, running.changes)
        self.settle_seconds = profile.proof.settle_seconds

    def place(self, arm: Arm) -> None:
        """Activate the arm and read every value back. Raises CommandError."""
        if arm == "B":
            self._running.set_values()
        else:
            self._running.restore_values()
        self._placed = self._running.observe_values()

    def require_unchanged(self) -> None:
        """Raise CommandError where a value is no longer what the last arm made it: it was modified externally."""
        check_unchanged(self._placed, self._running)

    def check(self, arm: Arm) -> None:
        """Where links were interrupted: wait for carrier, and ask the other end at the arm's MTU."""
        if self._path is not None:
            self._path.check(arm)

    def fio_options(self, arm: Arm) -> tuple[str, ...]:
        """How fio is placed: on no node in particular in arm A."""
        if arm == "A" or self._place_node is None:
            return ()
        return (f"--numa_cpu_nodes={self._place_node}", f"--numa_mem_policy=bind:{self._place_node}")


def check_unchanged(placed: Mapping[str, str | Missing], running: Trial) -> None:
    """Raise CommandError where a value is no longer the one that was placed: it was modified externally."""
    now = running.observe_values()
    for tunable, before in placed.items():
        if now[tunable] != before:
            shown = [one.why if isinstance(one, Missing) else one for one in (before, now[tunable])]
            raise CommandError(
                f"{tunable}: expected {shown[0]}, found {shown[1]}: modified externally during the session"
            )


class Means(msgspec.Struct, frozen=True):
    """What the user permits and names in addition to the settings."""

    peer: str | None
    reconnect: str | None
    progress: Progress
    say: Callable[[str], None]
    command: CommandProcess | None = None


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


def noise_floor(
    host: Host,
    workloads: Sequence[str],
    settings: Settings,
    *,
    command: CommandProcess | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
) -> Proof:
    """`self_test` on a target, or of a command of the user's own."""
    if command is not None:
        ground = ground_for_command(command)
        return self_test(
            host,
            (),
            settings,
            runner=ground.runner,
            target=ground.target,
            command=command.command,
            options=options,
            progress=progress,
        )
    ground = ground_for(host, settings)
    return self_test(
        host,
        measurable_claims(workloads),
        settings,
        runner=ground.runner,
        target=ground.target,
        options=options,
        progress=progress,
    )


def prove_profile(
    host: Host,
    asked: str | RequestedProfile,
    values: Mapping[str, str],
    settings: Settings,
    *,
    workloads: Sequence[str] = (),
    reconnect: str | None = None,
    peer: str | None = None,
    command: CommandProcess | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> Proof:
    """Measure a profile on this host and judge it; ``workloads`` replace the profile's own claims.

    ``options`` are recorded, as the words that repeat the call. ``peer`` is the address that is asked whether
    the path carries the MTU of each arm.
    ``reconnect`` is a command that reconnects or remounts after each toggle. Raises what planning, `run_trial` and
    `prove` raise.
    """
    if isinstance(asked, str):
        asked = load_one([asked], only_trusted=True)
    profile = asked.profile
    if profile.proof is None:
        raise UsageError(f"profile {profile.name} does not say how it is proven", hint="it has no [proof] table")
    claims: tuple[str, ...] = ()
    if command is None:
        claims = measurable_claims(workloads or profile.proof.claims, are_chosen=bool(workloads))
    kept = store or Store()
    with kept.hold_lock():
        refuse_while_one_waits(kept)
        for record, _ in recover_unfinished(host, kept):
            say(f"{record.id} had been interrupted and was rolled back")
        facts = scan(host)
        plan = live_changes(
            plan_profiles(host, [asked], values, runtime_only=True, store=kept, facts=facts, foresees=False)
        )
        require_changes(plan, profile)
        means = Means(peer, reconnect, progress, say, command)
        return measure_profile(host, asked, plan, facts, claims, settings, means, kept, options)


def measure_profile(
    host: Host,
    asked: RequestedProfile,
    plan: Plan,
    facts: Facts,
    claims: Sequence[str],
    settings: Settings,
    means: Means,
    store: Store,
    options: Sequence[str],
) -> Proof:
    """The session itself, after the refusals that depend on this host and before the mount is checked."""
    profile = asked.profile
    subject = _make_subject(asked, claims) if means.command is None else make_own_subject(asked, plan, means)
    node = fio_node(profile, settings, facts) if means.command is None else None
    own_class = toggle_class(profile.proof.toggle, plan.changes) if profile.proof is not None else "T0"
    require_other_way_in(host, facts, plan, force=settings.force)
    if means.command is None:
        ground = ground_for(host, settings, means.peer)
        loads = [get_workload(name) for name in measured_workloads(subject)]
        hidden = require_visible(host, plan, ground.target, loads)
    else:
        ground, hidden = ground_for_command(means.command, means.peer), ()
    hook = reconnect_hook(host, means.reconnect)
    # without that permission the session is refused anyway
    path = path_check(host, facts, plan, ground.target, means.say) if settings.allow_link_flap else None
    with run_trial(host, plan, store) as running:
        return prove(
            host,
            subject,
            ProfileToggle(running, profile, node, path),
            msgspec.structs.replace(settings, keep_if_gain=False),
            reconnect=hook,
            runner=ground.runner,
            target=ground.target,
            notes=(*path_notes(path), *_place_notes(node), *_class_notes(profile, own_class), *hidden),
            options=options,
            values=[ArmSetting(one.tunable, one.before, one.after, one.why) for one in plan.changes],
            progress=means.progress,
        )


def _class_notes(profile: Profile, own_class: ToggleClass) -> Iterable[str]:
    if profile.proof is not None and profile.proof.toggle != own_class:
        yield f"{profile.name} declares {profile.proof.toggle}; what it sets here is {own_class}: the stricter counts"


def _place_notes(node: int | None) -> Iterable[str]:
    if node is not None:
        yield f"in arm B fio, with its memory, is on node {node}; in arm A on no node in particular"


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


def _make_subject(asked: RequestedProfile, claims: Sequence[str]) -> ProofSubject:
    profile = asked.profile
    assert profile.proof is not None
    return ProofSubject(
        profile=profile.name,
        words=asked.words if asked.words != (profile.name,) else (),
        claims=claims_for(claims),
        path="network" if profile.proof.network else "any",
    )


def make_own_subject(asked: RequestedProfile, plan: Plan, means: Means) -> ProofSubject:
    """The profile judged by the user's own command. Raises RefusedError where each run would find the old state."""
    assert means.command is not None
    stale = [one.tunable for one in plan.changes if class_of(one) == "T1" and not one.tunable.startswith("sysctl:net.")]
    if stale and means.reconnect is None:
        raise RefusedError(
            (
                f"{stale[0]} acts on new sessions or mounts only, and the command does not make them: a "
                "measurement would compare the old state with itself"
            ),
            hint="--reconnect COMMAND makes them after every toggle",
        )
    words = asked.words if asked.words != (asked.profile.name,) else ()
    return command_subject(asked.profile.name, means.command.command, words)


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
