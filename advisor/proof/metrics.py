"""What one fio run yields, and the metrics that a claim can be made on."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from advisor.facts.system.memory import parse_paired
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex
from advisor.observe.disks import parse_diskstats
from advisor.observe.memory import parse_pressure
from advisor.observe.network import CONNECTIONS, parse_connections
from advisor.version import __version__

if TYPE_CHECKING:
    from http.client import HTTPMessage

# Which host was measured: distinguishes a saved series of another machine or kernel from one of this host.

_APPLICATION = b"advisor"


class HostIdentity(msgspec.Struct, frozen=True):
    """A host by its names; ``None`` is unknown. ``machine`` is a hash of /etc/machine-id, which stays when the host is
    renamed; ``version`` is that of advisor, whose workloads were run."""

    name: str | None = None
    machine: str | None = None
    kernel: str | None = None
    version: str = __version__


def read_identity(host: Host) -> HostIdentity:
    """Who the host is."""
    machine = host.read_text("/etc/machine-id")
    return HostIdentity(
        name=host.read_text("/proc/sys/kernel/hostname"),
        machine=None if machine is None else _hash_machine(machine),
        kernel=host.read_text("/proc/sys/kernel/osrelease"),
    )


def _hash_machine(machine: str) -> str:
    import hashlib
    import hmac

    return hmac.new(machine.encode("utf-8", "replace"), _APPLICATION, hashlib.sha256).hexdigest()[:32]


FioMetric = Literal[
    "iops",
    "bandwidth",
    "latency_mean",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "latency_p999",
    "cpu_per_io",
    "delivered",
]
MetricName = str
"""One of fio's, or what the user calls a figure of a command of their own."""


class Metric(msgspec.Struct, frozen=True):
    """Name, unit as printed, and whether a higher or a lower value is better."""

    name: MetricName
    unit: str
    better: Literal["higher", "lower"]

    @property
    def sign(self) -> int:
        """+1 or -1: what turns a raw ln ratio into one where plus is better."""
        return 1 if self.better == "higher" else -1


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("iops", "IOPS", "higher"),
        Metric("bandwidth", "MB/s", "higher"),
        Metric("latency_mean", "us", "lower"),
        Metric("latency_p50", "us", "lower"),
        Metric("latency_p95", "us", "lower"),
        Metric("latency_p99", "us", "lower"),
        # run-to-run noise of 33-68 %: for display, never for a claim
        Metric("latency_p999", "us", "lower"),
        Metric("cpu_per_io", "us", "lower"),
        # of what one end of a network run sent, the share that the other end received
        Metric("delivered", "%", "higher"),
    )
}
CLAIMABLE: tuple[FioMetric, ...] = ("iops", "bandwidth", "latency_mean", "latency_p50", "latency_p95", "latency_p99")


class RunFigures(msgspec.Struct, frozen=True):
    """One accepted fio run, reads and writes and all jobs taken together. Latencies are completion latencies."""

    iops: float
    bandwidth_bytes_per_s: float
    latency_mean_us: float
    latency_p50_us: float
    latency_p95_us: float
    latency_p99_us: float
    latency_p999_us: float
    ios: int
    read_bytes: int
    written_bytes: int
    runtime_seconds: float
    cpu_us_per_io: float
    cpu_seconds: float
    """CPU time of the whole fio process, start-up included; ``cpu_us_per_io`` counts the I/O threads only."""
    sent_bytes: int | None = None
    received_bytes: int | None = None
    """Of a network run, each as the side that did it counted; IOPS and bandwidth are those of the receiver."""
    measures: Mapping[str, float] = {}
    """Of a command of the user's own, its metrics by name; all figures of fio are 0 then."""

    def value(self, metric: MetricName) -> float:
        """The figure in the metric's printed unit; 0 for one that the run has not."""
        if metric in self.measures:
            return self.measures[metric]
        match metric:
            case "iops":
                return self.iops
            case "bandwidth":
                return self.bandwidth_bytes_per_s / 1e6
            case "latency_mean":
                return self.latency_mean_us
            case "latency_p50":
                return self.latency_p50_us
            case "latency_p95":
                return self.latency_p95_us
            case "latency_p99":
                return self.latency_p99_us
            case "latency_p999":
                return self.latency_p999_us
            case "cpu_per_io":
                return self.cpu_us_per_io
            case "delivered":
                # 0 is "no value": what touches no network delivers nothing
                return 100 * (self.received_bytes or 0) / self.sent_bytes if self.sent_bytes else 0.0
            case _:
                return 0.0


