"""A fault of each kind is planted, at its place and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.fault_places import KINDS, choose_faults, find_place, places_of, planted, probed

SOURCE = '''"""Sizes."""

def size(blocks: int, names: list[str]) -> int:
    """Return MiB, if 1 < 2."""
    if not blocks:
        return 0
    names.sort()
    é, large = "é", blocks >= LIMIT and names
    return blocks * 512 // 1024 if large else f"{blocks < 1}"
'''
PLANTED = {
    ("comparison", 0): ("blocks >= LIMIT", "(blocks < LIMIT)"),
    ("limit", 0): ("blocks >= LIMIT", "(blocks >= LIMIT * 2)"),
    ("unit", 0): ("blocks * 512 // 1024", "(blocks * 512)"),
    ("unit", 1): ("blocks * 512", "(blocks)"),
    ("and-or", 0): ("blocks >= LIMIT and names", "(blocks >= LIMIT or names)"),
    ("step", 0): ("if not blocks:\n        return 0", "pass"),
    ("step", 1): ("names.sort()", "pass"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    module = tmp_path / "advisor/rules/sizes.py"
    module.parent.mkdir(parents=True)
    module.write_text(SOURCE)
    return tmp_path


def test_a_fault_of_each_kind_is_planted_at_its_place_in_a_later_tree_too(tree: Path) -> None:
    module = {"module": "advisor/rules/sizes.py"}
    faults = {(fault["kind"], fault["ordinal"]): {**module, **fault} for fault, _ in places_of(SOURCE)}
    assert faults.keys() == PLANTED.keys()
    assert {kind for kind, _ in faults} == set(KINDS)
    for key, fault in faults.items():
        assert planted(tree, fault) == SOURCE.replace(*PLANTED[key], 1)
    later = SOURCE.replace("if not blocks", "names.append('')\n    if not blocks").replace("LIMIT", "MOST")
    (tree / module["module"]).write_text(later)
    for key, fault in faults.items():
        old, new = (text.replace("LIMIT", "MOST") for text in PLANTED[key])
        assert planted(tree, fault) == later.replace(old, new, 1)


def test_a_probe_leaves_the_answer(tree: Path) -> None:
    (fault,) = choose_faults(tree, 0, 5)
    node = find_place(tree, fault)
    assert node is not None
    assert "fault_probe').reach(7) or (" in probed(SOURCE, {7: node})
    ast.parse(probed(SOURCE, {7: node}))
