"""The pages in other languages: every line fits, wide characters counted twice, and nothing of the host is changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.i18n import _, msg, spoken
from advisor.profiles.profile import load
from advisor.reach.survey import Survey
from advisor.recommend import declared
from advisor.report.bench import bench_text
from advisor.report.comparison import comparison_text
from advisor.report.layout import Page, columns, wrapped
from advisor.report.library import profile_list_text, profile_text
from advisor.report.limits import limits_text
from advisor.report.page import grid, labelled, prose, render
from advisor.report.plan import plan_text
from advisor.report.proof import proof_text
from advisor.report.proof_page import proof_page
from advisor.report.reach import probe_text
from advisor.report.recommend import recommendation_text
from advisor.report.steps import steps_text
from advisor.report.text import scan_text
from advisor.report.transaction import applied_text, confirmed_text, rollback_text, status_text, verify_text
from advisor.rules.registry import judge
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Status
from advisor.transaction.verify import Drift
from tests.reach.test_probe import ALL, LEFT
from tests.report import plans
from tests.report.test_bench import BENCHES, COMPARISONS
from tests.report.test_change import change, plan, record, skipped
from tests.report.test_limits import rich_host
from tests.report.test_proof import PROOFS
from tests.report.test_text import two_nodes

LANGUAGES = ("de", "ja")
WIDE = re.compile(r"[\u3000-\u30ff\u4e00-\u9fff]")


def transactions(width: int) -> str:
    """Each state that a transaction can be in, drift, and each outcome of a rollback."""
    made = plan(
        change(),
        change("link:eth0:mtu", "1500", "9000", persist=None, persist_note="a reboot undoes it"),
        skipped=(skipped("in-place"), skipped("would-lower"), skipped("not-applicable")),
    )
    waiting = record(made, state="awaiting-confirmation", seconds_left=42.0)
    records = (
        record(made, "0001"),
        record(made, "0002", state="rolled-back", why_undone="interrupted"),
        record(made, "0003", state="applying", ended=None, pending="sysctl:vm.swappiness"),
        record(made, "0004", state="partly-rolled-back", kept=(("link:eth0:mtu", "somebody else set it to 1400"),)),
        waiting,
    )
    drift = (
        Drift("0001", "sysctl:vm.swappiness", "10", "60", "is as before the transaction"),
        Drift("0001", "/etc/sysctl.d/90-advisor-p.conf", "its content", None, "was removed"),
    )
    outcomes = (
        ItemOutcome("sysctl:vm.swappiness", "restored", "10 → 60"),
        ItemOutcome("link:eth0:mtu", "kept", "somebody else set it to 1400", "ip link set dev eth0 mtu 1500"),
        ItemOutcome("link:eth1:mtu", "failed", "put back, but reads otherwise", "set it to 1500"),
    )
    shown = {"width": width, "color": False}
    return "".join(
        (
            applied_text(waiting, made, **shown),  # type: ignore[arg-type]
            applied_text(None, made, **shown),  # type: ignore[arg-type]
            confirmed_text(waiting, **shown),  # type: ignore[arg-type]
            status_text(Status(records, drift), **shown),  # type: ignore[arg-type]
            verify_text(Status(records[:1], ()), **shown),  # type: ignore[arg-type]
            rollback_text(((records[0], outcomes),), **shown),  # type: ignore[arg-type]
        )
    )


PAGES: dict[str, Callable[[int, Path], str]] = {
    "scan": lambda width, place: scan_text(two_nodes(), judge(two_nodes()), width=width, color=False),
    "plan": lambda width, place: plan_text(plans.pinning(place), width=width, color=False),
    "links": lambda width, place: plan_text(plans.jumbo(place), width=width, color=False),
    "probe": lambda width, place: probe_text(Survey(ALL, LEFT, 9000), width=width, color=False),
    "transactions": lambda width, place: transactions(width),
    "limits": lambda width, place: limits_text(rich_host(), width=width, color=False),
    "recommend": lambda width, place: recommendation_text(declared("fss-udp"), (), width=width, color=False),
    "profile": lambda width, place: profile_text(load("jumbo-frames"), width=width, color=False),
    "profiles": lambda width, place: profile_list_text([load("jumbo-frames")], width=width, color=False),
    **{
        f"proof {name}": lambda width, place, one=one: proof_text(one, width=width, color=False)  # type: ignore[misc]
        for name, one in PROOFS.items()
    },
    **{
        f"bench {name}": lambda width, place, one=one: bench_text(one, width=width, color=False)  # type: ignore[misc]
        for name, one in BENCHES.items()
    },
    **{
        f"compare {name}": lambda width, place, one=one: comparison_text(one, width=width, color=False)  # type: ignore[misc]
        for name, one in COMPARISONS.items()
    },
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PAGES)
def test_no_line_is_wider_than_the_page(name: str, language: str, tmp_path: Path) -> None:
    english = PAGES[name](80, tmp_path / "en")
    for width in (60, 80):
        with spoken(language):
            text = PAGES[name](width, tmp_path / f"{width}")
        assert text != english
        assert max(map(columns, text.splitlines())) <= width
        assert not any(line.endswith(" ") for line in text.splitlines())
        assert bool(WIDE.search(text)) == (language == "ja")


def test_a_link_of_a_probe_in_german_stands_as_it_is() -> None:
    with spoken("de"):
        text = probe_text(Survey(ALL, LEFT, 9000), width=100, color=False)
    assert "zu groß, sagt 192.0.2.254" in text
    assert "advisor plan jumbo-frames --set links=eth0" in text
    assert "tracepath -n 192.0.2.130" in text


def test_a_plan_in_german() -> None:
    with spoken("de"):
        made = plan(
            change(why="The kernel prefers to drop file pages."),
            change("link:eth0:mtu", "1500", "9000", persist=None, persist_note="a reboot undoes it"),
            skipped=(
                skipped("in-place", "sysctl:vm.dirty_ratio"),
                skipped("unknown", reason=msg("expected {before}, found {live}", before="60", live="7")),
            ),
        )
        text = plan_text(made, width=72, color=False)
    assert (
        text
        == f"""\
