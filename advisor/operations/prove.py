"""Proofs of a gain: a profile is applied and rolled back in turn around short measurements, and judged.

Settings are those of `advisor.operations.measure.choose_settings`. ``progress`` is called with the events of a session,
which hold no figure, ``say`` with what else happens; ``options`` are recorded as the words that repeat the call. The
functions raise UsageError and RefusedError before anything is changed, PermissionDeniedError without root, an error
with the partial result after a signal (InterruptedProofError, InterruptedArmsError) and NotRestoredError where
something is not restored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, live_host
from advisor.host.trusted_files import need_root
from advisor.i18n import msg
from advisor.operations.transactions import apply_profiles
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof import arm_profiles
from advisor.proof import profile as proofs
from advisor.proof.blocks import ArmsProof
from advisor.proof.peer import check_destination
from advisor.proof.profile import SecondHost
from advisor.proof.records import Proof, claims_for
from advisor.proof.session_runner import ProgressEvent, Settings
from advisor.proof.workloads import expand_workloads
from advisor.transaction.journal import Store


def choose_profile(words: Sequence[str], workloads: Sequence[str] = ()) -> RequestedProfile:
    """Return the one profile that names, a file or values ask for, to be measured with these workloads (at most three;
    none stands for what it claims). Raises UsageError for an unknown profile or workload, InvalidInputError,
    RefusedError for a file that others can write to."""
    asked = load_one(words, only_trusted=True)
    claims_for(workloads)
    return asked


def name_second_host(ssh: str | None, address: str | None = None) -> SecondHost | None:
    """Return the second host of network workloads: ``[USER@]HOST`` for ssh, and the address to measure where it is
    another one; None for none. Connects to nothing. Raises UsageError."""
    if ssh is None:
        if address is not None:
            raise UsageError("--peer-address belongs to --peer-ssh")
        return None
    check_destination(ssh)
    return SecondHost(ssh, address)


def prove_profile(
    asked: RequestedProfile,
    settings: Settings,
    *,
    values: Mapping[str, str],
    workloads: Sequence[str] = (),
    reconnect: str | None = None,
    allow_remount: bool = False,
    second: SecondHost | None = None,
    options: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Measure whether a profile helps on this host; with ``keep_if_gain`` of the settings a proven gain is applied.

    ``values`` are parameters of the profile, ``reconnect`` is a command to run after each toggle. Changes the host and
    rolls it back.
    """
    need_root()
    proof = proofs.prove_profile(
        live_host(),
        asked,
        values,
        settings,
        workloads=workloads,
        reconnect=reconnect,
        allow_remount=allow_remount,
        second=second,
        options=options,
        progress=progress,
        say=say,
    )
    return keep_gain(live_host(), proof, values, asked, say=say) if settings.keep_if_gain else proof


def measure_noise(
    settings: Settings,
    workloads: Sequence[str] = (),
    *,
    second: SecondHost | None = None,
    options: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] = lambda _: None,
) -> Proof:
    """Compare this host with itself: the noise floor, and no invented gain. Changes nothing; needs root only for a disk
    itself and for a second host."""
    claims_for(workloads)
    if settings.raw is not None or second is not None:
        need_root()
    # A disk itself is only read.
    usual = "infoscale.4k-rand-r100" if settings.raw else "infoscale.4k-rand-rw50" if settings.target else "net.tcp-64k"
    return proofs.noise_floor(
        live_host(), workloads or [usual], settings, second=second, options=options, progress=progress
    )


def prove_arms(
    arms: str,
    workloads: Sequence[str],
    settings: Settings,
    *,
    values: Mapping[str, str],
    reconnect: str | None = None,
    allow_remount: bool = False,
    second: SecondHost | None = None,
    options: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> ArmsProof:
    """Measure several profiles (``none,P,Q``) in the same blocks, each against the host as it is.

    ``workloads`` are names and patterns, at least one. Changes the host and rolls it back.
    """
    names, loads = arm_profiles.parse_arms(arms), expand_workloads(workloads)
    if not loads:
        raise UsageError("--arms needs --workload NAME", hint="--workload 'infoscale.*' are the white paper's nine")
    need_root()
    return arm_profiles.prove_arms(
        live_host(),
        names,
        loads,
        values,
        settings,
        reconnect=reconnect,
        allow_remount=allow_remount,
        second=second,
        options=options,
        progress=progress,
        say=say,
    )


def keep_gain(
    host: Host,
    proof: Proof,
    values: Mapping[str, str],
    asked: RequestedProfile | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> Proof:
    """Apply and persist the profile of a proven gain as a transaction of its own; ``kept`` of the result says so.

    ``values`` are the settings that the profile was measured with, ``asked`` is the profile where it has no name of the
    library. Any other verdict changes nothing. Raises what `advisor.operations.apply` raises.
    """
    if not proof.is_gain:
        return proof
    record = apply_profiles(host, [asked or proof.profile], values, progress=say, store=store).record
    if record is not None and record.seconds_left is not None:
        say(
            msg(
                "{id} rolls back automatically in {seconds:.0f} s unless confirmed: advisor confirm {id}",
                id=record.id,
                seconds=record.seconds_left,
            )
        )
    return msgspec.structs.replace(proof, kept=True)
