"""A rule registers itself: a new file needs no list, and what is wrong with a rule is an error that names it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from advisor.rules.clusters.infoscale import as_seen
from advisor.rules.judged import RULES, judge_singly
from advisor.rules.workload import parse_workload
from tests.cases import read_cases
from tests.rules.table import table
from tests.running import run_text
from tests.trees import make_tree

ROOT = Path(__file__).parents[2]
DATA = read_cases(__file__)

FIELDS = DATA["FIELDS"]
FILE = '''"""What a newcomer knows of swapping."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.rules import sources
from advisor.rules.rule import Finding
from advisor.rules.rule import Decide
from advisor.rules.rule import rule
from advisor.rules.workload import DeclaredWorkload


@rule(
    id="{id}",
    severity="{severity}",
    {fields}
)
def odd_swappiness(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    value = facts.sysctl.get("vm.swappiness", "0")
    if int(value) % 2 == 0:
        return None
    return odd_swappiness.found(why="It is odd.", evidence={{"vm.swappiness": value}}, remedy=Decide("make it even"))
'''


def written(identity: str = "vm.odd-swappiness", severity: str = "advice", without: str = "") -> str:
    fields = {name: repr(text) for name, text in FIELDS.items()} | {"sources": "(sources.VM,)"}
    return FILE.format(
        id=identity,
        severity=severity,
        fields="\n    ".join(f"{name}={text}," for name, text in fields.items() if name != without),
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, as a newcomer has it before his eyes: without its history."""
    place = tmp_path_factory.mktemp("copy") / "project"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("advisor", "docs", "profiles", "templates", "tables", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=ignored)
    return place


def ran(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return run_text([sys.executable, *arguments], cwd=copy, env=environment)


def test_one_file_with_one_decorated_function_appears_in_scan_explain_and_docs(copy: Path, tmp_path: Path) -> None:
    name = random.choice(["aaa_swapping", "swapping", "zzz_swapping"])
    (copy / f"advisor/rules/{name}.py").write_text(written())
    tree = make_tree(tmp_path, {"/proc/sys/vm/swappiness": "61\n", "/sys/class/net/.keep": ""})

    scanned = ran(copy, "-m", "advisor", "scan", "--json", "--root", str(tree))
    explained = ran(copy, "-m", "advisor", "explain", "vm.odd-swappiness", "--json")
    documented = ran(copy, "-c", "from docs.generate import rules_page; print(rules_page())")
    (copy / f"advisor/rules/{name}.py").unlink()

    found = {one["id"]: one for one in json.loads(scanned.stdout)["findings"]}
    assert found["vm.odd-swappiness"]["severity"] == "advice"
    assert json.loads(explained.stdout)["hurts_when"] == FIELDS["hurts_when"]
    assert "| `vm.odd-swappiness` | Swappiness is odd |" in documented.stdout, documented.stderr


@pytest.mark.parametrize(
    ("text", "named"),
    [
        *((written("vm.odd-one", without=name), f"rule 'vm.odd-one' has no {name}") for name in (*FIELDS, "sources")),
        *DATA["what_is_wrong_with_a_rule_is_an"],
    ],
    ids=[*FIELDS, "sources", "id", "severity"],
)
def test_what_is_wrong_with_a_rule_is_an_error_at_import_that_names_file_and_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, named: str
) -> None:
    wrong = tmp_path / "zz_wrong.py"
    wrong.write_text(text)
    spec = spec_from_file_location("advisor.rules.zz_wrong", wrong)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    with pytest.raises(ValueError, match=rf"^{re.escape(f'{wrong}: {named}')}$"):
        spec.loader.exec_module(module)


def test_rules_of_what_a_host_does_not_have_are_left_out_and_find_nothing() -> None:
    hosts = [seen for row in table() for seen in (*row.fires, *row.silent)]
    assert {seen.workload is None for seen in hosts} == {True, False}
    for facts, words in hosts:
        workload = parse_workload(words) if words else None
        known = as_seen(facts, workload)
        found = [one for rule in RULES for one in rule(facts, workload if rule.judges_declared else known)]
        judged = judge_singly(facts, workload)
        left_out = {one.id for one in found} - {one.id for one in judged}
        assert not left_out, f"_SUBJECTS of advisor/rules/judged.py leaves the module of {left_out} out on its own host"
        assert sorted(map(repr, judged)) == sorted(map(repr, found))


def test_the_order_of_rules_does_not_depend_on_what_was_imported_first() -> None:
    listed = "from advisor.rules.judged import RULES; print(*(rule.id for rule in RULES))"
    modules = sorted({rule.module for rule in RULES})
    first = "; ".join(f"import {module}" for module in random.sample(modules, 5))
    done = subprocess.run([sys.executable, "-c", f"{first}; {listed}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [rule.id for rule in RULES], first
