"""``advisor tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.cli.complete import proven_workloads, requestable_words
from advisor.cli.measuring import OF_COMMAND, Given, Row, call_with, choose_own, repeated_options, takes, value_of
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.proof.command_runner import CommandProcess
    from advisor.proof.tuning_load import RaceLoad


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
    from advisor.proof.tuning import TuneOptions
    from advisor.report.tuning import tuned_text

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


COMMANDS = {"tune": tune}
