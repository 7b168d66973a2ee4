"""Charts of measured values on a logarithmic scale: pairs of a claim, runs in their order, percentiles of latency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Literal

import msgspec

from advisor.host.numbers import is_count
from advisor.proof.metrics import METRICS, Metric, MetricName
from advisor.proof.records import FioRun, Proof, Session, Summary
from advisor.proof.verdict import counted_pairs, make_sample
from advisor.proof.workloads import WORKLOADS
from advisor.report.format import clean
from advisor.report.proof_numbers import format_figure
from advisor.report.proof_words import METRIC_WORDS, metric_words
from advisor.report.svg import (
    LETTER_WIDTH,
    LINE_HEIGHT,
    MIN_WIDTH,
    Box,
    Label,
    Line,
    Mark,
    Picture,
    Shape,
    Symbol,
    cut_text,
    draw_grid,
    hold_label,
    is_drawable,
    log_scale,
    without_overlap,
)

_LEFT = 19.0
_ARMS: dict[str, tuple[str, Symbol]] = {"A": ("a", "circle"), "B": ("b", "diamond")}

# -- slope graph: one line for each pair, from arm A to arm B ----------------------------------------------------------

A_AT, B_AT = 33.0, 85.0


class PairValues(msgspec.Struct, frozen=True):
    """Both arms of a pair in the metric's printed unit; ``change`` is after over before, less one."""

    pair: int
    order: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after / self.before - 1

    def is_better(self, metric: Metric) -> bool:
        """Tell whether arm B was better, by however little."""
        return metric.sign * (self.after - self.before) > 0


def pair_values(proof: Proof, claim: Summary) -> tuple[PairValues, ...]:
    """Return the pairs that the claim's figures come from, as the verdict takes them; numbered from 1."""
    samples = [(pair, make_sample([pair], claim.name, claim.described)) for pair in counted_pairs(proof.session)]
    return tuple(
        PairValues(pair.index + 1, pair.order, before, after)
        for pair, sample in samples
        for before, after in zip(sample.before, sample.after, strict=True)
        if is_drawable(before) and is_drawable(after)
    )


def draw_slope(proof: Proof, claim: Summary, number: int) -> Picture | None:
    """Draw the pairs of one claim; None without pairs. ``number`` identifies the claim on the page."""
    pairs = pair_values(proof, claim)
    if not pairs:
        return None
    arms = ((A_AT, "A, before", claim.before), (B_AT, "B, after", claim.after))
    medians = [(at, value) for at, _, value in arms if is_drawable(value)]
    values = [*(value for pair in pairs for value in (pair.before, pair.after)), *(value for _, value in medians)]
    top, bottom = 3 * LINE_HEIGHT, 3 * LINE_HEIGHT + 170
    scale = log_scale(values, bottom, top)
    unit = clean(claim.unit)
    shapes = [*draw_grid(scale, 6, _LEFT), Label(0.0, LINE_HEIGHT - 2, cut_text(unit, 50), look="tick")]
    for at, name, value in arms:
        shapes.append(Label(at, LINE_HEIGHT - 2, name, "middle", "strong"))
        if is_drawable(value):
            words = cut_text(f"median {format_figure(value)}", 132)
            shapes.append(hold_label(Label(at, 2 * LINE_HEIGHT - 2, words, "middle", "quiet")))
    better = [pair.is_better(claim.described) for pair in pairs]
    for pair, is_better in zip(pairs, better, strict=True):
        look = "pair better" if is_better else "pair worse"
        shapes.append(Line(A_AT, scale.at(pair.before), B_AT, scale.at(pair.after), look))
    if len(medians) == 2:
        before, after = (scale.at(value) for _, value in medians)
        shapes += [
            Line(A_AT, before, B_AT, after, "median"),
            Mark(A_AT, before, "circle", "full a"),
            Mark(B_AT, after, "diamond", "full b"),
        ]
    return Picture(
        f"slope-{number}",
        bottom + 8,
        shapes,
        f"{metric_words(claim)} of {clean(claim.name)}, pair by pair",
        f"A line for each of {len(pairs)} pairs from arm A to arm B, on a logarithmic scale in"
        f" {unit}. Arm B was better in {sum(better)} of them: solid lines; the others are dashed."
        " The thick line joins the medians. All values are in the table that follows.",
    )


# -- timeline: every run of a workload in the order in which it was made -----------------------------------------------

_RIGHT = 99.5
_TOP = 1.5 * LINE_HEIGHT
_HEIGHT = 130.0

