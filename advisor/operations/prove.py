"""Proofs of a gain: a profile is applied and rolled back in turn around short measurements, and judged.

Settings are those of `advisor.operations.measure.choose_settings`; `Means` are what the user permits and names. The
functions raise UsageError and RefusedError before anything is changed, PermissionDeniedError without root, an error
with the partial result after a signal (InterruptedSessionError) and NotRestoredError where
something is not restored.
"""

from __future__ import annotations

import os
import pwd
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, live_host
from advisor.host.safe_open import need_root
from advisor.operations.files import write_output
from advisor.operations.transactions import apply_profiles
from advisor.planning.records import NewWarningError
from advisor.profiles.lint import reduce_profile, write_toml
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof import live
from advisor.proof import profile as proofs
from advisor.proof.blocks import kept_values
from advisor.proof.command_runner import CommandProcess, find_closed_directory
from advisor.proof.live import LiveOptions, LivePlan
from advisor.proof.own_command import LIVE_KINDS, OwnCommand, parse_metrics
from advisor.proof.profile import Means
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


COMMAND_SECONDS = 600.0
_COMMAND_SECONDS_MAX = 86400.0


def choose_command(
    command: str | None = None,
    metric: Sequence[str] = (),
    *,
    as_user: str | None = None,
    command_timeout: float | None = None,
    directory: Path | None = None,
    env: Sequence[str] = (),
) -> CommandProcess | None:
    """Return the user's own benchmark, ready to run; None for none. Runs nothing.

    ``command`` is split as a shell does, and run without one. Each ``metric`` is ``[NAME=]KIND:EXPRESSION`` with
    ``:higher`` or ``:lower`` and a unit after it; the first judges, the others must not get worse. ``command_timeout``
    is in seconds (600), ``directory`` the working directory (the present one), ``env`` holds ``NAME=VALUE``, or
    ``NAME`` for the value that it has here. Raises UsageError.
    """
    if command is None:
        given = {"--metric": metric, "--as-user": as_user, "--command-timeout": command_timeout}
        for option, value in {**given, "--directory": directory, "--env": env}.items():
            if value:
                raise UsageError(f"{option} belongs to --command")
        return None
    if not metric:
        raise UsageError(
            "--command needs --metric", hint="--metric time, or --metric 'regex:tps = ([0-9.]+):higher:tps'"
        )
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command {command}: {error}") from None
    if not argv:
        raise UsageError("--command: expected a command, found nothing")
    seconds = COMMAND_SECONDS if command_timeout is None else command_timeout
    if not 0 < seconds <= _COMMAND_SECONDS_MAX:
        raise UsageError(f"--command-timeout {seconds:g}: expected a number of seconds above 0, up to a day")
    if as_user is not None:
        check_user(as_user)
    place = check_directory(directory, as_user) if directory is not None else Path().absolute()
    values = dict(parse_variable(one) for one in env)
    own = OwnCommand(tuple(argv), parse_metrics(metric), str(place), as_user, seconds, tuple(values))
    return CommandProcess(own, values)


def check_user(user: str) -> None:
    """Raise UsageError where there is no such user, or where commands cannot be run as that one."""
    try:
        found = pwd.getpwnam(user)
    except (KeyError, ValueError):
        raise UsageError(f"--as-user {user}: there is no such user") from None
    if os.geteuid() not in (0, found.pw_uid):
        raise UsageError(f"--as-user {user}: only root can run a command as another user", hint="run advisor as root")


def check_directory(directory: Path, user: str | None) -> Path:
    """Return the whole path of ``--directory``. Raises UsageError where it is none, or where the user that a command
    runs as cannot enter it: the command would start there, and then find nothing by its path."""
    place = directory.absolute()
    if not place.is_dir():
        raise UsageError(f"--directory {place}: there is no such directory")
    closed = find_closed_directory(place, user) if user is not None else None
    if closed is not None:
        raise UsageError(
            f"--directory {place}: user {user} cannot enter {closed}",
            hint="name one that the user can enter, such as --directory /",
        )
    return place


