from __future__ import annotations

from typing import Any

import pytest

from advisor.fleet.compare.path_matrix import Matrix, MatrixCell
from advisor.report.fleet.compare import MAX_GRID, MAX_ROWS, add_matrix, cell_sentence, cell_words, in_trouble
from advisor.report.layout import Page
from tests.fleet.test_matrix import MUTE, SILENT, cell, mesh
from tests.golden import assert_golden
from tests.report.pasted import lines_too_wide


def text(matrix: Matrix, width: int = 80) -> str:
    page = Page(width, color=False)
    add_matrix(page, matrix)
    return page.text


def many(count: int, *odd: MatrixCell) -> Matrix:
    names = [f"n{number}" for number in range(count)]
    cells = {(one, other): cell(one, other) for one in names for other in names if one != other}
    cells |= {(one.source, one.target): one for one in odd}
    return Matrix(tuple(names), tuple(cells.values()), len(cells), ())


def test_the_pages_of_matrices() -> None:
    odd = (
        cell("a", "c", **SILENT),
        cell("b", "c", **MUTE),
        cell("c", "b", carries=None, path_mtu=None, limit="unknown"),
    )
    two = (cell("a", "b"), cell("a", "b", link="eth2", **SILENT), cell("b", "a"))
    nothing = [cell("c", other, **{**MUTE, "sent": 0, "error": "unreachable"}) for other in "ab"]
    silent = [cell("n0", f"n{number}", **SILENT) for number in range(1, 60)]
    matrices = {
        "a few": mesh(*odd, names="abc"),
        "two links": Matrix(("a", "b"), two, 3, ()),
        "could not ask": Matrix(("a", "b", "c"), tuple(nothing), 6, ("2 of 6 pairs are asked",), {"c": "unreachable"}),
        "many": many(60),
        "many with trouble": many(60, *silent),
    }
    assert in_trouble(matrices["could not ask"]) == []
    sentences = [
        cell_sentence(cell("a", "b", received=5)),
        cell_sentence(cell("a", "b", carries=False, path_mtu=1400, limit="too-big", limited_by="198.51.100.254")),
    ]
    pages = [f"== {name}\n{text(matrix)}" for name, matrix in matrices.items()]
    assert_golden("fleet-matrix", "\n".join([*pages, "== sentences", *sentences]))


@pytest.mark.parametrize("count", [2, MAX_GRID, MAX_GRID + 1, 60])
def test_eighty_columns_are_enough(count: int) -> None:
    far: dict[str, Any] = {"rtt_us": (5e8, 6e8, 7e8), **{key: SILENT[key] for key in ("carries", "path_mtu")}}
    shown = text(many(count, cell("n0", "n1", **far)))
    assert lines_too_wide(shown, 80) == []
    assert ("n0 → n1" in shown) == (count > MAX_GRID)


def test_of_many_nodes_only_what_differs_is_told_and_not_without_end() -> None:
    odd = [cell("n0", f"n{number}", **SILENT) for number in range(1, 60)]
    shown = text(many(60, *odd))
    assert "Not as they should be: 59 of 3540 directions." in shown
    assert f"… and {59 - MAX_ROWS} more" in shown
    assert "1500 of 9000 bytes (more vanishes)" in " ".join(shown.split())
    assert "All of them answer" in text(many(60))


def test_long_names_stand_below_the_table() -> None:
    names = ["storage-node-with-a-long-name-" + one for one in "abcdefghij"]
    cells = tuple(cell(one, other) for one in names for other in names if one != other)
    shown = text(Matrix(tuple(names), cells, len(cells), ()))
    assert lines_too_wide(shown, 80) == []
    assert "10 storage-node-with-a-long-name-j" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("middle", "words"),
    [
        (0.4, "0"),
        (87, "87"),
        (999.4, "999"),
        (999.6, "1m"),
        (1234, "1.2m"),
        (9949, "9.9m"),
        (9951, "10m"),
        (5e9, "999m"),
    ],
)
def test_a_round_trip_in_few_characters(middle: float, words: str) -> None:
    assert cell_words(cell("a", "b", rtt_us=(middle, middle, middle)))[0] == words
    assert len(words) <= 4


def test_hostile_words_are_spelt_out() -> None:
    odd = cell("n0", "n\x1b[31m1", **{**MUTE, "error": "x\x1b]0;\x07\n- host is fine"})
    shown = text(many(20, odd))
    assert "\x1b" not in shown
    assert "\n- host" not in shown


def test_a_hostile_name_in_the_table_is_spelt_out_and_fits() -> None:
    names = ("a", "b\x1b[2J\n", "c" * 300)
    cells = tuple(cell(one, other) for one in names for other in names if one != other)
    shown = text(Matrix(names, cells, len(cells), ()))
    assert "\x1b" not in shown
    assert lines_too_wide(shown, 80) == []
