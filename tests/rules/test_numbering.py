"""Numbers of findings: one for each rule and severity, in the order of the list, none for what is not there."""

from __future__ import annotations

import pytest

from advisor.errors import UsageError
from advisor.rules.judged import find_numbered, judge, number_findings
from tests.cases import read_cases
from tests.rules.build import array, facts

DATA = read_cases(__file__, array, facts)

HOST = DATA["HOST"]


def test_findings_of_one_rule_and_severity_have_one_number() -> None:
    numbered = number_findings(judge(HOST))
    assert [one.number for one in numbered] == list(range(1, len(numbered) + 1))
    assert next((one.id, one.severity, len(one.findings)) for one in numbered) == ("arrays.degraded", "critical", 2)
    assert sum(len(one.findings) for one in numbered) == len(judge(HOST))
    assert ("arrays.degraded", "info") in [(one.id, one.severity) for one in numbered]


def test_a_number_means_one_and_an_id_all_of_the_rule() -> None:
    numbered = number_findings(judge(HOST))
    assert find_numbered(numbered, "1") == numbered[:1]
    assert [one.severity for one in find_numbered(numbered, "arrays.degraded")] == ["critical", "info"]


@pytest.mark.parametrize("name", ["99", "0", "tcp.window-scaling", "-1", ""])
def test_what_no_finding_has_is_an_error(name: str) -> None:
    with pytest.raises(UsageError):
        find_numbered(number_findings(judge(HOST)), name)
