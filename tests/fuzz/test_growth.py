"""Every reader is linear: whatever repeats in a file or a command's output, twice as much takes twice the time."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest

from advisor.facts.host_facts import scan
from advisor.report.layout import MAX_PIECE, Page
from advisor.report.scan_page import scan_text
from advisor.rules.judged import judge
from tests.fuzz.growth import Growing, grown, too_steep
from tests.fuzz.hosts import ARTICLES, Parts, parts_of
from tests.fuzz.targets import Target, samples, targets

BY_NAME: Final = {target.name: target for target in targets()}
SHORT, LONG = 1, 100
SCANNED_SIZE: Final = 64_000

# What was quadratic once.
KNOWN: Final = {
    "parse_saptune_note": Growing(b"[version]\n# ", b"NOTE=", b" CATEGORY=x VERSION=1 DATE=x"),
    "parse_gabtab": Growing(b"/sbin/", b"gabconfig ", b""),
    "parse_vxtunefs": Growing(b"a", b"\n", b"b"),
    "parse_mdadm_detail": Growing(b"/dev/md0:\n", b"\n", b"x"),
    "parse_mdstat": Growing(b"md0 : active raid1 sda[0]\n 10 blocks\n", b" \n", b"x"),
    "parse_tuned_ini": Growing(b"profil", b"\t", b"es"),
    "parse_changes": Growing(b"str", b",", b""),
}


def reading(target: Target, growing: Growing) -> Callable[[int], object]:
    def read(size: int) -> None:
        data = growing.of(size)
        with suppress(*target.raises):
            target.run(data.decode("utf-8", "replace") if target.takes is str else data)

    return read


def check_target(name: str, times: int) -> None:
    chance = random.Random(name)
    for _ in range(times):
        growing = grown(chance.choice(samples(name)), chance)
        why = too_steep(reading(BY_NAME[name], growing))
        assert why is None, f"{name}: {growing}: {why}"


@pytest.mark.parametrize("name", BY_NAME)
def test_a_parser_is_linear(name: str) -> None:
    check_target(name, SHORT)


@pytest.mark.thorough
@pytest.mark.parametrize("name", BY_NAME)
def test_a_parser_is_linear_however_it_grows(name: str) -> None:
    check_target(name, LONG)


@pytest.mark.parametrize("name", KNOWN)
def test_what_was_quadratic(name: str) -> None:
    found = [one for one in BY_NAME.values() if one.name.rpartition(".")[2] == name]
    assert found
    for target in found:
        assert too_steep(reading(target, KNOWN[name])) is None


def check_scans(seed: int, times: int) -> None:
    """One file or one command's output of a host grows; the whole scan, its judgement and its page are linear."""
    chance = random.Random(seed)
    for _ in range(times):
        parts = parts_of(chance.choice(list(ARTICLES.values()))())
        place = chance.choice(parts.places())
        growing = grown(parts.content(place)[:8192], chance)

        def read(size: int, parts: Parts = parts, place: str = place, growing: Growing = growing) -> None:
            facts = scan(parts.with_content(place, growing.of(size)).host())
            scan_text(facts, judge(facts), width=80, color=False)

        why = too_steep(read, SCANNED_SIZE)
        assert why is None, f"{place}: {growing}: {why}"


def test_a_scan_is_linear() -> None:
    check_scans(1, 40)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_scan_is_linear_whatever_grows(seed: int) -> None:
    check_scans(seed, 300)


TEXTS: Final = ("a", "a/", "a ", "日", "é", "\x1b", "\u0301", "\t", "'", "\\")


WAYS: Final = ("add", "verbatim", "command", "table", "labelled", "bullet")
PAGES: Final = [
    # Each text and each way in the common run, and all pairs in the thorough one.
    pytest.param(how, piece, marks=() if column % len(WAYS) == row else pytest.mark.thorough)
    for column, piece in enumerate(TEXTS)
    for row, how in enumerate(WAYS)
]


@pytest.mark.parametrize(("how", "piece"), PAGES)
def test_a_page_is_linear(how: str, piece: str) -> None:
    def read(size: int) -> None:
        text, page = piece * (size // len(piece)), Page(80, color=True)
        match how:
            case "table":
                page.table([[text, "x", text], ["x", "y", "z"]])
            case "labelled":
                page.labelled([(text, [text]), *[("x", ["y"])] * (size // 100)])
            case _:
                getattr(page, how)(text)
        assert page.text

    assert too_steep(read, 60_000) is None


def test_a_text_that_nobody_asked_for_is_cut_and_says_so() -> None:
    page = Page(80, color=False)
    page.add("x" * (MAX_PIECE + 1234))
    assert page.text.replace("\n", "").count("x") == MAX_PIECE
    assert "(1234 characters more)" in page.text.replace("\n", " ")
