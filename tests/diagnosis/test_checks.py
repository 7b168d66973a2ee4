"""Each check of other tools has its place, and each place a host on which it answers."""

from __future__ import annotations

import pytest

from advisor.diagnosis.diagnose import list_causes
from advisor.rules.registry import RULES
from tests.diagnosis.cases import CASES
from tests.diagnosis.checks import CHECKS, Check

NUMBERS = range(1, 41)


def test_no_check_is_forgotten() -> None:
    assert [one.number for one in CHECKS] == list(NUMBERS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: f"{one.number}-{one.system}")
def test_a_check_has_rules_and_causes_that_exist(check: Check) -> None:
    rules, causes = {rule.id for rule in RULES}, {one.id for one in list_causes()}
    assert check.places
    assert set(check.places) <= rules | causes
    # A rule is held by tests/rules/test_table.py, a cause by a case in which it may come first.
    answered = {identity for case in CASES for identity in case.right}
    assert set(check.places) & causes <= answered
