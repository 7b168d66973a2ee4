"""Timeline: every run of a workload in the order in which it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, Literal

import msgspec

from advisor.host.numbers import is_count
from advisor.proof.metrics import METRICS, MetricName
from advisor.proof.records import FioRun, Pair, Proof, Session
from advisor.proof.workloads import WORKLOADS
from advisor.report.charts.scale import is_drawable, log_scale, tick_words, value_ticks
from advisor.report.charts.shapes import (
    LINE_HEIGHT,
    MIN_WIDTH,
    Box,
    ChartLine,
    Label,
    Mark,
    Picture,
    Shape,
    fit_text,
    hold_label,
    text_width,
    without_overlap,
)
from advisor.report.format import clean
from advisor.report.proof_words import METRIC_WORDS

LEFT: Final = 19.0
RIGHT: Final = 99.5
TOP: Final = 1.5 * LINE_HEIGHT
PLOT_HEIGHT: Final = 130.0
_STRIP: Final = 2 * LINE_HEIGHT
_MOST_TICKS: Final = 5
_LETTERS_FROM: Final = text_width("A") + 1
"""Pixels that a pair needs at the narrowest for the letters of its order; below that its order is shaded only."""
_MANY: Final = 60

State = Literal["counts", "repeated", "incomplete", "warm-up"]


class TimelineEntry(msgspec.Struct, frozen=True):
    """A run and where it belongs. ``pair`` counts from 1, 0 in the warm-up; ``group`` is the same for the runs of one
    attempt at a pair."""

    run: FioRun
    pair: int
    attempt: int
    order: str
    state: State
    contaminated: bool


def list_entries(session: Session) -> tuple[TimelineEntry, ...]:
    """All runs of a session, controls among them, by their number; those of one number as they stand."""
    found = [TimelineEntry(run, 0, 0, "", "warm-up", False) for run in session.warm_up]
    for pair in session.pairs:
        found += [
            TimelineEntry(run, pair.index + 1, pair.attempt + 1, pair.order, _pair_state(pair), bool(run.lamps))
            for run in (*pair.runs, *pair.control_runs)
        ]
    return tuple(sorted(found, key=lambda entry: entry.run.number))


def _pair_state(pair: Pair) -> State:
    if not pair.whole:
        return "incomplete"
    return "repeated" if pair.superseded else "counts"


def timed_metrics(proof: Proof) -> tuple[tuple[str, MetricName], ...]:
    """The workloads that were run, each with the metric to show: that of its claim, else its own."""
    claimed: dict[str, MetricName] = {}
    for claim in proof.workloads:
        claimed.setdefault(claim.name, claim.metric)
    names = dict.fromkeys(entry.run.workload for entry in list_entries(proof.session))
    return tuple(
        (name, claimed.get(name) or (WORKLOADS[name].metric if name in WORKLOADS else "iops")) for name in names
    )


def metric_unit(proof: Proof, metric: MetricName) -> str:
    """The unit of a metric that is shown, one of the user's own command among them."""
    known = {name: one.unit for name, one in METRICS.items()}
    return {**known, **{one.metric: one.unit for one in proof.workloads}}.get(metric, "")


def draw_timeline(proof: Proof, name: str, metric: MetricName, number: int) -> Picture | None:
    """The runs of one workload; None where none can be drawn. ``number`` identifies the workload on the page."""
    shown = [entry for entry in list_entries(proof.session) if entry.run.workload == name]
    shown = [entry for entry in shown if is_drawable(entry.run.figures.value(metric))]
    if not shown:
        return None
    scale = log_scale([entry.run.figures.value(metric) for entry in shown], TOP + PLOT_HEIGHT, TOP)
    unit = clean(metric_unit(proof, metric))
    shapes: list[Shape] = [Label(0.0, LINE_HEIGHT - 4, fit_text(unit, MIN_WIDTH), look="tick")]
    for value in value_ticks(scale, _MOST_TICKS):
        y = scale.at(value)
        shapes += [ChartLine(LEFT, y, RIGHT, y, "grid"), Label(LEFT - 1, y + 4, tick_words(value), "end", "tick")]
    marks: list[Shape] = []
    size = " small" if len(shown) > _MANY else ""
    for position, entry in enumerate(shown):
        faint = "" if entry.state == "counts" else " faint"
        y = scale.at(entry.run.figures.value(metric))
        x = _entry_position(shown, position)
        look = f"{faint}{size}"
        marks.append(Mark(x, y, "circle", f"a{look}") if entry.run.arm == "A" else Mark(x, y, "diamond", f"b{look}"))
    return Picture(
        name=f"timeline-{number}",
        title=f"{clean(METRIC_WORDS.get(metric, metric))} of {clean(name)}, run by run",
        description=_describe_chart(shown, unit),
        height=TOP + PLOT_HEIGHT + _STRIP + LINE_HEIGHT + 6,
        shapes=(*_draw_bands(shown), *_draw_contaminated(shown), *shapes, *marks, *_draw_strip(shown)),
    )


