"""Each row of the articles' tables: advisor says on the article's host what a specialist would."""

from __future__ import annotations

import pytest

from tests.articles.table import SYSTEMS, Case, cases
from tests.each import for_each

ROWS = [(system, case) for system in SYSTEMS for case in cases(system)]


@for_each("system case", ROWS, lambda row: f"{row[0]}-{row[1].case}")
def test_advisor_answers_as_the_article_does(system: str, case: Case) -> None:
    answer = case.ask.answer(case.host())
    assert [one for one in case.says if one not in answer] == [], answer
    assert [one for one in case.never if one in answer] == [], answer


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_case_says_what_the_answer_must_hold_and_names_its_article(system: str) -> None:
    assert all(
        case.says and case.article.partition(":")[0] in ("S000", "S001", "S002", "S003", "S004")
        for case in cases(system)
    )
