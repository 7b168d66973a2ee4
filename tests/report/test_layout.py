from __future__ import annotations

import re
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.report.folding import FOLD_FROM, fold_alike, merge_texts
from advisor.report.format import clean
from advisor.report.layout import MIN_WIDTH, Page, Span, columns, counted, listed, wrap_pieces
from advisor.shell.quote import shell_quote

TEXT = st.text(alphabet=st.one_of(st.characters(), st.sampled_from(" ab/,\x1b\n\t宽\u0301\udcff")), max_size=300)
WIDTHS = st.integers(min_value=MIN_WIDTH, max_value=170)
SGR = re.compile(r"\x1b\[\d+m")


def page_of(text: str, width: int, *, color: bool = False) -> str:
    """The text set in every way that a page has."""
    page = Page(width, color=color)
    page.add(text, Span(text, "red"), indent=2, hang=3)
    page.heading(text, " ", Span(text, "dim"))
    page.bullet(text)
    page.labelled([(text[:60], (text,)), ("label", (Span(text, "green"),))])
    page.table([("a", text[:30], text), (text[:40], "b", "c")])
    page.verbatim(text, "red", indent=2)
    return page.text


@settings(deadline=None)
@given(TEXT, WIDTHS)
def test_no_line_is_wider_than_the_page(text: str, width: int) -> None:
    assert max(columns(line) for line in page_of(text, width).splitlines()) <= width


@settings(deadline=None)
@given(TEXT, WIDTHS, st.booleans())
def test_nothing_of_a_host_reaches_the_terminal_but_what_prints(text: str, width: int, color: bool) -> None:
    lines = SGR.sub("", page_of(text, width, color=color)) if color else page_of(text, width)
    assert all(line.isprintable() for line in lines.split("\n"))


@settings(deadline=None)
@given(TEXT, WIDTHS)
def test_colour_changes_no_character(text: str, width: int) -> None:
    stripped = "\n".join(line.rstrip(" ") for line in SGR.sub("", page_of(text, width, color=True)).split("\n"))
    assert stripped == page_of(text, width)


@settings(deadline=None)
@given(TEXT, WIDTHS)
def test_nothing_is_cut_off(text: str, width: int) -> None:
    page = Page(width, color=False)
    page.add(text, indent=4, hang=2)
    assert "".join(page.text.split()) == clean(text).replace(" ", "")


def test_a_line_is_broken_at_blanks_and_hangs() -> None:
    assert wrap_pieces(("one two three four",), 10, first=("  ",), indent=4) == ["  one two", "    three", "    four"]


def test_a_long_word_is_broken_after_a_slash() -> None:
    assert wrap_pieces(("/etc/systemd/network/10-advisor-eth1.link",), 30) == [
        "/etc/systemd/network/",
        "10-advisor-eth1.link",
    ]


def test_wide_characters_count_twice_and_combining_ones_not() -> None:
    assert columns("宽e\u0301") == 3


def test_pieces_that_touch_are_one_word_in_several_styles() -> None:
    assert wrap_pieces(("(", Span("a", "red"), ") b"), 40, color=True) == ["(\x1b[31ma\x1b[0m) b"]


def test_no_escape_code_without_colour() -> None:
    assert wrap_pieces((Span("a", "red"),), 40, color=False) == ["a"]


def test_a_table_without_room_goes_below() -> None:
    page = Page(40, color=False)
    page.table([("a" * 30, "x " * 30)])
    assert page.text.startswith("  " + "a" * 30 + "\n      x x")


ARGUMENTS = st.lists(st.text(alphabet="ab /'\"\\`*$-", min_size=1, max_size=12), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(ARGUMENTS, WIDTHS)
def test_a_broken_command_is_still_that_command(words: list[str], width: int) -> None:
    command = " ".join(shell_quote(word) for word in words)
    page = Page(width, color=False)
    page.command(command)
    done = subprocess.run(["sh", "-c", f"printf '%s\\0' {page.text}"], check=True, capture_output=True, text=True)
    assert done.stdout.split("\0")[:-1] == words


def test_there_are_never_two_empty_lines() -> None:
    page = Page(80, color=False)
    page.blank()
    page.heading("a")
    page.blank()
    page.heading("b")
    assert page.text == "a\n\nb\n"


def test_counts_and_lists() -> None:
    assert (counted(1, "file"), counted(0, "file"), counted(2, "entry", "entries")) == (
        "1 file",
        "0 files",
        "2 entries",
    )
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")


def alike(numbers: range) -> list[tuple[str, str]]:
    return [(f"irq:{number}:affinity", f"nvme{number % 2}q{number} is managed") for number in numbers]


def folded(items: list[tuple[str, str]]) -> list[tuple[str, str, int]]:
    return [
        (one.name, one.detail, len(one.items)) for one in fold_alike(items, lambda item: item[0], lambda item: item[1])
    ]


def test_alike_items_are_one_line_with_their_range() -> None:
    assert folded(alike(range(100, 300))) == [("irq:100-299:affinity", "nvme0-1q100-299 is managed", 200)]


def test_values_that_differ_keep_items_apart() -> None:
    values = [("irq:1", "0-3"), ("irq:2", "0-3"), ("irq:3", "0-3"), ("irq:4", "0-3"), ("irq:5", "4-7")]
    found = fold_alike(values, lambda item: item[0], same=lambda item: item[1])
    assert [one.title for one in found] == ["irq:1-4 (4)", "irq:5"]


def test_few_alike_items_stay_apart() -> None:
    few = alike(range(FOLD_FROM - 1))
    assert folded(few) == [(*item, 1) for item in few]


def test_names_with_two_numbers_that_differ_are_not_made_into_a_product() -> None:
    names = [("enp59s0f0", ""), ("enp59s0f1", ""), ("enp175s0f0", ""), ("enp175s0f1", "")]
    assert folded(names) == [("enp59s0f0 … enp175s0f1", "", 4)]


def test_scattered_numbers_are_bounded() -> None:
    assert merge_texts([f"irq {number}" for number in range(0, 100, 7)]) == "irq 0…98"


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(alphabet="ab:12", max_size=9), st.text(alphabet="ab0 9", max_size=9)), max_size=30))
def test_every_item_is_in_exactly_one_fold(items: list[tuple[str, str]]) -> None:
    found = fold_alike(items, lambda item: item[0], lambda item: item[1])
    assert sorted(item for one in found for item in one.items) == sorted(items)


def test_a_long_run_of_digits_is_no_number() -> None:
    assert merge_texts(["9" * 5000, "9" * 4999 + "8"]).startswith("9" * 4990)
