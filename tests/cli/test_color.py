"""Colour: on a terminal, where FORCE_COLOR asks for it, and nowhere with NO_COLOR or ``--no-color``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.cli.inside import call_on_terminal
from tests.running import run_text


def run_in_pipe(*words: str, **more: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    done = run_text([sys.executable, "-m", "advisor", *words], env={**kept, **more}, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("words", "more", "is_colored"),
    [
        (("profiles",), {}, False),
        (("profiles",), {"FORCE_COLOR": "1"}, True),
        (("profiles",), {"FORCE_COLOR": ""}, False),
        (("profiles",), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--no-color", "profiles"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_in_a_pipe(words: tuple[str, ...], more: Mapping[str, str], is_colored: bool) -> None:
    assert ("\x1b[" in run_in_pipe(*words, **more)) == is_colored


@pytest.mark.parametrize(
    ("words", "more", "is_colored"),
    [
        (("profiles",), {"TERM": "xterm"}, True),
        (("profiles",), {"TERM": "dumb"}, False),
        (("profiles",), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (("--no-color", "profiles"), {"TERM": "xterm"}, False),
    ],
)
def test_colour_on_a_terminal(words: tuple[str, ...], more: Mapping[str, str], is_colored: bool) -> None:
    code, text = call_on_terminal(*words, environment=more)
    assert (code, "\x1b[" in text) == (0, is_colored)


def test_no_colour_is_no_option_of_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "advisor", "profiles", "--no-color"], capture_output=True, check=False)
    assert done.returncode == 2
