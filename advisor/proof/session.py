"""`prove`: the whole session, from the refusals to the restored host.

Everything that can be refused is refused before the host is touched. After that the session always ends with arm A
applied (or B, where a gain is to be kept), the scratch file gone and the result written, whatever happens between.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from advisor.errors import RefusedError, UsageError
from advisor.host import Host
from advisor.proof import schedule as scheduling
from advisor.proof.arms import CheckedError, Obstacles, ProofCheck, Reconnect, Toggle
from advisor.proof.blocks import run_count, smallest_blocks
from advisor.proof.covariates import memory_bytes, read_gate
from advisor.proof.fio import FioProcess, FioRunner, RunsCommand, read_version
from advisor.proof.measurer import lamps_of
from advisor.proof.metrics import read_identity
from advisor.proof.own_command import COMMAND_WORKLOAD, OwnCommand
from advisor.proof.process import caught_signals
from advisor.proof.records import (
    MAX_CLAIMS,
    PAIRED,
    Ablation,
    Arm,
    ArmSetting,
    FioRun,
    Proof,
    ProofSubject,
    Session,
    ToggleClass,
    claims_for,
    command_subject,
    measured_workloads,
    resolve_subject,
)
from advisor.proof.schedule import MODES, Mode, Schedule
from advisor.proof.scratch import left_behind, require_space, thread_counts
from advisor.proof.series import Bench, Round, Series, summarise_series
from advisor.proof.session_runner import (
    Conductor,
    Progress,
    ProgressEvent,
    SessionRunner,
    Settings,
    Site,
    accept_busy,
    silent,
)
from advisor.proof.target import MeasuredTarget, read_target
from advisor.proof.workloads import Pattern, command_pattern, get_measured, get_workload

__all__ = ["NullToggle", "Progress", "ProgressEvent", "Settings", "Toggle", "plan_session", "prove", "self_test"]

MINIMUM_SECONDS, MAXIMUM_SECONDS = 0.1, 600.0
BUSY_LOOKS = (13, 27, 40)
"""Of a default session on a busy host: other load hides an effect, which more pairs make up for."""
BLOCKS = {"quick": 12, "default": 16, "deep": 32}
"""Of a session of several arms."""
PLACE_SECONDS = 0.2
"""Assumed for the prediction: what placing an arm takes, without settling."""


class NullToggle:
    """A = A: both arms are the host as it is. For the self-test and for plain measuring."""

    toggle_class: ToggleClass = "T0"
    settle_seconds: float = 0.0

    def place(self, arm: Arm) -> None:
        """Nothing to apply."""


class Switching(Protocol):
    """What the layout of a session depends on: how the arms are switched."""

    @property
    def toggle_class(self) -> ToggleClass: ...

    @property
    def settle_seconds(self) -> float: ...


def require_measurable(
    subject: ProofSubject, toggle: Switching, target: MeasuredTarget, settings: Settings, *, can_reconnect: bool
) -> None:
    """Raise RefusedError where pairs would show nothing: never let that be printed as "no difference"."""
    if toggle.toggle_class == "T1" and not can_reconnect:
        raise RefusedError(
            (
                f"{subject.profile} acts on new sockets, sessions or mounts only, and nothing reconnects them "
                "between the arms: a measurement would compare the old state with itself"
            ),
            hint="--reconnect COMMAND renews them at every toggle; or --command CMD, a benchmark that connects anew"
            " in each run",
        )
    if toggle.toggle_class == "T2" and not settings.allow_link_flap:
        raise RefusedError(
            f"{subject.profile} interrupts links each time it is toggled",
            hint="--allow-link-flap permits that; not on a link that somebody needs now",
        )
    if subject.path == "network" and not target.is_network:
        raise RefusedError(
            (
                f"{subject.profile} changes the network, and {target.path} ({target.file_system} on "
                f"{target.device or target.source}) is local: its effect cannot show there"
            ),
            hint="--target takes a directory that is mounted over the network in question",
        )


def reconnects_itself(subject: ProofSubject) -> bool:
    """Whether each run opens sockets of its own, as that of a command does: then a change of class T1 acts without a
    hook. Of class T1, all but sockets is refused before."""
    return subject.command is not None


def plan_session(host: Host, subject: ProofSubject, toggle: Toggle, settings: Settings) -> Schedule:
    """What a session would do: pairs, looks, predicted seconds and bytes. Reads only, and raises as `prove` does."""
    subject = resolve_subject(subject, MODES[settings.mode])
    target = read_target(host, settings.target)
    return _make_schedule(subject, toggle, settings, target)


def chosen_mode(settings: Settings) -> Mode:
    """The mode with the length of a run that the user chose. Raises UsageError."""
    mode = MODES[settings.mode]
    if settings.pairs is not None:
        mode = replace(mode, pairs=settings.pairs)
    if settings.seconds is None:
        return mode
    if not MINIMUM_SECONDS <= settings.seconds <= MAXIMUM_SECONDS:
        raise UsageError(
            f"--seconds {settings.seconds:g}: expected {MINIMUM_SECONDS:g} to {MAXIMUM_SECONDS:g} s for a run",
            hint="runs of 2 s and more of them show small effects best; longer ones get past a throttle or a cache",
        )
    return replace(mode, seconds=settings.seconds)


def _make_schedule(
    subject: ProofSubject,
    toggle: Switching,
    settings: Settings,
    target: MeasuredTarget,
    *,
    run_seconds: float | None = None,
    is_busy: bool = False,
    arms: Sequence[str] = PAIRED,
    ablation: Ablation | None = None,
) -> Schedule:
    mode = chosen_mode(settings)
    if is_busy and settings.pairs is None and mode.name == "default":
        mode = replace(mode, pairs=BUSY_LOOKS[-1], looks=BUSY_LOOKS)
    if tuple(arms) != PAIRED:
        # As many as a significant result of so many comparisons needs, with one to spare.
        needed = smallest_blocks((len(arms) - 1) * len(subject.claims)) + 1
        blocks = max(BLOCKS[settings.mode], needed)
        mode = replace(mode, pairs=blocks, looks=(blocks,))
    return lay_out_runs(
        mode,
        [get_measured(name) for name in measured_workloads(subject)],
        settings,
        target,
        run_seconds=run_seconds,
        place_seconds=PLACE_SECONDS + toggle.settle_seconds,
        arms=len(arms) if ablation is None else run_count(ablation.words),
        held=len(arms) if ablation is None else 0,
        hold_seconds=settings.hold_seconds,
    )


def lay_out_runs(
    mode: Mode,
    patterns: Sequence[Pattern],
    settings: Settings,
    target: MeasuredTarget,
    *,
    arms: int,
    place_seconds: float = 0.0,
    run_seconds: float | None = None,
    held: int = 2,
    hold_seconds: float = scheduling.HOLD_SECONDS,
) -> Schedule:
    """A layout within the settings' budgets and the target's space; ``run_seconds`` is what a command took when it was
    tried out."""
    # How long a command takes is not known before that: until then it has no budget to exceed.
    is_untried = run_seconds is None and any(one.name == COMMAND_WORKLOAD for one in patterns)
    return scheduling.make_schedule(
        mode if run_seconds is None else replace(mode, seconds=run_seconds),
        patterns,
        free_bytes=settings.keep.room_of(target.size_bytes, target.free_bytes),
        place_seconds=place_seconds,
        budget_seconds=None if is_untried else settings.budget_seconds,
        byte_budget=settings.byte_budget,
        scratch_bytes=settings.scratch_bytes,
        files=1 + len(settings.places),
        arms=arms,
        held=held,
        hold_seconds=hold_seconds,
    )


def prove(
    host: Host,
    subject: ProofSubject,
    toggle: Toggle,
    settings: Settings,
    *,
    reconnect: Reconnect | None = None,
    runner: FioRunner | None = None,
    target: MeasuredTarget | None = None,
    notes: Iterable[str] = (),
    values: Iterable[ArmSetting] | None = None,
    options: Iterable[str] = (),
    progress: Progress = silent,
) -> Proof:
    """Measure a change in interleaved pairs and judge it. ``values`` are what differs between the arms, ``options`` the
    words that repeat the call, both for the record.

    ``target`` is given where it is not a directory alone, with a runner that has it.
    ``toggle`` activates the arms and reads every tunable back; ``reconnect`` is called after it for changes that
    act on new sockets or mounts only. Raises RefusedError before anything is changed, InterruptedSessionError with the
    partial result after a signal, NotRestoredError where the host could not be restored.
    """
    runner = runner or FioProcess()
    with caught_signals() as stop:
        target = target or read_target(host, settings.target)
        site = Site(host, target, settings, runner, stop, progress)
        can_reconnect = reconnect is not None
        session = open_session(
            site, subject, toggle, can_reconnect=can_reconnect, notes=notes, values=values, options=options
        )
        return conduct(site, toggle, session, reconnect)


def conduct(site: Site, toggle: Toggle, session: Session, reconnect: Reconnect | None) -> Proof:
    """Measure a session that was opened, and judge it."""
    plan = session.schedule
    event = ProgressEvent("plan", 0, plan.pairs, plan.predicted_seconds, schedule=plan)
    if not session.is_paired:
        claims = len(session.subject.claims)
        event = replace(event, workloads=claims, are_combined=session.ablation is not None)
    site.progress(event)
    return Conductor(site, toggle, session, reconnect).run()


def open_session(
    site: Site,
    subject: ProofSubject,
    toggle: Switching,
    *,
    can_reconnect: bool = False,
    notes: Iterable[str] = (),
    values: Iterable[ArmSetting] | None = None,
    options: Iterable[str] = (),
    arms: tuple[str, ...] = PAIRED,
    arm_values: Mapping[str, tuple[ArmSetting, ...]] = {},
    ablation: Ablation | None = None,
    obstacles: Obstacles | None = None,
) -> Session:
    """Lay a session out, and look at all that could refuse it, before anything is changed.

    ``obstacles`` holds what was found already. Raises all obstacles at once, and CheckedError where only a check was
    asked for.
    """
    settings = site.settings
    most = MAX_CLAIMS if arms == PAIRED else len(subject.claims)
    subject = resolve_subject(subject, MODES[settings.mode], most=most)
    found = obstacles or Obstacles()
    with found.noted():
        require_measurable(
            subject, toggle, site.target, settings, can_reconnect=can_reconnect or reconnects_itself(subject)
        )
    lay_out = partial(_make_schedule, subject, toggle, settings, site.target, arms=arms, ablation=ablation)
    begun = begin_record(
        site,
        subject.profile,
        measured_workloads(subject),
        lay_out,
        runs_fio=subject.command is None,
        found=found,
        notes=notes,
        options=options,
    )
    return Session(
        **begun,
        subject=subject,
        toggle_class=toggle.toggle_class,
        self_test=settings.self_test,
        attempts=settings.attempts,
        peer_address=site.target.peer_address,
        judged_by="pair",
        values=None if values is None else tuple(values),
        arms=arms,
        arm_values=dict(arm_values),
        ablation=ablation,
    )


def begin_record(
    site: Site,
    profile: str,
    workloads: tuple[str, ...],
    lay_out: Callable[..., Schedule],
    *,
    runs_fio: bool,
    found: Obstacles,
    notes: Iterable[str] = (),
    options: Iterable[str] = (),
) -> dict[str, Any]:
    """The fields that the records of all kinds begin with, by their names, when nothing stands in the way.

    ``lay_out`` takes whether the host is busy, and the seconds that a run of a command took. Raises as `open_session`.
    """
    host, target, settings, runner, stop, _ = site
    version = ""
    with found.noted():
        version = read_version(runner, stop) if runs_fio else ""
    gate = read_gate(host)
    lay_out = partial(lay_out, is_busy=bool(gate.busy))
    with found.noted():
        plan = lay_out()
        if plan.scratch_bytes:
            require_space(target, plan.scratch_bytes, settings.keep)
    if isinstance(runner, RunsCommand):
        # That it runs, holds its figures, and how long it takes.
        with found.noted():
            plan = lay_out(run_seconds=runner.try_out(stop))
    found.require_none()
    more = (*layout_notes(host, target, plan), *notes)
    if settings.is_check:
        raise CheckedError(ProofCheck(profile, workloads, target.path, plan, gate, more))
    accept_busy(gate, plan, settings)
    return {
        "schedule": plan,
        "seed": settings.seed if settings.seed is not None else secrets.randbits(32),
        "target": target.path,
        "file_system": target.file_system,
        "device": target.device,
        "fio_version": version,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "gate": gate,
        "forced": bool(gate.busy),
        "host": read_identity(host),
        "notes": more,
        "options": tuple(options),
    }


def layout_notes(host: Host, target: MeasuredTarget, plan: Schedule) -> Iterable[str]:
    """Yield what the layout on this host cannot show."""
    memory = memory_bytes(host)
    if plan.scratch_bytes and memory is not None and plan.scratch_bytes < 2 * memory:
        # caches of the array, the hypervisor or the server are out of sight; its size can only be guessed
        yield "cache-assisted: the scratch file is smaller than twice the memory, so caches below may answer"
    if plan.scratch_bytes:
        for directory in left_behind(target):
            yield f"{directory} was left by a session that was killed (rm -r), unless one is running there now"
    if plan.scratch_bytes and target.device is None:
        yield "other I/O on the target cannot be seen: it has no block device in /proc/diskstats"


def self_test(
    host: Host,
    workloads: Iterable[str],
    settings: Settings,
    *,
    runner: FioRunner | None = None,
    target: MeasuredTarget | None = None,
    command: OwnCommand | None = None,
    options: Iterable[str] = (),
    progress: Progress = silent,
) -> Proof:
    """`prove` with A = A: shows the noise floor of this host, and that no gain is invented."""
    subject = (
        ProofSubject(profile="self-test", claims=claims_for(workloads))
        if command is None
        else command_subject("self-test", command)
    )
    settings = replace(settings, self_test=True, keep_if_gain=False)
    return prove(
        host,
        subject,
        NullToggle(),
        settings,
        runner=runner,
        target=target,
        values=(),
        options=options,
        progress=progress,
    )


# `bench`: one measured series of the host as it is. Nothing is changed but for the scratch file, which goes again.

DEFAULT_WORKLOADS = ("infoscale.4k-rand-rw50", "iometer.maxtp-r100")
"""Small random I/O one at a time, and large reads with many outstanding."""


def bench(
    host: Host,
    workloads: Sequence[str],
    settings: Settings,
    *,
    runner: FioRunner | None = None,
    target: MeasuredTarget | None = None,
    command: OwnCommand | None = None,
    options: Sequence[str] = (),
    progress: Progress = silent,
) -> Bench:
    """Measure workloads on the host as it is. Of the settings, those on arms and profiles mean nothing here.
    ``options`` are recorded, as the words that repeat the call. ``command`` is measured in place of workloads, with a
    runner and a target that are its own.

    Raises UnknownWorkloadError and RefusedError before anything is written, InterruptedSessionError with the partial
    result after a signal.
    """
    if command is None:
        names = require_workloads(workloads or DEFAULT_WORKLOADS)
        patterns = [get_workload(name) for name in names]
    else:
        names, patterns = (COMMAND_WORKLOAD,), [command_pattern(command)]
    runner = runner or FioProcess()
    with caught_signals() as stop:
        target = target or read_target(host, settings.target)
        site = Site(host, target, settings, runner, stop, progress)

        def lay_out(*, is_busy: bool, run_seconds: float | None = None) -> Schedule:
            return lay_out_runs(chosen_mode(settings), patterns, settings, target, arms=1, run_seconds=run_seconds)

        begun = begin_record(site, "", names, lay_out, runs_fio=command is None, found=Obstacles(), options=options)
        series = Series(**begun, workloads=names, command=command)
        plan = series.schedule
        progress(ProgressEvent("plan", 0, plan.pairs, plan.predicted_seconds, schedule=plan, workloads=len(names)))
        return _Rounds(site, series, patterns, summarise_series).run()


def require_workloads(workloads: Sequence[str]) -> tuple[str, ...]:
    """The names, each once. Raises UnknownWorkloadError, and UsageError for one over the network."""
    found = {name: get_workload(name) for name in workloads}
    for name, workload in found.items():
        if workload.is_network:
            raise UsageError(
                f"{name}: the network is measured by a command of yours",
                hint="--command 'iperf3 -c HOST -t 2 -J' --metric json:.end.sum_received.bits_per_second",
            )
    return tuple(found)


def sweep_threads(workloads: Sequence[str], threads: str | None) -> tuple[str, ...]:
    """Each workload with each number of threads (``--threads``). Raises UsageError."""
    if threads is None:
        return tuple(workloads)
    if not workloads:
        raise UsageError("--threads needs --workload NAME", hint="--workload beegfs.iozone-seq --threads 1..64")
    return tuple(f"{name}@{count}" for name in workloads for count in thread_counts(threads))


class _Rounds(SessionRunner[Series, Bench, Round]):
    """Runs one series."""

    unit = "round"
    field = "rounds"

    @property
    def aftermath(self) -> str:  # type: ignore[override]
        """Of a command there was nothing to remove."""
        return "nothing was changed" if self.runs_command else "the scratch file is gone"

    def partial_unit(self, unfinished: list[FioRun]) -> Round:
        return Round(len(self.session.rounds), 0, tuple(unfinished), whole=False)

    def runs_of(self, one: Round) -> Sequence[FioRun]:
        return one.runs

    def measure_unit(self, index: int, attempt: int) -> Round:
        self.unfinished = runs = list[FioRun]()
        for workload in self.coin.sample(self.workloads, len(self.workloads)):
            runs.append(self.measurer.run("A", workload, self.schedule.seconds_per_run))
        judged = self.measurer.judged(runs)
        return Round(index, attempt, judged, contaminated=bool(lamps_of(judged)))
