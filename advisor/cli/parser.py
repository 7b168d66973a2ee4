"""The command line as typer knows it: the commands that `advisor.cli` declares, parsed, explained and completed."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer
import typer.core

from advisor import i18n
from advisor.cli.complete import language_names
from advisor.cli.output import print_error, say
from advisor.cli.parameters import DeclaredParameter, Group
from advisor.errors import UsageError
from advisor.i18n import msg
from advisor.version import describe_version

# Which file holds which command: only that file is loaded, since building all commands costs as much as running one.
ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "scan": ("scan", "snapshot"),
    "recommend": ("recommend",),
    "why": ("why",),
    "observe": ("observe",),
    "limits": ("limits",),
    "size": ("size",),
    "muting": ("mute", "unmute"),
    "library": ("profiles", "explain"),
    "change": ("plan", "apply", "confirm", "status", "verify", "rollback", "rollback-script"),
    "fix": ("fix",),
    "apply_script": ("apply-script",),
    "prove": ("prove",),
    "tune": ("tune",),
    "bench": ("bench", "compare"),
    "probe": ("probe",),
    "fleet": ("fleet",),
    "agents": ("mcp", "approve"),
}


class _ExplainedCommand(typer.core.TyperCommand):
    """A command whose page of help ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(ctx, formatter)


class _ExplainedGroup(typer.core.TyperGroup):
    """Commands whose page of help lists them in groups, and ends with examples."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        from advisor.cli.help_text import GROUPS

        if ctx.parent is not None:
            return super().format_commands(ctx, formatter)
        known = [name for names in GROUPS.values() for name in names if name in self.commands]
        columns = max(map(len, known), default=0)
        for group, names in GROUPS.items():
            # As wide in each group: one column of explanations.
            found = [
                (name.ljust(columns), self.commands[name].get_short_help_str(formatter.width - columns - 6))
                for name in names
                if name in known
            ]
            if found:
                with formatter.section(group):
                    formatter.write_dl(found)
        return None

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(ctx, formatter)


def _write_examples(context: Any, formatter: Any) -> None:
    from advisor.cli.help_text import EXAMPLES

    examples = EXAMPLES.get(context.command_path.partition(" ")[2], ())
    if not examples:
        return
    column, other = (max(len(one[place]) for one in examples) for place in (0, 1))
    with formatter.section("Examples"):
        if column + other + 4 <= formatter.width:
            formatter.write_dl(examples, col_max=column)
        else:
            for command, explanation in examples:
                formatter.write(f"  {command}\n      {explanation}\n")


def build_application(command: str | None) -> typer.Typer:
    """The application with the one command that is asked for, or with all where advisor has no such command (for
    --help)."""
    app = typer.Typer(
        name="advisor",
        cls=_ExplainedGroup,
        help="Inspect a Linux storage or cluster host, tune it, prove the gain, and roll back.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(global_options)
    known = any(command in names for names in ROOMS.values())
    for room, names in ROOMS.items():
        wanted = [name for name in names if name == command or not known]
        commands = importlib.import_module(f"advisor.cli.{room}").COMMANDS if wanted else {}
        for name in wanted:
            if isinstance(commands[name], Group):
                app.add_typer(_build_group(commands[name]), name=name)
            else:
                app.command(name, cls=_ExplainedCommand)(with_typer(commands[name]))
    return app


def _build_group(group: Group) -> typer.Typer:
    default = group.default
    app = typer.Typer(
        cls=_ExplainedGroup,
        help=group.explanation,
        no_args_is_help=default is None,
        invoke_without_command=default is not None,
    )
    if default is not None:

        @app.callback()
        def no_command(context: typer.Context) -> int:
            return 0 if context.invoked_subcommand else default()

    for name, command in group.commands.items():
        app.command(name, cls=_ExplainedCommand)(with_typer(command))
    return app


def command_signature(command: Callable[..., int]) -> inspect.Signature:
    """A command's parameters with their types. ``Path`` may be a name alone there: few calls load `pathlib`."""
    known = get_type_hints(command, localns={"Path": Path}, include_extras=True)
    signature = inspect.signature(command)
    parameters = signature.parameters.values()
    typed = [one.replace(annotation=known.get(one.name, one.annotation)) for one in parameters]
    return signature.replace(parameters=typed, return_annotation=known.get("return", signature.return_annotation))


def with_typer(command: Callable[..., int]) -> Callable[..., int]:
    """The command with typer's own parameters in place of those that are declared."""
    signature = command_signature(command)

    @functools.wraps(command)
    def run(**given: Any) -> int:
        return command(**given)

    typed = [one.replace(annotation=_typer_annotation(one.annotation)) for one in signature.parameters.values()]
    run.__signature__ = signature.replace(parameters=typed)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in typed}
    return run


def _typer_annotation(annotation: Any) -> Any:
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, declared = get_args(annotation)
    made = getattr(typer, type(declared).__name__) if isinstance(declared, DeclaredParameter) else None
    return annotation if made is None else Annotated[kind, made(*declared.names, **declared.settings)]


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"advisor {describe_version()}\n")
        raise typer.Exit


def global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            i18n.OPTION,
            metavar="LANGUAGE",
            envvar=i18n.VARIABLE,
            help="Print messages, and the pages of status, verify, confirm, rollback and probe, in this language: en, "
            "de or ja. Default: the locale's on a terminal, else English. Other pages and JSON are English.",
            autocompletion=language_names,
        ),
    ] = None,
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
    """Parse the call and run its command: the exit code."""
    if {"--install-completion", "--show-completion"} & set(arguments):
        # typer prints and installs what stands in a table of its own, which every version since 0.15 has.
        from typer import _completion_shared

        from advisor.cli.completion import SCRIPTS

        for shell, script in SCRIPTS.items():
            _completion_shared._completion_scripts[shell] = script.replace("%", "%%")
    try:
        if "_ADVISOR_COMPLETE" in os.environ:
            # A shell that asks for completions passes the words of its line elsewhere.
            command_word: str | None = None
        else:
            rest = i18n.asked_language(arguments)[1]
            command_word = next((word for word in rest if not word.startswith("-")), None)
        result = build_application(command_word)(list(arguments), standalone_mode=False, prog_name="advisor")
    except typer.Abort:
        return 130
    except CALL_ERROR as error:
        # A call whose words are off: say what and where to look.
        from advisor.cli.call_errors import call_message

        message = call_message(error)
        if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
            say(message)
            return UsageError.exit_code
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "advisor"
        hint = msg("{command} --help says what it takes", command=path)
        commands = getattr(getattr(context, "command", None), "commands", {})
        if commands and context is not None and context.parent is not None:
            hint = msg("its commands: {names}; {command} --help", names=", ".join(commands), command=path)
        if i18n.OPTION in message and context is not None and context.parent is not None:
            command = path.replace(" ", f" {i18n.OPTION} LANGUAGE ", 1)
            hint = msg("--lang stands before the command: {command}", command=command)
        print_error(UsageError(message, hint=hint), as_json=as_json)
        return UsageError.exit_code
    return result if isinstance(result, int) else 0


# typer contains click or depends on it, by its version; the base class is found either way.
CALL_ERROR: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")
