"""Whether hosts are as their transactions set them, for monitoring: metrics, and a Nagios plugin's answer.

Both are pure functions of `VerifyState`, one for each host; the key None is this host, which needs no label.

The plugin's answer follows the Monitoring Plugins Development Guidelines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from advisor.report.format import clean
from advisor.report.layout import counted
from advisor.transaction.status import Drift, Status, count_values
from advisor.version import __version__

if TYPE_CHECKING:
    from advisor.fleet.runs.status import FleetStanding

# Metrics of a host as text: Prometheus' format 0.0.4, for node_exporter's textfile collector, and OpenMetrics 1.0.

MAX_LABEL = 200
"""Characters of a label's value; tunables and paths are shorter, bytes of a damaged journal may not be."""

MAX_SERIES = 100
"""Series of one name for one host. More are counted only: a name that is in a label makes a series each."""

MetricForm = Literal["prometheus", "openmetrics"]
Labels = tuple[tuple[str, str], ...]
Series = tuple[Labels, float]
UNITS = ("seconds", "ratio", "bytes")


class Gauge(msgspec.Struct, frozen=True):
    """A name, which ends in its unit where it has one, and what it means."""

    name: str
    help: str


Families = Mapping[Gauge, Sequence[Series]]


def render_metrics(families: Families, form: MetricForm = "prometheus") -> str:
    """All metrics with their series; a metric without series is left out. Labels that are alike are there once."""
    lines = [line for metric, series in families.items() for line in _metric_lines(metric, series, form)]
    if form == "openmetrics":
        lines.append("# EOF")
    return "".join(f"{line}\n" for line in lines)


def _metric_lines(metric: Gauge, series: Sequence[Series], form: MetricForm) -> Iterator[str]:
    # Names that are alike once they are cut: a series that is there twice makes node_exporter refuse the whole file.
    lines = {f"{metric.name}{_format_labels(labels)}": value for labels, value in series}
    if not lines:
        return
    is_open = form == "openmetrics"
    is_info = is_open and metric.name.endswith("_info")
    family = metric.name.removesuffix("_info") if is_info else metric.name
    text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {family} {text.replace(chr(34), chr(92) + chr(34)) if is_open else text}"
    yield f"# TYPE {family} {'info' if is_info else 'gauge'}"
    unit = metric.name.rpartition("_")[2]
    if is_open and unit in UNITS:
        yield f"# UNIT {family} {unit}"
    for name, value in lines.items():
        digits = 6 if unit == "ratio" else 3
        yield f"{name} {value:.{digits}f}" if value % 1 else f"{name} {value:.0f}"


