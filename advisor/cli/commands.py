"""typer's commands and groups of commands, whose help ends with examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer
import typer.core


class ExplainedCommand(typer.core.TyperCommand):
    """A command whose help ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(ctx, formatter)


class ExplainedGroup(typer.core.TyperGroup):
    """Commands below a command, whose help ends with examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(ctx, formatter)


def _write_examples(context: Any, formatter: Any) -> None:
    from advisor.cli.help_text import EXAMPLES

    examples = EXAMPLES.get(context.command_path.partition(" ")[2], ())
    if not examples:
        return
    column, other = (max(len(example[place]) for example in examples) for place in (0, 1))
    with formatter.section("Examples"):
        if column + other + 4 <= formatter.width:
            formatter.write_dl(examples, col_max=column)
        else:
            for command, explanation in examples:
                formatter.write(f"  {command}\n      {explanation}\n")


def make_command(function: Callable[..., int]) -> Any:
    """Return the command of a function, whose annotations declare what it takes."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=ExplainedCommand)(function)
    return typer.main.get_command(app)


def make_group(
    explanation: str, commands: Mapping[str, Callable[..., int]], default: Callable[[], int] | None = None
) -> typer.Typer:
    """Return the commands below a command; ``default`` answers a call that names none, else the group's help does."""
    app = typer.Typer(
        cls=ExplainedGroup,
        help=explanation,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=default is None,
        invoke_without_command=default is not None,
    )

    @app.callback()
    def answer_alone(context: typer.Context) -> int:
        return 0 if context.invoked_subcommand or default is None else default()

    for name, function in commands.items():
        app.command(name, cls=ExplainedCommand)(function)
    return app
