"""What a person sees while a session runs: the plan, where it is, what contaminates it. Never a figure or an effect.

On a terminal one line rewrites itself; in a file or a pipe there is one line for each pair.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, TextIO

from advisor.proof.schedule import Schedule
from advisor.proof.scratch import GIB, MIB
from advisor.proof.session_runner import Progress, ProgressEvent
from advisor.proof.switchback import PROBE_PAIRS

Say = Callable[[str], None]

SEQUENCE: Final = ("A", "B", "A again")
"""The blocks of a change that cannot be toggled freely."""

_FALLBACK_COLUMNS: Final = 80


def show_progress(say: Say) -> Progress:
    """Progress for a person: ``say`` takes whole lines; a terminal on standard error gets one line that is rewritten.

    Never raises: a terminal or a pipe that has gone silences it, and the session goes on to its end.
    """
    return _Teller(say, _LiveLine(sys.stderr) if _can_rewrite(sys.stderr) else say)


def _can_rewrite(stream: TextIO | None) -> bool:
    # There is none where the descriptor was closed before the start.
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class _Teller:
    """Puts events in words; remembers the one before, as a pair that comes twice is a repeat."""

    def __init__(self, say: Say, update: Say) -> None:
        self._say = say
        self._update = update
        self._before: ProgressEvent | None = None
        self._block = 0
        self._is_heard = True

    def __call__(self, event: ProgressEvent) -> None:
        if event.stage == "plan":
            for line in plan_lines(event):
                self._say_line(self._say, line)
        else:
            self._say_line(self._update, self._event_words(event))
        self._before = event

    def _event_words(self, event: ProgressEvent) -> str:
        if event.stage != "pair" or event.pair:
            return stage_words(event, self._before)
        self._block += 1
        return f"{sequence_words(self._block)}, {time_left(event)}"

    def _say_line(self, say: Say, text: str) -> None:
        """A terminal that hung up or a reader that left must not prevent the rollback."""
        if not self._is_heard:
            return
        try:
            say(text)
        except (OSError, ValueError):
            self._is_heard = False


class _LiveLine:
    """One line of a terminal, rewritten each time. The cursor rests below it, where an error message belongs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._up = ""

    def __call__(self, text: str) -> None:
        # A line that wrapped would be two, and only the second would be rewritten.
        width = columns_of(self._stream) - 1
        cut = text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."[: max(width, 0)]
        self._stream.write(f"{self._up}{cut}\n")
        self._stream.flush()
        self._up = "\x1b[A\r\x1b[K"


def columns_of(stream: TextIO) -> int:
    """Columns of the terminal behind a stream, 80 where it is unknown."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _FALLBACK_COLUMNS
    except (OSError, ValueError):
        return _FALLBACK_COLUMNS


def plan_lines(event: ProgressEvent) -> tuple[str, ...]:
    """What the session will do at most, before it does it: pairs, looks, seconds, bytes."""
    plan = event.schedule
    if plan is None:
        return (f"Plan: at most {event.pairs} pairs, about {format_duration(event.seconds_left)}.",)
    return (
        _plan_line(event, plan),
        f"Time: about {format_duration(plan.predicted_seconds)}; repeats of contaminated"
        f" {_unit_noun(plan)}s come on top.",
        _bytes_line(plan),
        "No figure is shown before the end, so that nobody stops at a lucky moment.",
    )


def _plan_line(event: ProgressEvent, plan: Schedule) -> str:
    if plan.arms == 1:
        each = f"{_counted_noun(event.workloads, 'workload')}, in random order"
        return f"Plan: {_counted_noun(plan.pairs, 'round')} of {plan.seconds_per_run:.3g} s runs of {each}."
    if plan.arms > 2 or event.workloads:
        what = "combinations of values" if event.are_combined else "arms"
        each = f"{plan.arms} {what}, each with {_counted_noun(event.workloads, 'workload')}"
        blocks = _counted_noun(plan.pairs, "block")
        return f"Plan: {blocks} of {each}, {plan.seconds_per_run:.3g} s a run, judged at the end."
    pairs = _counted_noun(plan.pairs, "pair")
    return f"Plan: at most {pairs} of {plan.seconds_per_run:.3g} s runs, {_looks_text(plan.looks)}."


def _unit_noun(plan: Schedule) -> str:
    return {1: "round", 2: "pair"}.get(plan.arms, "block")


def _counted_noun(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


MOST_LISTED = 4
"""Looks that are listed; more of them are the any-time test's, after every pair."""


def _looks_text(looks: tuple[int, ...]) -> str:
    if len(looks) == 1:
        return "judged once, at the end"
    if len(looks) > MOST_LISTED:
        return f"judged after every pair from {looks[0]} to {looks[-1]}"
    return f"judged after {', '.join(map(str, looks[:-1]))} and {looks[-1]}"


def _bytes_line(plan: Schedule) -> str:
    if not plan.predicted_bytes:
        return "Bytes: none will be written."
    filling = f" (scratch file {_format_size(plan.scratch_bytes)})" if plan.scratch_bytes else ""
    return (
        f"Bytes: at most {_format_size(plan.predicted_bytes)} written{filling}, limit {_format_size(plan.byte_budget)}."
    )


def _format_size(count: int) -> str:
    value, unit = (count / GIB, "GiB") if count >= GIB else (count / MIB, "MiB")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def stage_words(event: ProgressEvent, before: ProgressEvent | None) -> str:
    """One line on where the session is."""
    match event.stage:
        case "scratch":
            return f"filling the scratch file, {time_left(event)}"
        case "warm-up":
            return f"warming up, {time_left(event)}"
        case "baseline":
            return f"watching the traffic before anything is switched, {time_left(event)}"
        case "probe":
            return f"short pair {event.pair} of {PROBE_PAIRS}, {time_left(event)}"
        case "hold":
            return f"holding each arm to see whether an effect comes late, {time_left(event)}"
        case "restore":
            return "restoring the host"
    again = " again" if before is not None and (before.stage, before.pair) == (event.stage, event.pair) else ""
    lamps = f"; the last one was contaminated: {', '.join(event.lamps)}" if event.lamps else ""
    return f"{event.stage} {event.pair} of {event.pairs}{again}, {time_left(event)}{lamps}"


def sequence_words(block: int) -> str:
    """Which block of an A-B-A sequence runs; the first is 1."""
    arm = SEQUENCE[min(block, len(SEQUENCE)) - 1]
    return f"block {block} of {len(SEQUENCE)} (arm {arm})"


def time_left(event: ProgressEvent) -> str:
    """``about 3 min 5 s left``: an estimate, for how long a switch takes shows only as the session goes on."""
    return f"about {format_duration(event.seconds_left)} left"


def format_duration(seconds: float) -> str:
    """``45 s``, ``3 min 5 s``, ``2 h 10 min``: whole seconds, from an hour on whole minutes."""
    whole = round(max(0.0, seconds))
    minutes, rest = divmod(whole, 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
