"""How many of 60 planted faults the tests find: one change of one place each, drawn by a seed, planted one at a time.

    python -m benchmarks.planted_faults --tests TREE --list               print the faults, measure nothing
    python -m benchmarks.planted_faults --tests TREE --json RESULT        plant them in a copy of TREE, one by one
    python -m benchmarks.planted_faults --tests LATER --faults RESULT --json OTHER    the same faults in a later tree

First the tests of the parts run once with a probe at every place, which gives the tests that reach it and their times.
Then each fault gets the tests that reach its place or import its module, nearest first, until one fails that passes
without the fault. A place that a later tree has no more is "gone". RESULT is written after each fault, and resumed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from benchmarks.fault_places import KINDS, PARTS, Fault, choose_faults, find_place, planted, probed

TESTS_SECONDS: Final = 120  # a fault gets its shortest tests, so long together without it
_PYTEST: Final = (
    *("-m", "pytest", "-q", "-o", "tmp_path_retention_policy=none", "--hypothesis-seed=0"),
    *("-p", "fault_probe", "-p", "no:cacheprovider", "-p", "no:tests.machine_guard"),
)
_ENDS: Final = (0, 1, 2, 5)  # passed, failed, interrupted by -x, no tests
_BASELINE: Final = ("-n", "2", "--dist", "worksteal", "-m", "not lab and not thorough and not alone")


class Scratch:
    """A copy of a tree with an environment of its own, in which faults are planted."""

    def __init__(self, tree: Path, room: Path) -> None:
        self.tree = room / "tree"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".hypothesis", ".pytest_cache")
        shutil.copytree(tree, self.tree, symlinks=True, ignore=left_out)
        if (tree.parent / "shared").exists():
            (room / "shared").symlink_to((tree.parent / "shared").resolve())
        venv.create(self.tree / ".venv", symlinks=True)
        (self.site,) = (self.tree / ".venv").glob("lib/python*/site-packages")
        packages = [str(self.tree), *(path for path in sys.path if path.endswith("-packages"))]
        (self.site / "a.pth").write_text("\n".join(packages))
        self.python = self.tree / ".venv/bin/python"
        for program in Path(sys.executable).parent.iterdir():
            if not (place := self.python.with_name(program.name)).exists():
                place.symlink_to(program)
        own = self.python.with_name("advisor")
        text = own.read_text()
        own.unlink()
        own.write_text(f"#!{self.python}\n" + text.partition("\n")[2])
        own.chmod(0o755)
        shutil.copy(Path(__file__).with_name("fault_probe.py"), self.site)
        # Such bytecode is compared with the source's hash, so that none is used that another fault left.
        words = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "advisor"]
        subprocess.run([self.python, *words], cwd=self.tree, check=True)

    def run(self, tests: Iterable[str] | None, limit: float, *words: str) -> tuple[dict[str, float], list[str], bool]:
        """Run modules of tests, or only these tests; return the seconds of each, those that failed, and whether the run
        ended within the limit."""
        record, chosen = self.site / "record", self.site / "chosen.json"
        record.write_text("")
        chosen.unlink(missing_ok=True)
        if tests is not None:
            chosen.write_text(json.dumps(list(tests)))
            words = (*words, *dict.fromkeys(test.partition("::")[0] for test in tests))
        call = [str(self.python), *_PYTEST, f"--basetemp={self.tree.with_name('tests')}", *words]
        sink, ended = subprocess.DEVNULL, True
        with subprocess.Popen(call, cwd=self.tree, stdout=sink, stderr=sink, start_new_session=True) as process:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                ended = False
                os.killpg(process.pid, signal.SIGKILL)
        seconds: dict[str, float] = {}
        failed: dict[str, None] = {}
        for test, spent, wrong in map(json.loads, record.read_text().splitlines()):
            seconds[test] = round(seconds.get(test, 0.0) + spent, 3)
            failed |= {test: None} if wrong else {}
        if ended and not failed and process.returncode not in _ENDS:
            failed = {f"pytest ended with {process.returncode}": None}
        return seconds, list(failed), ended


def modules_imported(path: Path) -> set[str]:
    """Return the dotted names that a module imports, modules and members alike."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


