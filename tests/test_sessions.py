"""The manual: each option that is typed exists, every page is reached, every link resolves."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs.sessions import DOCS, find_pages, parse_commands

PAGES = sorted(DOCS.rglob("*.md"))


def links_of(page: Path) -> list[tuple[str, Path]]:
    """The text and the target of each relative link."""
    found = re.findall(r"\[([^\]]*)\]\(([^)#\s]+)[^)]*\)", page.read_text())
    return [(text, (page.parent / target).resolve()) for text, target in found if "://" not in target]


@pytest.mark.parametrize("page", find_pages(), ids=lambda page: page.stem)
def test_each_option_that_is_typed_is_one_of_its_command(page: Path) -> None:
    typed = [one.typed for one in parse_commands(page.read_text("utf-8")) if one.typed]
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


def test_every_page_is_reached_from_the_landing_page_and_every_link_resolves() -> None:
    seen, ahead = set(), [DOCS / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        for _text, target in links_of(page):
            assert target.exists(), f"{page}: {target}"
            ahead += [target] if target.suffix == ".md" and target.is_relative_to(DOCS) else []
    assert set(PAGES) - seen == set()
