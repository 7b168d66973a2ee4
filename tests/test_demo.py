"""The README's session is the one that was recorded, and the recording is one that a player takes."""

from __future__ import annotations

import json

import pytest

from docs.demo import CAST, MARKS, README, SESSION, WIDTH, cast, session_of, with_block


def test_the_readme_shows_what_was_recorded() -> None:
    text = README.read_text()
    assert with_block(text, session_of(CAST.read_text())) == text, "run python docs/demo.py"


def test_the_recording_is_an_asciicast() -> None:
    header, *events = (json.loads(line) for line in CAST.read_text().splitlines())
    assert (header["version"], header["width"]) == (2, WIDTH)
    times = [event[0] for event in events]
    assert times == sorted(times)
    assert {event[1] for event in events} == {"o"}
    output = "".join(event[2] for event in events)
    assert "\x1b" not in output
    assert max(map(len, output.split("\r\n"))) <= WIDTH
    assert all(command in output for command, _ in SESSION)


def test_a_session_comes_back_out_of_its_recording() -> None:
    made = [(command, f"line {number}\n# no prompt\n", 0.1) for number, (command, _) in enumerate(SESSION)]
    text = session_of(cast(made))
    assert [line for line in text.splitlines() if line.startswith("line ")] == [
        f"line {n}" for n in range(len(SESSION))
    ]
    assert with_block(f"a\n{MARKS[0]}\nold\n{MARKS[1]}\nb\n", text).count(text) == 1


def test_a_readme_without_the_marks_is_told() -> None:
    with pytest.raises(ValueError, match="substring not found"):
        with_block("nothing", "x")
