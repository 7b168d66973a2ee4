"""The page and the document of ``advisor recommend``."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from advisor.facts.host_facts import Facts, scan
from advisor.host import tree_host
from advisor.profiles.profile import load
from advisor.recommend import Outlook, Recommendation, declared, recommend
from advisor.recommend.records import Reason
from advisor.report.recommend import recommendation_document, recommendation_text
from tests.golden import assert_golden
from tests.recommend.test_recommend import BUFFERS, CLUSTER, DROPS, JUMBO, LLT, NUMA
from tests.report import plans
from tests.report.pasted import lines_too_wide
from tests.rules.build import facts
from tests.trees import make_tree

SOME = "fss-udp,rtt=1.16ms"


@pytest.fixture
def found(tmp_path: Path) -> tuple[Recommendation, ...]:
    here: Facts = facts(**CLUSTER, counters=DROPS)
    files = plans.tree_files(eth0=1500, eth1=1500)
    known = [
        Outlook(name, load(name), plans.make(tmp_path / name, name, files=files, facts=here))
        for name in (BUFFERS, JUMBO, LLT, NUMA)
    ]
    return recommend(here, declared(SOME), known)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal(found: tuple[Recommendation, ...], width: int) -> None:
    text = recommendation_text(declared(SOME), found, width=width, color=False)
    assert lines_too_wide(text, width) == []
    assert "\x1b" not in text


def test_the_page_says_what_fits_why_and_what_next(found: tuple[Recommendation, ...]) -> None:
    assert_golden("recommend", recommendation_text(declared(SOME), found, width=80, color=False))


def test_what_does_not_apply_is_named_in_one_line_and_whole_with_all(found: tuple[Recommendation, ...]) -> None:
    (first,) = (one for one in found if one.standing == "not-applicable")
    idle = [first, msgspec.structs.replace(first, profile="other")]
    found = (*found, idle[1])
    short, whole = (
        recommendation_text(None, found, width=2000, color=False, everything=everything).splitlines()
        for everything in (False, True)
    )
    (line,) = (one for one in short if idle[0].profile in one.split(": ")[-1].split(", "))
    assert all(one.profile in line for one in idle)
    assert all(any(line.strip().startswith(f"{one.profile}:") for line in whole) for one in idle)
    assert any("--all" in one for one in short)
    assert not any("--all" in one for one in whole)


def test_colour_only_where_it_is_wanted(found: tuple[Recommendation, ...]) -> None:
    assert "\x1b[" in recommendation_text(None, found, width=80, color=True)


def test_nothing_to_recommend_is_said(tmp_path: Path) -> None:
    host = tree_host(str(make_tree(tmp_path, {"/proc/uptime": "1 1"})))
    made = recommend(scan(host), None, [Outlook(NUMA, load(NUMA), why="odd")])
    assert recommendation_text(None, made, width=80, color=False).startswith("Nothing to recommend.\n")
    assert "Captured host" not in recommendation_text(None, made, width=80, color=False)
    assert "Captured host" in recommendation_text(None, made, width=80, color=False, is_live=False)


def test_a_hostile_name_moves_no_cursor() -> None:
    one = Recommendation(
        "a\x1b[2J", "t", "yes", "symptom", "s\x07.", (Reason("host", "x\x1b]0;y"),), (), (), (), (), "advisor \x1b[1m"
    )
    text = recommendation_text(None, (one,), width=80, color=False)
    assert not any(ord(char) < 32 and char != "\n" for char in text)


def test_the_document(found: tuple[Recommendation, ...]) -> None:
    document = json.loads(recommendation_document(declared(SOME), found))
    assert document["schema"] == "advisor.recommendation/1"
    assert document["workload"]["rtt_seconds"] == 0.00116
    first = document["recommendations"][0]
    judgement = ["profile", "title", "fits", "standing", "summary"]
    assert list(first) == [*judgement, "why", "cases", "measured", "hurts", "unknown", "command"]
    assert first["measured"][0]["source"]
    assert recommendation_document(declared(SOME), found) == recommendation_document(declared(SOME), found)
