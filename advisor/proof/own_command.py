"""The user's own benchmark as the judge: what is run, which figures of its output count, and how they are found.

A metric is written ``[NAME=]KIND:EXPRESSION[:higher|lower[:UNIT]]``; the last two fields are taken from the right, so
that an expression may hold colons. Kinds: ``regex`` (the last match in the output, its first group), ``json`` (a path
such as ``.latency.p99``), ``time`` (wall seconds of the run, no expression), ``command`` (the last line that a
second command prints after the run) and ``prom`` (``URL:QUERY``, asked at the end of the run). Under live
traffic nothing is run but what a metric names: ``command`` prints a figure, ``counter`` a count since some start, and
``host`` is what the host counts by itself.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Literal

import msgspec

from advisor.errors import CommandError, UsageError
from advisor.host.patterns import lazy_regex
from advisor.proof.metrics import HOST_METRICS, Metric, split_source

COMMAND_WORKLOAD = "command"
"""What stands in a record where a workload of the library has its name."""
LIVE_WORKLOAD = "live"
"""The same, where nothing is run and the traffic that is there was measured."""
OWN_WORKLOADS = (COMMAND_WORKLOAD, LIVE_WORKLOAD)
MAX_METRICS = 8
SEARCH_SECONDS = 10.0
"""A regular expression that takes longer than this on one output is the fault of the expression."""
SMALLEST_FIGURE, LARGEST_FIGURE = 1e-9, 1e18
_LAST_LINES = 5
_LINE_CHARACTERS = 160
_EXPRESSION_MAX = 1000

MetricKind = Literal["regex", "json", "time", "command", "prom", "counter", "host"]
RUN_KINDS: tuple[MetricKind, ...] = ("regex", "json", "time", "command", "prom")
"""What can be read of a run of a command."""
LIVE_KINDS: tuple[MetricKind, ...] = ("command", "counter", "prom", "host")
"""What can be read while a service works."""

_SPEC = lazy_regex(
    r"(?:([A-Za-z][A-Za-z0-9_.-]{0,39})=)?(regex|json|time|command|prom|counter|host)(?::(.*))?", re.DOTALL
)
_NUMBER = lazy_regex(r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?")
_STEP = lazy_regex(r"\.([A-Za-z0-9_%-]+)|\[(-?[0-9]{1,9})\]|\.?\[?\"([^\"]+)\"\]?")
_LEADING_WORD = lazy_regex(r"[\^\s(]*([A-Za-z][A-Za-z0-9_-]{0,39})")


class MetricError(CommandError):
    """A run whose output does not hold the figure that it is judged by."""

    kind = "metric"


class CommandMetric(msgspec.Struct, frozen=True):
    """One figure of a run: how it is found, whether more or less of it is better, and its unit."""

    name: str
    kind: MetricKind
    expression: str = ""
    better: Literal["higher", "lower"] = "higher"
    unit: str = ""

    @property
    def described(self) -> Metric:
        """The same for tables and tests."""
        return Metric(self.name, self.unit, self.better)


class OwnCommand(msgspec.Struct, frozen=True):
    """A benchmark of the user's own. The first metric is what is claimed, the others are guardrails. Where nothing is
    run, under live traffic, ``argv`` is empty and the limit in seconds is that of a metric's command.

    ``user`` is who runs it (None: who runs the session), ``environment`` the names that are set for it; their values
    are not recorded.
    """

    argv: tuple[str, ...]
    metrics: tuple[CommandMetric, ...]
    directory: str
    user: str | None = None
    timeout_seconds: float = 600.0
    environment: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The command as one line for a shell."""
        return shlex.join(self.argv)

    def metric(self, name: str) -> Metric:
        """The metric of that name. Raises KeyError."""
        return next(one.described for one in self.metrics if one.name == name)


class CommandOutput(msgspec.Struct, frozen=True):
    """What one run printed, the end of it where it printed much; ``dropped_bytes`` came before."""

    stdout: str
    stderr: str
    seconds: float
    returncode: int
    dropped_bytes: int = 0

    @property
    def last_lines(self) -> str:
        """The end of the output on one line: of standard output, or else of standard error."""
        return last_lines(self.stdout) or last_lines(self.stderr) or "no output"