def _describe_chart(shown: Sequence[TimelineEntry], unit: str) -> str:
    spoilt = sum(entry.contaminated for entry in shown)
    return (
        f"{len(shown)} runs from the first to the last, in {unit} on a logarithmic scale. Arm A is a circle, arm B a"
        f" diamond; what does not count (warm-up, repeated, incomplete) is faint. {spoilt} contaminated runs are"
        " shaded and have a cross. Below, the order of each pair. All runs are in the table of runs."
    )


def _entry_step(shown: Sequence[TimelineEntry]) -> float:
    return (RIGHT - LEFT) / len(shown)


def _entry_position(shown: Sequence[TimelineEntry], position: int) -> float:
    return LEFT + (position + 0.5) * _entry_step(shown)


def _group_entries(shown: Sequence[TimelineEntry]) -> Iterable[tuple[int, list[TimelineEntry]]]:
    """The position of the first run of each attempt at a pair, and its runs; the warm-up is one group."""
    position = 0
    for _, group in groupby(shown, key=lambda entry: (entry.pair, entry.attempt)):
        found = list(group)
        yield position, found
        position += len(found)


def _draw_bands(shown: Sequence[TimelineEntry]) -> Iterable[Shape]:
    """Every other pair on a slightly darker ground, so that the runs of one are seen together."""
    for number, (position, group) in enumerate(_group_entries(shown)):
        if number % 2:
            yield Box(LEFT + position * _entry_step(shown), TOP, len(group) * _entry_step(shown), PLOT_HEIGHT, "stripe")


def _draw_contaminated(shown: Sequence[TimelineEntry]) -> Iterable[Shape]:
    for position, entry in enumerate(shown):
        if entry.contaminated:
            yield Box(LEFT + position * _entry_step(shown), TOP, _entry_step(shown), PLOT_HEIGHT, "contaminated")
            yield Mark(_entry_position(shown, position), TOP - 6, "cross", "contaminated-mark")


def _draw_strip(shown: Sequence[TimelineEntry]) -> Iterable[Shape]:
    """Under each pair the letters of its order, from top to bottom, and under some its number."""
    top = TOP + PLOT_HEIGHT
    numbers: list[Label] = []
    for position, group in _group_entries(shown):
        begin, width = LEFT + position * _entry_step(shown), len(group) * _entry_step(shown)
        middle, first = begin + width / 2, group[0]
        if not first.pair:
            numbers.append(Label(middle, top + _STRIP + LINE_HEIGHT, "warm-up", "middle", "tick"))
            continue
        numbers.append(Label(middle, top + _STRIP + LINE_HEIGHT, str(first.pair), "middle", "tick"))
        yield Box(begin, top + 2, width, _STRIP, "order-ab" if first.order == "AB" else "order-ba")
        if width * MIN_WIDTH / 100 >= _LETTERS_FROM:
            for line, entry in enumerate(group[:2]):
                yield Label(middle, top + (line + 1) * LINE_HEIGHT - 1, entry.run.arm, "middle", "letter")
    yield from _thin_labels(numbers)


def _thin_labels(numbers: Sequence[Label]) -> list[Label]:
    """The numbers of every pair, or of every second, fifth, tenth: as many as fit."""
    shown: list[Label] = []
    for stride in (1, 2, 5, 10, 20, 50, 100):
        shown = [hold_label(one) for one in numbers if not is_count(one.text) or int(one.text) % stride == 0]
        if without_overlap(shown) == shown:
            return shown
    return without_overlap(shown)
