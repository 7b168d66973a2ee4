"""What is known of kernel parameters stands in their records: no module keeps a table of keys of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from advisor.facts.settings import find_setting
from tests.each import for_each
from tests.source_code import nodes_of

PACKAGE = Path(__file__).parent.parent.parent / "advisor"
RECORDS = PACKAGE / "facts" / "settings"
WRITERS = PACKAGE / "facts" / "writers"
"""What another program sets is known there, each with its value."""
MOST = 2
"""Keys that a display may name: a pair belongs to a rule, three are a table."""


def keys_in(node: ast.AST) -> set[str]:
    words = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    keys = (word.removeprefix("sysctl:") for word in words)
    return {key for key in keys if ":" not in key and find_setting(key)}


def tables_of(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Dict | ast.Tuple | ast.Set | ast.List) and len(found := keys_in(node)) > MOST:
            yield f"line {node.lineno}: {', '.join(sorted(found))}"


@for_each("path", [path for path in sorted(PACKAGE.rglob("*.py")) if not {RECORDS, WRITERS} & {*path.parents}])
def test_a_module_has_no_table_of_keys(path: Path) -> None:
    assert list(tables_of(path)) == []


def test_a_table_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        'LIMITS = {"vm.swappiness": 10, "vm.dirty_ratio": 10, "sysctl:vm.dirty_bytes": 0}\n'
        'PAIR = ("vm.dirty_ratio", "vm.dirty_bytes", "no.key")\n'
    )
    assert [one.partition(":")[0] for one in tables_of(tmp_path / "one.py")] == ["line 1"]
