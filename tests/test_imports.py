"""Start-up is a feature: what a scan loads, and which way imports run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "advisor"

# What costs tens of milliseconds each and has no part in a scan that prints JSON.
HEAVY = {"rich", "jinja2", "pyroute2", "psutil", "pydantic", "asyncio", "multiprocessing", "ssl", "scipy", "numpy"}

# The rooms from the ground up: a room imports only from those before it (and from itself).
ORDER = [
    {"errors", "patterns", "tarball", "toml_lines", "i18n"},
    {"host"},
    {"facts", "tunables"},
    {"reach"},
    {"rules"},
    {"ceilings"},
    {"sizing"},
    {"profiles"},
    {"planning"},
    {"interchange"},
    {"script", "templating", "reserve", "journal", "signals", "snapshot", "watchdog"},
    {"coexistence", "surroundings", "coupled", "later", "beside", "layers", "transaction", "gate"},
    {"workflow", "history"},
    {"transaction_script"},
    {"interchange.export"},
    {"proof"},
    {"recommend"},
    {"fleet"},
    {"opening"},
    {"report"},
    {"api"},
    {"cli"},
]


# What a command that is parsed from the tables has no need of.
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
    "arguments", [("scan",), ("scan", "--json"), ("plan", "socket-buffers-8m", "--json"), ("recommend", "--json")]
)
def test_heavy_libraries_stay_unloaded(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "advisor.facts" in loaded
    assert not {module.partition(".")[0] for module in loaded} & (HEAVY | PARSER)


@pytest.mark.parametrize("arguments", [("verify",), ("verify", "--json"), ("status",), ("status", "--json")])
def test_what_is_asked_every_minute_loads_no_parser(arguments: tuple[str, ...], tmp_path: Path) -> None:
    loaded = loaded_by(*arguments, ADVISOR_STATE_DIR=str(tmp_path))
    assert "advisor.history" in loaded
    assert not {module.partition(".")[0] for module in loaded} & (HEAVY | PARSER)
    # Those are for hosts where TuneD or saptune sets values, too.
    assert not {module for module in loaded if module.startswith(("advisor.interchange", "advisor.rules"))}


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--version",), {}),
        (("--help",), {}),
        (("fleet", "compare", "--help"), {}),
        ((), {"_ADVISOR_COMPLETE": "complete_bash", "COMP_WORDS": "advisor sc", "COMP_CWORD": "1"}),
        ((), {"_ADVISOR_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "advisor apply --"}),
        (
            (),
            {
                "_ADVISOR_COMPLETE": "complete_fish",
                "_TYPER_COMPLETE_ARGS": "advisor fleet ",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
        ),
    ],
)
def test_what_the_tables_answer_loads_little_of_the_library(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    loaded = loaded_by(*arguments, **{"COLUMNS": "100", **environment})
    assert not {module.partition(".")[0] for module in loaded} & (HEAVY | PARSER | {"msgspec", "re", "pathlib", "json"})
    assert not {"advisor.i18n", "advisor.errors", "advisor.cli.parser"} & loaded


def room_of(module: str) -> int | None:
    parts = module.split(".")
    if parts[0] != "advisor" or len(parts) < 2:
        return None
    for name in (".".join(parts[1:3]), parts[1]):
        for number, rooms in enumerate(ORDER):
            if name in rooms:
                return number
    return None


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_downward_only(path: Path) -> None:
    own = room_of(".".join(("advisor", *path.relative_to(PACKAGE).with_suffix("").parts)))
    if own is None:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            room = room_of(node.module)
            assert room is None or room <= own, f"line {node.lineno} imports {node.module} from above"
