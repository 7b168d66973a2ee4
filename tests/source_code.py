"""The package's own code as trees, each parsed and walked once for all tests that ask: parsing all takes seconds."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "advisor"


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module as `ast.walk` gives them, but for load, store and operators, which have no line."""
    return tuple(node for node in ast.walk(tree_of(path)) if node._attributes or isinstance(node, ast.Module))
