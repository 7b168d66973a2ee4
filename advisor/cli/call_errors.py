"""A call that typer refuses, as a message of advisor: by the class of its exception and its fields.

typer's texts are English only, and typer carries click inside itself or imports it, depending on its version, so a
class is known by its name.
"""

from __future__ import annotations

import re
from typing import Any, Final

from advisor.i18n import N_, msg


def call_message(error: Any) -> str:
    """What is wrong with the call; typer's own text for an exception that this does not know."""
    text = str(error.format_message()).rstrip(".")
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return _no_such_option(error)
    if kind == "BadOptionUsage":
        return _bad_option(error)
    if kind == "MissingParameter":
        name = error.param.get_error_hint(error.ctx).strip("'")
        if error.param.param_type_name == "argument":
            return msg("Missing argument '{name}'", name=name)
        return msg("Missing option '{name}'", name=name)
    if kind == "BadParameter":
        return _bad_value(error)
    if kind == "UsageError":
        return _name_command(error, text)
    return text


def _no_such_option(error: Any) -> str:
    option = error.option_name
    if not error.possibilities:
        return msg("No such option: {option}", option=option)
    names = ", ".join(sorted(error.possibilities))
    return msg("No such option: {option} (Possible options: {names})", option=option, names=names)


def _bad_option(error: Any) -> str:
    option = error.option_name
    if error.message.endswith("does not take a value."):
        return msg("Option '{option}' does not take a value", option=option)
    return msg("Option '{option}' requires an argument", option=option)


def _bad_value(error: Any) -> str:
    name = error.param.get_error_hint(error.ctx).strip("'")
    given, kind = _first_quoted(error.message), error.param.type.name
    words = kind.split()[0]
    if given and words in _NUMBERS:
        in_seconds = "SECONDS" in (getattr(error.param, "metavar", None) or "")
        text = _IN_SECONDS[words] if in_seconds else _NUMBERS[words]
        return msg("{name}: {given!r} is {reason}", name=name, given=given, reason=text)
    if found := _RANGE.fullmatch(error.message):
        low, high = found["low"], found["high"]
        if low and high:
            return msg("{name}: expected {low} to {high}, found {given}", name=name, low=low, high=high, given=found[1])
        if low:
            return msg("{name}: expected {low} or more, found {given}", name=name, low=low, given=found[1])
    if given and error.message.endswith(f"is not a valid {kind}."):
        return msg("Invalid value for '{name}': '{given}' is not a valid {kind}", name=name, given=given, kind=kind)
    return msg("Invalid value for '{name}': {error}", name=name, error=error.message.rstrip("."))


_NUMBERS: Final = {"int": N_("not a whole number"), "float": N_("not a number")}
_IN_SECONDS: Final = {"int": N_("not a whole number of seconds"), "float": N_("not a number of seconds")}
_RANGE: Final = re.compile(
    r"(-?[0-9.]+) is not in the range (?:(?P<low>-?[0-9.]+)<=)?x(?:<=(?P<high>-?[0-9.]*[0-9]))?\.?"
)


def _name_command(error: Any, text: str) -> str:
    """An error that has no class of its own: about the command where this is a group, else about what is left over."""
    if hasattr(error.ctx.command, "commands"):
        name = _first_quoted(text)
        names = text.partition("Did you mean ")[2].rstrip("?")
        if names:
            return msg("No such command '{name}'. Did you mean {names}?", name=name, names=names)
        return msg("No such command '{name}'", name=name) if name else N_("Missing command")
    more = text.partition(" (")[2].removesuffix(")")
    if not more:
        return text
    return msg("Got unexpected extra argument(s) ({more})", more=more)


def _first_quoted(text: str) -> str:
    """What stands between the first quotes."""
    return text.partition("'")[2].partition("'")[0]
