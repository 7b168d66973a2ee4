"""``advisor prove``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor.cli.change import Set
from advisor.cli.complete import proven_workloads, requestable_words
from advisor.cli.measuring import (
    WITH_COMMAND,
    AsUser,
    Budget,
    ByteBudget,
    CommandTimeout,
    DeadTime,
    Directory,
    Environment,
    FileSize,
    Metrics,
    OwnBenchmark,
    Places,
    ResultPage,
    Seconds,
    Target,
    TargetMemory,
    ask_when_busy,
    exit_code,
    print_check,
    print_result,
    refuse_given,
    repeated_options,
    say_where_kept,
    variables_to_repeat,
)
from advisor.cli.output import parse_settings, say
from advisor.cli.scan import Json

if TYPE_CHECKING:
    from advisor.proof.records import Proof


def prove(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[PROFILE…]",
            help="One profile, by name or file, or values. Not with --self-test or --arms.",
            autocompletion=requestable_words,
        ),
    ] = None,
    arms: Annotated[
        str | None,
        Option("--arms", metavar="none,P,Q…", help="Compare several profiles with none, in the same blocks."),
    ] = None,
    ablate: Annotated[
        bool, Option("--ablate", help="Show which of the profile's values have an effect: combinations of them.")
    ] = False,
    reduced_profile: Annotated[
        Path | None,
        Option("--reduced-profile", metavar="FILE", help="Write what --ablate finds as a profile, NAME.toml."),
    ] = None,
    target: Target = None,
    peer: Annotated[
        str | None,
        Option("--peer", metavar="ADDR", help="Ask this host after each toggle whether the path carries the MTU."),
    ] = None,
    command: OwnBenchmark = None,
    metrics: Metrics = None,
    as_user: AsUser = None,
    command_timeout: CommandTimeout = None,
    directory: Directory = None,
    environment: Environment = None,
    live: Annotated[
        bool, Option("--live", help="Make no load: switch the values under the traffic that is there, after consent.")
    ] = False,
    period: Annotated[
        float | None, Option("--period", metavar="SECONDS", help="With --live: switch after this time. Default: 40.")
    ] = None,
    tau: Annotated[
        float | None,
        Option(
            "--tau",
            metavar="SECONDS",
            help="With --live: how soon an effect appears. Three times this is not counted after each switch. Default: "
            "measured on the first switches.",
        ),
    ] = None,
    abort_if: Annotated[
        list[str] | None,
        Option("--abort-if", metavar="LIMIT", help="With --live: withdraw the change at once, such as 'p99 > 20'."),
    ] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="With --live: do not prompt.")] = False,
    replay: Annotated[
        Path | None, Option("--replay", metavar="FILE", help="Judge a saved session again. Measures nothing.")
    ] = None,
    pairs: Set = None,
    workloads: Annotated[
        list[str] | None,
        Option(
            "--workload",
            metavar="NAME|FILE",
            help="Measure this, or a workload file, up to three. Default: what the profile claims. With --arms any "
            "number, and patterns such as 'infoscale.*'.",
            autocompletion=proven_workloads,
        ),
    ] = None,
    budget: Budget = None,
    quick: Annotated[bool, Option("--quick", help="Measure 8 pairs of 1 s: shows effects of 20 % and more.")] = False,
    deep: Annotated[bool, Option("--deep", help="Measure 48 pairs: shows effects of 5 % and more.")] = False,
    keep_if_gain: Annotated[bool, Option("--keep-if-gain", help="Apply the profile if a gain is proven.")] = False,
    check: Annotated[
        bool, Option("--check", help="Say what would be measured, and all that stands in the way. Changes nothing.")
    ] = False,
    self_test: Annotated[
        bool, Option("--self-test", help="Compare the host with itself: the noise floor, and no invented gain.")
    ] = False,
    reconnect: Annotated[
        str | None,
        Option("--reconnect", metavar="COMMAND", help="Run this after each toggle, to reconnect or remount."),
    ] = None,
    allow_link_flap: Annotated[
        bool, Option("--allow-link-flap", help="Permit toggling what interrupts a link.")
    ] = False,
    seed: Annotated[
        int | None, Option("--seed", metavar="N", help="Order the pairs by this seed. Default: drawn.")
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Do not ask on a busy host; toggle a link that your ssh session needs.")
    ] = False,
    byte_budget: ByteBudget = None,
    dead_time: DeadTime = None,
    seconds: Seconds = None,
    size: FileSize = None,
    target_memory: TargetMemory = None,
    places: Places = None,
    save: Annotated[
        Path | None,
        Option("--save", metavar="FILE", help="Save every run, to be analysed again. Default: the state directory."),
    ] = None,
    html: ResultPage = None,
    svg: Annotated[
        Path | None, Option("--svg", metavar="FILE", help="Write the changes with their intervals as a picture, too.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Measure whether a profile helps on this host. Applies and rolls it back in interleaved pairs around fio
    micro-runs, or around runs of a benchmark of your own (--command).

    Exit code 0 for a proven gain (of any arm with --arms; with --self-test, for none invented), 1 for every other
    verdict, 4 where the result was printed but its page could not be written (unless the profile was kept).
    """
    from advisor.cli.progress import session_progress
    from advisor.cli.prove_live import make_live_session, replay_session
    from advisor.cli.prove_page import check_page
    from advisor.errors import UsageError
    from advisor.operations.measure import choose_settings
    from advisor.operations.prove import (
        choose_command,
        choose_profile,
        measure_noise,
        prove_arms,
        prove_profile,
        prove_values,
        write_reduced_profile,
    )
    from advisor.proof.profile import Means

    if html is not None:
        check_page(html, others=(save, svg, replay))
    if svg is not None and not live:
        check_page(svg, "--svg", others=(save, html, replay))
    if replay is not None:
        refuse_given(
            {
                "PROFILE": names,
                "--self-test": self_test,
                "--arms": arms,
                "--live": live,
                "--ablate": ablate,
                "--command": command,
                "--metric": metrics,
                "--workload": workloads,
                "--target": target,
                "--keep-if-gain": keep_if_gain,
            },
            "and --replay exclude each other: nothing is measured",
        )
        return run_session(lambda: replay_session(replay), html, svg, as_json=as_json)
    if not live:
        refuse_given({"--period": period, "--tau": tau, "--abort-if": abort_if, "--yes": yes}, "belongs to --live")
    if live:
        session = make_live_session(
            names or (),
            pairs,
            {
                "metrics": metrics or (),
                "limits": abort_if or (),
                "period": period,
                "tau": tau,
                "user": as_user,
                "timeout": command_timeout,
                "directory": directory,
                "environment": environment or (),
            },
            {"quick": quick, "deep": deep, "budget": budget, "seed": seed, "save": save, "keep_if_gain": keep_if_gain},
            {
                "--command": command,
                "--target": target,
                "--peer": peer,
                "--workload": workloads,
                "--arms": arms,
                "--ablate": ablate,
                "--reduced-profile": reduced_profile,
                "--self-test": self_test,
                "--seconds": seconds,
                "--file-size": size,
                "--place": places,
                "--byte-budget": byte_budget,
                "--reconnect": reconnect,
                "--allow-link-flap": allow_link_flap,
                "--force": force,
                "--svg": svg,
                "--check": check,
            },
            yes=yes,
        )
        return run_session(session, html, as_json=as_json)
    if sum((bool(names), self_test, arms is not None)) != 1:
        raise UsageError("expected one of: a profile, --arms none,P,Q, --self-test")
    if arms is not None and keep_if_gain:
        raise UsageError("--keep-if-gain: which of several arms would be kept is not defined", hint="advisor apply")
    if ablate and not names:
        raise UsageError("--ablate needs a profile", hint="advisor prove PROFILE --ablate --target DIR")
    if reduced_profile is not None and not ablate:
        raise UsageError("--reduced-profile belongs to --ablate")
    if reduced_profile is not None and (
        reduced_profile.suffix != ".toml" or reduced_profile.exists() or not reduced_profile.parent.is_dir()
    ):
        raise UsageError(
            f"--reduced-profile {reduced_profile}: expected a new file NAME.toml",
            hint="name a file that is new, in a directory that is there",
        )
    if ablate and keep_if_gain:
        raise UsageError("--keep-if-gain and --ablate exclude each other")
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
            {
                "--target": target,
                "--workload": workloads,
                "--seconds": seconds,
                "--file-size": size,
                "--place": places,
                "--byte-budget": byte_budget,
            },
            *WITH_COMMAND,
        )
    elif target is None:
        raise UsageError("nothing to measure on", hint="--target DIR, or --command CMD")
    asked = choose_profile(names, workloads or ()) if names else None
    values = parse_settings(pairs)
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
        keep_if_gain=keep_if_gain,
        allow_link_flap=allow_link_flap,
        self_test=self_test,
        dead_time=dead_time,
        is_check=check,
        ask=ask_when_busy,
    )
    options = repeated_options(
        {
            "--command": command,
            "--metric": metrics,
            "--as-user": as_user,
            "--command-timeout": command_timeout,
            "--directory": directory,
            "--env": variables_to_repeat(environment or ()),
            "--set": pairs,
            "--place": places,
            "--budget": budget,
            "--dead-time": dead_time,
            "--byte-budget": byte_budget,
            "--seconds": seconds,
            "--file-size": size,
            "--target-memory": target_memory,
            "--reconnect": reconnect,
            "--force": force,
        }
    )

    def measure() -> Proof:
        with session_progress() as progress:
            means = Means(peer=peer, reconnect=reconnect, command=own, options=options, progress=progress, say=say)
            if arms is not None:
                return prove_arms(arms, workloads or (), chosen, means, values=values)
            if asked is None:
                return measure_noise(chosen, means, workloads or ())
            if ablate:
                return prove_values(asked, workloads or (), chosen, means, values=values)
            return prove_profile(asked, chosen, means, values=values, workloads=workloads or ())

    def write_reduced(proof: Proof) -> None:
        if reduced_profile is not None and asked is not None:
            write_reduced_profile(reduced_profile, proof, asked, values)
            say("the reduced profile is written; the result has the command that proves it")

    return run_session(measure, html, svg, as_json=as_json, write_more=write_reduced)


