"""What ``prove`` and ``bench`` have in common as commands: options, what the user chose, and printing a result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_args

from typer import Option

from advisor.cli.complete import profile_parameters
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.errors import UsageError

if TYPE_CHECKING:
    from advisor.proof.arms import ProofCheck
    from advisor.proof.command_runner import CommandProcess
    from advisor.proof.records import Proof
    from advisor.proof.series import Bench

Found = TypeVar("Found")


class Row(NamedTuple):
    """One option: its words, its metavar (of a flag none), what it takes and what it does."""

    words: str
    help: str
    kind: Any = str
    metavar: str | None = None
    complete: Callable[..., Any] | None = None


SHARED = {
    row.words.split()[0]: row
    for row in (
        Row("--target", "Let fio make its scratch file here.", Path, "DIR"),
        Row("--peer", "Ask this host whether the path carries the MTU.", str, "ADDR"),
        Row("--command", "Run this benchmark instead of fio, with no shell.", str, "CMD"),
        Row(
            "--metric",
            "Judge by regex:EXPR, json:.PATH, time, command:CMD or prom:URL:QUERY, then :higher or :lower, :UNIT. The "
            "first judges, the others must not get worse.",
            list[str],
            "[NAME=]KIND:EXPR",
        ),
        Row("--as-user", "Run --command as this user. Default: yourself.", str, "USER"),
        Row("--command-timeout", "End a run after this time. Default: 600.", float, "SECONDS"),
        Row("--directory", "Run --command here. Default: this directory.", Path, "DIR"),
        Row("--env", "Set this for --command; no value: as it is here.", list[str], "NAME[=VALUE]"),
        Row("--set", "Set a parameter of the profile; may be repeated.", list[str], "K=V", profile_parameters),
        Row("--budget", "Stop within this time. Default: no limit.", str, "SECONDS|30m|2h"),
        Row("--quick", "Measure 8 pairs of 1 s: shows 20 % and more.", bool),
        Row("--deep", "Measure 48 pairs: shows 5 % and more.", bool),
        Row("--keep-if-gain", "Apply the profile if a gain is proven.", bool),
        Row("--check", "Say what would be measured, and what prevents it.", bool),
        Row("--reconnect", "Run this after each toggle, such as a remount.", str, "COMMAND"),
        Row("--allow-link-flap", "Permit toggling what interrupts a link.", bool),
        Row("--seed", "Order the runs by this seed. Default: drawn.", int, "N"),
        Row("--force", "Do not ask; toggle the link of your ssh session.", bool),
        Row("--byte-budget", "Write at most this: 8 GiB without.", int, "MIB"),
        Row(
            "--dead-time",
            "Hold each arm a fifth longer than this before a verdict: no effect begins later. Default: 30.",
            float,
            "SECONDS",
        ),
        Row("--seconds", "Run fio for 0.1 to 600 s. Default: 2; --quick: 1.", float, "SECONDS"),
        Row("--file-size", "Size the scratch file: 64GiB, or 2x the memory.", str, "SIZE|Nx"),
        Row("--place", "Place a workload's section, such as wij=/wij.", list[str], "SECTION=DIR"),
        Row("--save", "Save every run here, not in the state directory.", Path, "FILE"),
        Row("--html", "Write the result as a page with pictures, too.", Path, "FILE"),
        Row("--svg", "Write the changes as a picture, too.", Path, "FILE"),
        Row("--yes -y", "Do not prompt.", bool),
        Row("--json", "Print one JSON document.", bool),
    )
}
"""Options of several commands, by their words."""
_OWN_NAMES = {"set": "pairs", "json": "as_json"}
Given = Mapping[str, Any]
"""What a call gives, by the names of its options: ``file_size`` for ``--file-size``."""
OF_COMMAND = "--metric --as-user --command-timeout --directory --env"
OF_FIO = "--seconds --file-size --place --byte-budget"


def takes(*rows: str | Row, **arguments: Any) -> Callable[[Callable[[Given], int]], Callable[..., int]]:
    """Declare what a command takes: words of `SHARED`, rows of its own, and arguments as typer declares them.

    The function is called with what was given, in place of a parameter for each.
    """
    found = [row for one in rows for row in ([one] if isinstance(one, Row) else map(SHARED.__getitem__, one.split()))]
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind in arguments.items()
        for default in (None if NoneType in get_args(get_args(kind)[0]) else Parameter.empty,)
    ]
    for row in found:
        is_flag, words = row.kind is bool, row.words.split()
        option = Option(*words, metavar=row.metavar, help=row.help, autocompletion=row.complete)
        annotation: Any = Annotated[row.kind if is_flag else row.kind | None, option]
        name = words[0].removeprefix("--").replace("-", "_")
        default = False if is_flag else None
        name = _OWN_NAMES.get(name, name)
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default))

    def declare(function: Callable[[Given], int]) -> Callable[..., int]:
        def command(**given: Any) -> int:
            return function(given)

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        command.__dict__["__signature__"] = Signature(parameters)
        return command

    return declare


def call_with(function: Callable[..., Found], given: Given, **more: Any) -> Found:
    """Call a function with what was given of its parameters."""
    known = signature(function).parameters
    own = {name: value for name, value in given.items() if name in known and value is not None}
    return function(**own, **more)


REPEATED = (
    "--command --metric --abort-if --period --tau --as-user --command-timeout --directory --env --set --place --budget "
    "--dead-time --byte-budget --seconds --file-size --reconnect --force"
)


def ask_when_busy(words: str) -> None:
    """Say what a busy host costs; on a terminal ask whether to measure. Raises RefusedError where the answer is no."""
    from advisor.cli.change import ask_user

    say(words)
    if sys.stdin.isatty():
        ask_user("Measure now?", has_dry_run=False)


def repeated_options(given: Given, names: str = REPEATED) -> tuple[str, ...]:
    """The options of a call as words that repeat it: those of ``names`` that were given, flags without a value."""
    words: list[str] = []
    for name in names.split():
        value = value_of(given, name)
        if name == "--env":
            value = variables_to_repeat(value or ())
        if isinstance(value, list | tuple):
            words += [f"{name}={one}" for one in value]
        elif value is True:
            words.append(name)
        elif value is not None and value is not False:
            words.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
    return tuple(words)


_SECRET = ("PASS", "SECRET", "TOKEN", "KEY", "CREDENTIAL")


def variables_to_repeat(given: Sequence[str]) -> list[str]:
    """The words of ``--env`` that repeat a call: of one that may be a secret the name alone."""
    return [
        name if any(word in name.upper() for word in _SECRET) else text
        for text in given
        for name in [text.partition("=")[0]]
    ]


def value_of(given: Given, option: str) -> Any:
    """What was given for an option; None where nothing was."""
    name = option.removeprefix("--").replace("-", "_")
    return given.get(_OWN_NAMES.get(name, name))


def choose_own(given: Given) -> CommandProcess | None:
    """Return the user's own benchmark, ready to run; None for none. Raises UsageError, also for an option of fio."""
    from advisor.operations.prove import choose_command

    own = call_with(choose_command, given)
    if own is not None:
        for option in ("--target", "--workload", "--threads", *OF_FIO.split()):
            if value_of(given, option):
                raise UsageError(
                    f"{option} and --command exclude each other: it is of fio's runs",
                    hint="the command has its own options; --directory is where it works",
                )
    return own


