"""One file is a kind of tunable: catalogue, docs, capture, conflicts and owners of files below /sys read it there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.host import ReadFile
from advisor.tunables import Kind, all_kinds, find_kind, parse_tunable
from advisor.tunables.sysfs_owner import owner_of
from tests.fleet.captures import is_captured
from tests.trees import host_of, make_tree

ROOT = Path(__file__).resolve().parents[2]

FOLDS = '''"""``folds:NAME`` — a setting of kernel page folding, persisted in a line of tmpfiles.d (tmpfiles.d(5))."""

from __future__ import annotations

from typing import Final

from advisor.tunables.kind import Capture, Kind
from advisor.tunables.tmpfiles_line import NamedAttribute

DIRECTORY: Final = "/sys/kernel/mm/folds"


class FoldsSetting(NamedAttribute, frozen=True):
    kind = "folds"
    directory = DIRECTORY
    names = ("run", "pages_to_scan")
    holds_count = True

    def check_value(self, value: str) -> str | None:
        return None if value.isdecimal() else "is not a number"


KIND: Final = Kind(
    name="folds",
    parse=FoldsSetting.parse,
    noun="page folding setting",
    examples=(("folds:run", "1"),),
    capture=Capture(files=((DIRECTORY, ("run", "pages_to_scan")),), values={"folds:run": "1"}),
    written_by=frozenset({"tuned"}),
    sysfs=((rf"{DIRECTORY}/(run|pages_to_scan)", r"folds:\\1"),),
    harms=((r"run 1", "Merging costs CPU time."),),
    slow=r"run",
)
'''
PROFILE = """name = "{name}"
title = "Page folding"
summary = "Merges pages of equal content."
helps-when = "Many virtual machines run one system."
hurts-when = "The CPUs are busy."
sources = ["Linux kernel documentation, admin-guide/mm/folds"]

[[tunables]]
tunable = "{tunable}"
value = "1"
why = "One page is kept for all."
hurts-when = "The CPUs are busy."
sources = ["Linux kernel documentation, admin-guide/mm/folds"]
"""
TEST = "tests/tunables/test_kinds.py"


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_a_kind_is_whole(kind: Kind) -> None:
    for identity, value in kind.examples:
        assert find_kind(identity) is kind
        assert parse_tunable(identity).id == identity
        assert parse_tunable(identity).check_value(value) is None, f"{identity} refuses its example {value}"
    assert kind.noun


@pytest.mark.parametrize("kind", [kind for kind in all_kinds() if kind.capture], ids=lambda kind: kind.name)
def test_a_capture_holds_what_the_examples_of_a_kind_read(kind: Kind) -> None:
    assert kind.capture is not None
    named = [identity for identity in kind.capture.values if "*" not in identity] or [kind.examples[0][0]]
    read = [parse_tunable(identity).probe for identity in named]
    missing = [one.path for one in read if isinstance(one, ReadFile) and not is_captured(one.path)]
    assert not missing, f"{kind.name}: the kind's capture does not hold {missing}"


@pytest.mark.parametrize("kind", [kind for kind in all_kinds() if kind.sysfs], ids=lambda kind: kind.name)
def test_a_file_below_sys_leads_to_its_kind(kind: Kind) -> None:
    read = [parse_tunable(identity).probe for identity, _ in kind.examples]
    for one in (one for one in read if isinstance(one, ReadFile) and one.path.startswith("/sys/")):
        owners = [found.expand(to) for pattern, to in kind.sysfs if (found := re.fullmatch(pattern, one.path))]
        assert "/queues/" in one.path or [parse_tunable(name).probe for name in owners] == [one]


def test_no_two_kinds_have_one_file_below_sys() -> None:
    paths = [
        probe.path
        for kind in all_kinds()
        for name, _ in kind.examples
        if isinstance(probe := parse_tunable(name).probe, ReadFile)
    ]
    for path in paths:
        owners = {kind.name for kind in all_kinds() for pattern, _ in kind.sysfs if re.fullmatch(pattern, path)}
        assert len(owners) < 2, path


def test_an_example_is_the_id_that_a_plan_has_for_its_file(tmp_path: Path) -> None:
    """A new kind takes files over from ``sysfs``, whose example on the page of tunables would then be another's."""
    examples = [name for kind in all_kinds() for name, _ in kind.examples if name.startswith("sysfs:")]
    taken = {name: owner for name in examples if (owner := owner_of(name.removeprefix("sysfs:"), host_of(tmp_path)))}
    assert not taken, f"advisor/tunables/sysfs.py: another example, this one is of another kind: {taken}"


@pytest.mark.parametrize(
    "identity", ["", "folds", ":run", "edits:x", "pm_qos:cpu_dma_latency", "link_mtu:a", "Sysctl:a"]
)
def test_a_module_that_declares_no_kind_is_none(identity: str) -> None:
    assert find_kind(identity) is None


def test_an_id_loads_its_own_kind_only() -> None:
    code = (
        "import sys; from advisor.tunables import parse_tunable; parse_tunable('md:md0:skip_copy'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "advisor.tunables.md" in done.stdout.split()
    assert not {f"advisor.tunables.{one}" for one in ("sysctl", "link", "unit", "sysfs", "file")} & {
        *done.stdout.split()
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("copy") / "project"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("advisor", "docs", "profiles", "templates", "tables", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def ran(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


def test_one_file_makes_a_kind_appear_in_plan_docs_and_capture(copy: Path, tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"/sys/kernel/mm/folds/run": "0\n", "/usr/lib/tmpfiles.d/README": ""})
    (copy / "advisor/tunables/folds.py").write_text(FOLDS)

    for name, identity in {"merge": "folds:run", "merge-path": "sysfs:/sys/kernel/mm/folds/run"}.items():
        (copy / f"profiles/{name}.toml").write_text(PROFILE.format(name=name, tunable=identity))
        plan = json.loads(ran(copy, "-m", "advisor", "plan", name, "--json", "--root", str(tree)).stdout)
        assert [(one["tunable"], one["before"], one["after"]) for one in plan["changes"]] == [("folds:run", "0", "1")]
    text = ran(copy, "-m", "advisor", "plan", "merge", "--root", str(tree)).stdout
    assert "1 page folding setting" in text
    explained = ran(copy, "-m", "advisor", "explain", "folds:run").stdout
    assert "A setting of kernel page folding" in explained
    page = ran(copy, "-c", "from docs.generate import tunables_page; print(tunables_page())")
    assert "\n## `folds:NAME`\n" in page.stdout, page.stderr
    script = ran(
        copy, "-c", "from advisor.snapshot.remote.capture import capture_script; print(capture_script())"
    ).stdout
    assert re.search(r"/sys/kernel/mm/folds\b.*\brun pages_to_scan", script)
    asked = "*(hurts_when('folds:run', one) for one in '12'), is_slow('folds:run'), is_slow('folds:sleep')"
    modules = "from advisor.tunables.harm import hurts_when; from advisor.tunables.catalogue import is_slow"
    answered = ran(copy, "-c", f"{modules}; print({asked})").stdout
    assert answered == "Merging costs CPU time. It was not measured on this host. True False\n"
    assert (
        ran(
            copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", TEST, "-k", "whole or holds or leads or no_two"
        ).returncode
        == 0
    )