def run_session(
    measure: Callable[[], Proof],
    html: Path | None,
    svg: Path | None = None,
    *,
    as_json: bool,
    write_more: Callable[[Proof], None] = lambda _: None,
) -> int:
    """Measure, print the result and write its page, picture and what else is to be written; the exit code of the
    command. Of an interrupted session the partial result is printed."""
    from advisor.cli.prove_page import UNWRITTEN, write_page, write_picture
    from advisor.errors import AdvisorError
    from advisor.proof.obstacles import CheckedError
    from advisor.proof.session_runner import InterruptedSessionError

    def print_proof(proof: Proof) -> bool:
        """Print the result and write its page and picture; where one cannot be done, the others are all the same."""
        try:
            say_where_kept(proof)
            print_result(proof, as_json=as_json)
            sys.stdout.flush()
        finally:
            is_written = html is None or write_page(html, proof)
            is_written = (svg is None or write_picture(svg, proof)) and is_written
        return is_written

    try:
        proof = measure()
    except CheckedError as done:
        print_check(done.check, as_json=as_json)
        return done.exit_code
    except InterruptedSessionError as stopped:
        print_proof(stopped.result)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    is_written = print_proof(proof)
    try:
        write_more(proof)
    except AdvisorError as error:
        say(f"advisor: the reduced profile was not written: {error.message}")
        is_written = is_written and exit_code(proof) != 0
    if not is_written and not proof.kept:
        return UNWRITTEN
    return exit_code(proof)


COMMANDS = {"prove": prove}