def parse_variable(text: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``, or of ``NAME`` as it is here. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not name or not name.isprintable() or "\0" in text:
        raise UsageError(f"--env {text}: expected NAME=VALUE or NAME")
    if not equals and name not in os.environ:
        raise UsageError(f"--env {name}: the variable is not set here", hint=f"--env {name}=VALUE")
    return name, value if equals else os.environ[name]


def prove_profile(
    asked: RequestedProfile,
    settings: Settings,
    means: Means,
    *,
    values: Mapping[str, str],
    workloads: Sequence[str] = (),
) -> Proof:
    """Measure whether a profile helps on this host; with ``keep_if_gain`` of the settings a proven gain is applied.

    ``values`` are parameters of the profile. Changes the host and rolls it back.
    """
    need_root()
    proof = proofs.prove_profile(live_host(), asked, values, settings, means, workloads=workloads)
    return keep_gain(live_host(), proof, values, asked, say=means.say) if settings.keep_if_gain else proof


def measure_noise(settings: Settings, means: Means, workloads: Sequence[str] = ()) -> Proof:
    """Compare this host with itself: the noise floor, and no invented gain. Changes nothing."""
    claims_for(workloads)
    return proofs.noise_floor(live_host(), workloads or ["infoscale.4k-rand-rw50"], settings, means)


def prove_arms(
    arms: Sequence[str], workloads: Sequence[str], settings: Settings, means: Means, *, values: Mapping[str, str]
) -> Proof:
    """Measure several profiles in the same blocks, each against the host as it is.

    ``workloads`` are names and patterns, at least one but with a command. Changes the host and rolls it back.
    """
    names, loads = proofs.arms_of_words(arms), expand_workloads(workloads)
    if not loads and means.command is None:
        raise UsageError("prove-arms needs --workload NAME", hint="--workload 'infoscale.*' are the white paper's nine")
    need_root()
    return proofs.prove_arms(live_host(), names, loads, values, settings, means)


def prove_values(
    asked: RequestedProfile, workloads: Sequence[str], settings: Settings, means: Means, *, values: Mapping[str, str]
) -> Proof:
    """Measure which of a profile's values have an effect, each with an interval of its own.

    ``workloads`` replace what the profile claims. Changes the host and rolls it back.
    """
    need_root()
    return proofs.prove_profile(live_host(), asked, values, settings, means, workloads=workloads, are_values=True)


def write_reduced_profile(
    path: Path, found: Proof, asked: RequestedProfile, values: Mapping[str, str]
) -> tuple[str, ...]:
    """Write a profile file of the values that `prove_values` found to have an effect, and of those that it did not
    switch; return what was left out. Raises UsageError where there is nothing to keep, or the file cannot be written.
    """
    ablation = found.session.ablation
    assert ablation is not None
    kept = kept_values(found)
    if not kept:
        raise UsageError(
            "--reduced-profile: no value is shown to have an effect, so there is nothing to keep",
            hint="--deep measures more blocks",
        )
    dropped = tuple(name for name in ablation.units if name not in kept)
    tunables = [one for name in dropped for one in ablation.units[name]]
    doubt = " (indicative only)" if found.verdict == "indicative" else ""
    why = (
        f"Reduced by advisor prove-values {found.session.started[:10]}: without {', '.join(dropped)}, of which no"
        f" gain was seen on this host{doubt}. As a whole it is not proven: advisor prove FILE does that."
    )
    made = reduce_profile(
        asked.profile,
        path.stem,
        without=tunables,
        keep=[one for name in kept for one in ablation.units[name]],
        settings=values,
        why=why if dropped else "",
    )
    write_output(path, write_toml(made))
    return dropped


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
    library. Any other verdict changes nothing, nor does a profile because of which a scan would newly warn: ``say``
    has the finding. Raises what else `advisor.operations.apply` raises.
    """
    if not proof.is_gain:
        return proof
    try:
        record = apply_profiles(host, [asked or proof.profile], values, progress=say, store=store).record
    except NewWarningError as error:
        say(f"not kept: {error.message}; to keep it all the same: advisor apply --force")
        return proof
    if record is not None and record.seconds_left is not None:
        say(
            f"{record.id} rolls back automatically in {record.seconds_left:.0f} s unless confirmed: advisor "
            f"confirm {record.id}"
        )
    return msgspec.structs.replace(proof, kept=True)


# Proofs under live traffic: nothing is run, a profile's values are switched and what the host does is read.

_METRIC_SECONDS_MAX = 60.0


def choose_live(
    metric: Sequence[str] = (),
    *,
    abort_if: Sequence[str] = (),
    period: float | None = None,
    tau: float | None = None,
    as_user: str | None = None,
    command_timeout: float | None = None,
    directory: Path | None = None,
    env: Sequence[str] = (),
) -> LiveOptions:
    """Return how live traffic is to be measured. Runs nothing.

    Each ``metric`` is ``[NAME=]KIND:EXPRESSION`` of the kinds command, counter, prom and host; the first judges, the
    others must not get worse. ``abort_if`` are such as ``p99 > 20``: beyond them the change is withdrawn. ``period``
    (40), ``tau`` (measured) and ``command_timeout`` of a metric's command (10) are in seconds. Raises UsageError.
    """
    parse_metrics(metric, LIVE_KINDS)
    seconds = live.METRIC_SECONDS if command_timeout is None else command_timeout
    if not 0 < seconds <= _METRIC_SECONDS_MAX:
        raise UsageError(f"--command-timeout {seconds:g}: expected seconds above 0, up to {_METRIC_SECONDS_MAX:g}")
    if as_user is not None:
        check_user(as_user)
    place = check_directory(directory or Path("/"), as_user)
    return LiveOptions(
        metrics=tuple(metric),
        limits=tuple(abort_if),
        period_seconds=live.PERIOD_SECONDS if period is None else period,
        tau_seconds=tau,
        metric_timeout=seconds,
        user=as_user,
        directory=str(place),
        environment=dict(parse_variable(one) for one in env),
    )


def prove_live(
    asked: RequestedProfile,
    settings: Settings,
    options: LiveOptions,
    *,
    consent: Callable[[LivePlan], None],
    values: Mapping[str, str],
    words: Sequence[str] = (),
    progress: Callable[[ProgressEvent], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Switch a profile's values under the traffic that is there, and judge them; with ``keep_if_gain`` of the settings
    a proven gain is applied.

    ``consent`` is shown what would be switched, and raises RefusedError where that may not be. Changes the host and
    rolls it back.
    """
    need_root()
    proof = live.prove_live(
        live_host(), asked, values, settings, options, consent=consent, words=words, progress=progress, say=say
    )
    return keep_gain(live_host(), proof, values, asked, say=say) if settings.keep_if_gain else proof
