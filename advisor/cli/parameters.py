"""What commands take, in typer's terms. typer itself, half the time of a short command, is loaded only where it has to
parse a call or to explain one (`advisor.cli.parser`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any


class Group:
    """Commands below a command; ``default`` answers where none of them is named, else the group's help does."""

    def __init__(
        self, explanation: str, commands: Mapping[str, Callable[..., int]], default: Callable[[], int] | None = None
    ) -> None:
        self.explanation = explanation
        self.commands = commands
        self.default = default


class DeclaredParameter:
    """The arguments of a call of ``typer.Option`` or ``typer.Argument`` that is still to be made."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names = names
        self.settings = settings


if TYPE_CHECKING:
    from typer import Argument as Argument
    from typer import Option as Option
else:

    class Argument(DeclaredParameter):
        """A positional argument."""

    class Option(DeclaredParameter):
        """An option, by its names."""
