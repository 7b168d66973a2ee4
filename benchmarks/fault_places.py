"""Places of the package where a fault can be planted: found in the syntax tree, changed in the text.

A comparison turned round, a unit dropped, a step left out, `and` for `or`, a limit moved; drawn by a seed. A place is
named by module, function, kind and text, so it survives edits of other lines.
"""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

PARTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "rules": (("rules",), ("rules", "articles", "recommend")),
    "facts": (("facts",), ("facts", "rules")),
    "planning": (("planning",), ("planning", "tunables", "transaction")),
    "transaction": (("transaction", "tunables"), ("transaction", "tunables", "planning")),
    "statistics": (("proof",), ("proof",)),
}
"""Folders of advisor, and the folders of tests that concern them, nearest first."""
KINDS: Final = ("comparison", "unit", "step", "and-or", "limit")
_TURNED: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    **{ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
}
_SCALES: Final = (ast.Mult, ast.Div, ast.FloorDiv, ast.LShift, ast.RShift)
_UNIT: Final = re.compile(
    r"10 \*\* \d+|1 << \d0|8|[1-4]0|60|512|1024|3600|10{2,9}(\.0)?|(\w+\.)?_?([A-Z]+_)*"
    r"([KMGT]I?B|KILO|MEGA|GIGA|BITS|BYTES|SECTORS?|PAGE|[UMN]S|SECONDS|PERCENT)"
)
_SMALL: Final = 10

Fault = dict[str, Any]
"""part, module, function, kind, ordinal (among those of its kind in the function), of (how many), text."""