def exit_code(result: Proof | Bench) -> int:
    """0 for a gain as large as was asked for and without a cost, a self-test that invented neither a difference nor a
    cost, or a series that can be relied on; 1 for everything else."""
    from advisor.proof.records import Proof

    if not isinstance(result, Proof):
        return 0 if result.quality == "sound" else 1
    if result.session.self_test:
        return 0 if result.verdict in ("no-difference", "inconclusive") and result.cost != "shown" else 1
    return 0 if result.is_gain else 1


def print_result(result: Proof | Bench, *, as_json: bool) -> None:
    """The result on standard output, as one JSON document or as text."""
    if as_json:
        print_json(result)
        return
    from advisor.proof.records import Proof

    width, color = terminal_width(), wants_color()
    if isinstance(result, Proof):
        from advisor.report.proof.result import proof_text

        print_text(proof_text(result, width=width, color=color))
    else:
        from advisor.report.proof.bench import bench_text

        print_text(bench_text(result, width=width, color=color))


def print_check(check: ProofCheck, *, as_json: bool) -> None:
    """What a session would measure, on standard output."""
    if as_json:
        print_json(check)
        return
    from advisor.report.proof.tuning import check_text

    print_text(check_text(check, width=terminal_width(), color=wants_color()))


def say_where_kept(result: Proof | Bench) -> None:
    """Name the file that holds every run, on standard error."""
    if result.saved_to:
        say(f"every run is kept in {result.saved_to}")
