"""What is measured on each host of a trial: one script a reading, its answer as figures.

A reading is a connection of its own to every host at the same time, so that a host which is away for a minute loses
one reading and not the period.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from advisor.fleet.engine import HostAnswer
from advisor.fleet.runs.executor import Hands, Say
from advisor.fleet.runs.trial_counters import TrialCounters, list_sources, source_command
from advisor.fleet.runs.trial_records import Phase, PhaseMeasured, TrialTerms
from advisor.host.patterns import lazy_regex
from advisor.proof.own_command import CommandMetric, CommandOutput, MetricError, read_figure, read_number
from advisor.proof.prometheus import read_query
from advisor.proof.statistics import median
from advisor.shell.quote import shell_quote

_SLACK_SECONDS: Final = 60
_MAX_BYTES: Final = 16 << 20
_TIMED_OUT: Final = 124
HOST_MARK: Final = "{host}"
"""What stands for the name of a host in a query of Prometheus."""
_BEGUN: Final = lazy_regex(r"([0-9]{1,4}) ([0-9]{1,12}\.[0-9]{1,9})\s*")
_ENDED: Final = lazy_regex(r"([0-9]{1,4}) ([0-9]{1,3}) ([0-9]{1,12}\.[0-9]{1,9})\s")

Sleep = Callable[[float], None]


class ReadingSection(msgspec.Struct, frozen=True):
    """What one command of a reading printed, its exit code, and when it began and ended in seconds since the boot."""

    output: str
    code: int
    began: float
    ended: float


def reading_script(terms: TrialTerms, token: str) -> str:
    """A POSIX sh script that runs what is measured and prints each output between two lines with the token."""
    lines = [
        'uptime() { read -r up _ </proc/uptime; echo "$up"; }',
        f'limited() {{ if command -v timeout >/dev/null 2>&1; then timeout {terms.timeout_seconds} "$@"; '
        'else "$@"; fi; }',
        "cd /",
    ]
    for number, command in enumerate(_commands(terms)):
        # Of a benchmark, both outputs count; a figure stands on standard output alone.
        merged = " 2>&1" if terms.command is not None and number == 0 else ""
        lines += [
            f'printf "%s\\n" "{token} begin {number} $(uptime)"',
            f"limited /bin/sh -c {shell_quote(command)} </dev/null{merged}; code=$?",
            f'printf "\\n%s\\n" "{token} end {number} $code $(uptime)"',
        ]
    return "\n".join(lines)


def _commands(terms: TrialTerms) -> list[str]:
    """What a reading runs, by the numbers of its sections; each once."""
    found = [terms.command] if terms.command is not None else []
    found += [metric.expression for metric in terms.metrics if metric.kind in ("command", "counter")]
    names = [metric.expression for metric in terms.metrics if metric.kind == "host"]
    return [*dict.fromkeys(found), *map(source_command, list_sources(names))]


def parse_reading(text: str, token: str) -> dict[int, ReadingSection]:
    """What the script printed, by number; what broke off is left out."""
    found: dict[int, ReadingSection] = {}
    for part in text.split(f"{token} begin ")[1:]:
        head, _, rest = part.partition("\n")
        body, mark, tail = rest.rpartition(f"\n{token} end ")
        begun, ended = _BEGUN.fullmatch(head), _ENDED.match(tail)
        if mark and begun is not None and ended is not None:
            found[int(begun[1])] = ReadingSection(body, int(ended[2]), float(begun[2]), float(ended[3]))
    return found


def read_phase(
    hands: Hands, terms: TrialTerms, names: Sequence[str], phase: Phase, say: Say, sleep: Sleep = time.sleep
) -> PhaseMeasured:
    """All readings of a period on these hosts, evenly over it. A host that fails one goes on with the next."""
    figures: dict[str, dict[str, list[float | None]]] = {
        metric.name: {name: [] for name in names} for metric in terms.metrics
    }
    failures: dict[str, str] = {}
    readers = {name: _Reader(terms, name) for name in names}
    # A rate needs the count before: one reading more, which yields none.
    readings = terms.rounds + terms.reads_counts
    step = terms.period_seconds / max(1, readings - 1)
    began = time.monotonic()
    for number in range(readings):
        sleep(max(0.0, began + number * step - time.monotonic()))
        if phase == "before":
            say(f"before the treatment: reading {number + 1} of {readings}")
        else:
            say(f"after the treatment: reading {number + 1} of {readings}")
        token = f"ADVISOR-{secrets.token_hex(8)}"
        seconds = terms.timeout_seconds * (1 + len(terms.metrics)) + _SLACK_SECONDS
        answers = hands.command(reading_script(terms, token), names, seconds=seconds, label=f"measure-{phase}")
        for name in names:
            failures.pop(name, None)
            for metric, value in readers[name].read(answers.get(name), token):
                if isinstance(value, str):
                    failures[name] = value
                figures[metric][name].append(None if isinstance(value, str) else value)
    kept = {metric: {name: tuple(values) for name, values in hosts.items()} for metric, hosts in figures.items()}
    return PhaseMeasured(time.time(), phase, kept, failures)


def _sections(answer: HostAnswer | None, token: str) -> dict[int, ReadingSection]:
    """What a host printed. Raises ValueError where it did not answer."""
    if answer is None or answer.state != "ok" or answer.path is None:
        raise ValueError((answer.message or answer.state) if answer is not None else "no answer")
    with answer.path.open("rb") as file:
        return parse_reading(file.read(_MAX_BYTES).decode("utf-8", "replace"), token)


class _Reader:
    """Figures of one host in one period, from reading to reading."""

    def __init__(self, terms: TrialTerms, host: str) -> None:
        self._terms, self._host = terms, host
        self._counts: dict[str, tuple[float, float]] = {}
        self._host_names = {one.expression: one.name for one in terms.metrics if one.kind == "host"}
        self._counters = TrialCounters(self._host_names)
        self._asked: float | None = None

    def read(self, answer: HostAnswer | None, token: str) -> Iterator[tuple[str, float | str | None]]:
        """Each metric with its figure, above 0; None for what needs a reading before, at the first; or why it has
        none."""
        began, self._asked = self._asked, time.monotonic()
        try:
            sections = _sections(answer, token)
            counted = self._read_counters(sections)
        except ValueError as error:
            yield from ((metric.name, str(error)) for metric in self._terms.metrics)
            return
        for metric in self._terms.metrics:
            try:
                if metric.kind == "prom":
                    yield metric.name, None if began is None else self._ask_server(metric, began)
                elif metric.kind == "host":
                    yield metric.name, self._positive(metric, counted.get(metric.expression), is_first=began is None)
                else:
                    yield metric.name, self._printed(metric, sections)
            except (ValueError, MetricError) as error:
                yield metric.name, str(error)

    def _read_counters(self, sections: Mapping[int, ReadingSection]) -> dict[str, float | None]:
        if not self._host_names:
            return {}
        sources = list_sources(self._host_names)
        first = len(_commands(self._terms)) - len(sources)
        texts: dict[str, str] = {}
        for number, source in enumerate(sources, first):
            section = sections.get(number)
            if section is None or section.code:
                raise ValueError(f"{source} cannot be read there")
            texts[source] = section.output
        return self._counters.figures_since(texts, sections[first].began)

    def _ask_server(self, metric: CommandMetric, began: float) -> float:
        expression = metric.expression.replace(HOST_MARK, self._host)
        try:
            return read_number(read_query(expression, began, lambda: None))
        except ValueError as error:
            raise ValueError(f"metric {metric.name}: {error!s}") from None

    def _positive(self, metric: CommandMetric, value: float | None, *, is_first: bool) -> float | None:
        """A rate, of which 0 is no figure: the change is a ratio."""
        if is_first or value:
            return value
        raise ValueError(f"metric {metric.name}: nothing was counted since the reading before")

    def _printed(self, metric: CommandMetric, sections: Mapping[int, ReadingSection]) -> float | None:
        number = _commands(self._terms).index(
            metric.expression if metric.kind in ("command", "counter") else self._terms.command or ""
        )
        section = sections.get(number)
        if section is None:
            raise ValueError(f"metric {metric.name}: the answer breaks off")
        output = CommandOutput(section.output, "", section.ended - section.began, section.code)
        lines = output.last_lines
        if section.code == _TIMED_OUT:
            raise ValueError(f"metric {metric.name}: the command took too long: {lines}")
        if section.code:
            raise ValueError(f"metric {metric.name}: the command ended with {section.code}: {lines}")
        if metric.kind not in ("command", "counter"):
            return read_figure(metric, output)
        try:
            value = read_number(section.output.strip())
        except ValueError as error:
            raise ValueError(f"metric {metric.name}: {error!s}") from None
        return value if metric.kind == "command" else self._rate_since(metric, value, section.ended)

    def _rate_since(self, metric: CommandMetric, count: float, at: float) -> float | None:
        """A second, since the reading before; None at the first one. Raises ValueError where the count fell."""
        before = self._counts.get(metric.name)
        self._counts[metric.name] = (count, at)
        if before is None:
            return None
        if count < before[0] or at <= before[1]:
            raise ValueError(f"the count fell from {before[0]:g} to {count:g}: it was reset")
        return self._positive(metric, (count - before[0]) / (at - before[1]), is_first=False)


def level_of(values: Sequence[float | None], rounds: int) -> float | None:
    """The median of the logarithms of the readings; None where more than half of them failed."""
    found = [math.log(value) for value in values if value is not None]
    return median(found) if found and 2 * len(found) >= rounds else None


def baseline_change(values: Sequence[float | None]) -> float | None:
    """How far the second half of the readings lies from the first, in logarithms: what a host changes by itself."""
    half = len(values) // 2
    first, second = level_of(values[:half], half), level_of(values[half:], len(values) - half)
    return None if first is None or second is None else second - first
