"""Errors on a terminal: wrapped at its width, and a command in them on a line of its own; in a pipe on one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.inside import call_on_terminal

ADVISOR = [sys.executable, "-m", "advisor"]
WORDS = ("limits", "foo=1")
COMMAND = "advisor limits --what-if raid=raid10"


@pytest.mark.parametrize("columns", [50, 80])
def test_a_hint_is_wrapped_and_its_command_is_whole(columns: int) -> None:
    code, text = call_on_terminal(*WORDS, columns=columns, out=subprocess.DEVNULL)
    lines = text.splitlines()
    assert code == 2
    assert lines[0] == "advisor: unexpected argument: foo=1"
    assert all(len(line) <= columns for line in lines), lines
    assert any(line.endswith(COMMAND) for line in lines), lines
    assert all(line.startswith("    ") for line in lines[2:]), lines


def test_a_pipe_gets_one_line() -> None:
    done = subprocess.run([*ADVISOR, *WORDS], capture_output=True, text=True, check=False)
    _error, hint = done.stderr.splitlines()
    assert "volumes, instance, raid, stripes, links, speed, mtu" in hint
    assert hint.endswith(COMMAND)