# Figures that a host counts by itself: wait and rate of disks, TCP retransmissions and round trip, pressure.

Reading = Mapping[str, tuple[float, float]]
"""Numerator and denominator of each metric, by its name."""

HOST_METRICS: Mapping[str, Metric] = {
    one.name: one
    for one in (
        Metric("disk-wait", "ms", "lower"),
        Metric("disk-rate", "I/O per s", "higher"),
        Metric("tcp-rtt", "ms", "lower"),
        Metric("tcp-retransmits", "%", "lower"),
        Metric("cpu-pressure", "%", "lower"),
        Metric("io-pressure", "%", "lower"),
        Metric("memory-pressure", "%", "lower"),
    )
}
"""The disk ones are of the disks in question, the others of the whole host (TCP: of its network namespace)."""
DISK_METRICS = ("disk-wait", "disk-rate")
NETWORK_METRICS = ("tcp-rtt", "tcp-retransmits")
PRESSURE_METRICS = ("cpu-pressure", "io-pressure", "memory-pressure")
_REQUESTS = ("reads", "writes")
_WAITED = ("read_ms", "write_ms")


class _Counted(NamedTuple):
    at_seconds: float
    counters: Mapping[str, float]


class HostCounters:
    """Reads the metrics of those names; ``disks`` are kernel names, such as sda. Changes nothing."""

    def __init__(self, host: Host, names: Iterable[str], disks: Sequence[str] = ()) -> None:
        self._host = host
        self._names = tuple(dict.fromkeys(names))
        self._disks = tuple(disks)
        self._before: _Counted | None = None

    def read_since(self, now: float) -> Reading:
        """What happened since the call before, nothing at the first one; ``now`` is in seconds of a steady clock.

        Raises ValueError where a counter is not there, or is smaller than it was.
        """
        before, after = self._before, _Counted(now, self._read_counters())
        self._before = after
        found: dict[str, tuple[float, float]] = {}
        if before is not None:
            gone = {name: value - before.counters.get(name, 0) for name, value in after.counters.items()}
            for name, value in gone.items():
                if value < 0:
                    raise ValueError(
                        f"{name} fell from {before.counters.get(name, 0):g} to {after.counters[name]:g}: the "
                        "counter was reset"
                    )
            found = self._figures(gone, now - before.at_seconds)
        if "tcp-rtt" in self._names:
            found["tcp-rtt"] = self._read_round_trip()
        return found

    def _figures(self, gone: Mapping[str, float], seconds: float) -> dict[str, tuple[float, float]]:
        requests = sum(value for name, value in gone.items() if name.endswith(_REQUESTS))
        waited = sum(value for name, value in gone.items() if name.endswith(_WAITED))
        whole = {
            "disk-wait": (waited, requests),
            "disk-rate": (requests, seconds),
            "tcp-retransmits": (100 * gone.get("RetransSegs", 0), gone.get("OutSegs", 0)),
            # microseconds of a second that some task waited, in percent
            **{
                f"{what}-pressure": (gone.get(f"{what} pressure", 0) / 1e4, seconds) for what in ("cpu", "io", "memory")
            },
        }
        return {name: whole[name] for name in self._names if name in whole}

    def _read_counters(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if set(DISK_METRICS) & set(self._names):
            found |= self._read_disks()
        if "tcp-retransmits" in self._names:
            counted = parse_paired(self._require("/proc/net/snmp")).get("Tcp", {})
            found |= {name: counted[name] for name in ("RetransSegs", "OutSegs") if name in counted}
        for name in set(PRESSURE_METRICS) & set(self._names):
            what = name.partition("-")[0]
            found[f"{what} pressure"] = parse_pressure(self._require(f"/proc/pressure/{what}")).get("some_us", 0)
        return found

    def _read_disks(self) -> dict[str, float]:
        all_disks = parse_diskstats(self._require("/proc/diskstats"))
        found: dict[str, float] = {}
        for disk in self._disks:
            if disk not in all_disks:
                raise ValueError(f"{disk} is no longer in /proc/diskstats")
            counters = all_disks[disk].counters
            found |= {f"{disk} {name}": counters.get(name, 0) for name in (*_REQUESTS, *_WAITED)}
        return found

    def _require(self, path: str) -> str:
        text = self._host.read(path)
        if isinstance(text, Missing):
            raise ValueError(f"{path}: {text.why}")
        return text

    def _read_round_trip(self) -> tuple[float, float]:
        """The sum of the smoothed round trips of all established connections, and how many there are."""
        done = self._host.run(CONNECTIONS)
        if isinstance(done, Missing) or not done.ok:
            raise ValueError(f"the round trip is not known: {done.why if isinstance(done, Missing) else 'ss failed'}")
        trips = [one.gauges["rtt_ms"] for one in parse_connections(done.stdout).values() if "rtt_ms" in one.gauges]
        return sum(trips), len(trips)


# A figure of a run from a Prometheus server: an instant query at the end of the run, which holds the run alone.

ANSWER_SECONDS = 10.0
"""For one answer, name resolution included."""
ANSWER_BYTES = 1 << 20
SPAN = "$span"
"""Stands in a query for the seconds of the run, as a range: ``rate(requests_total[$span])``."""
CLOCK_SECONDS = 1.0
"""The server's clock is known from its Date header, to a second."""
_LAST_TIME = 1e12
"""Seconds since 1970 beyond any clock: JSON also holds NaN, and integers that no float holds."""
_SLICE_SECONDS = 0.05
_MAX_NAMED = 3

_SOURCE = lazy_regex(r"(https?://(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::[0-9]{1,5})?(?:/[^\s:@?#]*)?):(.+)", re.DOTALL)
_PASSWORD = lazy_regex(r"https?://[^\s/(){}\"']*@")
_SELECTOR = lazy_regex(
    r"""\s*(?:[A-Za-z_:][A-Za-z0-9_:]*)?\s*(?:\{(?:[^{}"'`]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)*\})?\s*"""
)
_QUOTED = lazy_regex(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`""")
_RANGE = lazy_regex(r"\[\s*((?:[0-9]{1,9}(?:ms|[smhdwy]))+)")
_PART = lazy_regex(r"([0-9]+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


def split_source(expression: str) -> tuple[str, str]:
    """The server's URL and the query of ``URL:QUERY``. Raises ValueError."""
    match = _SOURCE.fullmatch(expression)
    if match is None or _PASSWORD.match(expression):
        raise ValueError("expected URL:QUERY, such as http://localhost:9090:up, and no password in the URL")
    if match[2][0] in "0123456789":
        # What was read as the query is the port, with or without a path.
        raise ValueError("there is no query behind the URL: write URL:QUERY, such as http://localhost:9090:up")
    if SPAN not in match[2] and not _SELECTOR.fullmatch(match[2]):
        raise ValueError(
            "the query could hold samples from before the run: write the range of the run, such as rate(x[$span])"
        )
    return match[1].rstrip("/"), match[2]


def read_query(expression: str, began: float, check_stop: Callable[[], None]) -> str:
    """What the query of ``URL:QUERY`` gives for the time since ``began`` (of the monotonic clock): one number as the
    server writes it.

    Raises ValueError with the reason: no such host, an error status, no series or several, an answer that is too late.
    """
    url, query = split_source(expression)
    span = time.monotonic() - began
    _refuse_long_ranges(query, span)
    span_words = f"{max(1, round(1000 * span))}ms"
    asked = query.replace(SPAN, span_words)
    if _SELECTOR.fullmatch(asked):
        evaluated, sampled = _ask(url, f"timestamp({asked})", span_words, span, check_stop)
        _refuse_late(evaluated - float(sampled), time.monotonic() - began)
    return _ask(url, asked, span_words, time.monotonic() - began, check_stop)[1]


def _refuse_long_ranges(query: str, span: float) -> None:
    """A range that is longer than the run holds runs of the other arm."""
    for found in _RANGE.finditer(_QUOTED.sub("", query)):
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(found[1]))
        if seconds > span:
            raise ValueError(
                f"[{found[1]}] is longer than the run of {span:.1f} s, so it holds other runs: write [$span]"
            )


def _refuse_late(age: float, span: float) -> None:
    if age > span:
        raise ValueError(
            f"the sample is {age:.1f} s old and from before the run, which began {span:.1f} s ago: make the "
            "run several scrape intervals long"
        )


def _ask(url: str, query: str, lookback: str, span: float, check_stop: Callable[[], None]) -> tuple[float, str]:
    """The time of the only sample, and its value. Raises ValueError."""
    from urllib.parse import urlencode

    words = urlencode({"query": query, "lookback_delta": lookback, "timeout": f"{ANSWER_SECONDS:g}s"})
    body, headers = _fetch(f"{url}/api/v1/query?{words}", check_stop)
    at, value = _only_sample(_parse_data(body))
    _refuse_late(_server_time(headers) - at - CLOCK_SECONDS, span)
    return at, value


def _server_time(headers: HTTPMessage) -> float:
    """By its Date header; without one, by the clock here."""
    try:
        return parsedate_to_datetime(headers["Date"] or "").timestamp()
    except ValueError:
        return time.time()


# -- the answer --------------------------------------------------------------------------------------------------------


def _parse_data(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise ValueError("the answer is not that of Prometheus' HTTP API")
    return data


def _only_sample(data: dict[str, object]) -> tuple[float, str]:
    """(time, value) of a scalar, or of a vector of one series."""
    kind, result = data.get("resultType"), data.get("result")
    if kind == "vector" and isinstance(result, list):
        if not result:
            raise ValueError("the answer is empty: no series, or no sample since the run began")
        if len(result) > 1:
            names = (json.dumps(one.get("metric")) for one in result[:_MAX_NAMED] if isinstance(one, dict))
            raise ValueError(f"the answer has {len(result)} series; sum() or a label chooses one: {', '.join(names)}")
        result = result[0].get("value") if isinstance(result[0], dict) else None
    elif kind != "scalar":
        raise ValueError(f"the answer is a {str(kind)[:40]}; expected a vector of one series")
    match result:
        case [int() | float() as at, str() as value] if 0 <= at < _LAST_TIME:
            return float(at), value
    raise ValueError("the answer is not that of Prometheus' HTTP API")


def _fetch(address: str, check_stop: Callable[[], None]) -> tuple[bytes, HTTPMessage]:
    """The answer of that very server: no redirect, no proxy, and never longer than `ANSWER_SECONDS`.

    Raises ValueError, and what ``check_stop`` raises.
    """
    answers: list[tuple[bytes, HTTPMessage] | ValueError] = []

    def ask() -> None:
        try:
            answers.append(_open_address(address))
        except ValueError as error:
            answers.append(error)

    # Name resolution has no time limit, nor has a server that sends a byte now and then.
    thread = threading.Thread(target=ask, name="advisor-prometheus", daemon=True)
    thread.start()
    end = time.monotonic() + ANSWER_SECONDS
    while thread.is_alive() and time.monotonic() < end:
        check_stop()
        thread.join(_SLICE_SECONDS)
    if not answers:
        raise ValueError(f"no answer within {ANSWER_SECONDS:g} s")
    if isinstance(answers[0], ValueError):
        raise answers[0]
    return answers[0]


def _open_address(address: str) -> tuple[bytes, HTTPMessage]:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirect is an answer, not a way."""

        def redirect_request(self, *_args: object) -> None:
            return None

    try:
        with build_opener(ProxyHandler({}), Stay).open(address, timeout=ANSWER_SECONDS) as answer:
            body, headers = answer.read(ANSWER_BYTES + 1), answer.headers
    except HTTPError as error:
        with error:
            raise ValueError(_status_words(error.code, error.read(ANSWER_BYTES))) from None
    except URLError as error:
        reason = error.reason
        if isinstance(reason, socket.gaierror):
            raise ValueError(f"no such host: {reason.strerror or reason}") from None
        raise ValueError(f"no connection: {getattr(reason, 'strerror', None) or reason}") from None
    except (OSError, HTTPException) as error:
        raise ValueError(f"no connection: {error}") from None
    if len(body) > ANSWER_BYTES:
        raise ValueError(f"the answer is longer than {ANSWER_BYTES} bytes")
    return body, headers


def _status_words(code: int, body: bytes) -> str:
    """The server's own words of what is wrong with a query, where it has some."""
    try:
        words = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"the server answered with status {code}"
    return f"the server answered with status {code}: {str(words)[:200]}"
