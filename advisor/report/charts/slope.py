"""Slope graph: one line for each pair, from arm A to arm B."""

from __future__ import annotations

from typing import Final

import msgspec

from advisor.proof.metrics import Metric
from advisor.proof.records import Pair, Proof, Summary
from advisor.proof.verdict import counted_pairs, make_sample
from advisor.report.charts.scale import LogScale, is_drawable, log_scale, tick_words, value_ticks
from advisor.report.charts.shapes import LINE_HEIGHT, ChartLine, Label, Mark, Picture, Shape, fit_text, hold_label
from advisor.report.format import clean
from advisor.report.proof_numbers import format_figure
from advisor.report.proof_words import metric_words

A_AT: Final = 33.0
B_AT: Final = 85.0
TOP: Final = 3 * LINE_HEIGHT
PLOT_HEIGHT: Final = 170.0
_GUTTER: Final = 19.0
_MOST_TICKS: Final = 6
_HEAD_ROOM: Final = 132.0


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
        """Whether arm B was better, by however little."""
        return metric.sign * (self.after - self.before) > 0


def pair_values(proof: Proof, claim: Summary) -> tuple[PairValues, ...]:
    """The pairs that the claim's figures come from, as the verdict takes them; numbered from 1."""
    pairs = counted_pairs(proof.session)
    return tuple(found for pair in pairs for found in _pair_values(pair, claim))


def _pair_values(pair: Pair, claim: Summary) -> tuple[PairValues, ...]:
    data = make_sample([pair], claim.name, claim.described)
    return tuple(
        PairValues(pair.index + 1, pair.order, before, after)
        for before, after in zip(data.before, data.after, strict=True)
        if is_drawable(before) and is_drawable(after)
    )


def draw_slope(proof: Proof, claim: Summary, number: int) -> Picture | None:
    """The pairs of one claim; None where there is none. ``number`` identifies the claim on the page."""
    pairs = pair_values(proof, claim)
    if not pairs:
        return None
    medians = [value for value in (claim.before, claim.after) if value is not None and is_drawable(value)]
    scale = log_scale(
        [*(value for pair in pairs for value in (pair.before, pair.after)), *medians], TOP + PLOT_HEIGHT, TOP
    )
    better = sum(pair.is_better(claim.described) for pair in pairs)
    shapes: list[Shape] = []
    for value in value_ticks(scale, _MOST_TICKS):
        y = scale.at(value)
        shapes += [ChartLine(_GUTTER, y, 100.0, y, "grid"), Label(_GUTTER - 1, y + 4, tick_words(value), "end", "tick")]
    lines: list[Shape] = []
    for pair in pairs:
        look = "pair better" if pair.is_better(claim.described) else "pair worse"
        lines.append(ChartLine(A_AT, scale.at(pair.before), B_AT, scale.at(pair.after), look))
    return Picture(
        name=f"slope-{number}",
        title=f"{metric_words(claim)} of {clean(claim.name)}, pair by pair",
        description=f"A line for each of {len(pairs)} pairs from arm A to arm B, on a logarithmic scale in"
        f" {clean(claim.unit)}. Arm B was better in {better} of them: solid lines; the others are dashed."
        " The thick line joins the medians. All values are in the table that follows.",
        height=TOP + PLOT_HEIGHT + 8,
        shapes=(*shapes, *_draw_heads(claim), *lines, *_draw_medians(claim, scale)),
    )


def _draw_heads(claim: Summary) -> list[Shape]:
    names = ((A_AT, "A, before", claim.before), (B_AT, "B, after", claim.after))
    shapes: list[Shape] = [Label(0.0, LINE_HEIGHT - 2, fit_text(clean(claim.unit), 50), look="tick")]
    for at, name, value in names:
        shapes.append(Label(at, LINE_HEIGHT - 2, name, "middle", "strong"))
        if value is not None and is_drawable(value):
            shapes.append(
                hold_label(
                    Label(
                        at,
                        2 * LINE_HEIGHT - 2,
                        fit_text(f"median {format_figure(value)}", _HEAD_ROOM),
                        "middle",
                        "quiet",
                    )
                )
            )
    return shapes


def _draw_medians(claim: Summary, scale: LogScale) -> list[Shape]:
    if claim.before is None or claim.after is None or not (is_drawable(claim.before) and is_drawable(claim.after)):
        return []
    before, after = scale.at(claim.before), scale.at(claim.after)
    return [
        ChartLine(A_AT, before, B_AT, after, "median"),
        Mark(A_AT, before, "circle", "full a"),
        Mark(B_AT, after, "diamond", "full b"),
    ]