def _moved_limit(node: ast.Compare) -> ast.Compare | None:
    """Return the comparison with its number one larger, or twice as large unless it is small."""
    sides = [node.left, node.comparators[0]]
    for place, side in enumerate(sides):
        value = side.value if isinstance(side, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            sides[place] = ast.Constant(value + 1 if isinstance(value, int) and abs(value) <= _SMALL else value * 2)
        elif isinstance(side, ast.Name) and side.id.isupper() and not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides[place] = ast.BinOp(side, ast.Mult(), ast.Constant(2))
        else:
            continue
        return ast.Compare(sides[0], node.ops, sides[1:])
    return None


def faulty_text(kind: str, node: ast.AST) -> str | None:
    """Return the source text with the fault, or None if the node has no place for this kind."""
    new: ast.AST | None = None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _TURNED:
        if kind == "comparison":
            new = ast.Compare(node.left, [_TURNED[type(node.ops[0])]()], node.comparators)
        elif kind == "limit":
            new = _moved_limit(node)
    elif kind == "unit" and isinstance(node, ast.BinOp) and isinstance(node.op, _SCALES):
        if _UNIT.fullmatch(ast.unparse(node.right)):
            new = node.left
        elif isinstance(node.op, ast.Mult) and _UNIT.fullmatch(ast.unparse(node.left)):
            new = node.right
    elif kind == "and-or" and isinstance(node, ast.BoolOp):
        new = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif kind == "step" and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return "pass"
    elif kind == "step" and isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
        named = any(isinstance(each, ast.NamedExpr) for each in ast.walk(node.test))
        return "pass" if isinstance(node.body[0], ast.Return | ast.Continue) and not named else None
    return f"({ast.unparse(new)})" if new is not None else None


class _Finder(ast.NodeVisitor):
    """Collects (function, kind, node) in the bodies of functions, outside of messages, annotations and f-strings."""

    def __init__(self, *, prose: bool) -> None:
        self.prose = prose
        self.scope: list[str] = []
        self.places: list[tuple[str, str, ast.AST]] = []

    def visit(self, node: ast.AST) -> None:
        """Note the node's places and descend; of an f-string no part has a true position before Python 3.12."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if self.prose or _is_code(node):
                self.scope.append(node.name)
                for statement in node.body:
                    self.visit(statement)
                self.scope.pop()
        elif isinstance(node, ast.AnnAssign):
            self.visit(node.value or ast.Pass())
        elif not isinstance(node, ast.JoinedStr) and not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("msg", "N_")
        ):
            if self.scope:
                self.places += [(".".join(self.scope), kind, node) for kind in KINDS if faulty_text(kind, node)]
            self.generic_visit(node)


def _is_code(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether less than half of its text is strings."""
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return 2 * sum(len(text) for text in texts if isinstance(text, str)) < len(ast.unparse(node))


def places_of(source: str, *, prose: bool = False) -> list[tuple[Fault, ast.AST]]:
    """Return the places of a module's source as faults without part and module, with their nodes; with ``prose`` those
    of functions, too, that are messages for the most part."""
    finder = _Finder(prose=prose)
    finder.visit(ast.parse(source))
    groups: dict[tuple[str, str], list[ast.AST]] = defaultdict(list)
    for function, kind, node in finder.places:
        groups[function, kind].append(node)
    return [
        ({"function": function, "kind": kind, "ordinal": at, "of": len(some), "text": ast.unparse(node)}, node)
        for (function, kind), some in groups.items()
        for at, node in enumerate(some)
    ]


def replaced(source: str, node: ast.AST, new: str) -> str:
    """Return the source with the node's text replaced."""
    place: Any = node
    lines = source.encode().splitlines(keepends=True)  # an ast's columns count bytes
    start = sum(map(len, lines[: place.lineno - 1])) + place.col_offset
    end = sum(map(len, lines[: place.end_lineno - 1])) + place.end_col_offset
    return (source.encode()[:start] + new.encode() + source.encode()[end:]).decode()


def find_place(tree: Path, fault: Fault) -> ast.AST | None:
    """Return the node of a fault in a tree: by its text, or by its number if the function has as many such places."""
    path = tree / fault["module"]
    if not path.exists():
        return None
    places = places_of(path.read_text(), prose=True)
    alike = [pair for pair in places if all(pair[0][key] == fault[key] for key in ("function", "kind"))]
    same = [pair for pair in alike if pair[0]["text"] == fault["text"]]
    if not same and len(alike) == fault["of"]:
        same = [alike[fault["ordinal"]]]
    return min(same, key=lambda pair: abs(pair[0]["ordinal"] - fault["ordinal"]))[1] if same else None


def choose_faults(tree: Path, seed: int, count: int) -> list[Fault]:
    """Draw the faults: as many of each part, the kinds in turns, one of a function at most."""
    faults: list[Fault] = []
    for number, (part, (folders, _)) in enumerate(PARTS.items()):
        source = random.Random(f"{seed} {part}")
        pools: dict[str, list[Fault]] = {kind: [] for kind in KINDS}
        for path in (path for folder in folders for path in sorted((tree / "advisor" / folder).rglob("*.py"))):
            for place, _node in places_of(path.read_text()):
                pools[place["kind"]].append({"part": part, "module": str(path.relative_to(tree)), **place})
        for pool in pools.values():
            source.shuffle(pool)
        taken: set[tuple[str, str]] = set()
        wanted = count * (number + 1) // len(PARTS) - count * number // len(PARTS)
        turn = number
        while len(taken) < wanted and any(pools.values()):
            pool = pools[KINDS[turn % len(KINDS)]]
            turn += 1
            while pool:
                fault = pool.pop(0)
                if (fault["module"], fault["function"]) not in taken and planted(tree, fault):
                    taken.add((fault["module"], fault["function"]))
                    faults.append(fault)
                    break
    return faults


def planted(tree: Path, fault: Fault) -> str | None:
    """Return the text of the fault's module with the fault, or None if its place is gone, or cannot be changed."""
    if (node := find_place(tree, fault)) is None:
        return None
    text = replaced((tree / fault["module"]).read_text(), node, faulty_text(fault["kind"], node) or "")
    try:
        ast.parse(text)
    except SyntaxError:  # an elif cannot become pass
        return None
    return text


def probed(source: str, nodes: Mapping[int, ast.AST]) -> str:
    """Return the source with a probe before each place, which calls reach(NUMBER) of tests' fault_probe."""
    whole = {
        number: node.test if isinstance(node, ast.If) else node.value if isinstance(node, ast.Expr) else node
        for number, node in nodes.items()
    }
    for number, node in sorted(whole.items(), key=lambda pair: -getattr(pair[1], "lineno", 0)):
        segment = ast.get_source_segment(source, node)
        source = replaced(source, node, f"(__import__('fault_probe').reach({number}) or ({segment}))")
    return source