State = Literal["counts", "repeated", "incomplete", "warm-up"]


class TimelineEntry(msgspec.Struct, frozen=True):
    """A run and where it belongs. ``pair`` counts from 1, 0 in the warm-up."""

    run: FioRun
    pair: int = 0
    attempt: int = 0
    order: str = ""
    state: State = "warm-up"
    contaminated: bool = False


def list_entries(session: Session) -> tuple[TimelineEntry, ...]:
    """Return all runs of a session, controls among them, by their number."""
    entries = [TimelineEntry(run) for run in session.warm_up]
    for pair in session.pairs:
        state: State = "incomplete" if not pair.whole else "repeated" if pair.superseded else "counts"
        entries += [
            TimelineEntry(run, pair.index + 1, pair.attempt + 1, pair.order, state, bool(run.lamps))
            for run in (*pair.runs, *pair.control_runs)
        ]
    return tuple(sorted(entries, key=lambda entry: entry.run.number))


def timed_metrics(proof: Proof) -> tuple[tuple[str, MetricName], ...]:
    """Return the workloads that were run, each with the metric to show: that of its first claim, else its own."""
    claimed: dict[str, MetricName] = {claim.name: claim.metric for claim in reversed(proof.workloads)}
    names = dict.fromkeys(entry.run.workload for entry in list_entries(proof.session))
    return tuple(
        (name, claimed.get(name) or (WORKLOADS[name].metric if name in WORKLOADS else "iops")) for name in names
    )


def metric_unit(proof: Proof, metric: MetricName) -> str:
    """Return the unit of a metric, also of one of the user's own command."""
    known = {claim.metric: claim.unit for claim in proof.workloads}
    return known.get(metric) or (METRICS[metric].unit if metric in METRICS else "")


def draw_timeline(proof: Proof, name: str, metric: MetricName, number: int) -> Picture | None:
    """Draw the runs of one workload; None without values. ``number`` identifies the workload on the page."""
    shown = [
        (entry, value)
        for entry in list_entries(proof.session)
        if entry.run.workload == name and is_drawable(value := entry.run.figures.value(metric))
    ]
    if not shown:
        return None
    scale = log_scale([value for _, value in shown], _TOP + _HEIGHT, _TOP)
    unit = clean(metric_unit(proof, metric))
    step = (_RIGHT - _LEFT) / len(shown)
    stripes: list[Shape] = []
    spoilt: list[Shape] = []
    marks: list[Shape] = []
    for at, (entry, value) in enumerate(shown):
        x = _LEFT + (at + 0.5) * step
        look, symbol = _ARMS["A" if entry.run.arm == "A" else "B"]
        look += ("" if entry.state == "counts" else " faint") + (" small" if len(shown) > 60 else "")
        marks.append(Mark(x, scale.at(value), symbol, look))
        if entry.contaminated:
            spoilt += [
                Box(_LEFT + at * step, _TOP, step, _HEIGHT, "contaminated"),
                Mark(x, _TOP - 6, "cross", "contaminated-mark"),
            ]
    # Each attempt at a pair, and the warm-up, is a group; every other group has a slightly darker ground.
    strip: list[Shape] = []
    numbers: list[Label] = []
    x, top = _LEFT, _TOP + _HEIGHT
    for at, (_, found) in enumerate(groupby(shown, key=lambda item: (item[0].pair, item[0].attempt))):
        group = [entry for entry, _ in found]
        width, first = len(group) * step, group[0]
        stripes += [Box(x, _TOP, width, _HEIGHT, "stripe")] if at % 2 else []
        words = str(first.pair) if first.pair else "warm-up"
        numbers.append(Label(x + width / 2, top + 3 * LINE_HEIGHT, words, "middle", "tick"))
        if first.pair:
            strip.append(Box(x, top + 2, width, 2 * LINE_HEIGHT, "order-ab" if first.order == "AB" else "order-ba"))
            # Letters of the order from top to bottom, unless the pair is too narrow for them.
            for line, entry in enumerate(group[:2] if width * MIN_WIDTH / 100 >= LETTER_WIDTH + 1 else ()):
                strip.append(
                    Label(x + width / 2, top + (line + 1) * LINE_HEIGHT - 1, entry.run.arm, "middle", "letter")
                )
        x += width
    return Picture(
        f"timeline-{number}",
        top + 3 * LINE_HEIGHT + 6,
        [
            *stripes,
            *spoilt,
            Label(0.0, LINE_HEIGHT - 4, cut_text(unit, MIN_WIDTH), look="tick"),
            *draw_grid(scale, 5, _LEFT, _RIGHT),
            *marks,
            *strip,
            *_thin_labels(numbers),
        ],
        f"{clean(METRIC_WORDS.get(metric, metric))} of {clean(name)}, run by run",
        f"{len(shown)} runs from the first to the last, in {unit} on a logarithmic scale. Arm A is a circle, arm B a"
        " diamond; what does not count (warm-up, repeated, incomplete) is faint."
        f" {sum(entry.contaminated for entry, _ in shown)} contaminated runs are"
        " shaded and have a cross. Below, the order of each pair. All runs are in the table of runs.",
    )


