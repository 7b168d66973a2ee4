"""The README's sessions are what was recorded, and the recording is one that a player takes."""

from __future__ import annotations

import json
import re

import pytest

from docs.demo import BLOCKS, CAST, MARKS, README, SESSION, WIDTH, cast, insert_blocks, recorded_blocks


def test_the_readme_shows_what_was_recorded() -> None:
    text = README.read_text()
    assert insert_blocks(text, recorded_blocks(CAST.read_text())) == text, "run python docs/demo.py"


def test_the_recording_is_an_asciicast() -> None:
    header, *events = (json.loads(line) for line in CAST.read_text().splitlines())
    assert (header["version"], header["width"]) == (2, WIDTH)
    times = [event[0] for event in events]
    assert times == sorted(times)
    assert {event[1] for event in events} == {"o"}
    output = "".join(event[2] for event in events)
    assert "\x1b" not in output
    assert max(map(len, output.split("\r\n"))) <= WIDTH
    assert all(one.command in output for one in SESSION)


def test_a_session_comes_back_out_of_its_recording() -> None:
    # Each output has a line that is shown, and one that is not.
    shown = ["Plan of x", "Applied x", "x", "exit code 1"]
    made = [
        (one.command, "\n".join([f"left out {n}", "# no prompt", *shown]) + "\n", 0.1) for n, one in enumerate(SESSION)
    ]
    blocks = recorded_blocks(cast(made))
    assert tuple(blocks) == BLOCKS
    for name, text in blocks.items():
        commands = [one for one in SESSION if one.block == name]
        assert [line for line in text.splitlines() if line.startswith("# ") and line != "# no prompt"] == [
            f"# {one.command}" for one in commands
        ]
        pieces = re.split("|".join(re.escape(f"# {one.command}\n") for one in commands), text)[1:]
        for one, piece in zip(commands, pieces, strict=True):
            lines = piece.splitlines()
            assert [line for line in lines if line in shown] == [line for line in shown if re.search(one.shown, line)]
            assert ("…" in lines) == (one.shown != ".*")
    page = "\n".join(f"a\n{MARKS[0].format(name)}\nold\n{MARKS[1].format(name)}" for name in BLOCKS)
    filled = insert_blocks(page, blocks)
    assert "old" not in filled
    assert all(filled.count(text) == 1 for text in blocks.values())


def test_a_readme_without_the_marks_is_told() -> None:
    with pytest.raises(ValueError, match="substring not found"):
        insert_blocks("nothing", {"change": "x"})
