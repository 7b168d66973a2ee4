"""Calls that are answered without typer, from the tables that docs/generate.py writes of the declared commands.

A call is either understood whole, just as typer would (tests/cli/test_quick.py holds the two together), or left to it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any

    from advisor.cli.tables.command import Command, Parameter

HELP_COLUMNS = 80
"""The pages of help are kept for terminals of at least so many columns: typer makes none wider."""


def help_page(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What ``--version`` or a command's ``--help`` prints; None for any other call."""
    if not arguments or not environment.keys().isdisjoint(("ADVISOR_LANG", "_ADVISOR_COMPLETE")):
        return None
    if arguments == ["--version"]:
        from advisor.version import describe_version

        return f"advisor {describe_version()}\n"
    if arguments[-1] not in ("--help", "-h") or terminal_columns(environment, HELP_COLUMNS) < HELP_COLUMNS:
        return None
    from advisor.cli.tables.pages import PAGES

    return PAGES.get(" ".join(arguments[:-1]))


def terminal_columns(environment: Mapping[str, str], otherwise: int, of: IO[str] | None = None) -> int:
    """As `shutil.get_terminal_size`, which takes longer to import than a page of help takes altogether; ``of`` is the
    stream that is written to, by default standard output."""
    try:
        columns = int(environment.get("COLUMNS", 0))
    except ValueError:
        columns = 0
    if columns > 0:
        return columns
    try:
        return os.get_terminal_size((of or sys.__stdout__).fileno()).columns or otherwise  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return otherwise


def parse_call(arguments: Sequence[str]) -> Callable[[], int] | None:
    """The command with its parameters, ready to be called; None for a call that typer has to look at."""
    from advisor.cli.tables.parameters import COMMANDS

    for size in (1, 2) if "_ADVISOR_COMPLETE" not in os.environ else ():
        command = COMMANDS.get(" ".join(arguments[:size]))
        if command is not None:
            given = values_of(command, arguments[size:])
            return None if given is None else _bind_command(command.room, arguments[:size], given)
    return None


def _bind_command(room: str, names: Sequence[str], values: dict[str, Any]) -> Callable[[], int]:
    def call() -> int:
        import importlib

        command = importlib.import_module(f"advisor.cli.{room}").COMMANDS[names[0]]
        result = (command if len(names) == 1 else command.commands[names[1]])(**values)
        return result if isinstance(result, int) else 0

    return call


def split_words(command: Command, words: Sequence[str]) -> tuple[dict[int, list[str | bool]], list[str]] | None:
    """The values of each option by the parameter's number, and the other words; None where that is not certain."""
    given: dict[int, list[str | bool]] = {}
    others: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word[:1] != "-" or word == "-":
            others.append(word)
            continue
        name, equals, text = word.partition("=")
        if name not in command.options or (equals and name[:2] != "--"):
            return None
        number, flag = command.options[name]
        if flag is None and not equals:
            if at == len(words):
                return None
            text = words[at]
            at += 1
        elif equals and flag is not None:
            return None
        given.setdefault(number, []).append(text if flag is None else flag)
    return given, others


def values_of(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """Every parameter's value by its name; None for words that typer has to look at."""
    found = split_words(command, words)
    if found is None:
        return None
    given, others = found
    for number, takes_many in command.arguments:
        taken, others = (others, []) if takes_many else (others[:1], others[1:])
        if taken:
            given[number] = [*taken]
    values: dict[str, Any] = {}
    try:
        for number, parameter in enumerate(command.parameters):
            values[parameter[0]] = _parameter_value(parameter, given.get(number))
    except (LookupError, ValueError):
        return None
    return None if others else values


def _parameter_value(parameter: Parameter, given: Sequence[str | bool] | None) -> Any:
    """The value that the command is called with. Raises LookupError or ValueError where typer has to decide."""
    _name, kind, takes_many, is_required, default, low, high = parameter
    if given is None:
        if is_required:
            raise LookupError
        return default
    if takes_many:
        return [_convert_value(kind, one, low, high) for one in given]
    return _convert_value(kind, given[-1], low, high)


def _convert_value(kind: str, text: Any, low: float | None, high: float | None) -> Any:
    if kind in ("flag", "text"):
        return text
    if kind == "path":
        if os.path.exists(text) and not os.access(text, os.R_OK):
            raise ValueError
        from pathlib import Path

        return Path(text)
    if kind not in ("int", "float"):
        raise LookupError
    number = int(text) if kind == "int" else float(text)
    if (low is not None and not number >= low) or (high is not None and not number <= high):
        raise ValueError
    return number
