"""The quick form of ``python -m benchmarks.proof_validation``, and what its table and its exit code say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.proof_validation import COLUMNS, ERRORS, PARTS, POWER, Finding, main, share, worst_rows, write_table

RIGHT = "right decisions an hour, as many as {} at 5 % under this load"
KNOWN = {
    ("decisions", RIGHT.format("means of 24 + 24"), "each fourth run slow"),
    ("decisions", RIGHT.format("Mann-Whitney 24 + 24"), "each fourth run slow"),
}
"""What does not hold even in so few sessions; docs/proof.md says why."""


@pytest.mark.parametrize("part", PARTS)
def test_the_quick_form_finds_nothing_new_that_does_not_hold(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.md"
    code = main(["--quick", "--part", part, "-o", str(file)])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in file.read_text().splitlines()]
    assert tuple(rows[0]) == COLUMNS
    assert {row[0] for row in rows[2:]} == {part}
    failed = {tuple(row[:3]) for row in rows[2:] if row[-1] == "does not hold"}
    assert failed == {one for one in KNOWN if one[0] == part}
    assert code == (1 if failed else 0)
    assert f"{len(rows) - 2 - len(failed)} of {len(rows) - 2} figures meet what is required" in capsys.readouterr().out


def test_a_figure_holds_within_chance_or_does_not() -> None:
    def errors(hits: int) -> Finding:
        return share("live", "false gains", "constant", hits, 1000, most=ERRORS)

    assert [errors(hits).verdict for hits in (40, 50, 60, 90)] == ["holds", "holds", "within chance", "does not hold"]
    found = [share("live", "power", "constant", hits, 1000, least=POWER).verdict for hits in (910, 890, 850)]
    assert found == ["holds", "within chance", "does not hold"]


def test_the_table_names_the_worst_load_of_each_requirement() -> None:
    rows = [
        share("live", "false gains", load, hits, 1000, most=ERRORS)
        for load, hits in (("constant", 20), ("step", 90), ("periodic", 40))
    ]
    assert write_table(*worst_rows(rows))[2:] == [
        "| live | false gains | step | 9.0 % | 1,000 | 6.8 % to 11.6 % | does not hold | 2 of 3 |"
    ]


def test_the_worst_of_small_shares_is_the_largest() -> None:
    rows = [share("live", "false gains", load, hits, 1000, most=ERRORS) for load, hits in (("a", 10), ("b", 26))]
    (worst,), _ = worst_rows(rows)
    assert worst.load == "b"


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--part", "everything"])
    assert caught.value.code == 2
    assert "any-time" in capsys.readouterr().err
