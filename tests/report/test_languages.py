"""The pages in other languages: every line fits, wide characters counted twice, and nothing of the host is changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import i18n
from advisor.i18n import N_, _, msg, spoken
from advisor.planning.records import Plan
from advisor.profiles.profile import load
from advisor.reach.records import Unprobeable
from advisor.reach.survey import Survey
from advisor.recommend import declared
from advisor.report.bench import bench_text
from advisor.report.comparison import comparison_text
from advisor.report.layout import Page, wrap_pieces
from advisor.report.library import profile_list_text, profile_text
from advisor.report.limits import limits_text
from advisor.report.plan import plan_text
from advisor.report.proof import proof_text
from advisor.report.proof_page import proof_page
from advisor.report.reach import probe_text
from advisor.report.recommend import recommendation_text
from advisor.report.scan_page import scan_text
from advisor.report.steps import steps_text
from advisor.report.transaction import (
    WATCHDOG_REASONS,
    applied_text,
    confirmed_text,
    rollback_text,
    status_text,
    verify_text,
)
from advisor.rules.registry import judge
from advisor.transaction.journal import Record
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Status
from advisor.transaction.verify import Drift
from tests.bracketed import foreign_words, install_bracketed
from tests.reach.test_probe import ALL
from tests.report import plans
from tests.report.pasted import lines_too_wide
from tests.report.test_bench import BENCHES, COMPARISONS
from tests.report.test_change import change, plan, record, skipped
from tests.report.test_limits import rich_host
from tests.report.test_proof import PROOFS
from tests.report.test_text import two_nodes

LANGUAGES = ("de", "ja")
WIDE = re.compile(r"[\u3000-\u30ff\u4e00-\u9fff]")


def records() -> tuple[Plan, dict[str, Record]]:
    """A plan, and a transaction of it in each state."""
    made = plan(
        change(),
        change("link:eth0:mtu", "1500", "9000", persist=None, persist_note="a reboot undoes it"),
        skipped=(skipped("in-place"), skipped("would-lower"), skipped("not-applicable")),
    )
    return made, {
        "applied": record(made, "0001"),
        "interrupted": record(made, "0002", state="rolled-back", why_undone="interrupted"),
        "applying": record(made, "0003", state="applying", ended=None, pending="sysctl:vm.swappiness"),
        "partly": record(made, "0004", state="partly-rolled-back", kept=(("link:eth0:mtu", "was removed"),)),
        "waiting": record(made, state="awaiting-confirmation", seconds_left=42.0),
    }


DRIFT = (
    Drift("0001", "sysctl:vm.swappiness", "10", "60", "is as before the transaction"),
    Drift("0001", "/etc/sysctl.d/90-advisor-p.conf", "its content", None, "was removed"),
)


def outcomes() -> tuple[ItemOutcome, ...]:
    """Their details are made where they are printed, as in one process: the messages are known in its language."""
    changed = msg("modified externally ({value})", value="1400")
    return (
        ItemOutcome("sysctl:vm.swappiness", "restored", "10 → 60"),
        ItemOutcome("link:eth0:mtu", "kept", changed, "ip link set dev eth0 mtu 1500"),
        ItemOutcome("link:eth1:mtu", "failed", "Permission denied", msg("set it to {before}", before="1500")),
    )


def survey() -> Survey:
    """Peers of each kind, with the messages that the probe makes."""
    silent = msg("no answer to {sent} echoes of {size} bytes", sent=5, size=84)
    reaches = [
        msgspec.structs.replace(
            one,
            peer=msgspec.structs.replace(one.peer, why=msg("NFS server of {named}", named="/srv")),
            why_not=one.why_not and silent,
        )
        for one in ALL
    ]
    left = Unprobeable("link2", "llt", "eth2", msg("{why}: not an IP address", why=N_("default gateway")))
    return Survey(tuple(reaches), (left,), 9000)


MADE, RECORDS = records()

Draw = Callable[[int, Path], str]

# In the chosen language.
TRANSLATED: dict[str, Draw] = {
    "probe": lambda width, place: probe_text(survey(), width=width, color=False),
    "confirm": lambda width, place: confirmed_text(RECORDS["waiting"], width=width, color=False),
    "status": lambda width, place: status_text(Status(tuple(RECORDS.values()), DRIFT), width=width, color=False),
    "verify": lambda width, place: verify_text(Status((RECORDS["applied"],), ()), width=width, color=False),
    "verify drift": lambda width, place: verify_text(Status((RECORDS["applied"],), DRIFT), width=width, color=False),
    "rollback": lambda width, place: rollback_text(((RECORDS["applied"], outcomes()),), width=width, color=False),
}

# English in each language.
ENGLISH: dict[str, Draw] = {
    "scan": lambda width, place: scan_text(two_nodes(), judge(two_nodes()), width=width, color=False),
    "plan": lambda width, place: plan_text(plans.pinning(place), width=width, color=False),
    "links": lambda width, place: plan_text(plans.jumbo(place), width=width, color=False),
    "apply": lambda width, place: applied_text(RECORDS["waiting"], MADE, width=width, color=False),
    "apply nothing": lambda width, place: applied_text(None, MADE, width=width, color=False),
    "limits": lambda width, place: limits_text(rich_host(), width=width, color=False),
    "recommend": lambda width, place: recommendation_text(declared("fss-udp"), (), width=width, color=False),
    "profile": lambda width, place: profile_text(load("jumbo-frames"), width=width, color=False),
    "profiles": lambda width, place: profile_list_text([load("jumbo-frames")], width=width, color=False),
    **{
        f"prove {name}": lambda width, place, one=one: proof_text(one, width=width, color=False)  # type: ignore[misc]
        for name, one in PROOFS.items()
    },
    **{
        f"compare {name}": lambda width, place, one=one: comparison_text(one, width=width, color=False)  # type: ignore[misc]
        for name, one in COMPARISONS.items()
    },
    **{
        f"bench {name}": lambda width, place, one=one: bench_text(one, width=width, color=False)  # type: ignore[misc]
        for name, one in BENCHES.items()
    },
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", TRANSLATED)
def test_no_line_is_wider_than_the_page(name: str, language: str, tmp_path: Path) -> None:
    english = TRANSLATED[name](80, tmp_path / "en")
    for width in (60, 80):
        with spoken(language):
            text = TRANSLATED[name](width, tmp_path / f"{width}")
        assert text != english
        assert lines_too_wide(text, width) == []
        assert not any(line.endswith(" ") for line in text.splitlines())
        assert bool(WIDE.search(text)) == (language == "ja")


# -- a page is in one language -----------------------------------------------------------------------------------------


@pytest.fixture
def marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """German is a catalogue of brackets."""
    install_bracketed(tmp_path)
    monkeypatch.setattr(i18n, "LOCALES", tmp_path)


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translated_page_has_no_english_but_data(name: str, tmp_path: Path) -> None:
    with spoken("de"):
        text = TRANSLATED[name](100, tmp_path / "page")
    assert "⟦" in text
    assert not foreign_words(text), text


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("name", ENGLISH)
def test_any_other_page_is_english_as_a_whole(name: str, tmp_path: Path) -> None:
    english = ENGLISH[name](100, tmp_path / "en")
    with spoken("de"):
        assert ENGLISH[name](100, tmp_path / "de").replace(f"{tmp_path}/de", f"{tmp_path}/en") == english


def test_the_documentation_lists_the_pages() -> None:
    page = (Path(__file__).parents[2] / "docs" / "languages.md").read_text()
    translated, english = re.findall(
        r"^\| ((?:`[a-z ]+`(?:, )?)+) \| (?:English, German, Japanese|English) \|", page, re.M
    )
    assert {name.split()[0] for name in TRANSLATED} <= set(re.findall(r"`(\w+)`", translated))
    assert {name.split()[0] for name in ENGLISH} - {"links", "profile"} <= set(re.findall(r"`(\w+)`", english))


def test_a_link_of_a_probe_in_german_stands_as_it_is() -> None:
    with spoken("de"):
        text = probe_text(survey(), width=100, color=False)
    assert "zu groß, sagt 192.0.2.254" in text
    assert "advisor plan jumbo-frames --set links=eth0" in text
    assert "tracepath -n 192.0.2.130" in text


def test_the_reasons_of_a_watchdog_are_translated() -> None:
    """It notes them in English, in a script; a page with one that is in no catalogue is English as a whole."""
    template = (Path(__file__).parents[2] / "templates/watch.sh.j2").read_text()
    assert set(re.findall(r"why='([^']+)'", template)) == set(WATCHDOG_REASONS)


def test_a_status_in_japanese() -> None:
    made = record(plan(change()), state="awaiting-confirmation", seconds_left=42.0)
    with spoken("ja"):
        text = status_text(Status((made,), ()), width=60, color=False)
    assert (
        text
        == """\
