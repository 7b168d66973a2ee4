"""What the tables hold of a command."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    # name, kind, whether it takes many, whether it is required, default, lowest, highest value
    Parameter = tuple[str, str, bool, bool, object, float | None, float | None]


class Command:
    """One command: the module that holds it, and what its options and arguments are."""

    def __init__(
        self,
        room: str,
        parameters: tuple[Parameter, ...],
        options: dict[str, tuple[int, bool | None]],
        arguments: tuple[tuple[int, bool], ...],
        completers: dict[int, str],
    ) -> None:
        self.room = room
        self.parameters = parameters
        self.options = options
        """By each name the number of its parameter, and the value of a flag."""
        self.arguments = arguments
        """The number of each argument's parameter, and whether it takes all words that are left."""
        self.completers = completers
        """By the number of a parameter the function of `advisor.cli.complete` that completes its values, or the name of
        what it returns in `advisor.cli.tables.values`."""
