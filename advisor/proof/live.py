"""`advisor prove-live`: a value is switched under the traffic that is there, and no load is made.

Short pairs come first: they show large harm soon, whether the figure measures anything, and how long an effect takes
to appear. Then pairs of periods in the order of a fair coin, each second checked against the user's limits and for
harm. The transaction that holds the arms, with its journal and
watchdog, is the one of every other proof.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from advisor.errors import AdvisorError, CommandError, RefusedError, UsageError
from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.host.numbers import count_noun
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change, Plan
from advisor.profiles.profile import Profile
from advisor.profiles.requested import RequestedProfile
from advisor.proof.command_runner import CommandProcess
from advisor.proof.covariates import Covariates
from advisor.proof.live_source import (
    ASSUMED_TAU,
    HARM_LEVEL,
    MOST_DISCARDED_SHARE,
    ONE_SIDED,
    PROBE_DISCARD,
    PROBE_PAIRS,
    PROBE_SECONDS,
    HarmTest,
    Limit,
    LiveClock,
    LiveSource,
    PeriodSeries,
    compare_figures,
    discard_for,
    estimate_tau,
    figure_of,
    parse_limits,
)
from advisor.proof.metrics import (
    DISK_METRICS,
    NETWORK_METRICS,
    PRESSURE_METRICS,
    HostCounters,
    Metric,
    Reading,
    RunFigures,
    read_identity,
)
from advisor.proof.own_command import LIVE_KINDS, LIVE_WORKLOAD, CommandMetric, OwnCommand, parse_metrics
from advisor.proof.process import Stop, caught_signals
from advisor.proof.profile import PlanToggle, locked_store, plan_arm, settings_of
from advisor.proof.records import Arm, Ended, FioRun, Pair, Proof, Session, Switchback, command_subject, resolve_subject
from advisor.proof.relevance import class_of, toggle_class
from advisor.proof.schedule import MODES, Mode, Schedule, make_live_schedule
from advisor.proof.session_runner import Conductor, Progress, ProgressEvent, Settings, Site, silent
from advisor.proof.statistics import median
from advisor.proof.target import MeasuredTarget
from advisor.transaction.journal import Store
from advisor.transaction.trial import run_trial
from advisor.tunables.catalogue import is_slow

PERIOD_SECONDS = 40.0
LEAST_PERIOD, MOST_PERIOD = 10.0, 3600.0
SUSPENDED_SECONDS = 5.0
"""Between two readings: nothing was checked meanwhile, and the period is not counted."""
TICK_SECONDS = 1.0
METRIC_SECONDS = 10.0
"""After which a metric's command counts as hung."""
SLOWEST_READING = 1.0
"""Seconds for one reading of all metrics: a longer one would put off the checks that are made each second."""
_ROUNDING = 1e-6
SUSPENDED = "suspended"
"""The lamp of a period in which advisor, or the machine, did not run."""
IDLE_HINT = "judge by a figure that moves with the traffic, at a time when there is some"
NOWHERE = MeasuredTarget("", "live", "", "", None, is_network=True, size_bytes=0, free_bytes=0)
"""Nothing is run, so that no directory and no disk is the target."""
NO_FIGURES = RunFigures(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0.0, 0.0, 0.0)
"""Of a period: figures of fio are 0, which stands for none."""


class LiveOptions(msgspec.Struct, frozen=True):
    """What the user chose: ``metrics`` and ``limits`` as written, seconds of a period, tau where it is known, and the
    seconds after which a metric's command counts as hung."""

    metrics: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    period_seconds: float = PERIOD_SECONDS
    tau_seconds: float | None = None
    metric_timeout: float = METRIC_SECONDS
    user: str | None = None
    directory: str = "/"
    environment: Mapping[str, str] = {}