def last_lines(text: str) -> str:
    """The last lines of a text that hold something, without control characters, joined by slashes."""
    lines = [line.strip() for line in text[-_LAST_LINES * 4096 :].splitlines() if line.strip()]
    shown = ("".join(sign if sign.isprintable() else "?" for sign in line[:_LINE_CHARACTERS]) for line in lines)
    return " / ".join(list(shown)[-_LAST_LINES:])


# -- what the user writes ----------------------------------------------------------------------------------------------


def parse_metrics(given: Sequence[str], kinds: Sequence[MetricKind] = RUN_KINDS) -> tuple[CommandMetric, ...]:
    """The metrics of ``--metric``, in order, of these kinds. Raises UsageError that names the one and what is wrong
    with it."""
    if len(given) > MAX_METRICS:
        raise UsageError(f"--metric: expected at most {MAX_METRICS}, found {len(given)}")
    found: dict[str, CommandMetric] = {}
    for text in given:
        one = _parse_metric(text, len(found) + 1, kinds)
        if one.name in found:
            raise UsageError(
                f"--metric {text}: a metric is named {one.name} already",
                hint="give it a name of its own: --metric NAME=KIND:EXPRESSION",
            )
        found[one.name] = one
    return tuple(found.values())


def _parse_metric(text: str, number: int, kinds: Sequence[MetricKind]) -> CommandMetric:
    match = _SPEC.fullmatch(text)
    if match is None or len(text) > _EXPRESSION_MAX:
        raise UsageError(
            f"--metric {text[:80]}: expected [NAME=]KIND:EXPRESSION[:higher|lower[:UNIT]]",
            hint="KIND is regex, json, time, command or prom; such as --metric 'regex:tps = ([0-9.]+):higher:tps'"
            if "regex" in kinds
            else "KIND is command, counter, prom or host; such as --metric 'p99=command:/usr/local/bin/p99:lower:ms'",
        )
    if match[2] not in kinds:
        raise UsageError(f"--metric {text}: {match[2]} cannot be read here", hint=f"expected one of {', '.join(kinds)}")
    name, kind, rest = match[1], match[2], match[3] or ""
    fields = rest.split(":")
    better, unit = None, ""
    if fields[-1] in ("higher", "lower"):
        better = fields.pop()
    elif len(fields) > 1 and fields[-2] in ("higher", "lower"):
        unit, better = fields.pop(), fields.pop()
    expression = ":".join(fields)
    if kind == "time" and expression:
        raise UsageError(f"--metric {text}: time takes no expression", hint="--metric time, or --metric time:lower:s")
    if kind != "time" and not expression:
        raise UsageError(f"--metric {text}: expected an expression after {kind}:")
    if len(unit) > 20 or not unit.isprintable():
        raise UsageError(f"--metric {text}: {unit!r} is no unit")
    known = HOST_METRICS.get(expression) if kind == "host" else _TIME if kind == "time" else None
    one = CommandMetric(
        name or "",
        _KINDS[kind],
        expression,
        "lower" if (better or (known.better if known else "higher")) == "lower" else "higher",
        unit or (known.unit if known else ""),
    )
    _check_expression(one, text)
    return one if name else msgspec.structs.replace(one, name=_default_name(one, number))


_KINDS: dict[str, MetricKind] = {kind: kind for kind in (*RUN_KINDS, *LIVE_KINDS)}
_TIME = Metric("time", "s", "lower")


def _check_expression(one: CommandMetric, text: str) -> None:
    try:
        match one.kind:
            case "regex":
                re.compile(one.expression, re.MULTILINE)
            case "json":
                parse_path(one.expression)
            case "command" | "counter":
                if not shlex.split(one.expression):
                    raise ValueError("no command")
            case "prom":
                split_source(one.expression)
            case "host":
                if one.expression not in HOST_METRICS:
                    raise ValueError(f"the host counts {', '.join(HOST_METRICS)}")
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--metric {text}: no regular expression: '{error}'") from None
    except ValueError as error:
        raise UsageError(f"--metric {text}: {error!s}") from None


