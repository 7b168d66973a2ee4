"""docs/why.md lists every cause as it is defined."""

from __future__ import annotations

from tests.diagnosis.table import PAGE, cause_rows


def test_the_page_lists_every_cause() -> None:
    page = PAGE.read_text()
    assert [row for row in cause_rows() if row not in page] == [], "python -m tests.diagnosis.table writes it"