def _thin_labels(numbers: Sequence[Label]) -> list[Label]:
    """Return the numbers of every pair, or of every second, fifth, tenth: as many as fit."""
    shown: list[Label] = []
    for stride in (1, 2, 5, 10, 20, 50, 100):
        shown = [hold_label(one) for one in numbers if not is_count(one.text) or int(one.text) % stride == 0]
        if without_overlap(shown) == shown:
            break
    return without_overlap(shown)


# -- ladder: percentiles of completion latency, of both arms -----------------------------------------------------------

DISPLAY_ONLY: MetricName = "latency_p999"
"""Its noise from run to run is too large for any claim."""

RUNGS: dict[MetricName, str] = {"latency_p50": "p50", "latency_p95": "p95", "latency_p99": "p99", DISPLAY_ONLY: "p99.9"}


def read_rungs(proof: Proof, name: str) -> tuple[tuple[str, Summary], ...]:
    """Return the measured percentiles of one workload, each with its name, judged or not."""
    return rungs_of((*proof.exploratory, *proof.guardrails, *proof.workloads), name)


def rungs_of(items: Iterable[Summary], name: str) -> tuple[tuple[str, Summary], ...]:
    """Return the same among any summaries; of two of one metric the later one."""
    found = {item.metric: item for item in items if item.name == name and item.pairs}
    return tuple((label, found[metric]) for metric, label in RUNGS.items() if metric in found)


def laddered_names(proof: Proof) -> tuple[str, ...]:
    """Return the workloads with percentiles to show."""
    names = dict.fromkeys(item.name for item in (*proof.workloads, *proof.guardrails, *proof.exploratory))
    return tuple(name for name in names if read_rungs(proof, name))


def draw_ladder(proof: Proof, name: str, number: int) -> Picture | None:
    """Draw the percentiles of one workload; None without any. ``number`` identifies the workload."""
    rungs = read_rungs(proof, name)
    values = [value for _, item in rungs for value in (item.before, item.after) if is_drawable(value)]
    if not values:
        return None
    top, height = 2 * LINE_HEIGHT, 150.0
    bottom = top + height
    scale = log_scale(values, bottom, top)
    step = (100.0 - _LEFT) / len(RUNGS)
    places = {label: _LEFT + (at + 0.5) * step for at, label in enumerate(RUNGS.values())}
    unit = clean(rungs[0][1].unit)
    shapes: list[Shape] = [
        Box(places[RUNGS[DISPLAY_ONLY]] - step / 2, top, step, height, "display-only"),
        Label(100.0, top - 4, "for display only", "end", "tick"),
        Label(0.0, LINE_HEIGHT - 2, cut_text(unit, 60), look="tick"),
        *draw_grid(scale, 6, _LEFT),
        *(Label(places[label], bottom + LINE_HEIGHT, label, "middle", "tick") for label, _ in rungs),
    ]
    # The arms stand a little apart, so that equal latencies hide neither.
    before = [(places[label] - 1.6, scale.at(item.before)) for label, item in rungs if is_drawable(item.before)]
    after = [(places[label] + 1.6, scale.at(item.after)) for label, item in rungs if is_drawable(item.after)]
    for look, points in (("ladder a", before), ("ladder b", after)):
        shapes += [Line(*one, *other, look) for one, other in pairwise(points)]
    shapes += [Mark(x, y, "circle", "full a") for x, y in before]
    shapes += [Mark(x, y, "diamond", "full b") for x, y in after]
    return Picture(
        f"ladder-{number}",
        bottom + LINE_HEIGHT + 8,
        shapes,
        f"Latency of {clean(name)}",
        f"Percentiles of completion latency in {unit}, medians of the runs, on a logarithmic scale."
        " Arm A is a solid line with circles, arm B a dashed one with diamonds. p99.9 is for display only:"
        " it varies too much from run to run for any claim. All values are in the table that follows.",
    )
