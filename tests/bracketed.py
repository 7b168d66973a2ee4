"""A catalogue that puts brackets around each text, but not around its fields."""

from __future__ import annotations

import errno
import os
import re
from functools import cache
from pathlib import Path

from tests.test_words import TOOL

_COMMAND = re.compile(r"\s*(?:[0-9.]+ +)?(?:advisor|ip|sh|tracepath|ping) ")
# Units, and what the kernel said.
_DATA = frozenset({"RTT", "UTC", "ms", "Permission", "denied"})


@cache
def bracketed_catalogue() -> bytes:
    """Compiled: translates each text into itself between brackets, but not its fields."""
    texts = {text: tuple(map(bracketed, filter(None, text))) for text in TOOL.extracted()}
    header = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
    compiled: bytes = TOOL.mo_bytes({TOOL.Text(""): (header,)} | texts)
    return compiled


def install_bracketed(locales: Path) -> None:
    """Make it the German of this directory of catalogues."""
    place = locales / "de" / "LC_MESSAGES" / "advisor.mo"
    place.parent.mkdir(parents=True)
    place.write_bytes(bracketed_catalogue())


def bracketed(text: str) -> str:
    """``⟦The file ⟧{path}⟦ is new⟧``: what a field holds stays outside."""
    parts = re.split(r"(\{\w[^{}]*\})", text)
    return "".join(part if at % 2 else f"⟦{part}⟧" if part else "" for at, part in enumerate(parts))


def foreign_words(text: str) -> set[str]:
    """The words that no catalogue has seen, without those of commands, names and values."""
    outside = re.sub(r"⟦[^⟦⟧]*⟧", " ", text)
    lines = [line for line in outside.splitlines() if not _COMMAND.match(line)]
    return {word for line in lines for word in re.findall(r"(?<!\S)[(]?([A-Za-z]{2,})[,;:.)]*(?!\S)", line)} - _DATA


def foreign_phrases(text: str) -> set[str]:
    """What stands outside of the brackets and is neither a name, a list of names, nor what another program said."""
    outside = re.sub(r"^advisor: |\badvisor( [a-z-]+)+\b", "", text, flags=re.M)
    for said in _SAID:
        outside = said.sub("", outside)
    parts = (part.strip(" :;,") for part in re.split(r"⟦[^⟦⟧]*⟧|\n", outside))
    return {part for part in parts if _WORDS.search(re.sub(r"'[^']*'", "", part)) or part in _ENGLISH}


# Two words with a blank between them.
_WORDS = re.compile(r"(?<!\S)[(]?[A-Za-z]{2,}[;:.)]* +[(]?[A-Za-z]{2,}[,;:.)]*(?!\S)")
_ENGLISH = frozenset({"and", "or", "none", "no", "nothing", "unknown", "all", "yes", "here"})
_SAID = (
    re.compile("|".join(sorted({re.escape(os.strerror(one)) for one in errno.errorcode}, key=len, reverse=True))),
    # tomllib, json, re, msgspec and Ansible.
    re.compile(r"Expecting property name [^'\n]*|missing \), unterminated subpattern at position \d+"),
    re.compile(r"[^⟧]* \(at (?:line \d+, column \d+|end of document)\)"),
    re.compile(r"line \d+: (?:Invalid value|Expected '=' after a key in a key/value pair)"),
    re.compile(r"Input data was truncated|Name or service not known"),
    re.compile(r"JSON is malformed: .*? \(byte \d+\)"),
    re.compile(r"Failed to parse inventory(?:.|\n)*(?=\n⟦|\n  ⟦)"),
)
