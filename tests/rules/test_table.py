"""Every rule is in the table, fires on a host that needs it, and is silent on one that does not."""

from __future__ import annotations

from functools import cache

from advisor.rules.judged import RULES
from advisor.rules.rule import SEVERITIES, Rule
from tests.each import for_each
from tests.rules.table import COUNTER, Row, Seen, grounds, named, severities, table, without_counters


@cache
def rows() -> dict[str, Row]:
    return {row.rule.id: row for row in table()}


@for_each("rule", RULES, lambda rule: rule.id)
def test_a_rule_has_a_host_that_needs_it_and_one_that_does_not(rule: Rule) -> None:
    row = rows()[rule.id]
    assert row.fires, f"{row.rule.id} is not in the table of tests/rules/table.py"
    assert row.silent, f"{row.rule.id} has no host in tests/rules/table.py on which it is silent"
    for seen in row.fires:
        assert [finding for finding in seen.findings(row.rule) if finding.id == row.rule.id]
    for seen in row.silent:
        assert seen.findings(row.rule) == ()


def test_the_table_names_no_rule_that_does_not_exist() -> None:
    assert named() - {rule.id for rule in RULES} == set()


@for_each("rule", RULES, lambda rule: rule.id)
def test_where_there_is_a_counter_the_rule_does_not_fire_on_principle(rule: Rule) -> None:
    row = rows()[rule.id]
    if COUNTER not in grounds(row):
        return
    for seen in row.fires:
        uncounted = Seen(without_counters(seen.facts), None)
        assert all(finding.intent for finding in uncounted.findings(rule))


@for_each("rule", RULES, lambda rule: rule.id)
def test_a_matter_of_intent_is_never_more_than_information(rule: Rule) -> None:
    for seen in rows()[rule.id].fires:
        assert [one.severity for one in seen.findings(rule) if one.intent and one.severity != "info"] == []


@for_each("rule", RULES, lambda rule: rule.id)
def test_no_finding_is_more_severe_than_its_rule_says(rule: Rule) -> None:
    found = severities(rows()[rule.id])
    assert found, f"{rule.id} has no host in tests/rules/cases*.py on which it fires"
    assert SEVERITIES.index(found[-1]) <= SEVERITIES.index(rule.severity)


@for_each("rule", RULES, lambda rule: rule.id)
def test_a_title_has_room_on_the_scan_page(rule: Rule) -> None:
    # A window of 80 columns less the number, the severity and `advisor fix 10`.
    assert len(rule.title) <= 49, rule.title
