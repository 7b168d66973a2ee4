"""The quick form of ``python -m benchmarks.proof_validation``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.proof_validation import COLUMNS, PARTS, main

RIGHT = "right decisions an hour, as many as {} at 5 % under this load"
KNOWN = {
    ("decisions", RIGHT.format("means of 24 + 24"), "each fourth run slow"),
    ("decisions", RIGHT.format("Mann-Whitney 24 + 24"), "each fourth run slow"),
}
"""What does not hold even in so few sessions; docs/proof.md says why."""


@pytest.mark.thorough
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
