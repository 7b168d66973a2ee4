"""The layout of a proof's pictures: every point inside, no label over another, and each where its value belongs."""

from __future__ import annotations

import math
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.proof.metrics import METRICS
from advisor.proof.records import Claim, Pair, Proof, Summary, Verdict
from advisor.proof.verdict import decide_session
from advisor.report.html import MIN_WIDTH, Box, Label, Line, Mark, Picture, chart_width, cut_text, label_extent
from advisor.report.proof.page import LEFT, RIGHT, draw_forest
from advisor.report.proof.result import axis_ends, groups_of
from tests.proof.sessions import run, session
from tests.report.test_proof import GAIN, PROOFS, TWO, controlled, extra, pairs, proof_of

replace = msgspec.structs.replace


def contaminated(made: tuple[Pair, ...]) -> Proof:
    """Every third pair had a contaminated run and was repeated."""
    found: list[Pair] = []
    for number, one in enumerate(made):
        if number % 3 == 0:
            lit = tuple(replace(run, lamps=("disk",)) if run.arm == "B" else run for run in one.runs)
            found.append(replace(one, runs=lit, contaminated=True, superseded=True))
        found.append(replace(one, attempt=1 if number % 3 == 0 else 0))
    return proof_of(GAIN, pairs=tuple(found), warm_up=(run("A", 700), run("A", 900), run("B", 1200)))


ALL: dict[str, Proof] = {
    **PROOFS,
    "contaminated": contaminated(pairs(1.3)),
    "deep": decide_session(session(extra(controlled(pairs(1.1, 48), 1.0), 0.9), *TWO, mode="deep", control="null.4k")),
    "far apart": decide_session(session(pairs(1e-9, 8), Claim("infoscale.4k-rand-r100"))),
}


def assert_laid_out(picture: Picture) -> None:
    """Every shape inside the picture, at its narrowest; no label over another."""
    for shape in picture.shapes:
        match shape:
            case Line():
                points = [(shape.x1, shape.y1), (shape.x2, shape.y2)]
            case Box():
                assert shape.width >= 0
                assert shape.height >= 0
                points = [(shape.x, shape.y), (shape.x + shape.width, shape.y + shape.height)]
            case Mark():
                points = [(shape.x, shape.y)]
            case Label():
                begin, end = label_extent(shape)
                assert -0.01 <= begin <= end <= MIN_WIDTH + 0.01, (picture.name, shape)
                points = [(shape.x, shape.y)]
        for x, y in points:
            assert -1e-9 <= x <= 100 + 1e-9, (picture.name, shape)
            assert 0 <= y <= picture.height, (picture.name, shape)
    assert_apart([shape for shape in picture.shapes if isinstance(shape, Label)], picture.name)


def assert_apart(labels: list[Label], name: str) -> None:
    labels.sort(key=lambda label: label.y)
    for at, one in enumerate(labels):
        for other in labels[at + 1 :]:
            if other.y >= one.y + 10:
                break
            (begin, end), (from_, to) = label_extent(one), label_extent(other)
            assert end <= from_ or to <= begin, (name, one, other)


@pytest.mark.parametrize("name", ALL)
def test_the_picture_is_laid_out_within_itself(name: str) -> None:
    assert_laid_out(draw_forest(ALL[name]))


@given(st.text(max_size=400), st.floats(min_value=0, max_value=400))
def test_a_text_that_is_made_to_fit_does(text: str, room: float) -> None:
    made = cut_text(text, room)
    assert chart_width(made) <= max(room, chart_width("…"))
    assert made.isprintable()


# -- forest plot ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_forest_has_each_claim_guardrail_and_control_once(name: str) -> None:
    proof = ALL[name]
    judged = [*proof.workloads, *proof.guardrails, *([proof.control] if proof.control else [])]
    marks = [shape for shape in draw_forest(proof).shapes if isinstance(shape, Mark)]
    assert len(marks) == sum(item.ci95 is not None for item in judged)
    bands = [shape for shape in draw_forest(proof).shapes if isinstance(shape, Box)]
    assert len(bands) == len(proof.workloads) + len(proof.guardrails)


