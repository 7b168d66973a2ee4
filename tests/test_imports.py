"""Start-up is a feature: what a scan loads, and which way imports run."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.each import for_each
from tests.source_code import nodes_of

PACKAGE = Path(__file__).parent.parent / "advisor"

# What costs tens of milliseconds each and has no part in a scan that prints JSON.
HEAVY = {"rich", "jinja2", "pyroute2", "psutil", "pydantic", "asyncio", "multiprocessing", "ssl", "scipy", "numpy"}

# What parses a call.
PARSER = {"typer", "click", "shellingham"}


def loaded_by(*arguments: str, **environment: str) -> set[str]:
    code = (
        "import sys\nbefore = set(sys.modules)\nfrom advisor.cli import main\nsys.argv = ['advisor', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write('\\nMODULES ' + ' '.join(sorted(sys.modules.keys() - before)))\n"
    )
    call = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return set(done.stderr.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [
        *(("scan",), ("scan", "--json"), ("plan", "socket-buffers-8m", "--json"), ("recommend", "--json")),
        *(("limits", "--json"), ("size", "--json", "--iops", "60k", "--cloud", "aws"), ("why", "--seconds", "0.1")),
    ],
)
def test_heavy_libraries_stay_unloaded(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "advisor.facts" in loaded
    assert not {module.partition(".")[0] for module in loaded} & HEAVY


@pytest.mark.parametrize("arguments", [("scan",), ("scan", "--json")])
def test_a_scan_loads_no_room_that_changes_or_measures(arguments: tuple[str, ...]) -> None:
    rooms = {module.split(".")[1] for module in loaded_by(*arguments) if module.startswith("advisor.")}
    assert rooms <= {"cli", "errors", "facts", "host", "operations", "report", "rules", "shell", "snapshot", "version"}


def test_the_version_needs_no_library() -> None:
    assert not {module.partition(".")[0] for module in loaded_by("--version")} & (HEAVY | PARSER | {"msgspec"})


@pytest.mark.parametrize("arguments", [("verify",), ("verify", "--json"), ("status",), ("status", "--json")])
def test_what_is_asked_every_minute_loads_no_rules(arguments: tuple[str, ...], tmp_path: Path) -> None:
    loaded = loaded_by(*arguments, ADVISOR_STATE_DIR=str(tmp_path))
    assert "advisor.transaction.status" in loaded
    assert not {module.partition(".")[0] for module in loaded} & HEAVY
    # Those are for hosts where TuneD or saptune sets values, too.
    assert {module for module in loaded if module.startswith(("advisor.importers.", "advisor.rules"))} <= {
        "advisor.transaction.conflicts"
    }


# The rooms from the ground up: a room imports only from those before it (and from itself).
FLOORS = [
    {"errors", "version"},
    {"host"},
    {"facts"},
    {"observe", "reach", "rules", "tunables"},
    {"diagnosis", "limits", "profiles"},
    {"planning", "sizing"},
    {"importers", "shell"},
    {"transaction"},
    {"planner"},
    {"exporters", "proof", "snapshot"},
    {"fleet", "recommend"},
    {"report"},
    {"operations"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and module of each import of the package's own modules: at the top, in functions, for type checkers."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if one.name.split(".")[0] == "advisor")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: line {node.lineno}: a relative import"
            module = node.module or ""
            if module.split(".")[0] == "advisor":
                for one in node.names:
                    inner = f"{module}.{one.name}"
                    yield node.lineno, inner if inner in MODULES else module


@cache
def import_graph() -> dict[str, tuple[tuple[int, str], ...]]:
    return {name: tuple(imported(path)) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    """The room of a module; of the package itself, which offers what lies above all others, the highest."""
    return module.split(".")[1] if "." in module else "__main__"


def test_every_room_has_a_floor_and_nothing_lies_loose() -> None:
    rooms = {room_of(name) for name in MODULES}
    assert rooms == set(FLOOR)
    loose = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert loose <= {"__main__", "version", "errors", "i18n", "operations", "planner"}
    assert len(FLOORS) <= 15


@for_each("name", [name for name in MODULES if name != "advisor"])
def test_imports_run_downward_only(name: str) -> None:
    own = room_of(name)
    for line, module in import_graph()[name]:
        room = room_of(module)
        assert room == own or FLOOR[room] < FLOOR[own], f"line {line} imports {module}, which is not below {own}"


def test_no_modules_import_each_other() -> None:
    """Not even through others, nor late, nor only for type checkers."""
    above: list[str] = []
    done: set[str] = set()

    def visit(name: str) -> None:
        assert name not in above, " -> ".join((*above[above.index(name) :], name))
        if name in done:
            return
        above.append(name)
        for _, module in import_graph().get(name, ()):
            # A package that collects what its own modules have is named by those that lie outside of it.
            if module != name:
                visit(module)
        above.pop()
        done.add(name)

    for name in MODULES:
        if name != "advisor":
            visit(name)


# What the command line may import from below the operations besides records and errors, and why.
CLI_IMPORTS = {
    "advisor.fleet": "the defaults of --forks and --timeout stand in the help, and hosts are counted in words",
    "advisor.host.numbers": "counts are in words",
    "advisor.host.provenance": "a tree that is this machine's own is spoken of as this machine",
    "advisor.host.signals": "the signal that ends a command is an exit code",
    "advisor.shell.quote": "a command that is printed can be pasted",
}


def only_for_types(path: Path) -> set[int]:
    """Lines of imports below ``if TYPE_CHECKING``: records that a command passes on."""
    return {
        inner.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }


def is_record_or_error(module: str, name: str) -> bool:
    """What operations return and raise: a frozen record, or an exception. Neither does anything."""
    found = getattr(importlib.import_module(module), name, None)
    return isinstance(found, type) and issubclass(found, msgspec.Struct | BaseException)


def calls_below(path: Path) -> list[str]:
    """What a module of the command line imports, when it runs, of the rooms below the operations."""
    rooms, types = {"cli", "operations", "report", "errors", "version"}, only_for_types(path)
    return [
        f"line {node.lineno}: {node.module}.{one.name}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.lineno not in types and node.module not in CLI_IMPORTS
        for one in node.names
        if (node.module or "").startswith("advisor.") and room_of(str(node.module)) not in rooms
        if not is_record_or_error(str(node.module), one.name)
    ]


def test_the_command_line_calls_the_operations() -> None:
    below = {path.stem: calls_below(path) for path in (PACKAGE / "cli").rglob("*.py")}
    assert {name: calls for name, calls in below.items() if calls} == {}


def test_operations_print_nothing_and_ask_nothing() -> None:
    for path in (PACKAGE / "operations").rglob("*.py"):
        used = {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert not used & {"sys.stdout", "sys.stderr", "sys.stdin"}, path
        assert not names & {"print", "input"}, path
