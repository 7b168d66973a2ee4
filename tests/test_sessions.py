"""The tutorial and the how-tos: what they type is what the command line takes, and prints what is on the page."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def load_sessions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sessions", DOCS / "sessions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sessions"] = module
    spec.loader.exec_module(module)
    return module


SESSIONS = load_sessions()
PAGES = SESSIONS.find_pages()


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


def test_the_tutorial_and_most_tasks_have_a_session() -> None:
    names = {name_of(page) for page in PAGES}
    assert "tutorial/first-host.md" in names
    assert len(names) >= 6


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_option_that_is_typed_is_one_of_its_command(page: Path) -> None:
    typed = [one.typed for one in SESSIONS.parse_commands(page.read_text("utf-8")) if one.typed]
    calls = [words for line in typed for words in calls_of(line)]
    assert calls
    for words in calls:
        path = [word for word in words[1:3] if word.isalpha()]
        helps = [help_of(path[:count]) for count in range(len(path), -1, -1)]
        text = next(one for one in helps if one is not None)
        for option in (word.partition("=")[0] for word in words if word.startswith("--")):
            assert option in text, (words, option)


def calls_of(line: str) -> list[list[str]]:
    """The calls of advisor in a line of shell."""
    lexer = shlex.shlex(line.removeprefix("$ ").removeprefix("# "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";|&<>()"):
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in found if words[:1] == ["advisor"]]


def help_of(path: list[str]) -> str | None:
    """The help of a command; None for what is no command."""
    call = [sys.executable, "-m", "advisor", *path, "--help"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "160"})
    return done.stdout if done.returncode == 0 else None


# It depends on the machine: a page is written on one, and shows its disks where it scans the machine itself.
@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="the sandbox of a session needs root")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_session_prints_what_is_on_the_page(page: Path) -> None:
    call = [sys.executable, DOCS / "sessions.py", "--check", page]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
