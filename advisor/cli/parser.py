"""The command line as typer knows it: each command's module is imported when the command is called or explained."""

# Annotations are evaluated here, not from their text by typer: that takes 2 ms of a scan.

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
import typer.core

from advisor.cli.commands import ExplainedGroup, make_command
from advisor.cli.output import print_error, say
from advisor.errors import UsageError
from advisor.version import describe_version

ROOMS: dict[str, tuple[str, ...]] = {
    "scan": ("scan", "snapshot", "probe"),
    "judge": ("judge",),
    "limits": ("recommend", "limits", "size"),
    "why": ("why", "observe"),
    "muting": ("mute", "unmute"),
    "library": ("profiles", "explain", "schema"),
    "change": ("plan", "apply", "confirm", "status", "verify", "rollback", "rollback-script"),
    "fix": ("fix",),
    "exporting": ("apply-script",),
    "prove": ("prove", "prove-arms", "prove-values", "prove-live", "prove-replay"),
    "bench": ("tune", "bench", "compare"),
    "fleet": ("fleet",),
    "agents": ("mcp", "approve"),
}
"""The commands that each module of this package declares in its ``COMMANDS``."""


class _LazyGroup(ExplainedGroup):
    """All commands; building them all costs as much as running one, so a command is built when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in ROOMS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            room = next((room for room, names in ROOMS.items() if cmd_name in names), None)
            if room is None:
                return None
            declared = importlib.import_module(f"advisor.cli.{room}").COMMANDS[cmd_name]
            is_group = isinstance(declared, typer.Typer)
            self.commands[cmd_name] = typer.main.get_command(declared) if is_group else make_command(declared)
            self.commands[cmd_name].name = cmd_name
        return self.commands[cmd_name]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # typer would end the call without a word.
            from advisor.host.signals import Interrupted

            raise Interrupted from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        from advisor.cli.help_text import GROUPS

        columns = max(len(name) for names in GROUPS.values() for name in names)
        for group, names in GROUPS.items():
            # As wide in each group: one column of explanations.
            rows = [
                (name.ljust(columns), self.get_command(ctx, name).get_short_help_str(formatter.width - columns - 6))
                for name in names
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


def build_program() -> Any:
    """Return the group of all commands, as typer builds it."""
    app = typer.Typer(
        name="advisor",
        cls=_LazyGroup,
        help="Inspect a Linux storage or cluster host, tune it, prove the gain, and roll back.\n\n"
        "Without a command, on a terminal: scan, choose, plan, apply, verify, and keep or roll back, step by step.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(global_options)
    return typer.main.get_command(app)


def walk_commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each command below ``group``, before those below it, with its path: ``fleet scan``."""
    for name in group.list_commands(None):
        command, own = group.get_command(None, name), f"{path} {name}".strip()
        yield own, command
        if hasattr(command, "list_commands"):
            yield from walk_commands(command, own)


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"advisor {describe_version()}\n")
        raise typer.Exit


def global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", help="Print without colour, as with NO_COLOR. FORCE_COLOR prints colour into a pipe as well."
        ),
    ] = False,
) -> None:
    """Every command prints text for people; --json prints one document for programs. Nothing changes a host but apply,
    prove and rollback."""
    if no_color:
        os.environ["NO_COLOR"] = "1"


def run_typer(arguments: Sequence[str], *, as_json: bool) -> int:
    """Parse the call and run its command; return the exit code."""
    asked = os.environ.get("_ADVISOR_COMPLETE", "")
    if asked.startswith("source_") or {"--install-completion", "--show-completion"} & set(arguments):
        # typer prints and installs the scripts of a table of its own, which every version since 0.15 has.
        from typer import _completion_shared

        from advisor.cli.complete import SCRIPTS

        if script := SCRIPTS.get(asked.removeprefix("source_")):
            sys.stdout.write(script)
            return 0
        for shell, script in SCRIPTS.items():
            _completion_shared._completion_scripts[shell] = script.replace("%", "%%")
    try:
        result = build_program()(list(arguments), standalone_mode=False, prog_name="advisor")
    except typer.Abort:
        return 130
    except CALL_ERROR as error:
        # A call whose words are off: say what and where to look.
        from advisor.cli.faults import call_hint, call_message

        message = call_message(error)
        if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
            say(message)
        else:
            print_error(UsageError(message, hint=call_hint(error)), as_json=as_json)
        return UsageError.exit_code
    return result if isinstance(result, int) else 0


# typer contains click or depends on it, by its version; the base class is found either way.
CALL_ERROR: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")
