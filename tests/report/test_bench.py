"""The page of a series and of a comparison: readable at every width, with and without colour, and honest."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from advisor.proof.comparison import SeriesComparison, compare
from advisor.proof.covariates import CalmGate
from advisor.proof.series import Bench, summarise_series
from advisor.report.proof.bench import bench_text
from advisor.report.proof.numbers import Axis, Drawn, axis_labels, plot_intervals, round_ends
from advisor.report.proof.result import comparison_text
from tests.each import for_each
from tests.golden import assert_golden
from tests.proof.benches import OTHER, saved, series, speeds
from tests.proof.sessions import WORKLOAD
from tests.report.pasted import lines_too_wide

WIDTHS = (40, 60, 80, 100, 120, 160)
SGR = re.compile(r"\x1b\[\d+m")
LATER = "2024-05-18T12:00:00+00:00"


def bench_of(*values: list[float], **changes: object) -> Bench:
    named = dict(zip((WORKLOAD, OTHER), values, strict=False))
    return summarise_series(replace(series(named), **changes))


def lit(count: int) -> dict[str, object]:
    whole = series(speeds(8))
    runs = tuple(
        replace(one, contaminated=True, runs=(replace(one.runs[0], lamps=("disk",)),)) if one.index < count else one
        for one in whole.rounds
    )
    return {"rounds": runs}


BENCHES: dict[str, Bench] = {
    "sound": bench_of(speeds(24), speeds(24, seed=2, noise=0.2)),
    "saved": replace(bench_of(speeds(24)), saved_to="/var/lib/advisor/proofs/a file.json.gz"),
    "few": bench_of(speeds(4)),
    "one": bench_of(speeds(1)),
    "nothing": bench_of([], ended="interrupted"),
    "no noise": bench_of([1000.0] * 8),
    "forced": bench_of(speeds(8), forced=True, gate=CalmGate(("restic is running",), ("io pressure",))),
    "contaminated": bench_of(speeds(8), **lit(5)),
    "fault": bench_of(speeds(8), faults=("fio ended well but did no I/O",), ended="fault"),
    "drift": bench_of([*speeds(12), *speeds(12, around=600, seed=3)]),
    "left": bench_of(speeds(8), notes=("the scratch file was not removed: /srv/x: Permission denied",)),
    "enormous": bench_of([1.0, 1e6, 2.0, 5e6, 1e3, 1e4]),
}
COMPARISONS: dict[str, SeriesComparison] = {
    "better": compare(saved(speeds(24)), saved(speeds(24, around=1200, seed=2), started=LATER), ("a.gz", "b.gz")),
    "worse": compare(saved(speeds(24)), saved(speeds(24, around=800, seed=2), started=LATER)),
    "unclear": compare(saved(speeds(8, noise=0.4)), saved(speeds(8, noise=0.4, seed=5), started=LATER)),
    "few": compare(saved(speeds(2)), saved(speeds(3, seed=2), started=LATER)),
    "empty": compare(saved(speeds(8)), saved([])),
    "void": compare(saved(speeds(24)), saved(speeds(24, seed=2), faults=("fio failed",))),
    "mixed": compare(
        saved({WORKLOAD: speeds(24), OTHER: speeds(24, seed=3)}),
        saved({WORKLOAD: speeds(24, around=1200, seed=2), OTHER: speeds(24, around=700, seed=4)}, device="sdb"),
    ),
    "enormous": compare(saved(speeds(8)), saved(speeds(8, around=5e6, seed=2), started=LATER)),
}
PAGES: dict[str, Bench | SeriesComparison] = {
    **{f"bench {name}": found for name, found in BENCHES.items()},
    **{f"compare {name}": found for name, found in COMPARISONS.items()},
}


def page(name: str, width: int, *, color: bool = False) -> str:
    found = PAGES[name]
    if isinstance(found, Bench):
        return bench_text(found, width=width, color=color)
    return comparison_text(found, width=width, color=color)


@for_each("width", WIDTHS)
@for_each("name", PAGES)
def test_no_line_is_wider_than_the_page_and_colour_changes_no_character(name: str, width: int) -> None:
    plain, colored = (page(name, width, color=color) for color in (False, True))
    assert lines_too_wide(plain, width) == []
    assert "\x1b" not in plain
    assert "\n".join(line.rstrip(" ") for line in SGR.sub("", colored).split("\n")) == plain
    assert "\n\n\n" not in plain
    assert not re.search(r"\b(nan|inf|None|True|False)\b", plain)


def test_the_pages_of_series_and_comparisons() -> None:
    """Print the first page whole, and of each later page the lines that it does not have."""
    for kind, first in (("bench", "bench saved"), ("compare", "compare better")):
        known = set(page(first, 80).splitlines())
        parts = [f"== {first}", page(first, 80)]
        for name in PAGES:
            if name.startswith(kind) and name != first:
                parts += [f"== {name}", *(line for line in page(name, 80).splitlines() if line not in known)]
        assert_golden(kind, "\n".join(parts))


def test_a_name_of_a_host_cannot_command_the_terminal() -> None:
    odd = replace(BENCHES["saved"].series, target="/srv/\x1b[2J", device="s\u202eda")
    text = bench_text(summarise_series(odd), width=80, color=True)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


# -- drawing -----------------------------------------------------------------------------------------------------------

VALUES = st.floats(-2.0, 2.0).filter(lambda value: value == 0 or abs(value) > 1e-6)


@given(st.tuples(VALUES, VALUES, VALUES), st.integers(24, 60))
@example((0.001, 0.002, 1.5), 24)
@example((-1.5, -0.002, -0.001), 24)
def test_an_interval_that_leaves_out_0_never_touches_it(values: tuple[float, float, float], width: int) -> None:
    drawn = Drawn(*sorted(values))
    axis = Axis(*round_ends(drawn), width)
    signs = "".join(span.text for span in plot_intervals(axis, drawn, band=None))
    assert len(signs) == width
    leaves_out = drawn.low > 0 or drawn.high < 0
    if leaves_out:
        assert signs[axis.cell(0.0)] == "│"
    elif drawn.low < 0 < drawn.high:
        assert signs[axis.cell(0.0)] in "┼●├┤"
    assert signs.count("●") == 1


@given(st.lists(VALUES, max_size=5))
def test_the_axis_holds_0_and_every_value(values: list[float]) -> None:
    axis = Axis(*round_ends(values), 40)
    assert axis.low < 0 < axis.high
    assert all(axis.low <= value <= axis.high for value in values)


def test_labels_name_0_where_it_stands() -> None:
    axis = Axis(-1.0, 1.0, 41)
    assert axis_labels(axis, "-1", "+1") == f"-1{'0':>19}{'+1':>20}"
    assert "0" not in axis_labels(Axis(-0.01, 1.0, 24), "-1 %", "+99 %").removeprefix("-1 %").removesuffix("+99 %")
