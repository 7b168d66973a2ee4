"""Numbers in texts are ASCII digits: no module takes what only Python, or Unicode, calls a digit."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeGuard

import pytest

import advisor
from tests.each import for_each
from tests.source_code import nodes_of

SOURCES: Final = Path(advisor.__file__).parent
EXEMPT: Final = {"importers/tuned/devices.py", *("host/numbers.py", "observe/sample.py")}
"""The first compares as TuneD does, for which a number is what Python's int() takes. The last two ask for ASCII
themselves: one is what all others use, the other reads whole lines at once, as thousands are read each second."""
_UNICODE: Final = {"isdigit", "isdecimal", "isnumeric"}


def faults(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """What of a module reads a number otherwise than `advisor.host.numbers` does."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in _UNICODE:
            yield f"{node.lineno}: {node.attr}"
        elif _is_guarded(node):
            yield from _conversions(node.body)
        elif isinstance(node, ast.Call) and _is_of_re(node) and _has_unicode_digits(node):
            yield f"{node.lineno}: \\d without re.ASCII"


def _is_guarded(node: ast.AST) -> TypeGuard[ast.Try | ast.With]:
    """Whether what a text is no number for is caught around the statements in it."""
    if isinstance(node, ast.Try):
        return any(_catches(one.type) for one in node.handlers)
    return isinstance(node, ast.With) and any(_suppresses(one.context_expr) for one in node.items)


def _catches(caught: ast.expr | None) -> bool:
    """Whether a handler is for a text that int() refuses."""
    names = () if caught is None else ast.walk(caught)
    return any(isinstance(one, ast.Name) and one.id == "ValueError" for one in names)


def _suppresses(manager: ast.expr) -> bool:
    return isinstance(manager, ast.Call) and "suppress" in ast.unparse(manager.func) and _catches(manager)


def _conversions(body: list[ast.stmt]) -> Iterator[str]:
    for node in (one for statement in body for one in ast.walk(statement)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "int":
            yield f"{node.lineno}: int() decides what a number is"


def _is_of_re(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "lazy_regex"
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"


def _has_unicode_digits(call: ast.Call) -> bool:
    if not call.args or "ASCII" in ast.unparse(call):
        return False
    parts = (one.value for one in ast.walk(call.args[0]) if isinstance(one, ast.Constant))
    return any(isinstance(part, str) and "\\d" in part for part in parts)


@for_each("path", sorted(SOURCES.rglob("*.py")))
def test_numbers_are_ascii_digits(path: Path) -> None:
    if str(path.relative_to(SOURCES)) not in EXEMPT:
        assert list(faults(nodes_of(path))) == []


@pytest.mark.parametrize(
    "source",
    [
        "x = text.isdigit()",
        "x = all(map(str.isdecimal, words))",
        "x = [one for one in words if one[0].isnumeric()]",
        "try:\n    x = [int(one) for one in words]\nexcept (OSError, ValueError):\n    pass",
        "with contextlib.suppress(ValueError):\n    x = int(text, 16)",
        "x = re.compile(r'(\\d+) kB')",
        "X = lazy_regex(r'(\\d+) kB')",
        "x = re.match(rf'{name}(\\d)', text, re.MULTILINE)",
    ],
)
def test_each_way_is_found(source: str) -> None:
    assert len(list(faults(ast.walk(ast.parse(source))))) == 1
