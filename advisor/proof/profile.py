"""Proving a profile: its plan's live values as arms A and B, under the transaction journal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

import msgspec

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.facts.whole import Facts, scan
from advisor.host import Host, Missing
from advisor.journal import Store
from advisor.plan.placement import node_of
from advisor.plan.records import Plan
from advisor.profiles import Profile, load
from advisor.proof.conductor import Progress, Reconnect, Settings, silent
from advisor.proof.protocol import prove
from advisor.proof.records import Arm, Proof, Subject, ToggleClass, claims_for
from advisor.transaction import Trial, recover, trial
from advisor.workflow import apply_profiles, plan_profiles, refuse_while_one_waits

RECONNECT_SECONDS = 60.0


class ProfileToggle:
    """Arm A is the host as it was, arm B the plan in force; ``place_node`` runs fio on a node in arm B."""

    def __init__(self, running: Trial, profile: Profile, place_node: int | None) -> None:
        assert profile.proof is not None
        self._running = running
        self._place_node = place_node
        self.toggle_class: ToggleClass = profile.proof.toggle
        self.settle_seconds = profile.proof.settle_seconds

    def place(self, arm: Arm) -> None:
        """Put the arm in force, every value read back. Raises CommandError."""
        if arm == "B":
            self._running.put_in()
        else:
            self._running.take_out()

    def fio_options(self, arm: Arm) -> tuple[str, ...]:
        """How fio is placed: on no node in particular in arm A."""
        if arm == "A" or self._place_node is None:
            return ()
        return (f"--numa_cpu_nodes={self._place_node}", f"--numa_mem_policy=bind:{self._place_node}")


def prove_profile(
    host: Host,
    name: str,
    values: Mapping[str, str],
    settings: Settings,
    *,
    workloads: Sequence[str] = (),
    reconnect: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> Proof:
    """Measure a profile on this host and judge it; ``workloads`` replace the profile's own claims.

    ``reconnect`` is a command that makes connections or mounts anew after each toggle. With ``keep_if_gain`` a proven
    gain is then applied, persisted, as a transaction of its own. Raises what planning, `trial` and `prove` raise.
    """
    profile = load(name)
    if profile.proof is None:
        raise UsageError(f"profile {name} does not say how it is proven", hint="it has no [proof] table")
    kept = store or Store()
    with kept.lock():
        refuse_while_one_waits(kept)
        for record, _ in recover(host, kept):
            say(f"{record.id} had been interrupted and was put back")
        facts = scan(host)
        plan = _toggled(plan_profiles(host, [name], values, runtime_only=True, store=kept, facts=facts))
        _check(plan, profile)
        node = _place_node(profile, settings, facts)
        with trial(host, plan, kept) as running:
            proof = prove(
                host,
                _subject(profile, workloads),
                ProfileToggle(running, profile, node),
                msgspec.structs.replace(settings, keep_if_gain=False),
                reconnect=_reconnecting(host, reconnect),
                progress=progress,
            )
    if not (settings.keep_if_gain and proof.is_gain):
        return proof
    done = apply_profiles(host, [name], values, progress=say, store=kept)
    if done.record is not None and done.record.seconds_left is not None:
        say(f"{done.record.id} waits {done.record.seconds_left:.0f} s for: advisor confirm {done.record.id}")
    return msgspec.structs.replace(proof, kept=True)


def _toggled(plan: Plan) -> Plan:
    """The plan without what has no live value of its own: a service's placement waits for its restart."""
    return msgspec.structs.replace(plan, changes=tuple(change for change in plan.changes if change.steps))


def _check(plan: Plan, profile: Profile) -> None:
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(f"{first.tunable}: {first.reason}", hint=f"advisor plan {profile.name} shows all")
    if not plan.changes:
        raise RefusedError(
            f"{profile.name} would change no live value here: there are no two states to compare",
            hint="advisor plan says why; a profile in force is rolled back first, then proven",
        )


def _subject(profile: Profile, workloads: Sequence[str]) -> Subject:
    assert profile.proof is not None
    return Subject(
        profile=profile.name,
        claims=claims_for(workloads or profile.proof.claims),
        path="network" if profile.proof.network else "any",
    )


def _place_node(profile: Profile, settings: Settings, facts: Facts) -> int | None:
    """The node of the device behind the target, for profiles that place services. Raises RefusedError if unknown."""
    if profile.proof is None or not profile.proof.place_fio:
        return None
    mounts = {mount: one.device for one in facts.filesystems for mount in one.mountpoints}
    inside = [mount for mount in mounts if f"{settings.target}/".startswith(f"{mount.rstrip('/')}/")]
    node = node_of(mounts[max(inside, key=len)], facts) if inside else None
    if node is None:
        raise RefusedError(
            f"the NUMA node of {settings.target} is unknown, so fio cannot be placed on it",
            hint="choose a directory on a drive or array whose members are on one node",
        )
    return node


def _reconnecting(host: Host, command: str | None) -> Reconnect | None:
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
