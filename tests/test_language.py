"""The vocabulary of docs/style.md: words that the project does not use, and names that say what a thing is."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.source_code import modules, nodes_of

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "advisor"

BANNED: Final = {
    r"put(?:s|ting)? (?:\w+ ){0,3}back\b": "roll back, restore",
    r"\b(?:told|tells?|telling)\b": "report, print, say; tell A from B: distinguish",
    r"\banew\b": "again, re-read",
    r"\bbeside\b": "conflicting; next to",
    r"\bsurroundings?\b": "context",
    r"\btak(?:e|es|ing) (?:\w+ )?up\b(?! to\b)": "apply, resume, use",
    r"\b(?:say|says|said|saying) of\b": "say about, report",
    r"\bout of nothing\b": "false",
    r"\b(?:is|are|be|put) in place\b(?! of\b)": "already set, applied",
    r"\bbetter already\b": "already sufficient",
    r"\bfrom under\b": "below",
    r"\bleft to (?:the )?others\b": "not applicable",
    r"\b(?:not )?as set\b": "match, drift",
    r"\bmove[sd]? along\b": "side effect",
    r"\bbystanders?\b": "side effect",
    r"\bin force\b": "active",
    r"\btaken? (?:\w+ ){0,2}out\b": "remove, roll back",
    r"\bgiv(?:e|es|en|ing) (?:\w+ )?back\b": "restore, return",
    r"\bleft to (?:you|the user|a person)\b": "manual step",
    r"\b(?:in|stands? in) the way\b": "blocked by",
    r"\bnot kept yet\b": "awaiting confirmation",
    r"\bof ours\b": "advisor's, managed",
    r"\bhonest answer\b": "check failed",
    r"\bliv(?:e|ing) together\b": "resolve the conflict",
}
"""Patterns, and what to write instead."""

# Words that other programs read (JSON keys and values, state files, ids) keep their old names; tell() is a file's.
DATA: Final = re.compile(
    r"""["'`](?:in_force|put-back|as_set|bystanders|beside|in-force)["'`]|\.in_force\b|put-back\b|in_force\b"""
    r"""|\.bystanders\b|\.tell\(|as set-(?:flow|timer)"""
)


def texts() -> Iterator[Path]:
    """Code, texts and tests, but for this list, the list for contributors, and the history."""
    patterns: tuple[str, ...] = (
        "*.md",
        "*.toml",
        "*.sh",
        "advisor/**/*.py",
        "benchmarks/**/*.py",
        "docs/**/*.md",
        "docs/**/*.py",
    )
    patterns += (
        "docs/**/*.yml",
        "packaging/**/*.*",
        "profiles/*.toml",
        "templates/*.j2",
        "tests/**/*.md",
        "tests/**/*.py",
    )
    skipped = ("CHANGELOG.md", "style.md", Path(__file__).name)
    for pattern in patterns:
        yield from (path for path in sorted(ROOT.glob(pattern)) if path.name not in skipped)


def found_words(text: str) -> list[str]:
    """The words with their lines, those that a line's end parts too."""
    plain = DATA.sub(lambda hit: " " * len(hit[0]), text)
    hits = (
        (hit, instead)
        for pattern, instead in BANNED.items()
        for hit in re.finditer(pattern.replace(" ", r"(?:\s|\n\s*# ?)+"), plain, re.IGNORECASE)
    )
    return [f"line {plain.count(chr(10), 0, hit.start()) + 1}: {hit[0]!r}: {instead}" for hit, instead in hits]


def test_a_word_of_the_list_is_found_and_data_is_not() -> None:
    assert found_words("one\nThe value is put it back.") == ["line 2: 'put it back': roll back, restore"]
    assert found_words("    # it is put\n    # back by hand") == ["line 1: 'put\\n    # back': roll back, restore"]
    assert found_words('status.in_force, "bystanders", file.tell(), persisted as set-flow') == []


def test_no_text_uses_a_word_of_the_old_dialect() -> None:
    found = {}
    for path in texts():
        name = str(path.relative_to(ROOT))
        words = found_words(path.read_text("utf-8", "replace"))
        if words:
            found[name] = words
    assert not found


def test_no_two_public_classes_share_a_name() -> None:
    where = defaultdict(list)
    for path in modules():
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(PACKAGE)))
    assert not {name: paths for name, paths in where.items() if len(paths) > 1}


def test_few_functions_are_named_with_one_word() -> None:
    names = [
        node.name
        for path in modules()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__")
    ]
    short = [name for name in names if "_" not in name.strip("_")]
    assert len(short) <= 0.25 * len(names), Counter(short).most_common(40)
