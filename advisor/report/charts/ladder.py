"""Latency ladder: the percentiles of completion latency, of both arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from advisor.proof.metrics import MetricName
from advisor.proof.records import Proof, Summary
from advisor.report.charts.scale import LogScale, is_drawable, log_scale, tick_words, value_ticks
from advisor.report.charts.shapes import LINE_HEIGHT, Box, ChartLine, Label, Mark, Picture, Shape, fit_text
from advisor.report.format import clean

RUNGS: Final[tuple[tuple[MetricName, str], ...]] = (
    ("latency_p50", "p50"),
    ("latency_p95", "p95"),
    ("latency_p99", "p99"),
    ("latency_p999", "p99.9"),
)
DISPLAY_ONLY: Final[MetricName] = "latency_p999"
"""Its noise from run to run is too large for any claim."""

LEFT: Final = 19.0
TOP: Final = 2 * LINE_HEIGHT
PLOT_HEIGHT: Final = 150.0
_MOST_TICKS: Final = 6
_ASIDE: Final = 1.6
"""Percent of the width that the arms stand apart, so that equal latencies hide neither."""
_STEP: Final = (100.0 - LEFT) / len(RUNGS)


def read_rungs(proof: Proof, name: str) -> tuple[tuple[str, Summary], ...]:
    """The percentiles of one workload that were measured, each with its name, judged or not."""
    return rungs_of((*proof.exploratory, *proof.guardrails, *proof.workloads), name)


def rungs_of(items: Iterable[Summary], name: str) -> tuple[tuple[str, Summary], ...]:
    """The same among any summaries; of two of one metric the later one."""
    found = {item.metric: item for item in items if item.name == name and item.pairs}
    return tuple((label, found[metric]) for metric, label in RUNGS if metric in found)


def laddered_names(proof: Proof) -> tuple[str, ...]:
    """The workloads with percentiles to show."""
    names = dict.fromkeys(item.name for item in (*proof.workloads, *proof.guardrails, *proof.exploratory))
    return tuple(name for name in names if read_rungs(proof, name))


def draw_ladder(proof: Proof, name: str, number: int) -> Picture | None:
    """The percentiles of one workload; None where none can be drawn. ``number`` identifies the workload."""
    return ladder_of(read_rungs(proof, name), name, number)


def ladder_of(found: Sequence[tuple[str, Summary]], name: str, number: int, *, arm: str = "Arm") -> Picture | None:
    """The same of any percentiles; ``arm`` is the word for what A and B are."""
    values = [value for _, item in found for value in (item.before, item.after) if value is not None]
    if not any(map(is_drawable, values)):
        return None
    scale = log_scale(values, TOP + PLOT_HEIGHT, TOP)
    places = {label: LEFT + (at + 0.5) * _STEP for at, (_, label) in enumerate(RUNGS)}
    unit = found[0][1].unit
    shapes: list[Shape] = [Label(0.0, LINE_HEIGHT - 2, fit_text(unit, 60), look="tick")]
    for value in value_ticks(scale, _MOST_TICKS):
        y = scale.at(value)
        shapes += [ChartLine(LEFT, y, 100.0, y, "grid"), Label(LEFT - 1, y + 4, tick_words(value), "end", "tick")]
    at = places[dict(RUNGS)[DISPLAY_ONLY]]
    return Picture(
        name=f"ladder-{number}",
        title=f"Latency of {clean(name)}",
        description=f"Percentiles of completion latency in {clean(unit)}, medians of the runs, on a logarithmic scale."
        f" {arm} A is a solid line with circles, {arm.lower()} B a dashed one with diamonds. p99.9 is for display only:"
        " it varies too much from run to run for any claim. All values are in the table that follows.",
        height=TOP + PLOT_HEIGHT + LINE_HEIGHT + 8,
        shapes=(
            Box(at - _STEP / 2, TOP, _STEP, PLOT_HEIGHT, "display-only"),
            Label(100.0, TOP - 4, "for display only", "end", "tick"),
            *shapes,
            *(Label(places[label], TOP + PLOT_HEIGHT + LINE_HEIGHT, label, "middle", "tick") for label, _ in found),
            *_draw_arms(found, places, scale),
        ),
    )


def _draw_arms(found: Sequence[tuple[str, Summary]], places: dict[str, float], scale: LogScale) -> Iterable[Shape]:
    before = [(places[name] - _ASIDE, scale.at(at)) for name, item in found if is_drawable(at := item.before)]
    after = [(places[name] + _ASIDE, scale.at(at)) for name, item in found if is_drawable(at := item.after)]
    for look, points in (("ladder a", before), ("ladder b", after)):
        for (x1, y1), (x2, y2) in pairwise(points):
            yield ChartLine(x1, y1, x2, y2, look)
    for x, y in before:
        yield Mark(x, y, "circle", "full a")
    for x, y in after:
        yield Mark(x, y, "diamond", "full b")
