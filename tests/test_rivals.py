"""The README's comparison with other programs is what `benchmarks/rivals.py` measured, and the README is short."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.rivals import MARKS, README, RECORD, RIVALS, insert_table, write_table

MOST_WORDS = 700


def test_the_readme_shows_what_was_measured() -> None:
    text = README.read_text()
    assert insert_table(text, json.loads(RECORD.read_text())) == text, "run python -m benchmarks.rivals --table"


def test_the_record_has_each_program_on_one_system() -> None:
    record = json.loads(RECORD.read_text())
    assert list(record["rivals"]) == [one.name for one in RIVALS]
    assert record["system"]
    for name, one in record["rivals"].items():
        assert one["date"]
        assert one["version"], name
        # A process that was killed before its work would show nothing.
        assert all(0 < kill["changed"] <= record["sysctls"] for kill in one["killed"] or ()), name


def test_the_readme_is_short() -> None:
    # Bars, arrows and dashes are no words.
    words = re.findall(r"[^\s|]*\w[^\s|]*", README.read_text())
    assert len(words) <= MOST_WORDS


def test_the_readme_says_how_the_manual_pages_are_read() -> None:
    assert "`man advisor`" in README.read_text()


def made_record() -> dict[str, Any]:
    """A program that does everything, and one that only checks."""
    able = {
        "version": "1.2.0-1+b1",
        "dry_run": {"named": 12, "with_old_and_new_value": 11},
        "drift": {"exit_code": 1, "named": True, "with_expected_and_found_value": True},
        "refused": {"exit_code": 4, "left": 3},
        "undo": {"left": 0},
        "killed": [{"left_alone": left, "left_after_undo": 2} for left in (7, 5, 6)],
        "removed": {"left": 0},
    }
    only_checks = dict.fromkeys(able) | {
        "version": "3.0",
        "drift": {"exit_code": 0, "named": False, "with_expected_and_found_value": False},
    }
    gain = {"able": {"verdict": "gain", "ratio": 1.5, "ci95": [1.25, 1.75]}}
    seconds = {"able": {"apply": 9.4, "check": 3.1, "undo": 2.0}}
    return {"sysctls": 12, "gain": gain, "seconds": seconds, "rivals": {"able": able, "poor": only_checks}}


def cells(table: str) -> dict[str, list[str]]:
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    return {first: rest for first, *rest in rows}


def test_the_table_says_what_the_record_has() -> None:
    table = write_table(made_record())
    found = cells(table)
    assert found["12 sysctls"] == ["able 1.2.0", "poor 3.0"]
    assert [able for able, _ in found.values()] == [
        *(
            "able 1.2.0",
            "---",
            "12, 11",
            "5–7",
            "2",
            "3",
            "1, both values",
            "0",
            "0",
            "gain: +50 % (+25 % to +75 %)",
            "9, 3, 2",
        )
    ]
    assert {poor for _, poor in list(found.values())[2:]} == {"–", "0, nothing"}


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    page = f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n"
    filled = insert_table(page, made_record())
    assert filled == f"before\n{MARKS[0]}\n\n{write_table(made_record())}\n\n{MARKS[1]}\nafter\n"
    assert insert_table(filled, made_record()) == filled


def test_a_readme_without_the_marks_is_told() -> None:
    with pytest.raises(ValueError, match="substring not found"):
        insert_table("nothing", made_record())