class Measurement:
    """The document of a measurement: the faults, the tests without a fault, and the outcome of each fault."""

    def __init__(self, scratch: Scratch, faults: Sequence[Fault], file: Path | None) -> None:
        self.scratch, self.file = scratch, file
        self.document: dict[str, Any] = {"faults": list(faults), "baseline": {}, "outcomes": [None] * len(faults)}
        if file and file.exists():
            self.document = json.loads(file.read_text())
        self.save()
        tests = [path for path in (scratch.tree / "tests").rglob("test_*.py") if "lab" not in path.parts]
        self.imported = {str(path.relative_to(scratch.tree)): modules_imported(path) for path in tests}

    def save(self) -> None:
        """Write the document, if it has a file."""
        if self.file:
            self.file.write_text(json.dumps(self.document, indent=1))

    def importing(self, fault: Fault) -> set[str]:
        """Return the modules of tests that import the fault's module by name."""
        name = fault["module"].removesuffix(".py").replace("/", ".")
        return {module for module, names in self.imported.items() if name in names}

    def run_baseline(self) -> None:
        """Run the tests of the parts with probes at all places; then those that fail, without."""
        nodes: dict[str, dict[int, ast.AST]] = defaultdict(dict)
        modules = {path for path in self.imported for _, some in PARTS.values() if path.split("/")[1] in some}
        for number, fault in enumerate(self.document["faults"]):
            if (node := find_place(self.scratch.tree, fault)) is not None:
                nodes[fault["module"]][number] = node
                modules |= self.importing(fault)
        sources = {self.scratch.tree / module: (self.scratch.tree / module).read_text() for module in nodes}
        for (path, source), places in zip(sources.items(), nodes.values(), strict=True):
            path.write_text(probed(source, places))
        reached = self.scratch.site / "reached"
        reached.touch(0o666)
        seconds, failed, ended = self.scratch.run(None, 7200, *_BASELINE, *sorted(modules))
        for path, source in sources.items():
            path.write_text(source)
        if failed:
            failed = self.scratch.run(failed, 1800)[1]
        lines = sorted({line for line in reached.read_text().splitlines() if line.count("\t") == 1})
        self.document["baseline"] = {"seconds": seconds, "broken": failed, "ended": ended, "reached": lines}
        self.save()

    def tests_of(self, number: int, fault: Fault) -> list[str]:
        """Return the tests that reach a fault, then those that import its module, nearest and shortest first."""
        baseline = self.document["baseline"]
        notes = [line.partition("\t")[2] for line in baseline["reached"] if line.startswith(f"{number}\t")]
        calls = {note.removesuffix(" (call)") for note in notes if note.endswith(" (call)")}
        # A fixture may serve all tests of its module, and so does what is called at import.
        whole = {note.partition("::")[0] for note in notes if not note.endswith(" (call)")}
        importing, folders = self.importing(fault), PARTS[fault["part"]][1]
        keys: dict[str, tuple[bool, bool, int, float]] = {}
        for test, seconds in baseline["seconds"].items():
            module = test.partition("::")[0]
            reaches = test in calls or module in whole
            if (reaches or module in importing) and test not in baseline["broken"]:
                place = [*folders, folder := module.split("/")[1]].index(folder)
                keys[test] = (not reaches, module not in importing, place, seconds)
        return sorted(keys, key=keys.__getitem__)

    def judge(self, number: int, fault: Fault) -> dict[str, Any]:
        """Plant a fault, run its tests, and return the outcome."""
        text = planted(self.scratch.tree, fault)
        if text is None:
            return {"outcome": "gone"}
        seconds = self.document["baseline"]["seconds"]
        every = self.tests_of(number, fault)
        if not every:
            return {"outcome": "not reached"}
        short = sorted(every, key=seconds.__getitem__)
        kept = set(short[: bisect(list(accumulate(seconds[test] for test in short)), TESTS_SECONDS)])
        tests = [test for test in every if test in kept] or every[:1]
        path = self.scratch.tree / fault["module"]
        source = path.read_text()
        path.write_text(text)
        _, failed, ended = self.scratch.run(tests, 60 + 5 * sum(seconds[test] for test in tests), "-x")
        path.write_text(source)
        outcome = "found" if failed else "not found" if ended else "no end"
        return {"outcome": outcome, "by": failed[:1], "tests": len(tests), "of": len(every)}

    def run(self) -> None:
        """Measure all faults that have no outcome yet; a test counts only if it passes again without the fault."""
        if not self.document["baseline"]:
            self.run_baseline()
        faults, outcomes, broken = (
            self.document["faults"],
            self.document["outcomes"],
            self.document["baseline"]["broken"],
        )
        while None in outcomes:
            for number, fault in enumerate(faults):
                if outcomes[number] is None:
                    outcomes[number] = self.judge(number, fault)
                    self.save()
                    print(number, name_fault(fault), json.dumps(outcomes[number]), flush=True)
            finders = sorted({test for outcome in outcomes for test in outcome.get("by", ()) if "/" in test})
            broken += self.scratch.run(finders, 1800)[1]
            again = [bool(set(outcome.get("by", ())) & set(broken)) for outcome in outcomes]
            outcomes[:] = [None if wrong else outcome for wrong, outcome in zip(again, outcomes, strict=True)]
            self.save()


def name_fault(fault: Fault) -> str:
    """Return a line that names a fault."""
    place = f"{fault['module']}:{fault['function']} {fault['ordinal'] + 1}/{fault['of']}"
    return f"{fault['part']} {fault['kind']} {place}: {fault['text'].splitlines()[0]}"


def print_table(document: dict[str, Any]) -> None:
    """Print how many were found of those that the tree still has, by part and by kind."""
    found, counted = Counter[str](), Counter[str]()
    for fault, outcome in zip(document["faults"], document["outcomes"], strict=True):
        for row in (fault["part"], fault["kind"], "all"):
            counted[row] += outcome["outcome"] != "gone"
            found[row] += outcome["outcome"] == "found"
    print("\n| faults | planted | found |\n|---|---|---|")
    for row in (*PARTS, *KINDS, "all"):
        print(f"| {row} | {counted[row]} | {found[row]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=Path, default=Path(__file__).parents[1], metavar="TREE")
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--faults", type=Path, metavar="FILE", help="of an earlier --json, instead of drawing")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    tree = asked.tests.resolve()
    drawn = json.loads(asked.faults.read_text())["faults"] if asked.faults else None
    faults = drawn or choose_faults(tree, asked.seed, asked.count)
    if asked.list:
        print(*(name_fault(fault) + ("" if planted(tree, fault) else " (gone)") for fault in faults), sep="\n")
        return
    with tempfile.TemporaryDirectory(prefix="planted-faults-", dir="/var/tmp") as room:
        measurement = Measurement(Scratch(tree, Path(room)), faults, asked.json)
        measurement.run()
    print_table(measurement.document)


if __name__ == "__main__":
    main()
