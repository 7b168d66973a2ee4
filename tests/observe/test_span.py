"""Spans: rates, and what is unknown."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.host import Missing
from advisor.observe.sample import CounterSpan, Sample


def samples(*rows: dict[str, int] | None, kind: str = "disk") -> list[Sample]:
    return [
        Sample(10.0 * number, {kind: {} if row is None else {"sda": row}}) for number, row in enumerate(rows, start=1)
    ]


def why(answer: object) -> str:
    assert isinstance(answer, Missing)
    return answer.why


def test_rates_over_all_or_between_the_ends() -> None:
    span = CounterSpan(samples({"reads": 100}, {"reads": 150}, {"reads": 400}))
    assert span.seconds == 20.0
    assert (span.delta("disk", "sda", "reads"), span.rate("disk", "sda", "reads")) == (300, 15.0)
    assert [step.delta("disk", "sda", "reads") for step in span.steps()] == [50, 250]
    middle = Sample(5.0, {"disk": {}})
    ends = [
        Sample(at, {"disk": {}, "irq": {"40": {"total": count, "0": count}}}) for at, count in ((1.0, 0), (9.0, 80))
    ]
    span = CounterSpan([Sample(0.0), ends[0], middle, ends[1], Sample(10.0)])
    assert span.rate("irq", "40", "total") == 10.0
    assert span.delta("irq", "40", "7") == 0


def test_one_counter_that_went_back_makes_all_of_the_thing_unknown_and_no_other_thing() -> None:
    before = Sample(0.0, {"disk": {"sda": {"reads": 4_294_967_290, "writes": 5}, "sdb": {"reads": 1}}})
    after = Sample(1.0, {"disk": {"sda": {"reads": 4, "writes": 9}, "sdb": {"reads": 3}}})
    span = CounterSpan([before, after])
    text = "disk sda: reads went back from 4294967290 to 4: wrapped or began again"
    assert why(span.delta("disk", "sda", "reads")) == text
    assert why(span.rate("disk", "sda", "writes")) == text
    assert span.why_unknown("disk", "sda") == text
    assert span.delta("disk", "sdb", "reads") == 2
    assert span.why_unknown("disk", "sdb") is None


def test_counters_that_went_back() -> None:
    span = CounterSpan(samples({"reads": 100}, {"reads": 3}, {"reads": 400}))
    assert "went back from 100 to 3" in why(span.delta("disk", "sda", "reads"))
    before = {"iowait_ticks": 50, "idle_ticks": 100, "resting_ticks": 150}
    after = {"iowait_ticks": 40, "idle_ticks": 200, "resting_ticks": 240}
    span = CounterSpan(samples(before, after, kind="cpu"))
    assert "iowait_ticks went back from 50 to 40" in why(span.delta("cpu", "sda", "iowait_ticks"))
    assert span.delta("cpu", "sda", "resting_ticks") == 90


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((None, {"reads": 1}), "appeared during the span"),
        (({"reads": 1}, None), "vanished during the span"),
        (({"reads": 1}, None, {"reads": 9}), "was away during the span"),
    ],
)
def test_a_thing_that_was_not_there_all_the_time_is_unknown(
    rows: tuple[dict[str, int] | None, ...], words: str
) -> None:
    assert why(CounterSpan(samples(*rows)).delta("disk", "sda", "reads")) == f"disk sda: {words}"


def test_reasons_of_what_is_unknown() -> None:
    span = CounterSpan([Sample(0.0), Sample(1.0, missing={"nvme nvme0": "needs root", "pressure": "switched off"})])
    assert why(span.delta("nvme", "nvme0", "media_errors")) == "nvme nvme0: needs root"
    assert why(span.delta("pressure", "io", "some_us")) == "pressure io: switched off"
    assert why(span.delta("edac", "mc0", "ce_count")) == "edac mc0: not read"
    assert why(span.level("conntrack", "host", "count")) == "conntrack host: not read"
    span = CounterSpan(samples({"reads": 1}, {"reads": 2, "flushes": 7}))
    assert why(span.delta("disk", "sda", "flushes")) == "disk sda: flushes is not counted here"
    once = CounterSpan([Sample(0.0), Sample(1.0, {"disk": {"sda": {"reads": 1}}})])
    assert why(once.delta("disk", "sda", "reads")) == "disk sda: read once"


def test_levels_and_words_are_the_last_ones() -> None:
    first = Sample(0.0, gauges={"disk": {"sda": {"in_flight": 3}}}, words={"array": {"md0": {"sync": "resync"}}})
    span = CounterSpan([first, Sample(1.0, gauges={"disk": {"sda": {"in_flight": 5}}}), Sample(2.0)])
    assert span.level("disk", "sda", "in_flight") == 5
    assert span.levels("disk", "sda", "in_flight") == (3, 5)
    assert span.word("array", "md0", "sync") == "resync"
    assert span.names("array") == ("md0",)


@pytest.mark.parametrize("times", [(), (1.0,), (1.0, 1.0), (2.0, 1.0)])
def test_a_span_of_no_time_is_refused(times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="two samples or more"):
        CounterSpan([Sample(at) for at in times])


rows = st.none() | st.dictionaries(st.sampled_from(["reads", "writes"]), st.integers(0, 1 << 64), min_size=1)


@given(st.lists(rows, min_size=2, max_size=6))
def test_a_delta_is_known_just_where_nothing_ever_went_back_or_away(history: list[dict[str, int] | None]) -> None:
    span = CounterSpan(samples(*history))
    known = [row for row in history if row is not None]
    steady = len(known) == len(history) and all(
        after.get(field, count) >= count
        for before, after in itertools.pairwise(known)
        for field, count in before.items()
    )
    for field in ("reads", "writes"):
        found = span.delta("disk", "sda", field)
        if steady and all(field in row for row in known):
            assert found == known[-1][field] - known[0][field]
            assert found >= 0
        else:
            assert isinstance(found, Missing)
            assert found.why
