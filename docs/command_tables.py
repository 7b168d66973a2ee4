"""The tables of `advisor.cli.tables`, from what typer makes of the commands that `advisor.cli` declares."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from typer._completion_classes import FishComplete, ZshComplete

from advisor.cli import parser
from advisor.cli.complete import FIXED
from advisor.cli.parameters import DeclaredParameter
from advisor.cli.quick import HELP_COLUMNS

HERE = Path(parser.__file__).parent / "tables"
HEAD = '"""{about} Written by docs/generate.py: change the commands and run it again."""\n'
UNWRAPPED = 10_000
KINDS = {
    "StringParamType": "text",
    "TyperPath": "path",
    "IntParamType": "int",
    "IntRange": "int",
    "FloatParamType": "float",
    "FloatRange": "float",
}


def tables() -> dict[Path, str]:
    """The source of each table by its path."""
    app = typer.main.get_command(parser.build_application(None))
    with app.make_context("advisor", [], resilient_parsing=True) as context:
        found = dict(_all(app, context, ""))
    return {
        HERE / "__init__.py": '"""What is known of the command line without typer."""\n',
        HERE / "parameters.py": _parameters({path: command for path, (command, _context) in found.items()}),
        HERE / "pages.py": _pages(help_pages()),
        HERE / "words.py": _words(found),
        HERE / "values.py": _values(),
    }


@functools.cache
def help_pages() -> Mapping[str, str]:
    """What each command prints as its help, by its path."""
    app = typer.main.get_command(parser.build_application(None))
    with app.make_context("advisor", [], resilient_parsing=True) as context:
        return {path: _page(path) for path, _ in _all(app, context, "")}


def _all(command: Any, context: Any, path: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Each command and the context that it is parsed in, by its path."""
    yield path, (command, context)
    for name, one in getattr(command, "commands", {}).items():
        with one.make_context(name, [], parent=context, resilient_parsing=True) as below:
            yield from _all(one, below, f"{path} {name}".strip())


@contextlib.contextmanager
def _as_wide_as(columns: int) -> Iterator[None]:
    """The terminal that typer and rich see."""
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), str(columns)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _pages(pages: Mapping[str, str]) -> str:
    rows = "\n".join(f"    {path!r}: {text!r}," for path, text in pages.items())
    return f"{HEAD.format(about='The page of help of each command.')}\nPAGES: dict[str, str] = {{\n{rows}\n}}\n"


def _page(path: str) -> str:
    app = parser.build_application(path.partition(" ")[0] or None)
    with _as_wide_as(HELP_COLUMNS), contextlib.redirect_stdout(io.StringIO()) as printed:
        app([*path.split(), "--help"], standalone_mode=False, prog_name="advisor")
    return printed.getvalue()


def _parameters(found: Mapping[str, Any]) -> str:
    rows = [_command(path, one) for path, one in found.items() if not hasattr(one, "commands")]
    return f"""{HEAD.format(about="The parameters of each command.")}
from __future__ import annotations

from advisor.cli.tables.command import Command

COMMANDS: dict[str, Command] = {{
{"".join(rows)}}}
"""


def _command(path: str, command: Any) -> str:
    room, function = _declared(path)
    declared = parser.command_signature(function).parameters
    parameters: list[tuple[object, ...]] = []
    options: dict[str, tuple[int, bool | None]] = {}
    arguments: list[tuple[int, bool]] = []
    completers: dict[int, str] = {}
    for number, one in enumerate(one for one in command.params if one.name in declared):
        own = declared[one.name]
        default = None if own.default is inspect.Parameter.empty else own.default
        if one.envvar or not isinstance(default, bool | int | float | str | None):
            raise SystemExit(f"advisor {path}: the tables have no form for {one.name}")
        takes_many = bool(getattr(one, "multiple", False) or one.nargs == -1)
        low, high = getattr(one.type, "min", None), getattr(one.type, "max", None)
        parameters.append((one.name, _kind(one), takes_many, bool(one.required), default, low, high))
        if one.param_type_name == "argument":
            arguments.append((number, one.nargs == -1))
        else:
            is_flag = getattr(one, "is_flag", False)
            options |= dict.fromkeys(one.opts, (number, True if is_flag else None))
            options |= dict.fromkeys(one.secondary_opts, (number, False))
        completer = next((about.settings.get("autocompletion") for about in _about(own.annotation)), None)
        if completer is not None:
            completers[number] = completer.__name__
    parts = (room, tuple(parameters), options, tuple(arguments), completers)
    return "\n".join((f"    {path!r}: Command(", *(f"        {part!r}," for part in parts), "    ),", ""))


def _declared(path: str) -> tuple[str, Any]:
    """The module and the function of a command."""
    names = path.split()
    room = next(room for room, commands in parser.ROOMS.items() if names[0] in commands)
    found = importlib.import_module(f"advisor.cli.{room}").COMMANDS[names[0]]
    return room, found.commands[names[1]] if names[1:] else found


def _about(annotation: Any) -> list[DeclaredParameter]:
    return [one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, DeclaredParameter)]


def _kind(parameter: Any) -> str:
    """How a value is converted; ``other`` for what only typer does."""
    kind = type(parameter.type).__name__
    checks = ("exists", "resolve_path", "writable", "executable", "allow_dash", "min_open", "max_open", "clamp")
    if parameter.nargs not in (1, -1) or any(getattr(parameter.type, check, False) for check in checks):
        return "other"
    if kind == "BoolParamType":
        return "flag" if parameter.is_flag else "other"
    return KINDS.get(kind, "other")


def _words(found: Mapping[str, Any]) -> str:
    groups, options = [], []
    for path, (command, context) in found.items():
        if hasattr(command, "commands"):
            below = [_word(item) for item in command.shell_complete(context, "")]
            groups.append(f"    {path!r}: {tuple(below)!r},\n")
        owners = {name: one.name for one in command.get_params(context) for name in (*one.opts, *one.secondary_opts)}
        # The names of an option of help come in no certain order.
        items = sorted(
            command.shell_complete(context, "-"), key=lambda item: item.value if owners[item.value] == "help" else ""
        )
        owned = [(owners[item.value], _word(item)) for item in items]
        options.append(f"    {path!r}: {tuple(owned)!r},\n")
    return f"""{HEAD.format(about="What words of a call are completed with.")}
from __future__ import annotations

# as bash, zsh and fish read it
Word = tuple[str, str, str]

GROUPS: dict[str, tuple[Word, ...]] = {{
{"".join(groups)}}}

# with the name of the parameter that each option sets
OPTIONS: dict[str, tuple[tuple[str, Word], ...]] = {{
{"".join(options)}}}
"""


def _values() -> str:
    rows = "".join(f"    {one.__name__!r}: {tuple(one(''))!r},\n" for one in FIXED)
    about = HEAD.format(about="Values that depend on neither the host nor the line, by what completes them.")
    return f"{about}\nVALUES: dict[str, tuple[str, ...]] = {{\n{rows}}}\n"


def _word(item: Any) -> tuple[str, str, str]:
    unused: tuple[Any, ...] = (None, {}, "advisor", "")
    with _as_wide_as(UNWRAPPED):
        zsh, fish = (shell(*unused).format_completion(item) for shell in (ZshComplete, FishComplete))
    return item.value, zsh, fish