def _default_name(one: CommandMetric, number: int) -> str:
    match one.kind:
        case "time":
            return "time"
        case "json":
            return one.expression.strip(".")[:40]
        case "regex":
            word = _LEADING_WORD.match(one.expression)
            return word[1] if word else f"metric-{number}"
        case "host":
            return one.expression
        case "command" | "prom" | "counter":
            return f"metric-{number}"


def parse_path(path: str) -> list[str | int]:
    """The steps of ``.a.b[0]["c d"]``. Raises ValueError."""
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise ValueError(f"expected a path such as .latency.p99 or .runs[0].mean, found {path[position:]!r}")
        steps.append(int(match[2]) if match[2] is not None else match[1] or match[3])
        position = match.end()
    if not steps:
        raise ValueError("the path is empty")
    return steps


# -- what a run printed ------------------------------------------------------------------------------------------------


def read_figure(metric: CommandMetric, output: CommandOutput) -> float:
    """The figure of a run, above 0. ``command`` and ``prom`` metrics are read by who runs the command.

    Raises MetricError that names the metric and shows the last lines of the output.
    """
    try:
        match metric.kind:
            case "time":
                return output.seconds
            case "regex":
                return read_number(_last_match(metric.expression, output))
            case _:
                return read_number(_value_at(metric.expression, output.stdout))
    except ValueError as error:
        cut = f" ({output.dropped_bytes} bytes before them were dropped)" if output.dropped_bytes else ""
        raise MetricError(
            f"metric {metric.name} ({metric.kind}:{metric.expression}): {error!s}; the last lines{cut}: "
            f"{output.last_lines}"
        ) from None


def _last_match(expression: str, output: CommandOutput) -> str:
    pattern = re.compile(expression, re.MULTILINE)
    with _time_limit(SEARCH_SECONDS):
        for text in (output.stdout, output.stderr):
            last = deque(pattern.finditer(text), maxlen=1)
            if last:
                value = last[0][1] if pattern.groups else last[0][0]
                if value is None:
                    raise ValueError("the first group took no part in the match")
                return str(value)
    raise ValueError("no match")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise ValueError in the block after that time; the regular-expression engine looks for signals as it goes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise ValueError(f"the expression was still searching after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _value_at(path: str, stdout: str) -> object:
    """What the first JSON document of the output holds there. Raises ValueError."""
    value = _first_document(stdout)
    for step in parse_path(path):
        try:
            match value, step:
                case dict(), str():
                    value = value[step]
                case list(), int():
                    value = value[step]
                case _:
                    raise KeyError(step)
        except (KeyError, IndexError):
            raise ValueError(_nothing_there(step, value)) from None
    return value


def _nothing_there(step: str | int, value: object) -> str:
    if isinstance(value, dict) and value:
        return f"nothing at {step!r}; there are {', '.join(map(str, list(value)[:8]))}"
    return f"nothing at {step!r}"


def _first_document(stdout: str) -> object:
    """The document that begins at the first line with a brace or a bracket. Raises ValueError."""
    position = 0
    for line in stdout.splitlines(keepends=True):
        if line.lstrip()[:1] in ("{", "["):
            try:
                return json.JSONDecoder().raw_decode(stdout[position:].lstrip())[0]
            except (ValueError, RecursionError) as error:
                raise ValueError(f"the JSON cannot be read: '{error}'") from None
        position += len(line)
    raise ValueError("the output holds no JSON")


def read_number(value: object) -> float:
    """A number or its text as a figure of a run. Raises ValueError for what is none, not above 0 (the change is a
    ratio), or beyond what can be judged."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{_json_text(value)[:60]} is no number")
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError(f"{value[:60]!r} is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise ValueError("NaN is no number")
    if not SMALLEST_FIGURE <= number <= LARGEST_FIGURE and number > 0:
        raise ValueError(
            f"{str(value).strip()[:60]} cannot be judged: expected {SMALLEST_FIGURE:g} to {LARGEST_FIGURE:g}"
        )
    if number <= 0:
        raise ValueError(f"{number:g} is not above 0: the change is reckoned as a ratio")
    return number


def _json_text(value: object) -> str:
    """A value as the JSON had it; one that json cannot write, as Python does."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
