"""What commands leave for monitoring: metrics in a file or on standard output, a plugin's answer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from typer import Option

from advisor.cli.output import print_text, say, terminal_width, wants_color
from advisor.errors import AdvisorError, RestoredError, UsageError

if TYPE_CHECKING:
    from advisor.fleet.runs.status import FleetStanding
    from advisor.operations import Scan
    from advisor.operations.diagnosis import ObservedSpan
    from advisor.report.monitoring import Families, MetricForm, VerifyState
    from advisor.transaction.journal import Record
    from advisor.transaction.status import Status

T = TypeVar("T")
States = Mapping[str | None, "VerifyState"]
Prometheus = Annotated[
    str | None,
    Option("--prometheus", metavar="FILE", help="Write metrics for node_exporter's textfile collector; - is stdout."),
]
OpenMetrics = Annotated[
    str | None, Option("--openmetrics", metavar="FILE", help="Write metrics as OpenMetrics text; - is stdout.")
]
Nagios = Annotated[bool, Option("--nagios", help="Answer as a Nagios plugin, with its exit codes 0 to 3.")]


class MetricFiles(NamedTuple):
    """Where metrics are written, by their form; ``-`` is standard output."""

    prometheus: str | None
    openmetrics: str | None

    @property
    def is_asked(self) -> bool:
        return any(one is not None for one in self)

    @property
    def takes_output(self) -> bool:
        """Whether standard output is taken, so that nothing else is printed there."""
        return "-" in self


def check_forms(
    files: MetricFiles, *, nagios: bool = False, as_json: bool = False, pages: Mapping[str, Path | str | None] = {}
) -> None:
    """Raises UsageError where two forms would share standard output, or metrics and one of ``pages``, which are by
    their option, one file; or where a file has no name."""
    for form, file in files._asdict().items():
        if file == "":
            raise UsageError(f"--{form}: empty", hint="name a file, or - for standard output")
    forms = [name for name, is_asked in (("--nagios", nagios), ("--json", as_json)) if is_asked]
    forms += [f"--{form} -" for form, file in files._asdict().items() if file == "-"]
    if len(forms) > 1:
        raise UsageError(
            f"{' and '.join(forms)}: one document at a time",
            hint=f"give {'--openmetrics' if forms[-1] == '--openmetrics -' else '--prometheus'} a file",
        )
    places: dict[str, str] = {}
    named = {f"--{form}": file for form, file in files._asdict().items()}
    for option, path in {**named, **pages}.items():
        if path is None or str(path) == "-":
            continue
        other = places.setdefault(os.path.abspath(path), option)
        # Two pages are compared where they are checked.
        if other != option and other in named:
            raise UsageError(f"{other} and {option} name the same file", hint="name two")


def write_metrics(families: Families, files: MetricFiles) -> None:
    """The metrics in files that are replaced as a whole and that everybody may read, or on standard output for ``-``.

    Raises UsageError where a file cannot be written; what was there stays, and its timestamp shows its age.
    """
    from advisor.operations.files import write_output
    from advisor.report.monitoring import render_metrics

    forms: tuple[MetricForm, ...] = ("prometheus", "openmetrics")
    for form in forms:
        file = getattr(files, form)
        if file == "-":
            print_text(render_metrics(families, form))
        elif file is not None:
            write_output(file, render_metrics(families, form))


def with_metrics(
    look: Callable[[], T], families: Callable[[T], Families], failed: Callable[[str], Families], files: MetricFiles
) -> T:
    """What ``look`` finds, in the files as well. Where it fails, they say so before the error goes on: a success of
    last time must not stand there."""
    if files.prometheus is None and files.openmetrics is None:
        return look()
    try:
        found = look()
    except BaseException as error:
        write_metrics(failed(str(error)), files)
        raise
    write_metrics(families(found), files)
    return found


def one_host(found: Status) -> States:
    """This host, which has no name here."""
    from advisor.report.monitoring import VerifyState

    return {None: VerifyState(time.time(), found)}


def scan_host(look: Callable[[], Scan], files: MetricFiles) -> Scan:
    """Return what ``look`` finds on this host, and write it into the metrics' files."""
    if not files.is_asked:
        return look()  # what a scan has no use for is not loaded: 15 ms
    from advisor.report.host_metrics import failed_scan_metrics, scan_metrics

    def families(found: Scan) -> Families:
        muted = len(found.findings) - len(found.active)
        at_seconds = found.provenance.captured_at or found.provenance.scanned_at
        return scan_metrics(found.active, muted=muted, unknown=len(found.facts.unknown), at_seconds=at_seconds)

    return with_metrics(look, families, lambda _: failed_scan_metrics(time.time()), files)


