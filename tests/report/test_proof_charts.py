"""The layout of a proof's pictures: every point inside, no label over another, and each where its value belongs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.proof.metrics import METRICS
from advisor.proof.records import Claim, Pair, Proof, Summary, Verdict
from advisor.proof.verdict import decide_session
from advisor.report.charts.changes import LEFT, RIGHT, draw_forest
from advisor.report.charts.runs import (
    draw_ladder,
    draw_slope,
    draw_timeline,
    laddered_names,
    list_entries,
    pair_values,
    read_rungs,
    timed_metrics,
)
from advisor.report.proof_rows import axis_ends, groups_of
from advisor.report.svg import (
    MIN_WIDTH,
    Box,
    Label,
    Line,
    Mark,
    Picture,
    Scale,
    chart_width,
    cut_text,
    is_drawable,
    label_extent,
    log_scale,
    tick_words,
    value_ticks,
)
from tests.proof.sessions import pair, run, session
from tests.report.test_proof import GAIN, PROOFS, TWO, controlled, extra, pairs, proof_of

replace = msgspec.structs.replace
POSITIVE = st.floats(min_value=1e-79, max_value=1e79)


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


def pictures(proof: Proof) -> Iterator[Picture]:
    found = [draw_forest(proof)]
    found += [made for number, claim in enumerate(proof.workloads) if (made := draw_slope(proof, claim, number))]
    found += [made for name, metric in timed_metrics(proof) if (made := draw_timeline(proof, name, metric, 1))]
    found += [made for name in laddered_names(proof) if (made := draw_ladder(proof, name, 1))]
    yield from found


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
def test_every_picture_is_laid_out_within_itself(name: str) -> None:
    for picture in pictures(ALL[name]):
        assert_laid_out(picture)


# -- scales and ticks ----------------------------------------------------------------------------------------------


@given(st.lists(POSITIVE, min_size=1), st.integers(min_value=2, max_value=8))
def test_a_scale_keeps_order_and_every_value_inside(values: list[float], most: int) -> None:
    scale = log_scale(values, 200.0, 20.0)
    places = [scale.at(value) for value in sorted(values)]
    assert all(20 < place < 200 for place in places)
    assert places == sorted(places, reverse=True)


@given(st.lists(POSITIVE, min_size=1, max_size=5), st.integers(min_value=3, max_value=8))
def test_ticks_rise_lie_inside_and_are_few(values: list[float], most: int) -> None:
    scale = log_scale(values, 200.0, 20.0)
    ticks = value_ticks(scale, most)
    assert len(ticks) <= most
    assert all(low < high for low, high in itertools.pairwise(ticks))
    assert all(scale.low <= math.log(tick) <= scale.high for tick in ticks)


@given(st.floats(min_value=1e-6, max_value=1e9), st.floats(min_value=1.2, max_value=1e6))
def test_a_range_that_occurs_has_two_ticks_or_more(low: float, factor: float) -> None:
    assert len(value_ticks(log_scale([low, low * factor], 200.0, 20.0), 6)) >= 2


def test_ticks_are_round() -> None:
    def ticks(low: float, high: float) -> list[float]:
        return value_ticks(Scale(math.log(low), math.log(high), 0, 1, is_log=True), 6)

    assert ticks(890, 1450) == [900, 1000, 1100, 1200, 1300, 1400]
    assert ticks(90, 60_000) == [100, 300, 1000, 3000, 10000, 30000]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0025, "2.5e-03"), (0.5, "0.5"), (102.5, "102.5"), (1200.0, "1,200"), (250_000.0, "250k"), (1.05e6, "1.05M")],
)
def test_ticks_in_few_characters(value: float, words: str) -> None:
    assert tick_words(value) == words


@given(st.floats(min_value=1e-99, max_value=1e99))
def test_no_tick_is_longer_than_its_column(value: float) -> None:
    assert len(tick_words(value)) <= 7


@pytest.mark.parametrize("values", [[], [0.0, -1.0, math.nan, math.inf], [1.0, 1.0]])
def test_a_scale_around_next_to_nothing_is_a_scale(values: list[float]) -> None:
    scale = log_scale(values, 200.0, 20.0)
    assert 20 < scale.at(1.0) < 200


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
    assert len(marks) == sum(item.ratio is not None for item in judged)
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


@settings(deadline=None, max_examples=150)
@given(st.lists(SUMMARIES, min_size=1, max_size=3), st.lists(SUMMARIES, max_size=3), st.lists(SUMMARIES, max_size=3))
def test_whatever_a_record_holds_is_laid_out(
    claims: list[Summary], guardrails: list[Summary], exploratory: list[Summary]
) -> None:
    made = replace(
        PROOFS["gain"], workloads=tuple(claims), guardrails=tuple(guardrails), exploratory=tuple(exploratory)
    )
    for picture in pictures(made):
        assert_laid_out(picture)


# -- slope graph ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_one_line_for_each_pair_that_the_claim_s_figures_come_from(name: str) -> None:
    for number, claim in enumerate(ALL[name].workloads):
        picture = draw_slope(ALL[name], claim, number)
        lines = [shape for shape in picture.shapes if isinstance(shape, Line)] if picture else []
        assert len([line for line in lines if line.look.startswith("pair ")]) == claim.pairs


def test_better_is_solid_for_latency_too() -> None:
    proof = decide_session(session(pairs(1.25, noise=0.0), Claim("infoscale.4k-rand-r100", "latency_p50")))
    picture = draw_slope(proof, proof.workloads[0], 1)
    assert picture is not None
    lines = [shape for shape in picture.shapes if isinstance(shape, Line) and shape.look.startswith("pair ")]
    assert {line.look for line in lines} == {"pair better"}
    assert all(line.y2 > line.y1 for line in lines), "a latency that falls goes down"


def test_the_values_of_a_pair_are_those_of_its_runs() -> None:
    proof = proof_of(GAIN, pairs=(pair(0, 1000.0, 1250.0), pair(1, 990.0, 1100.0, order="BA")))
    found = pair_values(proof, proof.workloads[0])
    assert [(one.pair, one.order) for one in found] == [(1, "AB"), (2, "BA")]
    assert [value for one in found for value in (one.before, one.after)] == pytest.approx([1000, 1250, 990, 1100])


# -- timeline ------------------------------------------------------------------------------------------------------


def test_every_run_stands_in_order_arms_differ_in_shape_and_in_look() -> None:
    proof = ALL["contaminated"]
    runs = [*proof.session.warm_up, *(run for pair in proof.session.pairs for run in pair.runs)]
    ((name, metric),) = timed_metrics(proof)
    picture = draw_timeline(proof, name, metric, 1)
    assert picture is not None
    marks = [shape for shape in picture.shapes if isinstance(shape, Mark) and shape.symbol != "cross"]
    assert len(marks) == len(runs)
    assert [mark.x for mark in marks] == sorted(mark.x for mark in marks)
    assert [{"circle": "A", "diamond": "B"}[mark.symbol] for mark in marks] == [run.arm for run in runs]
    assert [mark.look[0].upper() for mark in marks] == [run.arm for run in runs]
    # The faster a run, the higher it stands.
    speeds = sorted(range(len(runs)), key=lambda at: runs[at].figures.iops)
    assert [marks[at].y for at in speeds] == sorted((mark.y for mark in marks), reverse=True)


def test_contaminated_runs_are_shaded_and_what_does_not_count_is_faint() -> None:
    proof = ALL["contaminated"]
    ((name, metric),) = timed_metrics(proof)
    picture = draw_timeline(proof, name, metric, 1)
    assert picture is not None
    shaded = [shape for shape in picture.shapes if isinstance(shape, Box) and shape.look == "contaminated"]
    assert len(shaded) == 8
    faint = [shape for shape in picture.shapes if isinstance(shape, Mark) and "faint" in shape.look]
    assert len(faint) == 3 + 2 * 8
    marks = {shape.x for shape in picture.shapes if isinstance(shape, Mark) and shape.symbol == "diamond"}
    assert all(any(box.x < x < box.x + box.width for x in marks) for box in shaded)


def test_runs_follow_their_numbers_wherever_the_record_keeps_them() -> None:
    control = (replace(run("A", 1e6, "null.4k"), number=1), replace(run("B", 1e6, "null.4k"), number=3))
    runs = (replace(run("A", 1000.0), number=0), replace(run("B", 1200.0), number=2))
    proof = proof_of(GAIN, pairs=(replace(pair(0, 1000.0, 1200.0), runs=runs, control_runs=control),))
    assert [entry.run.number for entry in list_entries(proof.session)] == [0, 1, 2, 3]


def test_an_incomplete_pair_is_shown_and_does_not_count() -> None:
    cut = replace(pair(3, 1000.0, 1200.0), whole=False, runs=(run("B", 1200.0),), order="B")
    found = list_entries(proof_of(GAIN, pairs=(*GAIN.pairs, cut), ended="interrupted").session)
    assert [entry.state for entry in found[-2:]] == ["counts", "incomplete"]


# -- latency ladder ------------------------------------------------------------------------------------------------


def test_the_ladder_has_four_rungs_for_both_arms_whether_judged_or_not() -> None:
    proof = PROOFS["latency"]
    name = proof.workloads[0].name
    assert [label for label, _ in read_rungs(proof, name)] == ["p50", "p95", "p99", "p99.9"]
    picture = draw_ladder(proof, name, 1)
    assert picture is not None
    marks = [shape for shape in picture.shapes if isinstance(shape, Mark)]
    assert [mark.symbol for mark in marks] == ["circle"] * 4 + ["diamond"] * 4
    values = [
        value for arm in ("before", "after") for _, item in read_rungs(proof, name) for value in [getattr(item, arm)]
    ]
    ranked = sorted(range(8), key=lambda at: values[at])
    assert [marks[at].y for at in ranked] == sorted((mark.y for mark in marks), reverse=True)


def test_p999_is_marked_as_for_display_only() -> None:
    proof = PROOFS["gain"]
    picture = draw_ladder(proof, proof.workloads[0].name, 1)
    assert picture is not None
    box = next(shape for shape in picture.shapes if isinstance(shape, Box) and shape.look == "display-only")
    names = {shape.text: shape.x for shape in picture.shapes if isinstance(shape, Label)}
    assert [label for label in ("p50", "p95", "p99", "p99.9") if box.x < names[label] < box.x + box.width] == ["p99.9"]
    assert "for display only" in names


def test_what_was_not_measured_has_no_picture() -> None:
    proof = PROOFS["interrupted"]
    assert draw_slope(proof, proof.workloads[0], 1) is None
    assert timed_metrics(proof) == ()
    assert laddered_names(proof) == ()
    assert not is_drawable(None)
