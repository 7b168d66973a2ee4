"""``advisor bench`` and ``advisor compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from advisor.cli.complete import measured_workloads
from advisor.cli.measuring import (
    OF_FIO,
    Given,
    Row,
    ask_when_busy,
    call_with,
    choose_own,
    exit_code,
    print_result,
    repeated_options,
    say_where_kept,
    takes,
)
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.proof.series import Bench


@takes(
    "--target --command",
    Row(
        "--metric",
        "Read this from a run: regex:EXPR, json:.PATH, time, command:CMD, or prom:URL:QUERY; then :higher or :lower, "
        "and :UNIT.",
        list[str],
        "[NAME=]KIND:EXPR",
    ),
    "--as-user --command-timeout --directory --env",
    Row(
        "--workload",
        "Measure this, a pattern such as 'infoscale.*', or a workload file; may be repeated. Default: a small random "
        "mix, and reads.",
        list[str],
        "NAME|FILE",
        measured_workloads,
    ),
    "--budget",
    Row("--quick", "Measure 8 rounds of 1 s runs instead of 24 of 2 s.", bool),
    Row("--deep", "Measure 48 rounds of 2 s runs.", bool),
    "--seed",
    Row("--force", "Do not ask on a busy host.", bool),
    Row("--threads", "Run each workload with these numbers of threads: a sweep.", str, "N,N|N..N"),
    f"{OF_FIO} --save --json",
)
def bench(given: Given) -> int:
    """Measure this host with runs of fio or a command. Changes nothing.

    Exit code 0 for a series that can be relied on, 1 for one that cannot: contaminated, forced, too few rounds, or a
    failing fio.
    """
    from advisor.cli.progress import session_progress
    from advisor.operations.measure import choose_settings, choose_workloads, measure_series
    from advisor.proof.session_runner import InterruptedSessionError

    own = choose_own(given)
    chosen = call_with(choose_settings, given, ask=ask_when_busy)
    names = choose_workloads(given["workload"] or (), given["threads"])
    options = repeated_options(given)

    def print_series(found: Bench) -> None:
        say_where_kept(found)
        print_result(found, as_json=given["as_json"])

    try:
        with session_progress() as progress:
            found = measure_series(chosen, names, command=own, options=options, progress=progress)
    except InterruptedSessionError as stopped:
        print_series(stopped.result)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    print_series(found)
    return exit_code(found)


@takes(
    "--html --json",
    first=Annotated[Path, Argument(metavar="A", help="A saved series (bench) or proof: the host before.")],
    second=Annotated[
        Path | None, Argument(metavar="[B]", help="Another: the host after. Default: A is analysed again.")
    ],
)
def compare(given: Given) -> int:
    """Compare two saved series, B with A. Of a proof, its arm A counts. Measures nothing.

    Exit code 0 where no workload is shown to be worse in B (which does not prove that none is), 1 where one is or
    nothing can follow. With A alone: what bench or prove said, from the stored runs, with the same exit code and, of a
    proof, with its page (4 where that could not be written).
    """
    from advisor.cli.prove import judge_again
    from advisor.cli.prove_page import check_page
    from advisor.errors import UsageError
    from advisor.operations.measure import analyse_series, compare_results, load_result
    from advisor.proof.archive import Saved

    first, second, html, as_json = given["first"], given["second"], given["html"], given["as_json"]
    if html is not None:
        check_page(html, others=(first, second))
    if second is None:
        saved = load_result(first)
        if isinstance(saved, Saved):
            return judge_again(saved, {**given, "file": first})
        if html is not None:
            raise UsageError("--html: one series alone has no page", hint="name a second one, or a saved proof")
        found = analyse_series(saved)
        say(f"{first}: the series of {found.series.started}, analysed again; nothing was measured")
        print_result(found, as_json=as_json)
        return exit_code(found)
    if html is not None:
        raise UsageError("--html: two series are compared in a table", hint="--json prints its figures")
    result = compare_results(first, second)
    if as_json:
        print_json(result)
    else:
        from advisor.report.comparison import comparison_text

        print_text(comparison_text(result, width=terminal_width(), color=wants_color()))
    return 1 if result.is_worse or result.verdict == "invalid" else 0


COMMANDS = {"bench": bench, "compare": compare}
