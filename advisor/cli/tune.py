"""``advisor tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from advisor.cli.complete import proven_workloads, requestable_words
from advisor.cli.measuring import (
    WITH_COMMAND,
    AsUser,
    ByteBudget,
    CommandTimeout,
    DeadTime,
    Directory,
    Environment,
    FileSize,
    Metrics,
    OwnBenchmark,
    Seconds,
    Target,
    refuse_given,
    repeated_options,
    variables_to_repeat,
)
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json

if TYPE_CHECKING:
    from advisor.proof.command_runner import CommandProcess
    from advisor.proof.tuning_load import RaceLoad


def tune(
    candidates: Annotated[
        list[str] | None,
        Option(
            "--candidates",
            metavar="PROFILE[,PROFILE…]|rules",
            help="Race profiles, values, what findings advise (rules), or all that a tunable offers (its id alone).",
            autocompletion=requestable_words,
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        Option(
            "--range",
            metavar="TUNABLE=LOW..HIGH",
            help="Race values of a range that a source allows: each twice the one before, or /xFACTOR, or /+STEP.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        Option(
            "--workload",
            metavar="NAME|FILE",
            help="Judge by this pattern of fio, or a workload file, below --target.",
            autocompletion=proven_workloads,
        ),
    ] = None,
    target: Target = None,
    seconds: Seconds = None,
    size: FileSize = None,
    byte_budget: ByteBudget = None,
    command: OwnBenchmark = None,
    metrics: Metrics = None,
    budget: Annotated[
        str | None,
        Option(
            "--budget",
            metavar="SECONDS|30m|2h",
            help="Take this time for all of it, in s without a unit. Refused if it is too short.",
        ),
    ] = None,
    as_user: AsUser = None,
    command_timeout: CommandTimeout = None,
    directory: Directory = None,
    environment: Environment = None,
    no_ablation: Annotated[
        bool, Option("--no-ablation", help="Confirm the winner whole: do not find which of its values did it.")
    ] = False,
    keep_if_gain: Annotated[
        bool, Option("--keep-if-gain", help="Apply the winner if the confirmation proves a gain.")
    ] = False,
    resume: Annotated[
        str | None, Option("--resume", metavar="ID", help="Go on with a search that was cut off, as it was begun.")
    ] = None,
    seed: Annotated[
        int | None, Option("--seed", metavar="N", help="Order the blocks by this seed. Default: drawn.")
    ] = None,
    dead_time: DeadTime = None,
    force: Annotated[bool, Option("--force", help="Toggle a link that your ssh session needs.")] = False,
    as_json: Json = False,
) -> int:
    """Search among profiles for what helps your own benchmark. Races them, by it or by a pattern of fio, in randomised
    blocks with the present state and placebos, finds which of the winner's values did it, then confirms those on fresh
    data; nothing is kept unless asked for.

    Exit code 0 for a confirmed gain, 1 for every other result.
    """
    from advisor.cli.progress import session_progress
    from advisor.errors import UsageError
    from advisor.operations.measure import choose_settings
    from advisor.operations.prove import choose_command
    from advisor.operations.tuning import (
        choose_pattern,
        name_candidates,
        name_recorded,
        parse_budget,
        read_search,
        repeat_load,
        tune_command,
    )
    from advisor.proof.tuning import TuneOptions
    from advisor.report.tuning import tuned_text

    own: CommandProcess | RaceLoad | None
    if resume is not None:
        given = {
            "--candidates": candidates,
            "--range": ranges,
            "--workload": workload,
            "--target": target,
            "--seconds": seconds,
            "--file-size": size,
            "--byte-budget": byte_budget,
            "--no-ablation": no_ablation,
            "--command": command,
            "--metric": metrics,
            "--budget": budget,
            "--as-user": as_user,
            "--command-timeout": command_timeout,
            "--directory": directory,
            "--seed": seed,
            "--keep-if-gain": keep_if_gain,
        }
        for option, value in given.items():
            if value:
                raise UsageError(f"{option} and --resume exclude each other", hint="a search goes on as it was begun")
        resumed = read_search(resume)
        own = repeat_load(resumed, environment or ())
        named = name_recorded(resumed)
        options = TuneOptions(budget_seconds=resumed.budget_seconds)
    else:
        resumed = None
        if (command is None) == (workload is None):
            raise UsageError(
                "tune needs --command with --metric, or --workload with --target",
                hint="--command ./load.sh --metric time",
            )
        if workload is not None and target is None:
            raise UsageError("--workload needs --target", hint="--target DIR, on the storage in question")
        if budget is None:
            raise UsageError("tune needs --budget", hint="--budget 30m")
        if not candidates and not ranges:
            raise UsageError(
                "tune needs --candidates", hint="--candidates PROFILE,PROFILE; advisor profiles lists them"
            )
        own = choose_command(
            command,
            metrics or (),
            user=as_user,
            timeout=command_timeout,
            directory=directory,
            environment=environment or (),
        )
        if command is not None:
            refuse_given(
                {"--target": target, "--seconds": seconds, "--file-size": size, "--byte-budget": byte_budget},
                *WITH_COMMAND,
            )
        if workload is not None:
            chosen = choose_settings(target=target, seconds=seconds, size=size, byte_budget=byte_budget)
            own = choose_pattern(workload, chosen)
        named = name_candidates(candidates or (), ranges=ranges or ())
        options = TuneOptions(
            budget_seconds=parse_budget(budget),
            seed=seed,
            force=force,
            hold_seconds=choose_settings(dead_time=dead_time).hold_seconds,
            keep_if_gain=keep_if_gain,
            is_ablating=not no_ablation,
            asked=(*(candidates or ()), *(ranges or ())),
            options=repeated_options(
                {
                    "--workload": workload,
                    "--target": target,
                    "--seconds": seconds,
                    "--file-size": size,
                    "--byte-budget": byte_budget,
                    "--command": command,
                    "--metric": metrics,
                    "--as-user": as_user,
                    "--command-timeout": command_timeout,
                    "--directory": directory,
                    "--env": variables_to_repeat(environment or ()),
                    "--dead-time": dead_time,
                    "--force": force,
                }
            ),
        )
    assert own is not None
    for one in named.offers if ranges else ():
        say(f"candidate {one.name}: {one.source}")
    with session_progress() as progress:
        found = tune_command(named, own, options, resumed=resumed, progress=progress, say=say)
    if found.saved_to:
        say(f"every run is kept in {found.saved_to}")
    if as_json:
        print_json(found)
    else:
        print_text(tuned_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_gain else 1


COMMANDS = {"tune": tune}
