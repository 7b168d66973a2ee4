"""The application, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Annotated, NoReturn

import typer

from advisor import __version__, words
from advisor.cli.output import print_error, say
from advisor.errors import AdvisorError
from advisor.signals import Interrupted

# Which file holds which command: only that file is loaded, since building all commands costs as much as running one.
_ROOMS: dict[str, tuple[str, ...]] = {
    "scan": ("scan", "snapshot"),
    "recommend": ("recommend",),
    "limits": ("limits",),
    "size": ("size",),
    "library": ("profiles", "explain"),
    "change": ("plan", "apply", "confirm", "status", "verify", "rollback", "rollback-script"),
    "apply_script": ("apply-script",),
    "prove": ("prove",),
    "bench": ("bench", "compare"),
    "probe": ("probe",),
    "fleet": ("fleet",),
}


def application(command: str | None) -> typer.Typer:
    """The application with the one command that is asked for, or with all where it is none of ours (for --help)."""
    app = typer.Typer(
        name="advisor",
        help="Inspects a Linux storage or cluster host, tunes it, proves the gain, and puts it all back.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    known = any(command in names for names in _ROOMS.values())
    for room, names in _ROOMS.items():
        wanted = [name for name in names if name == command or not known]
        commands = importlib.import_module(f"advisor.cli.{room}").COMMANDS if wanted else {}
        for name in wanted:
            if isinstance(commands[name], typer.Typer):
                app.add_typer(commands[name], name=name)
            else:
                app.command(name)(commands[name])
    return app


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"advisor {__version__}\n")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            words.OPTION,
            metavar="LANGUAGE",
            envvar=words.VARIABLE,
            help="Print pages and messages in this language: en, de or ja. On a terminal the locale's without it; "
            "JSON is English always.",
        ),
    ] = None,
) -> None:
    """Every command prints text for people; --json prints one document for programs. Nothing changes a host but apply,
    prove and rollback."""


def _command_word() -> str | None:
    if "_ADVISOR_COMPLETE" in os.environ:
        # A shell that asks for completions passes the words of its line elsewhere.
        return None
    rest = words.asked_language(sys.argv[1:])[1]
    return next((word for word in rest if not word.startswith("-")), None)


def main() -> NoReturn:
    """Run the command line; ends the process with a code of the contract, never with a traceback for a user's error."""
    as_json = "--json" in sys.argv[1:]
    if sys.stdout is None:
        # Closed by the caller (>&-): the answer goes nowhere, and that is what was asked for.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        words.settle(sys.argv[1:], os.environ, is_terminal=sys.stdout.isatty())
        result = application(_command_word())(standalone_mode=False, prog_name="advisor")
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except AdvisorError as error:
        print_error(error, as_json=as_json)
        code = error.exit_code
    except typer.Abort:
        code = 130
    except _CALL_ERROR as error:
        code = _report_call(error, as_json=as_json)
    except (KeyboardInterrupt, Interrupted) as error:
        sys.stderr.write(f"advisor: {error or words._('interrupted')}\n")
        code = 130
    except BrokenPipeError:
        # The reader (head, a pager) has gone: it saw what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
    except OSError as error:
        code = _report_os_error(error, as_json=as_json)
    except Exception as error:
        if os.environ.get("ADVISOR_TRACEBACK"):
            raise
        code = _report_fault(error, as_json=as_json)
    raise SystemExit(code)


def _report_os_error(error: OSError, *, as_json: bool) -> int:
    """What the system refused; on standard error alone where standard output itself is what failed."""
    place = error.filename or "standard output"
    failed = AdvisorError(f"{place}: {os.strerror(error.errno or errno.EIO)}")
    print_error(failed, as_json=as_json and error.filename is not None)
    if error.filename is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return failed.exit_code


def _report_fault(error: Exception, *, as_json: bool) -> int:
    fault = AdvisorError(
        f"this is a fault in advisor: {type(error).__name__}: {error}",
        hint="report it with what ADVISOR_TRACEBACK=1 in the environment makes it print",
    )
    print_error(fault, as_json=as_json)
    return fault.exit_code


# typer carries click inside itself or beside itself, depending on its version; the base class is found either way.
_CALL_ERROR: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")


def _report_call(error: Exception, *, as_json: bool) -> int:
    """A call whose words are off: say what and where to look."""
    from advisor.errors import UsageError

    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
        say(message)
        return UsageError.exit_code
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "advisor"
    hint = f"{path} --help says what it takes"
    if words.OPTION in message and context is not None and context.parent is not None:
        hint = f"--lang stands before the command: {path.replace(' ', f' {words.OPTION} LANGUAGE ', 1)}"
    print_error(UsageError(message.rstrip("."), hint=hint), as_json=as_json)
    return UsageError.exit_code
