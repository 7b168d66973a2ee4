"""What ``advisor verify`` and ``advisor fleet verify`` leave for monitoring: a metrics file, a plugin's answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, TypeVar

from advisor.cli.output import print_text
from advisor.cli.parameters import Option
from advisor.errors import AdvisorError, UsageError
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.fleet.runs.status import FleetStanding
    from advisor.report.monitoring import VerifyState
    from advisor.transaction.status import Status

T = TypeVar("T")
States = Mapping[str | None, "VerifyState"]
Prometheus = Annotated[
    str | None,
    Option("--prometheus", metavar="FILE", help="Write metrics for node_exporter's textfile collector; - is stdout."),
]
Nagios = Annotated[bool, Option("--nagios", help="Answer as a Nagios plugin, with its exit codes 0 to 3.")]


def check_forms(*, prometheus: str | None, nagios: bool, as_json: bool) -> None:
    """Raises UsageError where two forms would share standard output."""
    forms = [name for name, is_asked in (("--nagios", nagios), ("--json", as_json)) if is_asked]
    forms += ["--prometheus -"] if prometheus == "-" else []
    if len(forms) > 1:
        raise UsageError(
            msg("{forms}: one document at a time", forms=" and ".join(forms)), hint="give --prometheus a file"
        )


def write_prometheus(hosts: States, file: str) -> None:
    """The metrics in a file that is replaced as a whole and that everybody may read, or on standard output for ``-``.

    Raises UsageError where the file cannot be written; what was there stays, and its timestamp shows its age.
    """
    from advisor.operations.files import write_output
    from advisor.report.monitoring import prometheus_text

    text = prometheus_text(hosts)
    if file == "-":
        print_text(text)
    else:
        write_output(file, text)


def one_host(found: Status) -> States:
    """This host, which has no name here."""
    from advisor.report.monitoring import VerifyState

    return {None: VerifyState(time.time(), found)}


def verify_host(look: Callable[[], Status], prometheus: str | None) -> Status:
    """What ``look`` finds on this host, in the metrics file as well."""
    return _write_metrics(look, one_host, prometheus)


def verified_fleet(look: Callable[[], FleetStanding], prometheus: str | None) -> FleetStanding:
    """The same of many hosts; one that could not be asked is a failure of its own in the file."""
    return _write_metrics(look, fleet_hosts, prometheus)


def fleet_hosts(found: FleetStanding) -> States:
    """The hosts of a fleet by name."""
    from advisor.report.monitoring import fleet_states

    return fleet_states(found, time.time())


def _write_metrics(look: Callable[[], T], states: Callable[[T], States], prometheus: str | None) -> T:
    """Where ``look`` fails, the file says so before the error goes on: a success of last time must not stand there."""
    from advisor.report.monitoring import VerifyState

    if prometheus is None:
        return look()
    try:
        found = look()
    except BaseException as error:
        write_prometheus({None: VerifyState(time.time(), None, str(error))}, prometheus)
        raise
    write_prometheus(states(found), prometheus)
    return found


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
