from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from advisor.report.format import FOLD_FROM, clean, fold_alike, merge_texts
from advisor.report.layout import MIN_WIDTH, Page, Span, columns, command_span, counted, join_parts, listed, wrap_pieces
from advisor.shell.quote import shell_quote
from tests.report.pasted import lines_too_wide

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
    return page.text


@settings(deadline=None)
@given(TEXT, WIDTHS)
def test_a_line_that_is_wider_than_the_page_is_one_word(text: str, width: int) -> None:
    assert lines_too_wide(page_of(text, width), width) == []


@settings(deadline=None)
@given(TEXT, WIDTHS)
def test_a_line_of_a_file_is_one_line_as_it_is(text: str, width: int) -> None:
    page = Page(width, color=False)
    page.verbatim(text, "red", indent=2)
    assert page.text == f"  {clean(text.expandtabs(8))}".rstrip(" ") + "\n"


@settings(deadline=None)
@given(TEXT, WIDTHS)
def test_no_word_without_wide_characters_is_broken(text: str, width: int) -> None:
    page = Page(width, color=False)
    page.bullet(text)
    page.table([("a", text)])
    page.verbatim(text)
    words = {word for word in clean(text).split(" ") if max(map(columns, word), default=0) < 2}
    assert words <= {"", *page.text.split()}


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


def test_a_word_that_no_line_holds_has_one_of_its_own() -> None:
    name = "iqn.2006-01.com.openfiler:tsn.4f3a1c"
    assert wrap_pieces(("target", name, "is", "up"), 30, indent=6) == ["target" + name + "isup"]
    assert wrap_pieces((f"target {name} is up",), 30, indent=6) == ["target", f"      {name}", "      is up"]
    assert wrap_pieces((f"target {name} is up",), 38, indent=6) == ["target", f"  {name}", "      is up"]


def test_no_line_begins_with_a_dot_between_parts() -> None:
    page = Page(40, color=False)
    page.table([("eth0", "1 Gbit/s", join_parts(["10.20.1.7/24", "MTU up to 9216", "0000:02:00.0"]))])
    assert page.text == "  eth0  1 Gbit/s\n      10.20.1.7/24 · MTU up to 9216 ·\n      0000:02:00.0\n"


def test_a_command_is_never_wrapped() -> None:
    command = "advisor plan jumbo-frames --set links=eth1,eth2,eth3,eth4"
    page = Page(40, color=False)
    page.command(command)
    page.labelled([("commands", [command_span(command)])])
    assert page.text == f"  {command}\n  commands\n      {command}\n"


def test_a_wide_cell_wraps_where_the_last_column_needs_the_room() -> None:
    names = ", ".join(f"nvme{number}n1" for number in range(8))
    page = Page(80, color=False)
    page.table([(names, "8 × 1.6 TB", "INTEL SSDPE2KE016T7 none in md0")])
    assert page.text.splitlines() == [
        "  nvme0n1, nvme1n1, nvme2n1,        8 × 1.6 TB  INTEL SSDPE2KE016T7 none in md0",
        "  nvme3n1, nvme4n1, nvme5n1,",
        "  nvme6n1, nvme7n1",
    ]


def test_wide_characters_count_twice_and_combining_ones_not() -> None:
    assert columns("宽e\u0301") == 3


def test_no_character_counts_for_less_than_in_the_newest_tables() -> None:
    """Those of rich are of a newer Unicode than Python's own: U+1D300 has become wide."""
    printable = (char for char in map(chr, range(sys.maxunicode + 1)) if char.isprintable())
    assert [char for char in printable if columns(char) < cell_len(char)] == []


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
def test_a_command_is_still_that_command(words: list[str], width: int) -> None:
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


def test_lines_of_one_of_several_texts_go_on_behind_its_dash() -> None:
    page = Page(40, color=False)
    page.labelled([("why", ("- one text that is longer than its column",)), ("", ("- another",))])
    assert page.text == "  why  - one text that is longer than\n         its column\n       - another\n"


def test_a_command_in_a_sentence_stays_on_one_line() -> None:
    page = Page(40, color=False)
    page.add("What is accepted is listed by advisor scan --muted, each with its reason.")
    assert "advisor scan --muted," in page.text
