"""Each rule fires on a host that needs it and is silent on one that does not."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from advisor.facts.host_facts import Facts
from advisor.rules.judged import RULES, judge
from advisor.rules.rule import SEVERITIES, Finding
from advisor.rules.workload import parse_workload
from tests.each import for_each
from tests.rules.build import facts, link, nothing_known, numa, virtual
from tests.rules.table import CASES, Case


def findings_of(rule: str, workload: str | None, parts: dict[str, Any]) -> tuple[Finding, ...]:
    declared = parse_workload(workload) if workload else None
    return tuple(finding for finding in judge(facts(**parts), declared) if finding.id == rule)


@for_each("case", CASES, lambda case: f"{case.rule}, {case.workload}, {case.parts}")
def test_a_rule_fires_or_is_silent_and_every_finding_has_what_a_reader_needs(case: Case) -> None:
    found = judge(facts(**case.parts), parse_workload(case.workload) if case.workload else None)
    own = [one for one in found if one.id == case.rule]
    assert [one.severity for one in own] == ([case.severity] if case.severity else [])
    assert all(case.shown in str(getattr(one, case.shown_in)) for one in own)
    for one in found:
        assert one.evidence
        assert all(len(text) > 5 for text in (one.title, one.why, one.advice, one.hurts_when))
        assert not re.search(r"  |\bNone\b", one.title + one.why + one.advice), one
        assert one.severity == "info" or not one.intent


def test_a_calm_host_has_no_finding() -> None:
    assert judge(facts()) == ()


def test_where_nothing_is_known_nothing_is_claimed() -> None:
    assert judge(nothing_known()) == ()
    assert judge(nothing_known(), parse_workload("replicated-writes,rtt=2ms")) == ()


@for_each("rule", RULES, lambda rule: rule.id)
def test_every_rule_explains_itself(rule: Any) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z]+(-[a-z]+)*", rule.id)
    for text in (rule.title, rule.what, rule.why, rule.helps_when, rule.hurts_when):
        assert len(text) > 5
        assert "  " not in text
    assert rule.sources
    assert all("/work" not in source for source in rule.sources)


def test_ids_are_unique() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


def everything_wrong() -> Facts:
    merged: dict[str, Any] = {"links": (), "disks": (), "arrays": (), "filesystems": (), "irqs": ()}
    for parts in (case.parts for case in CASES if case.severity):
        for key, value in parts.items():
            merged[key] = (
                (*merged[key], *value) if key in ("links", "disks", "arrays", "filesystems", "irqs") else value
            )
    return facts(**merged)


def test_the_most_important_come_first_and_the_order_is_stable() -> None:
    found = judge(everything_wrong())
    ranks = [SEVERITIES.index(finding.severity) for finding in found]
    assert ranks == sorted(ranks, reverse=True)
    assert msgspec.json.encode(found) == msgspec.json.encode(judge(everything_wrong()))


def test_a_hostile_name_stays_one_word_of_the_command() -> None:
    found = findings_of("links.mtu-below-range", None, {"links": (link("e;reboot $(id)", mtu=1500),)})
    assert "'links=e;reboot $(id)'" in found[0].advice


def test_cycles_in_the_stack_end() -> None:
    links = (link("a", mtu=1500, lower=("b",), upper=("b",)), virtual("b", "bond", lower=("a",), upper=("a",)))
    judge(facts(links=links, numa=numa(2)))