def observe_host(look: Callable[[], ObservedSpan], files: MetricFiles) -> ObservedSpan:
    """What a span says about a host, in the metrics' files as well."""
    if not files.is_asked:
        return look()
    from advisor.report.host_metrics import failed_why_metrics, why_metrics

    return with_metrics(
        look, lambda seen: why_metrics(seen.diagnosis, seen.uses), lambda _: failed_why_metrics(time.time()), files
    )


def fleet_hosts(found: FleetStanding) -> States:
    """The hosts of a fleet by name."""
    from advisor.report.monitoring import fleet_states

    return fleet_states(found, time.time())


def failed_state(error: str) -> Families:
    """Of a host, or a fleet, that could not be verified."""
    from advisor.report.monitoring import VerifyState, verify_metrics

    return verify_metrics({None: VerifyState(time.time(), None, error)})


def verify_host(look: Callable[[], Status], files: MetricFiles) -> Status:
    """Return what ``look`` finds on this host, and write it into the metrics' files."""
    from advisor.report.monitoring import verify_metrics

    return with_metrics(look, lambda found: verify_metrics(one_host(found)), failed_state, files)


def verified_fleet(look: Callable[[], FleetStanding], files: MetricFiles) -> FleetStanding:
    """The same of many hosts; one that could not be asked is a failure of its own in the file."""
    from advisor.report.monitoring import verify_metrics

    return with_metrics(look, lambda found: verify_metrics(fleet_hosts(found)), failed_state, files)


def answer_nagios(look: Callable[[], States]) -> int:
    """Print a plugin's answer and return its exit code: whatever goes wrong on the way is UNKNOWN, and says why."""
    from advisor.report.monitoring import VerifyState, nagios_text

    began = time.time()
    try:
        states = look()
    except AdvisorError as error:
        hint = f" ({error.hint})" if error.hint else ""
        states = {None: VerifyState(began, None, f"{error.message}{hint}")}
    except Exception as error:  # noqa: BLE001 - a plugin that ends without a word is reported as CRITICAL
        states = {None: VerifyState(began, None, f"{type(error).__name__}: {error}")}
    text, code = nagios_text(states)
    print_text(text)
    return code


# The seconds that an apply on trial has left, on a terminal whose user has agreed to it.

_TICK_SECONDS = 1.0


def is_watched(*, yes: bool, as_json: bool) -> bool:
    """Whether a person waits at a terminal. With --yes a script may want to go on and confirm by itself."""
    return not yes and not as_json and all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr))


def watch_trial(read: Callable[[str], Record], record: Record) -> Record:
    """Show the time left until the transaction is confirmed or rolled back; return it as it is then. Raises
    KeyboardInterrupt from Ctrl-C."""
    from advisor.cli.progress import wait_progress

    with wait_progress("confirm from a new login, Ctrl-C rolls back", record.seconds_left):
        while record.is_active and record.seconds_left is not None:
            time.sleep(min(_TICK_SECONDS, max(record.seconds_left, 0.05)))
            record = read(record.id)
        while record.is_unfinished:
            time.sleep(_TICK_SECONDS / 10)
            record = read(record.id)
    return record


def follow_trial(record: Record) -> int:
    """Watch a transaction on trial to its end, and report that. The exit code is 0 for confirmed, 4 for rolled back
    and 5 where something could not be restored; Ctrl-C rolls back at once, 130."""
    from advisor.operations.transactions import cancel_trial, read_transaction
    from advisor.report.transaction import rollback_text

    try:
        found = watch_trial(read_transaction, record)
    except KeyboardInterrupt:
        lost = cancel_trial(record.id, warn=say)
        print_text(rollback_text(lost, width=terminal_width(), color=wants_color()))
        return 5
    if found.is_active:
        say(f"{found.id} is confirmed; it stays active")
        return 0
    if found.state == "rolled-back":
        raise RestoredError(f"{found.id} was not confirmed in time; everything has been rolled back")
    say(f"{found.id} was not confirmed in time, and is not rolled back completely: advisor status")
    return 5
