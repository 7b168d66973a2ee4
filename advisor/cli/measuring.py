"""What ``prove`` and ``bench`` have in common as commands: options, what the user chose, and printing a result."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.errors import UsageError

if TYPE_CHECKING:
    from advisor.proof.obstacles import ProofCheck
    from advisor.proof.records import Proof
    from advisor.proof.series import Bench

Budget = Annotated[
    str | None,
    Option("--budget", metavar="SECONDS|30m|2h", help="Stop within this time, in s without a unit. Default: no limit."),
]
ByteBudget = Annotated[
    int | None,
    Option(
        "--byte-budget", metavar="MIB", min=1, help="Write at most this. Default: 8 GiB, or half of the free space."
    ),
]
Target = Annotated[Path | None, Option("--target", metavar="DIR", help="Let fio make its scratch file here.")]
ResultPage = Annotated[
    Path | None, Option("--html", metavar="FILE", help="Write the result as a page with pictures, too.")
]
Seconds = Annotated[
    float | None,
    Option(
        "--seconds",
        metavar="SECONDS",
        help="Run fio for this time, 0.1 to 600, past a throttle. Default: 2; 1 with --quick.",
    ),
]
FileSize = Annotated[
    str | None,
    Option(
        "--file-size", metavar="SIZE|Nx", help="Set the size of the scratch file: 64GiB, or 2x for twice the memory."
    ),
]
TargetMemory = Annotated[
    str | None,
    Option("--target-memory", metavar="SIZE", help="Name the memory of the storage server; 2x counts the larger one."),
]
Places = Annotated[
    list[str] | None,
    Option("--place", metavar="SECTION=DIR", help="Place a section of the workload, such as wij=/wij."),
]
DeadTime = Annotated[
    float | None,
    Option(
        "--dead-time",
        metavar="SECONDS",
        help="Hold each arm a fifth longer than this before a verdict: no effect begins later after a switch. Default: "
        "30.",
    ),
]
OwnBenchmark = Annotated[
    str | None,
    Option("--command", metavar="CMD", help="Run this in place of fio: a benchmark of your own. No shell is used."),
]
Metrics = Annotated[
    list[str] | None,
    Option(
        "--metric",
        metavar="[NAME=]KIND:EXPR",
        help="Judge a run of --command by this: regex:EXPR, json:.PATH, time, command:CMD, or prom:URL:QUERY; with "
        "--live by command:CMD, counter:CMD, prom:URL:QUERY or host:NAME; then :higher or :lower, and :UNIT. The "
        "first judges, the others must not get worse.",
    ),
]
SeriesMetrics = Annotated[
    list[str] | None,
    Option(
        "--metric",
        metavar="[NAME=]KIND:EXPR",
        help="Read this from a run of --command: regex:EXPR, json:.PATH, time, command:CMD, or prom:URL:QUERY; then "
        ":higher or :lower, and :UNIT.",
    ),
]
AsUser = Annotated[
    str | None, Option("--as-user", metavar="USER", help="Run --command as this user. Default: who runs advisor.")
]
CommandTimeout = Annotated[
    float | None,
    Option("--command-timeout", metavar="SECONDS", help="End a run of --command after this time. Default: 600."),
]
Directory = Annotated[
    Path | None, Option("--directory", metavar="DIR", help="Run --command in this directory. Default: the present one.")
]
Environment = Annotated[
    list[str] | None,
    Option("--env", metavar="NAME[=VALUE]", help="Set this in the environment of --command; without a value, as here."),
]


def ask_when_busy(words: str) -> None:
    """Say what a busy host costs; on a terminal ask whether to measure. Raises RefusedError where the answer is no."""
    from advisor.cli.change import ask_user

    say(words)
    if sys.stdin.isatty():
        ask_user("Measure now?", has_dry_run=False)


def repeated_options(given: Mapping[str, object]) -> tuple[str, ...]:
    """The options of a call as words that repeat it: those that were given, flags without a value."""
    words: list[str] = []
    for name, value in given.items():
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


def refuse_given(given: Mapping[str, object], why: str, hint: str | None = None) -> None:
    """Raise UsageError for the first of these options that has a value."""
    for name, value in given.items():
        if value not in (None, False) and value != []:
            raise UsageError(f"{name} {why}", hint=hint)


WITH_COMMAND = (
    "and --command exclude each other: it is of fio's runs",
    "the command has its own options; --directory is where it works",
)


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
        from advisor.report.proof import proof_text

        print_text(proof_text(result, width=width, color=color))
    else:
        from advisor.report.bench import bench_text

        print_text(bench_text(result, width=width, color=color))


def print_check(check: ProofCheck, *, as_json: bool) -> None:
    """What a session would measure, on standard output."""
    if as_json:
        print_json(check)
        return
    from advisor.report.session_progress import check_text

    print_text(check_text(check, width=terminal_width(), color=wants_color()))


def say_where_kept(result: Proof | Bench) -> None:
    """Name the file that holds every run, on standard error."""
    if result.saved_to:
        say(f"every run is kept in {result.saved_to}")