def test_estimate_interval_band_and_zero_are_where_their_values_are() -> None:
    proof = PROOFS["gain"]
    low, high = axis_ends(row for group in groups_of(proof) if group.is_judged for row in group.rows)

    def place(ratio: float) -> float:
        return LEFT + (math.log(ratio) - low) / (high - low) * (RIGHT - LEFT)

    claim, shapes = proof.workloads[0], draw_forest(proof).shapes
    assert claim.ratio is not None
    assert claim.ci95 is not None
    interval = next(shape for shape in shapes if isinstance(shape, Line) and shape.look.startswith("interval"))
    assert (interval.x1, interval.x2) == pytest.approx([place(bound) for bound in claim.ci95])
    assert next(shape for shape in shapes if isinstance(shape, Mark)).x == pytest.approx(place(claim.ratio))
    band = next(shape for shape in shapes if isinstance(shape, Box))
    assert (band.x, band.x + band.width) == pytest.approx((place(1 / 1.1), place(1.1)))
    zero = next(shape for shape in shapes if isinstance(shape, Line) and shape.look == "zero")
    assert zero.x1 == pytest.approx(place(1.0))


def test_a_latency_that_falls_stands_at_its_own_figure() -> None:
    """Where less is better, too, the tick at a mark is the change that is printed next to it."""
    proof = PROOFS["latency"]
    low, high = axis_ends(row for group in groups_of(proof) if group.is_judged for row in group.rows)
    shapes = draw_forest(proof).shapes
    claim = proof.workloads[0]
    assert claim.better == "lower"
    assert claim.ratio is not None
    assert claim.ratio < 0.9
    mark = next(shape for shape in shapes if isinstance(shape, Mark))
    assert math.exp(low + (mark.x - LEFT) / (RIGHT - LEFT) * (high - low)) == pytest.approx(claim.ratio)
    tick = next(shape for shape in shapes if isinstance(shape, Label) and shape.text == "-20 %")
    assert tick.x == pytest.approx(LEFT + (math.log(0.8) - low) / (high - low) * (RIGHT - LEFT))
    tail = next(item for item in proof.guardrails if item.metric == "latency_p99")
    row = next(row for group in groups_of(proof) for row in group.rows if row.summary is tail)
    assert row.band == pytest.approx((0, math.log(1.1)))


SUMMARIES = st.builds(
    Summary,
    name=st.text(max_size=60),
    metric=st.sampled_from(sorted(METRICS)),
    unit=st.text(max_size=60),
    better=st.sampled_from(["higher", "lower"]),
    before=st.one_of(st.none(), st.floats()),
    after=st.one_of(st.none(), st.floats()),
    ratio=st.one_of(st.none(), st.floats()),
    ci95=st.one_of(st.none(), st.tuples(st.floats(), st.floats())),
    pairs=st.integers(min_value=0, max_value=10**9),
    margin=st.one_of(st.none(), st.floats(min_value=0.001, max_value=0.999)),
    limit=st.one_of(st.none(), st.floats(min_value=0.001)),
    verdict=st.one_of(st.none(), st.sampled_from(get_args(Verdict))),
)


@settings(deadline=None, max_examples=50)
@given(st.lists(SUMMARIES, min_size=1, max_size=3), st.lists(SUMMARIES, max_size=3), st.lists(SUMMARIES, max_size=3))
def test_whatever_a_record_holds_is_laid_out(
    claims: list[Summary], guardrails: list[Summary], exploratory: list[Summary]
) -> None:
    made = replace(
        PROOFS["gain"], workloads=tuple(claims), guardrails=tuple(guardrails), exploratory=tuple(exploratory)
    )
    assert_laid_out(draw_forest(made))