Plan für p{" " * 36}Fingerabdruck {made.fingerprint[:12]}
2 Werte und 0 Dateien würden geändert; 1 unbekannt, 1 schon so gesetzt.
Noch ist nichts geändert.

p: 1 Kernelparameter
  wirkt      sofort
  dauerhaft  in /etc/sysctl.d/90-advisor-p.conf

  sysctl:vm.swappiness  60 → 10
      The kernel prefers to drop file pages.

  schadet, wenn  Sometimes.

p: 1 Link
  wirkt      sofort
  dauerhaft  nein: ein Neustart macht es rückgängig
  Risiko     der Link kann kurz Frames verlieren, während sein Treiber
             den Wert übernimmt

  link:eth0:mtu  1500 → 9000 Byte
      Because.

  schadet, wenn  Sometimes.

Unbekannt: nicht lesbar
  sysctl:vm.swappiness  ist 60, gewollt 10: erwartet 60, gefunden 7

Schon so gesetzt
  sysctl:vm.dirty_ratio  60

Zum Anwenden, als root:
  advisor apply p
"""
    )


def test_a_status_in_japanese() -> None:
    made = record(plan(change()), state="awaiting-confirmation", seconds_left=42.0)
    with spoken("ja"):
        text = status_text(Status((made,), ()), width=60, color=False)
    assert (
        text
        == """\
0007 p: 適用中、確定待ち
  値1件、ファイル0件。適用 2026-03-01 14:15:01 UTC
  42秒後に自動で元に戻します。維持するには:
    advisor confirm 0007

適用中: 値1件とファイル0件は設定どおりです。
"""
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_data_is_english(language: str, tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    steps = steps_text(made)
    proof = proof_page(PROOFS["gain"])
    with spoken(language):
        assert steps_text(made) == steps
        assert proof_page(PROOFS["gain"]) == proof


def test_the_documentation_shows_these_words() -> None:
    """docs/languages.md has one term for one thing, and the catalogues keep to it."""
    page = (Path(__file__).parents[2] / "docs" / "languages.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count(" | ") == 2]
    terms = [row for row in rows if row[0] in GLOSSARY]
    assert len(terms) == len(GLOSSARY)
    for english, *others in terms:
        for language, term in zip(LANGUAGES, others, strict=True):
            with spoken(language):
                assert GLOSSARY[english](english) == term


GLOSSARY: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("in force", "put back", "gain", "loss", "no difference", "inconclusive", "hurts when"), _),
    **dict.fromkeys(("warning", "advice", "info", "takes effect", "persists", "Findings", "Workload", "interrupts"), _),
}


# -- Japanese has no blanks --------------------------------------------------------------------------------------------


def test_japanese_is_wrapped_between_characters_but_not_before_a_full_stop() -> None:
    text = "値を設定して読み戻します。（すべて）"
    assert wrapped((text,), 8) == ["値を設定", "して読み", "戻しま", "す。（す", "べて）"]


def test_a_word_in_latin_letters_stays_whole_inside_japanese() -> None:
    lines = wrapped(("このホストでadvisor planを実行してください",), 16, indent=2)
    assert lines == ["このホストで", "  advisor planを", "  実行してくださ", "  い"]


JAPANESE = st.text(alphabet=st.sampled_from("値を。、（）「」ッーab1 /-"), max_size=60)


@settings(max_examples=50, deadline=None)
@given(JAPANESE, st.integers(min_value=8, max_value=30), st.integers(min_value=0, max_value=4))
def test_no_character_is_lost_and_no_line_too_long(text: str, width: int, indent: int) -> None:
    lines = wrapped((text,), width, indent=indent)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(map(columns, lines)) <= width


@settings(max_examples=30, deadline=None)
@given(JAPANESE, JAPANESE, st.integers(min_value=40, max_value=90))
def test_columns_stand_in_line_however_wide_their_characters_are(first: str, second: str, width: int) -> None:
    page = Page(width, color=False)
    page.labelled([(f"{first}x", ("y",)), ("名前", (second,))])
    drawn = render(
        [labelled([(f"{first}x", "y"), ("名前", second)]), prose(grid([[first, second]]))], width=width, color=False
    )
    for text in (page.text, drawn):
        assert max(map(columns, text.splitlines())) <= width