def _format_labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escape_label(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escape_label(value: str) -> str:
    """A label's value as the formats want it. What is not printable is spelt out, but for line ends, for which they
    have a form of their own."""
    shown = "\n".join(map(clean, (value if len(value) <= MAX_LABEL else f"{value[: MAX_LABEL - 1]}…").split("\n")))
    return shown.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


MAX_LINES = 50
"""Lines of a plugin's long output; Nagios itself cuts it off at 8 KiB."""

Kind = Literal["live", "persisted"]
NagiosState = Literal["OK", "WARNING", "CRITICAL", "UNKNOWN"]
NAGIOS_CODES: Mapping[NagiosState, int] = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
_WORST_FIRST: tuple[NagiosState, ...] = ("CRITICAL", "WARNING", "UNKNOWN", "OK")


class VerifyState(msgspec.Struct, frozen=True):
    """What verifying one host came to: its ``status``, or None and ``error``, which says why it could not be done.

    ``time`` is when the host was looked at, in seconds since the epoch.
    """

    time: float
    status: Status | None
    error: str | None = None

    @property
    def drifted(self) -> tuple[Drift, ...]:
        """What was read and has drifted."""
        return tuple(one for one in self._drift if not is_unknown(one))

    @property
    def unknown(self) -> tuple[Drift, ...]:
        """What could not be read: whether it has drifted is unknown."""
        return tuple(one for one in self._drift if is_unknown(one))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of transactions that roll back automatically unless confirmed."""
        records = self.status.records if self.status else ()
        return tuple(record.id for record in records if record.state == "awaiting-confirmation")

    @property
    def _drift(self) -> tuple[Drift, ...]:
        return self.status.drift if self.status else ()


def fleet_states(found: FleetStanding, now: float) -> dict[str | None, VerifyState]:
    """The hosts of ``advisor fleet verify``, each at the time of its capture."""
    return {
        one.name: VerifyState(now, None, one.message or "could not be asked")
        if one.state == "failed"
        else VerifyState(now if one.taken is None else one.taken, Status(one.records, one.drift))
        for one in found.hosts
    }


def is_unknown(one: Drift) -> bool:
    """Whether an entry of a verify says that something could not be read, rather than that it is another."""
    return one.live is None and one.reason.startswith("cannot be read")


def kind_of(one: Drift) -> Kind:
    """A value of the running host, or a file that sets it again at boot."""
    return "persisted" if one.what.startswith("/") else "live"


# -- Metrics -------------------------------------------------------------------------------------------------------

_SUCCESS = Gauge("advisor_verify_success", "Whether the host could be verified: 1, or 0 where that failed.")
_TIME = Gauge("advisor_verify_timestamp_seconds", "When the host was looked at, in seconds since the epoch.")
_BUILD = Gauge("advisor_build_info", "The version of advisor that wrote this.")
_IN_FORCE = Gauge("advisor_transactions_in_force", "Active transactions.")
_UNFINISHED = Gauge(
    "advisor_transactions_unfinished",
    "Transactions that were interrupted or are running: neither applied nor rolled back.",
)
_WAITING = Gauge("advisor_waiting_for_confirmation", "Transactions that roll back automatically unless confirmed.")
_VALUES = Gauge("advisor_values_in_force", "Values that the active transactions have set.")
_FILES = Gauge("advisor_files_in_force", "Files that the active transactions have written.")
_DRIFTED = Gauge("advisor_drift_items", "Values (live) and files (persisted) that have drifted.")
_UNREAD = Gauge("advisor_unknown_items", "Values (live) and files (persisted) that could not be read.")
_DRIFT = Gauge("advisor_drift", f"A drifted item; the first {MAX_SERIES} of a host.")
_UNKNOWN = Gauge("advisor_unknown", f"Could not be read; the first {MAX_SERIES} of a host.")
_PROFILE = Gauge("advisor_profile_info", f"An active profile; the first {MAX_SERIES} of a host.")


def verify_metrics(hosts: Mapping[str | None, VerifyState]) -> Families:
    """The hosts' states; a host that could not be verified has `advisor_verify_success` 0 and its time, and nothing
    that could pass for its state.

    A host has at most 3 x `MAX_SERIES` + 12 series, whatever its journals hold.
    """
    found: dict[Gauge, list[Series]] = {
        _BUILD: [((("version", __version__),), 1)],
        _SUCCESS: [(_host_labels(name), float(state.status is not None)) for name, state in hosts.items()],
        _TIME: [(_host_labels(name), round(state.time, 3)) for name, state in hosts.items()],
    }
    for name, state in hosts.items():
        if state.status is not None:
            for metric, series in _state_series(state, state.status):
                found.setdefault(metric, []).extend((_host_labels(name) + labels, value) for labels, value in series)
    return found


def _state_series(state: VerifyState, status: Status) -> Iterator[tuple[Gauge, list[Series]]]:
    in_force = [record for record in status.records if record.is_active]
    values, files = count_values(in_force)
    yield _IN_FORCE, [((), len(in_force))]
    yield _UNFINISHED, [((), len(status.unfinished))]
    yield _WAITING, [((), len(state.waiting))]
    yield _VALUES, [((), values)]
    yield _FILES, [((), files)]
    yield _DRIFTED, _by_kind(state.drifted)
    yield _UNREAD, _by_kind(state.unknown)
    profiles = [(record.id, name) for record in in_force for name in record.plan.profiles]
    yield _PROFILE, [((("transaction", one), ("profile", name)), 1) for one, name in profiles[:MAX_SERIES]]
    yield _DRIFT, _drift_series(state.drifted)
    yield _UNKNOWN, _drift_series(state.unknown)


def _by_kind(items: Sequence[Drift]) -> list[Series]:
    kinds = [kind_of(one) for one in items]
    return [((("kind", kind),), kinds.count(kind)) for kind in get_args(Kind)]


def _drift_series(items: Sequence[Drift]) -> list[Series]:
    return [
        ((("transaction", one.transaction), ("tunable", one.what), ("kind", kind_of(one))), 1)
        for one in items[:MAX_SERIES]
    ]


def _host_labels(name: str | None) -> Labels:
    return () if name is None else (("host", name),)


# -- Nagios --------------------------------------------------------------------------------------------------------


def nagios_text(hosts: Mapping[str | None, VerifyState]) -> tuple[str, int]:
    """The plugin's answer and its exit code: one line with performance data, then one for each thing that is off.

    CRITICAL is a drifted live value, or an interrupted transaction. WARNING is a drifted file
    (the host runs with the applied values until it boots), or a transaction awaiting confirmation. UNKNOWN is what
    could not be read. The worst counts, CRITICAL before WARNING before UNKNOWN.
    """
    states = {name: nagios_state(state) for name, state in hosts.items()}
    worst = next(word for word in _WORST_FIRST if word in states.values() or word == "OK")
    lines = [f"ADVISOR {worst} - {_plugin_field(_summary_line(hosts))} | {_performance_data(hosts)}"]
    said = [line for name, state in hosts.items() for line in _detail_lines(name, state)]
    lines += [_plugin_field(line) for line in said[:MAX_LINES]]
    if len(said) > MAX_LINES:
        lines.append(f"and {len(said) - MAX_LINES} more")
    return "".join(f"{line}\n" for line in lines), NAGIOS_CODES[worst]


def nagios_state(state: VerifyState) -> NagiosState:
    """The state of one host."""
    if state.status is None:
        return "UNKNOWN"
    if state.status.unfinished or any(kind_of(one) == "live" for one in state.drifted):
        return "CRITICAL"
    if state.drifted or state.waiting:
        return "WARNING"
    return "UNKNOWN" if state.unknown else "OK"


def _summary_line(hosts: Mapping[str | None, VerifyState]) -> str:
    if list(hosts) == [None]:
        return "; ".join(_state_words(hosts[None]))
    off = {name: state for name, state in hosts.items() if nagios_state(state) != "OK"}
    if not off:
        return f"no drift on {counted(len(hosts), 'host')}"
    named = [f"{name}: {'; '.join(_state_words(state))}" for name, state in off.items()]
    shown = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
    return f"{len(off)} of {counted(len(hosts), 'host')} drifted or unknown: {shown}"


def _state_words(state: VerifyState) -> Iterator[str]:
    """What there is to say about one host, the worst first."""
    if state.status is None:
        yield state.error or "could not be verified"
        return
    if state.status.unfinished:
        yield f"{counted(len(state.status.unfinished), 'transaction')} interrupted or running"
    for kind, noun in (("live", "value"), ("persisted", "file")):
        items = [one for one in state.drifted if kind_of(one) == kind]
        if items:
            first = f" ({items[0].what}{', …' if len(items) > 1 else ''})"
            yield f"{counted(len(items), noun)} drifted{first}"
    if state.waiting:
        yield f"{', '.join(state.waiting)} awaiting confirmation"
    if state.unknown:
        yield f"{counted(len(state.unknown), 'item')} could not be read"
    in_force = [record for record in state.status.records if record.is_active]
    if nagios_state(state) == "OK":
        values, files = count_values(in_force)
        matching = f"{counted(values, 'value')} and {counted(files, 'file')} match"
        yield matching if in_force else "no transaction is active: nothing to verify"


def _detail_lines(name: str | None, state: VerifyState) -> Iterator[str]:
    before = "" if name is None else f"{name}: "
    if state.status is None:
        yield f"{before}UNKNOWN: {state.error or 'could not be verified'}"
        return
    for record in state.status.unfinished:
        yield f"{before}{record.id}: interrupted or running: advisor rollback"
    for one in state.drifted:
        live = "" if one.live is None else f"is {one.live}, "
        yield f"{before}{one.what}: wanted {one.wanted}, {live}{one.reason} ({one.transaction})"
    for identity in state.waiting:
        yield f"{before}{identity}: awaiting confirmation: advisor confirm {identity}"
    for one in state.unknown:
        yield f"{before}{one.what}: {one.reason} ({one.transaction})"


def _performance_data(hosts: Mapping[str | None, VerifyState]) -> str:
    states = hosts.values()
    failed = sum(state.status is None for state in states)
    in_force = [record for state in states if state.status for record in state.status.records if record.is_active]
    counts: dict[str, int | str] = {
        "drift": sum(len(state.drifted) for state in states),
        "unknown": sum(len(state.unknown) for state in states),
        "waiting": sum(len(state.waiting) for state in states),
        "transactions": len(in_force),
    }
    # U is the guidelines' word for what could not be determined.
    seen = counts if failed < len(hosts) else dict.fromkeys(counts, "U")
    more = {} if list(hosts) == [None] else {"hosts": len(hosts), "hosts_failed": failed}
    return " ".join(f"{label}={value};;;0" for label, value in {**seen, **more}.items())


def _plugin_field(text: str) -> str:
    """Text on one line; a bar would begin performance data."""
    return clean(text.replace("\n", "; ")).replace("|", "!")
