"""The page of a comparison: well formed, whole in itself, and with the figures and words of the record."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from advisor.cli.prove_page import write_page
from advisor.proof.comparison import SeriesComparison, compare
from advisor.report.charts.changes import forest_of
from advisor.report.comparison import level_words, notes_of, says, side_rows, verdict_span, workload_lines
from advisor.report.comparison_page import comparison_page, summary_of
from advisor.report.proof_numbers import figures_words, interval_words
from advisor.report.proof_rows import MetricRow, RowGroup
from advisor.report.svg import Line, Mark
from tests.hostile.test_outputs import TEXTS
from tests.proof.benches import OTHER, saved, speeds
from tests.report.test_proof_charts import assert_laid_out
from tests.report.test_proof_page import SAFE, Parsed, drawings

replace = msgspec.structs.replace
EARLIER = "2024-05-17T11:00:00+00:00"


def against(around: float, *, count: int = 24, noise: float = 0.04, **changes: object) -> SeriesComparison:
    first = saved({"infoscale.4k-rand-r100": speeds(count, noise=noise), OTHER: speeds(count, seed=3)}, started=EARLIER)
    later = {"infoscale.4k-rand-r100": speeds(count, around=around, noise=noise, seed=2), OTHER: speeds(count, seed=4)}
    return compare(first, saved(later, **changes), ("before.gz", "/root/a b.gz"))


ALL = {
    "better": against(1300.0),
    "worse": against(700.0),
    "alike": against(1000.0, noise=0.02),
    "few": against(1300.0, count=3),
    "void": against(1300.0, faults=("fio failed",)),
    "other host": against(1300.0, host=None),
}


@cache
def page_of(name: str) -> str:
    return comparison_page(ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_the_page_stands_alone(name: str) -> None:
    page, found = page_of(name), Parsed(page_of(name))
    assert page.startswith("<!DOCTYPE html>\n")
    assert ElementTree.fromstring(page).tag == "html"
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {tag for tag, _ in found.elements} <= SAFE
    # the policy names the style sheet by its hash, in base64, which may hold two slashes
    text = re.sub(r"'sha256-[A-Za-z0-9+/=]+'", "", page.replace("<!DOCTYPE html>", ""))
    assert not re.search(r"url\(|@import|https?:|//", text)
    assert not re.search(r"\b(nan|inf|None|True|False)\b", found.text)
    pictures = [drawing for drawing in drawings(page) if drawing.get("role") == "img"]
    assert len(pictures) == 1 + len(ALL[name].workloads), "a forest, and a ladder for each workload"


@pytest.mark.parametrize("name", ALL)
def test_the_words_are_those_of_the_text(name: str) -> None:
    comparison, said = ALL[name], Parsed(page_of(name)).text
    wanted = [verdict_span(comparison).text, *workload_lines(comparison), *comparison.reasons, *notes_of(comparison)]
    wanted += [level_words(comparison), "before.gz", "/root/a b.gz"]
    for side in (comparison.a, comparison.b):
        wanted += ["".join(map(str, pieces)) for _, pieces in side_rows(side)]
    assert [one for one in wanted if " ".join(one.split()) not in said] == []


@pytest.mark.parametrize("name", ALL)
def test_the_figures_are_those_of_the_record(name: str) -> None:
    comparison = ALL[name]
    rows = [row for row in Parsed(page_of(name)).table("metric", "before → after") if len(row) > 1]
    items = (*comparison.workloads, *comparison.explored)
    assert len(rows) == len([one for one in items if one.ratio is not None])
    for one in comparison.workloads:
        (row,) = [row for row in rows if row[1] == f"{figures_words(one.before, one.after)} {one.unit}"]
        first, second = one.runs
        assert (row[3], row[5]) == (interval_words(summary_of(one)), f"{first}, {second}")
        assert row[-1] == says(comparison, one).text


def test_the_better_one_stands_right_of_no_change() -> None:
    for name, sign in (("better", 1), ("worse", -1)):
        one = ALL[name].workloads[0]
        picture = forest_of(
            [RowGroup("Workloads", "", (MetricRow(summary_of(one), says(ALL[name], one)),))], "one workload"
        )
        assert_laid_out(picture)
        (zero,) = {shape.x1 for shape in picture.shapes if isinstance(shape, Line) and shape.look == "zero"}
        (mark,) = [shape for shape in picture.shapes if isinstance(shape, Mark) and shape.symbol == "circle"]
        assert (mark.x - zero) * sign > 0


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_names_stay_text(text: str) -> None:
    base = ALL["better"]
    side = replace(base.a, source=text, target=text, file_system=text, fio_version=text, profile=text, kind="proof")
    page = comparison_page(replace(base, a=side, b=side, reasons=(text,), notes=(text,)))
    assert all(line.isprintable() for line in page.split("\n"))
    assert {tag for tag, _ in Parsed(page).elements} <= SAFE
    page.encode()


def test_the_page_is_written(tmp_path: Path) -> None:
    assert write_page(tmp_path / "page.html", ALL["better"])
    assert (tmp_path / "page.html").read_text() == page_of("better")