class LivePlan(msgspec.Struct, frozen=True):
    """What a session would do, for the question whether it may."""

    profile: str
    changes: tuple[Change, ...]
    metrics: tuple[CommandMetric, ...]
    judged: int
    limits: tuple[str, ...]
    periods: int
    switchback: Switchback
    seconds: float


Consent = Callable[[LivePlan], None]
"""Shows the plan and asks. Raises RefusedError where the answer is no."""


class WithdrawnError(AdvisorError):
    """Harm was shown or a limit exceeded: the session ends, and the change is not switched on again."""

    def __init__(self, message: str, *, ended: Ended) -> None:
        super().__init__(message)
        self.ended = ended


class SteadyClock:
    """The kernel's clock that never steps, and goes on while the machine sleeps."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop

    def now(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        self._stop.sleep(seconds)


class LiveConductor(Conductor):
    """Runs one session of two arms under live traffic."""

    def __init__(
        self,
        site: Site,
        toggle: PlanToggle,
        session: Session,
        source: LiveSource,
        clock: LiveClock,
        limits: Sequence[Limit],
    ) -> None:
        super().__init__(site, toggle, session)
        self._toggle = toggle
        self._source = source
        self._clock = clock
        self._limits = limits
        subject = session.subject
        self._judged = [
            *(subject.metric_of(one) for one in subject.claims),
            *(subject.metric_of(one) for one in subject.guardrails),
        ]
        command = subject.command
        assert command is not None
        # A server is asked at the end of a period: within one there is no figure.
        self._asked_late = {one.name for one in command.metrics if one.kind == "prom"}
        self._harm = {one.name: HarmTest() for one in self._judged}
        self._series: list[PeriodSeries] = []
        self._began = clock.now()

    @property
    def _live(self) -> Switchback:
        found = self.session.live
        assert found is not None
        return found

    def _update_live(self, **changes: object) -> None:
        self.recorder.update(live=msgspec.structs.replace(self._live, **changes))

    def measure_all(self) -> None:
        try:
            self._measure_probes()
            self.measure_units()
        except WithdrawnError as error:
            self._update_live(withdrawn=error.message)
            self.end_session(error.ended)
        except RefusedError as error:
            # Values have been switched: a fault, with the host restored and the pairs kept, is no refusal.
            raise CommandError(error.message, hint=error.hint) from error

    def describe_fault(self, error: AdvisorError) -> str:
        return "; ".join([error.message, *([error.hint] if error.hint else [])])

    def _measure_probes(self) -> None:
        """Short pairs, and what they show of the time that the effect takes."""
        series: list[list[PeriodSeries]] = []
        for index in range(PROBE_PAIRS):
            self.show_progress("probe", index + 1)
            pair = self._measure_pair(index, 0, PROBE_SECONDS, PROBE_DISCARD, [])
            self._update_live(probes=(*self._live.probes, pair))
            if not pair.contaminated:
                series.append(self._series)
        self._require_figures(series)
        if self._live.tau_from == "given":
            return
        tau, period = estimate_tau(series), self._live.period_seconds
        if tau is None:
            return
        if tau > period:
            raise CommandError(
                (
                    f"{self.session.subject.profile}: its effect takes about {tau:g} s to appear, too long for "
                    f"periods of {period:g} s"
                ),
                hint=f"--period {6 * tau:g}; or --tau SECONDS, where it is known to be less",
            )
        discard = min(discard_for(tau), MOST_DISCARDED_SHARE * period)
        self._update_live(tau_seconds=tau, tau_from="measured", discard_seconds=discard)

    def _require_figures(self, series: Sequence[Sequence[PeriodSeries]]) -> None:
        """Raise CommandError where the claimed figure was the same in every second of both arms, or was never above 0:
        hours more would say nothing either."""
        claimed = self._judged[0].name
        values = {value for periods in series for period in periods for value in period.values}
        if claimed in self._asked_late or not series or len(values) > 1:
            return
        value = next(iter(values), None)
        raise CommandError(
            f"{claimed} measures nothing: no figure above 0 in any second of the short pairs"
            if not value
            else (
                f"{claimed} measures nothing: it was {value:g} in every second of the short pairs, with the "
                "change and without"
            ),
            hint=IDLE_HINT,
        )

    def measure_unit(self, index: int, attempt: int) -> Pair:
        self.unfinished = runs = list[FioRun]()
        return self._measure_pair(index, attempt, self._live.period_seconds, self._live.discard_seconds, runs)

    def _measure_pair(self, index: int, attempt: int, seconds: float, discard: float, runs: list[FioRun]) -> Pair:
        order = self.draw_order()
        self._series = []
        for arm in order:
            runs.append(self._measure_period(arm, seconds, discard, runs[0] if runs else None))
        is_whole = not any(run.lamps for run in runs)
        for metric in self._judged if is_whole else ():
            effect = _effect_of(metric, runs[0], runs[1])
            if effect is not None:
                self._harm[metric.name].add_pair(effect)
        self._check_harm({name: test.evidence for name, test in self._harm.items()})
        return Pair(index, attempt, "".join(order), tuple(runs), contaminated=not is_whole)

    def _measure_period(self, arm: Arm, seconds: float, discard: float, other: FioRun | None) -> FioRun:
        """One period: the arm is activated, each second read and checked, what was discarded is not counted."""
        self.arms.place(arm)
        began = seen_until = self._clock.now()
        self._source.read_since(self._clock)
        sums: dict[str, tuple[float, float]] = {}
        series: list[float | None] = []
        seen: list[tuple[float, Reading]] = []
        claimed = self._judged[0].name
        lamps: tuple[str, ...] = ()
        while seen_until < began + seconds - _ROUNDING:
            self.stop.check()
            self._clock.sleep(max(0.0, min(began + seconds, seen_until + TICK_SECONDS) - self._clock.now()))
            reading = self._source.read_since(self._clock)
            self._check_limits(reading, arm)
            now = self._clock.now()
            if now - seen_until > SUSPENDED_SECONDS:
                lamps = (SUSPENDED,)
            seen.append((now - began, reading))
            series.append(figure_of(reading.get(claimed)))
            if seen_until >= began + discard - TICK_SECONDS / 2:
                _add_reading(sums, reading)
            seen_until = now
            is_late = seen_until - began - discard >= (seconds - discard) / 2
            if is_late and other is not None and not lamps and not other.lamps:
                self._look_ahead(other, self._make_run(arm, began, seconds - discard, sums, number=-1))
        if seconds > PROBE_SECONDS:
            # A server's own period is longer than a short one.
            asked = self._source.read_period(seconds - discard)
            self._check_limits(asked, arm)
            sums |= asked
        self._toggle.require_unchanged()
        run = self._make_run(arm, began, seconds - discard, sums, number=len(self.measurer.raw), lamps=lamps)
        self.measurer.raw[run.number] = json.dumps(
            [{"at": at, **{name: figure_of(pair) for name, pair in reading.items()}} for at, reading in seen]
        )
        self._series.append(PeriodSeries(arm == "B", series))
        return run

    def _make_run(
        self, arm: Arm, began: float, seconds: float, sums: Reading, *, number: int, lamps: tuple[str, ...] = ()
    ) -> FioRun:
        measures = {name: value for name, pair in sums.items() if (value := figure_of(pair)) is not None}
        figures = msgspec.structs.replace(NO_FIGURES, runtime_seconds=seconds, measures=measures)
        at_seconds = began - self._began
        return FioRun(number, arm, LIVE_WORKLOAD, at_seconds, figures, Covariates(seconds), lamps)

    def _check_limits(self, reading: Reading, arm: Arm) -> None:
        for limit, value in _exceeded(self._limits, reading):
            raise WithdrawnError(
                f"{limit.words} was found ({limit.metric} was {value:.4g} in arm {arm}): withdrawn for good",
                ended="limit",
            )

    def _look_ahead(self, first: FioRun, second: FioRun) -> None:
        """The test for harm on the pair under way, as if it ended now."""
        found = {}
        for metric in self._judged:
            effect = None if metric.name in self._asked_late else _effect_of(metric, first, second)
            if effect is not None:
                found[metric.name] = self._harm[metric.name].look_ahead(effect)
        self._check_harm(found)

    def _check_harm(self, found: Mapping[str, float]) -> None:
        self._update_live(harm=max(self._live.harm, *found.values(), 0.0))
        for name, evidence in found.items():
            if evidence >= HARM_LEVEL * len(self._judged):
                raise WithdrawnError(
                    _harm_words(next(one for one in self._judged if one.name == name), self._harm[name], evidence),
                    ended="harm",
                )


def _harm_words(metric: Metric, test: HarmTest, evidence: float) -> str:
    """The change is that of the figure itself in the middle pair, as in every other line."""
    middle = median(test.effects) if test.effects else 0.0
    worse, pairs = sum(effect < 0 for effect in test.effects), count_noun(len(test.effects), "pair")
    if abs(middle) >= ONE_SIDED:
        return (
            f"{metric.name} was worse in arm B in {worse} of {pairs}, an outage in the middle one (E = "
            f"{evidence:.1f}): withdrawn for good"
        )
    return (
        f"{metric.name} was worse in arm B in {worse} of {pairs}, {math.expm1(metric.sign * middle):+.0%} in the "
        f"middle one (E = {evidence:.1f}): withdrawn for good"
    )


def _add_reading(sums: dict[str, tuple[float, float]], reading: Reading) -> None:
    for name, (over, under) in reading.items():
        before = sums.get(name, (0.0, 0.0))
        sums[name] = (before[0] + over, before[1] + under)


def _effect_of(metric: Metric, first: FioRun, second: FioRun) -> float | None:
    values = {run.arm: run.figures.measures.get(metric.name) for run in (first, second)}
    return compare_figures(values["A"], values["B"], metric.sign)


# -- before it starts --------------------------------------------------------------------------------------------------


def require_switchable(plan: Plan, profile: Profile, period: float) -> None:
    """Raise RefusedError where a value cannot be switched under traffic: it does not act at once, interrupts
    something, or takes minutes to show."""
    for change in plan.changes:
        needed = class_of(change)
        if needed != "T0":
            raise RefusedError(
                f"{change.tunable}: {_CLASS_REASONS[needed]}",
                hint="prove-live takes values that act at once and interrupt nothing; prove the others with --target"
                " or --command",
            )
        if is_slow(change.tunable):
            raise RefusedError(
                (
                    f"{change.tunable}: acts on caches or on the placement of pages, and its effect builds up "
                    "over minutes: short periods would not show it"
                ),
                hint="prove it with --target or --command, where each run begins alike",
            )
    declared = profile.proof
    if declared is not None and toggle_class(declared.toggle, plan.changes) != "T0":
        raise RefusedError(f"{profile.name} declares {declared.toggle}: only T0 is switched under traffic")
    if declared is not None and declared.settle_seconds > MOST_DISCARDED_SHARE * period:
        raise RefusedError(
            f"{profile.name} asks for {declared.settle_seconds:g} s to settle, too long for periods of {period:g} s",
            hint=f"--period {2 * declared.settle_seconds:g}",
        )


_CLASS_REASONS: Mapping[str, str] = {
    "T1": "acts on new sockets, sessions or mounts only: the traffic that is there would not notice",
    "T2": "may interrupt a link: live traffic must not pay for a measurement",
    "T3": "needs a reboot or a rebuild: it cannot be switched on and off",
}


def _choose_metrics(
    host: Host, plan: Plan, options: LiveOptions, disks: Sequence[str]
) -> tuple[list[CommandMetric], int]:
    """All metrics, and how many of them are judged: the user's, or those of the host that fit what is switched. Its
    others that can be read follow."""
    given = list(parse_metrics(options.metrics, LIVE_KINDS))
    is_network = any(change.tunable.startswith("sysctl:net.") for change in plan.changes)
    own_disks = any(change.tunable.startswith(("block:", "md:")) for change in plan.changes)
    if not given:
        # A shorter wait because less was asked for is no gain, so that the rate must not get worse.
        fitting = DISK_METRICS if own_disks else ("tcp-rtt",) if is_network else ()
        if not fitting:
            raise UsageError(
                "prove-live needs --metric: nothing that the host counts fits these values",
                hint="--metric 'p99=command:CMD:lower:ms', or --metric host:NAME",
            )
        given = list(parse_metrics([f"host:{name}" for name in fitting], LIVE_KINDS))
    judged = len(given)
    for one in given:
        fault = _counter_fault(host, one.expression, disks) if one.kind == "host" else None
        if fault is not None:
            raise RefusedError(f"--metric host:{one.expression}: {fault}")
    wanted = (*(DISK_METRICS if own_disks else ()), *(NETWORK_METRICS if is_network else ()), *PRESSURE_METRICS)
    taken = {word for one in given for word in (one.name, one.expression)}
    for name in wanted:
        if name not in taken and _counter_fault(host, name, disks) is None:
            given += parse_metrics([f"host:{name}"], LIVE_KINDS)
    return given, judged


def _counter_fault(host: Host, name: str, disks: Sequence[str]) -> str | None:
    """Why a counter of the host cannot be read."""
    try:
        HostCounters(host, [name], disks).read_since(0.0)
    except ValueError as error:
        return str(error)
    return None


def _disks_of(host: Host, plan: Plan) -> tuple[str, ...]:
    """The disks that the plan changes; without any, the whole disks of this host."""
    own = [change.tunable.split(":")[1] for change in plan.changes if change.tunable.startswith(("block:", "md:"))]
    return tuple(dict.fromkeys(own)) or tuple(name for name in host.names("/sys/block") if not _STACKED.match(name))


_STACKED = lazy_regex(r"(?:loop|ram|zram|dm-|md|sr|nbd|fd)[0-9]")


def _make_switchback(options: LiveOptions, limits: Sequence[Limit]) -> Switchback:
    period = options.period_seconds
    if not LEAST_PERIOD <= period <= MOST_PERIOD:
        raise UsageError(f"--period {period:g}: expected {LEAST_PERIOD:g} to {MOST_PERIOD:g} s")
    tau = ASSUMED_TAU if options.tau_seconds is None else options.tau_seconds
    if not 0 <= tau <= MOST_PERIOD:
        raise UsageError(f"--tau {tau:g}: expected seconds, 0 or more")
    discard = discard_for(tau)
    if options.tau_seconds is not None and discard > MOST_DISCARDED_SHARE * period:
        raise UsageError(
            f"--tau {tau:g}: too long for periods of {period:g} s",
            hint=f"--period {math.ceil(discard / MOST_DISCARDED_SHARE):g}",
        )
    return Switchback(
        period_seconds=period,
        discard_seconds=min(discard, MOST_DISCARDED_SHARE * period),
        tau_seconds=tau,
        tau_from="assumed" if options.tau_seconds is None else "given",
        limits=tuple(one.words for one in limits),
    )


def prove_live(
    host: Host,
    asked: RequestedProfile,
    values: Mapping[str, str],
    settings: Settings,
    options: LiveOptions,
    *,
    consent: Consent,
    words: Sequence[str] = (),
    progress: Progress = silent,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
    clock: LiveClock | None = None,
) -> Proof:
    """Switch a profile's values under the traffic that is there, and judge them by what is read meanwhile.

    ``words`` are recorded as those that repeat the call; ``clock`` is the kernel's steady one unless given. Raises
    UsageError and RefusedError before anything is changed, InterruptedSessionError with the partial result after a
    signal, NotRestoredError where something is not restored.
    """
    profile = asked.profile
    with locked_store(host, store, say) as kept:
        arm = plan_arm(host, asked, values, scan(host), kept)
        plan = arm.plan
        require_switchable(plan, profile, options.period_seconds)
        disks = _disks_of(host, plan)
        metrics, judged = _choose_metrics(host, plan, options, disks)
        limits = parse_limits(options.limits, metrics)
        switchback = _make_switchback(options, limits)
        mode = MODES[settings.mode]
        schedule = plan_periods(mode, settings, switchback.period_seconds)
        periods = 2 * (PROBE_PAIRS + schedule.pairs)
        consent(
            LivePlan(
                profile.name,
                plan.changes,
                tuple(metrics),
                judged,
                switchback.limits,
                periods,
                switchback,
                schedule.predicted_seconds,
            )
        )
        live = OwnCommand(
            (), tuple(metrics), options.directory, options.user, options.metric_timeout, tuple(options.environment)
        )
        subject = resolve_subject(
            command_subject(profile.name, live, asked.own_words, judged=judged, workload=LIVE_WORKLOAD), mode
        )
        with caught_signals() as stop:
            clock = clock or SteadyClock(stop)
            process = CommandProcess(live, options.environment)
            source = LiveSource(host, live, disks, process, stop)
            _try_out(source, clock, limits, switchback)
            progress(ProgressEvent("plan", 0, schedule.pairs, schedule.predicted_seconds))
            session = Session(
                subject=subject,
                schedule=schedule,
                toggle_class="T0",
                seed=settings.seed if settings.seed is not None else secrets.randbits(32),
                target="",
                file_system="live",
                device=None,
                fio_version="",
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                host=read_identity(host),
                judged_by="pair",
                options=tuple(words),
                values=settings_of(plan),
                live=switchback,
            )
            with run_trial(host, plan, kept) as running:
                toggle = PlanToggle(running, [msgspec.structs.replace(arm, name="B")])
                # Nothing is waited for after a switch: the start of a period is discarded instead.
                toggle.settle_seconds = 0.0
                chosen = msgspec.structs.replace(settings, keep_if_gain=False)
                site = Site(host, NOWHERE, chosen, process, stop, progress)
                return LiveConductor(site, toggle, session, source, clock, limits).run()


def plan_periods(mode: Mode, settings: Settings, period: float) -> Schedule:
    """Return the pairs that fit, of periods of so many seconds, after the short ones. Raises RefusedError."""
    fixed = 2 * PROBE_PAIRS * PROBE_SECONDS
    return make_live_schedule(mode, period, fixed=fixed, budget_seconds=settings.budget_seconds)


def _try_out(source: LiveSource, clock: LiveClock, limits: Sequence[Limit], live: Switchback) -> None:
    """Before anything is changed: every metric has a figure soon enough, and no limit is exceeded already."""
    source.read_since(clock)
    clock.sleep(TICK_SECONDS)
    began = clock.now()
    reading = source.read_since(clock)
    took = clock.now() - began
    if took > SLOWEST_READING:
        raise RefusedError(
            f"reading the metrics once takes {took:.1f} s: harm and limits are checked each second",
            hint="let the command print a figure that the service keeps, or ask a server once a period (prom:)",
        )
    reading = {**reading, **source.read_period(live.period_seconds - live.discard_seconds)}
    for limit, value in _exceeded(limits, reading):
        raise RefusedError(
            f"{limit.words}: {limit.metric} is {value:.4g} already, with nothing changed",
            hint="choose a limit beyond what is usual",
        )


def _exceeded(limits: Sequence[Limit], reading: Reading) -> Iterator[tuple[Limit, float]]:
    for limit in limits:
        value = figure_of(reading.get(limit.metric))
        if value is not None and limit.is_exceeded(value):
            yield limit, value
