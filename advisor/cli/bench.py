"""``advisor bench`` and ``advisor compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor.cli.complete import measured_workloads
from advisor.cli.measuring import (
    WITH_COMMAND,
    AsUser,
    Budget,
    ByteBudget,
    CommandTimeout,
    Directory,
    Environment,
    FileSize,
    OwnBenchmark,
    Places,
    ResultPage,
    Seconds,
    SeriesMetrics,
    Target,
    TargetMemory,
    ask_when_busy,
    exit_code,
    print_result,
    refuse_given,
    repeated_options,
    say_where_kept,
    variables_to_repeat,
)
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json

if TYPE_CHECKING:
    from advisor.proof.archive import Saved, SavedBench
    from advisor.proof.series import Bench


def bench(
    target: Target = None,
    command: OwnBenchmark = None,
    metrics: SeriesMetrics = None,
    as_user: AsUser = None,
    command_timeout: CommandTimeout = None,
    directory: Directory = None,
    environment: Environment = None,
    workloads: Annotated[
        list[str] | None,
        Option(
            "--workload",
            metavar="NAME|FILE",
            help="Measure this, a pattern such as 'infoscale.*', or a workload file; may be repeated. Default: a small "
            "random mix, and reads.",
            autocompletion=measured_workloads,
        ),
    ] = None,
    budget: Budget = None,
    quick: Annotated[bool, Option("--quick", help="Measure 8 rounds of 1 s runs instead of 24 of 2 s.")] = False,
    deep: Annotated[bool, Option("--deep", help="Measure 48 rounds of 2 s runs.")] = False,
    seed: Annotated[
        int | None, Option("--seed", metavar="N", help="Order each round by this seed. Default: drawn.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Do not ask on a busy host.")] = False,
    byte_budget: ByteBudget = None,
    threads: Annotated[
        str | None,
        Option("--threads", metavar="N,N|N..N", help="Run each workload with these numbers of threads: a sweep."),
    ] = None,
    seconds: Seconds = None,
    size: FileSize = None,
    target_memory: TargetMemory = None,
    places: Places = None,
    save: Annotated[
        Path | None, Option("--save", metavar="FILE", help="Save every run here. Default: the state directory.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure this host with runs of fio or a command. Changes nothing.

    Exit code 0 for a series that can be relied on, 1 for one that cannot: contaminated, forced, too few rounds, or a
    failing fio.
    """
    from advisor.cli.progress import session_progress
    from advisor.operations.measure import choose_settings, choose_workloads, measure_series
    from advisor.operations.prove import choose_command
    from advisor.proof.session_runner import InterruptedSessionError

    own = choose_command(
        command,
        metrics or (),
        user=as_user,
        timeout=command_timeout,
        directory=directory,
        environment=environment or (),
    )
    if own is not None:
        refuse_given(
            {
                "--target": target,
                "--workload": workloads,
                "--threads": threads,
                "--seconds": seconds,
                "--file-size": size,
                "--place": places,
                "--byte-budget": byte_budget,
            },
            *WITH_COMMAND,
        )
    chosen = choose_settings(
        target=target,
        quick=quick,
        deep=deep,
        budget=budget,
        byte_budget=byte_budget,
        seed=seed,
        force=force,
        save=save,
        seconds=seconds,
        size=size,
        target_memory=target_memory,
        places=places or (),
        ask=ask_when_busy,
    )
    names = choose_workloads(workloads or (), threads)
    options = repeated_options(
        {
            "--command": command,
            "--metric": metrics,
            "--as-user": as_user,
            "--command-timeout": command_timeout,
            "--directory": directory,
            "--env": variables_to_repeat(environment or ()),
            "--place": places,
            "--budget": budget,
            "--byte-budget": byte_budget,
            "--seconds": seconds,
            "--file-size": size,
            "--target-memory": target_memory,
            "--force": force,
        }
    )

    def print_series(found: Bench) -> None:
        say_where_kept(found)
        print_result(found, as_json=as_json)

    try:
        with session_progress() as progress:
            found = measure_series(chosen, names, command=own, options=options, progress=progress)
    except InterruptedSessionError as stopped:
        print_series(stopped.result)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    print_series(found)
    return exit_code(found)


def compare(
    first: Annotated[Path, Argument(metavar="A", help="A saved series (bench) or proof: the host before.")],
    second: Annotated[
        Path | None, Argument(metavar="[B]", help="Another: the host after. Default: A is analysed again.")
    ] = None,
    html: ResultPage = None,
    as_json: Json = False,
) -> int:
    """Compare two saved series, B with A. Of a proof, its arm A counts. Measures nothing.

    Exit code 0 where no workload is shown to be worse in B (which does not prove that none is), 1 where one is or
    nothing can follow. With A alone: what bench or prove said, from the stored runs, with the same exit code and, of a
    proof, with its page (4 where that could not be written).
    """
    from advisor.cli.prove_page import check_page
    from advisor.errors import UsageError
    from advisor.operations.measure import compare_results, load_result

    if html is not None:
        check_page(html, others=(first, second))
    if second is None:
        return analyse_again(load_result(first), first, html, as_json=as_json)
    if html is not None:
        raise UsageError("--html: two series are compared in a table", hint="--json prints its figures")
    result = compare_results(first, second)
    if as_json:
        print_json(result)
    else:
        from advisor.report.comparison import comparison_text

        print_text(comparison_text(result, width=terminal_width(), color=wants_color()))
    return 1 if result.is_worse or result.verdict == "invalid" else 0


def analyse_again(saved: Saved | SavedBench, path: Path, html: Path | None, *, as_json: bool) -> int:
    """Analyse one saved result again; a changed verdict is reported."""
    from advisor.cli.prove_page import UNWRITTEN, write_page
    from advisor.errors import UsageError
    from advisor.operations.measure import analyse_result
    from advisor.proof.archive import Saved, SavedBench
    from advisor.proof.series import Bench

    if isinstance(saved, SavedBench) and html is not None:
        raise UsageError("--html: one series alone has no page", hint="name a second one, or a saved proof")
    found = analyse_result(saved)
    if isinstance(found, Bench):
        say(f"{path}: the series of {found.series.started}, analysed again; nothing was measured")
    else:
        say(f"{path}: the session of {found.session.started}, analysed again; nothing was measured")
    print_result(found, as_json=as_json)
    if isinstance(found, Bench):
        return exit_code(found)
    if isinstance(saved, Saved) and found.verdict != saved.proof.verdict:
        say(f"when it was saved the verdict was {saved.proof.verdict}: the rules have changed since")
    if html is not None and not write_page(html, found):
        return UNWRITTEN
    return exit_code(found)


COMMANDS = {"bench": bench, "compare": compare}
