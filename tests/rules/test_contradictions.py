"""Contradictions between sources: each has two sides with their sources, and whoever gives advice shows them."""

from __future__ import annotations

import json

import pytest

from advisor.facts.system.memory import Counters
from advisor.report.explain import explain_id, explanation_text
from advisor.report.json import scan_document
from advisor.report.scan_page import scan_text
from advisor.rules.judged import RULES, judge
from advisor.rules.rule import PREFIX, Contradiction, all_contradictions, contradiction, named
from tests.rules.build import SYSCTL, facts


def flat(text: str) -> str:
    return " ".join(text.split())


CONTRADICTIONS = tuple(all_contradictions().values())


@pytest.mark.parametrize("one", CONTRADICTIONS, ids=lambda one: one.id)
def test_a_contradiction_has_sides_that_differ_and_says_what_is_done(one: Contradiction) -> None:
    assert one.id.startswith(PREFIX)
    assert len({side.says for side in one.sides}) > 1
    assert all(side.says and side.source for side in one.sides)
    assert len(one.what_we_do) > 20
    assert contradiction(one.id) is one


def test_ids_are_unique_and_no_rule_has_one() -> None:
    ids = [one.id for one in all_contradictions().values()]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {rule.id for rule in RULES}


def test_every_one_that_a_rule_names_exists() -> None:
    for rule in RULES:
        assert [one.id for one in named(rule.contradictions)] == list(rule.contradictions), rule.id


@pytest.mark.parametrize("one", CONTRADICTIONS, ids=lambda one: one.id)
def test_each_is_explained_with_every_side_and_source(one: Contradiction) -> None:
    text = flat(explanation_text(explain_id(one.id), width=90, color=False))
    for words in (one.topic, one.what_we_do, *(f"{side.says} ({side.source})" for side in one.sides)):
        assert flat(words) in text


def test_all_are_listed_under_one_word() -> None:
    assert explain_id("contradictions").contradictions == CONTRADICTIONS


def test_a_finding_names_both_sources_and_its_document_holds_both_sides() -> None:
    host = facts(sysctl=SYSCTL, counters=Counters(tcp_collapsed=40))
    found = judge(host)
    (finding,) = (finding for finding in found if finding.id == "buffers.below-profile")
    (one,) = finding.contradictions
    text = flat(scan_text(host, found, width=100, color=False))
    assert one.what_we_do in text
    assert all(flat(side.source) in text for side in one.sides)
    assert f"advisor explain {one.id}" in text
    # Reported once; a second finding on which it bears refers to it.
    twice = flat(scan_text(host, (finding, finding), width=100, color=False))
    assert twice.count(one.what_we_do) == 1
    assert twice.count(one.id) == 2
    reported = json.loads(scan_document(host, found))["findings"]
    shown = next(each for each in reported if each["id"] == finding.id)["contradictions"]
    assert shown[0]["id"] == one.id
    assert {"says": one.sides[0].says, "source": one.sides[0].source} == shown[0]["sides"][0]
