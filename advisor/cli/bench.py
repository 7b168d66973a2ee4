"""``advisor bench`` and ``advisor compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from advisor.cli.complete import measured_workloads, proven_workloads, requestable_words
from advisor.cli.measuring import (
    OF_COMMAND,
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
    value_of,
)
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.proof.command_runner import CommandProcess
    from advisor.proof.series import Bench
    from advisor.proof.tuning.arms import RaceLoad

# ``advisor tune``.

_REPEATED = f"--workload --target --seconds --file-size --byte-budget --command {OF_COMMAND} --dead-time --force"
_BEGUN = f"--candidates --range {_REPEATED.partition(' --env')[0]} --budget --no-ablation --seed --keep-if-gain"
"""What a search that is resumed was begun with."""


@takes(
    Row(
        "--candidates",
        "Race profiles, values, what findings advise (rules), or all that a tunable offers (its id alone).",
        list[str],
        "PROFILE[,PROFILE…]|rules",
        requestable_words,
    ),
    Row(
        "--range",
        "Race values of a range that a source allows: each twice the one before, or /xFACTOR, or /+STEP.",
        list[str],
        "TUNABLE=LOW..HIGH",
    ),
    Row(
        "--workload",
        "Judge by this pattern of fio, or a workload file, below --target.",
        str,
        "NAME|FILE",
        proven_workloads,
    ),
    f"--target --seconds --file-size --byte-budget --command {OF_COMMAND}",
    Row("--budget", "Take this time for all of it. Refused if it is too short.", str, "SECONDS|30m|2h"),
    Row("--no-ablation", "Confirm the winner whole: do not find which of its values did it.", bool),
    "--keep-if-gain",
    Row("--resume", "Go on with a search that was cut off, as it was begun.", str, "ID"),
    "--seed --dead-time --force --json",
)
def tune(given: Given) -> int:
    """Search among profiles for what helps your own benchmark. Races them, by it or by a pattern of fio, in randomised
    blocks with the present state and placebos, finds which of the winner's values did it, then confirms those on fresh
    data; nothing is kept unless asked for.

    Exit code 0 for a confirmed gain, 1 for every other result.
    """
    from advisor.cli.progress import session_progress
    from advisor.errors import UsageError
    from advisor.operations.measure import choose_settings
    from advisor.operations.tuning import (
        choose_pattern,
        name_candidates,
        name_recorded,
        read_search,
        repeat_load,
        tune_command,
    )
    from advisor.proof.tuning.session import TuneOptions
    from advisor.report.proof.tuning import tuned_text

    own: CommandProcess | RaceLoad | None
    candidates, ranges, workload = given["candidates"] or (), given["range"] or (), given["workload"]
    if given["resume"] is not None:
        for option in _BEGUN.split():
            if value_of(given, option):
                raise UsageError(f"{option} and --resume exclude each other", hint="a search goes on as it was begun")
        resumed = read_search(given["resume"])
        own = repeat_load(resumed, given["env"] or ())
        named = name_recorded(resumed)
        options = TuneOptions(budget_seconds=resumed.budget_seconds)
    else:
        resumed = None
        if (given["command"] is None) == (workload is None):
            raise UsageError(
                "tune needs --command with --metric, or --workload with --target",
                hint="--command ./load.sh --metric time",
            )
        if workload is not None and given["target"] is None:
            raise UsageError("--workload needs --target", hint="--target DIR, on the storage in question")
        if given["budget"] is None:
            raise UsageError("tune needs --budget", hint="--budget 30m")
        if not candidates and not ranges:
            raise UsageError(
                "tune needs --candidates", hint="--candidates PROFILE,PROFILE; advisor profiles lists them"
            )
        own = choose_own(given)
        chosen = call_with(choose_settings, given)
        if workload is not None:
            own = choose_pattern(workload, chosen)
        named = name_candidates(candidates, ranges=ranges)
        options = TuneOptions(
            budget_seconds=chosen.budget_seconds or 0.0,
            seed=given["seed"],
            force=given["force"],
            hold_seconds=chosen.hold_seconds,
            keep_if_gain=given["keep_if_gain"],
            is_ablating=not given["no_ablation"],
            asked=(*candidates, *ranges),
            options=repeated_options(given, _REPEATED),
        )
    assert own is not None
    for one in named.offers if ranges else ():
        say(f"candidate {one.name}: {one.source}")
    with session_progress() as progress:
        found = tune_command(named, own, options, resumed=resumed, progress=progress, say=say)
    if found.saved_to:
        say(f"every run is kept in {found.saved_to}")
    if given["as_json"]:
        print_json(found)
    else:
        print_text(tuned_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_gain else 1


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
    from advisor.cli.pages import check_page
    from advisor.cli.prove import judge_again
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
        from advisor.report.proof.result import comparison_text

        print_text(comparison_text(result, width=terminal_width(), color=wants_color()))
    return 1 if result.is_worse or result.verdict == "invalid" else 0


COMMANDS = {"tune": tune, "bench": bench, "compare": compare}