0007 p: 適用中、確定待ち
  値1件。適用 2026-03-01 14:15:01 UTC
  42秒後に自動でロールバックします。維持するには:
    advisor confirm 0007

適用中: 値1件は一致しています。
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
    **dict.fromkeys(("active", "rolled back", "gain", "loss", "no difference", "inconclusive", "hurts when"), _),
    **dict.fromkeys(("warning", "advice", "info", "takes effect", "persists", "Findings", "Workload", "interrupts"), _),
}


# -- Japanese has no blanks --------------------------------------------------------------------------------------------


def test_japanese_is_wrapped_between_characters_but_not_before_a_full_stop() -> None:
    text = "値を設定して読み戻します。（すべて）"
    assert wrap_pieces((text,), 8) == ["値を設定", "して読み", "戻しま", "す。（す", "べて）"]


def test_a_word_in_latin_letters_stays_whole_inside_japanese() -> None:
    lines = wrap_pieces(("このホストでadvisor planを実行してください",), 16, indent=2)
    assert lines == ["このホストで", "  advisor planを", "  実行してくださ", "  い"]


JAPANESE = st.text(alphabet=st.sampled_from("値を。、（）「」ッーab1 /-"), max_size=60)


@settings(max_examples=50, deadline=None)
@given(JAPANESE, st.integers(min_value=8, max_value=30), st.integers(min_value=0, max_value=4))
def test_no_character_is_lost_and_no_line_too_long(text: str, width: int, indent: int) -> None:
    lines = wrap_pieces((text,), width, indent=indent)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert lines_too_wide("\n".join(lines), width) == []


@settings(max_examples=30, deadline=None)
@given(JAPANESE, JAPANESE, st.integers(min_value=40, max_value=90))
def test_columns_stand_in_line_however_wide_their_characters_are(first: str, second: str, width: int) -> None:
    page = Page(width, color=False)
    page.labelled([(f"{first}x", ("y",)), ("名前", (second,))])
    page.table([[first, second]])
    assert lines_too_wide(page.text, width) == []
