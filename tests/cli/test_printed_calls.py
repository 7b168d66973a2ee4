"""The program takes every call of it that the code, the expected pages, the manual and the packages print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from advisor.cli.parser import CALL_ERROR
from tests.cli.inside import parse_words, program

PROJECT = Path(__file__).parents[2]
PLACES = ("advisor", "docs", "packaging", "profiles", "tables", "templates", "tests/golden", "README.md", "setup.sh")
TEXT = {".html", ".ini", ".j2", ".md", ".py", ".service", ".sh", ".svg", ".toml", ".txt", ".yaml", ".yml"}
CALL = re.compile(r"(?P<mark>[`$#] ?|sudo |)(?<![\w/.-])advisor (?P<words>[a-z][^\n`|;&]*)")
WORD = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|[^\s\"']+")
ARGUMENT = re.compile(r"[A-Z][A-Z_0-9]*|.*[0-9=/:{}%].*|['\"].*|[a-z]+(-[a-z0-9]+)+|.+\.[a-z-]+")
"""What is no word of a sentence."""
LESS = ("MissingParameter", "NoArgsIsHelpError")
PLACEHOLDER = re.compile(r"[A-Z][A-Z_|=,a-z]*|.*[{}…].*")
END = re.compile(r"(?<=.)(?:[.,:)]+|…)$|^[#<>(\[…].*")


def texts() -> Iterator[tuple[Path, str]]:
    for place in (PROJECT / name for name in PLACES):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix == ".py":
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.JoinedStr):
                        yield path, "".join(getattr(one, "value", "{}") for one in map(as_text, node.values))
                    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                        yield path, node.value
            elif path.suffix in TEXT:
                yield path, re.sub(r"\\\n\s*", " ", path.read_text())


def as_text(part: ast.expr) -> ast.expr:
    return part if isinstance(part, ast.Constant) else ast.Constant("{}")


def sample(parameter: Any, given: str) -> str:
    kind = parameter.type
    if not PLACEHOLDER.fullmatch(given):
        return given.strip("'\"")
    return str((getattr(kind, "choices", None) or [getattr(kind, "min", None) or "1"])[0])


def read_call(text: str, *, is_code: bool) -> list[str]:
    """The words of the call at the beginning of ``text``; none of a sentence about advisor, and of a page of help."""
    words: list[str] = []
    command: Any = program()
    ahead = iter(WORD.findall(text))
    for word in ahead:
        clean = END.sub("", word)
        is_option = clean.startswith("-")
        if hasattr(command, "list_commands") and not is_option:
            command = command.get_command(None, clean)
            if command is None:
                return [*words, clean] if is_code and not PLACEHOLDER.fullmatch(clean) else words
        elif not (is_option or is_code or ARGUMENT.fullmatch(clean)):
            return words
        name, _, value = clean.partition("=") if is_option else (clean, "", "")
        if clean:
            words.append(name)
        if is_option:
            option = next((one for one in command.params if name in (*one.opts, *one.secondary_opts)), None)
            if option is None or not option.expose_value:
                return [] if option or name in ("-h", "--help") else words
            if not option.is_flag:
                word = value or next(ahead, "#")
                given = END.sub("", word)
                words = [*words, sample(option, given)] if given else words[:-1]
        if END.search(word):
            return words
    return words


def test_the_program_takes_every_call_that_is_printed() -> None:
    wrong: dict[str, str] = {}
    seen = set()
    for path, text in texts():
        for call in CALL.finditer(text):
            is_example = path.name == "help_text.py" and call.start() == 0
            words = read_call(call["words"], is_code=is_example or call["mark"].strip() in ("`", "$", "sudo"))
            if not words or tuple(words) in seen:
                continue
            seen.add(tuple(words))
            try:
                parse_words(words)
            except (CALL_ERROR, AttributeError) as error:
                # A sentence may name a command without its arguments; an example may not.
                if type(error).__name__ not in LESS or is_example:
                    wrong[f"{path.relative_to(PROJECT)}: {call[0].strip()}"] = f"{words} {error}"
    assert not wrong, "\n".join(f"{call}: {why}" for call, why in wrong.items())
    assert len(seen) > 500
