"""``advisor prove`` and its kin: of several arms, of single values, under live traffic, of a saved session."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
    print_check,
    print_result,
    repeated_options,
    say_where_kept,
    takes,
)
from advisor.cli.output import parse_settings, say

if TYPE_CHECKING:
    from advisor.proof.archive import Saved
    from advisor.proof.live import LivePlan
    from advisor.proof.profile import Means
    from advisor.proof.records import Proof
    from advisor.proof.session_runner import Settings

_NAMES = Argument(metavar="PROFILE…", hidden=True, autocompletion=requestable_words)
_MEASURED = f"--command {OF_COMMAND} --target"
_SESSION = "--set --budget --quick --deep"
_SWITCHED = f"--check --reconnect --allow-link-flap --peer --seed --force --dead-time {OF_FIO} --save"
_WRITTEN = "--html --svg --json"
_CLAIMS = Row("--workload", "Measure this, up to three. Default: its claims.", list[str], "NAME|FILE", proven_workloads)


@takes(
    _MEASURED,
    _CLAIMS,
    _SESSION,
    "--keep-if-gain",
    Row("--self-test", "Compare the host with itself: its noise.", bool),
    _SWITCHED,
    _WRITTEN,
    names=Annotated[list[str] | None, Argument(metavar="[PROFILE…]", hidden=True, autocompletion=requestable_words)],
)
def prove(given: Given) -> int:
    """Measure whether a profile, or values, help on this host. Each is switched in turn around runs of your own
    benchmark (--command) or of fio.

    Exit code 0 for a proven gain, 1 for every other verdict.
    """
    from advisor.errors import UsageError
    from advisor.operations.prove import choose_profile, measure_noise, prove_profile

    names, workloads, values = given["names"], given["workload"] or (), parse_settings(given["pairs"])
    if bool(names) == given["self_test"]:
        raise UsageError("expected a profile, or --self-test", hint="advisor prove PROFILE --command CMD --metric time")
    asked = choose_profile(names, workloads) if names else None
    return _run_arms(
        given,
        lambda chosen, means: (
            prove_profile(asked, chosen, means, values=values, workloads=workloads)
            if asked is not None
            else measure_noise(chosen, means, workloads)
        ),
    )


@takes(
    _MEASURED,
    Row("--workload", "Measure these, or patterns such as 'infoscale.*'.", list[str], "NAME|FILE", measured_workloads),
    _SESSION,
    _SWITCHED,
    _WRITTEN,
    names=Annotated[list[str], _NAMES],
)
def prove_arms(given: Given) -> int:
    """Compare several profiles with none, in the same blocks.

    Exit code 0 for a proven gain of any, 1 for every other verdict.
    """
    from advisor.operations import prove as operations

    values = parse_settings(given["pairs"])
    return _run_arms(
        given,
        lambda chosen, means: operations.prove_arms(
            given["names"], given["workload"] or (), chosen, means, values=values
        ),
    )


@takes(
    _MEASURED,
    _CLAIMS,
    Row("--reduced-profile", "Write what is found as a profile, NAME.toml.", Path, "FILE"),
    _SESSION,
    _SWITCHED,
    _WRITTEN,
    names=Annotated[list[str], _NAMES],
)
def prove_values(given: Given) -> int:
    """Measure which of a profile's values have an effect. Combinations of them are compared.

    Exit code 0 for a proven gain of any, 1 for every other verdict.
    """
    from advisor.errors import UsageError
    from advisor.operations import prove as operations

    reduced: Path | None = given["reduced_profile"]
    if reduced is not None and (reduced.suffix != ".toml" or reduced.exists() or not reduced.parent.is_dir()):
        raise UsageError(
            f"--reduced-profile {reduced}: expected a new file NAME.toml",
            hint="name a file that is new, in a directory that is there",
        )
    workloads, values = given["workload"] or (), parse_settings(given["pairs"])
    asked = operations.choose_profile(given["names"], workloads)

    def write_reduced(proof: Proof) -> None:
        if reduced is not None:
            operations.write_reduced_profile(reduced, proof, asked, values)
            say("the reduced profile is written; the result has the command that proves it")

    return _run_arms(
        given,
        lambda chosen, means: operations.prove_values(asked, workloads, chosen, means, values=values),
        write_reduced,
    )


@takes(
    Row(
        "--metric",
        "Judge by command:CMD, counter:CMD, prom:URL:QUERY or host:NAME, then :higher or :lower, :UNIT. The first "
        "judges, the others must not get worse.",
        list[str],
        "[NAME=]KIND:EXPR",
    ),
    Row("--abort-if", "Withdraw the change at once, such as 'p99 > 20'.", list[str], "LIMIT"),
    Row("--period", "Switch after this time. Default: 40.", float, "SECONDS"),
    Row(
        "--tau",
        "Count nothing for three times this after each switch, as the effect appears. Default: measured on the first.",
        float,
        "SECONDS",
    ),
    "--as-user --command-timeout --directory --env",
    _SESSION,
    "--keep-if-gain --yes --seed --save --html --json",
    names=Annotated[list[str], _NAMES],
)
def prove_live(given: Given) -> int:
    """Switch values under the traffic that is there, and judge. Asks first, and makes no load.

    Exit code 0 for a proven gain, 1 for every other verdict.
    """
    from advisor.cli.progress import session_progress
    from advisor.operations import prove as operations
    from advisor.operations.measure import choose_settings
    from advisor.operations.prove import choose_profile
    from advisor.report.proof.tuning import consent_lines

    options, chosen = call_with(operations.choose_live, given), call_with(choose_settings, given)
    asked, values = choose_profile(given["names"]), parse_settings(given["pairs"])

    def ask_consent(plan: LivePlan) -> None:
        from advisor.cli.change import ask_user

        for line in consent_lines(plan):
            say(line)
        if not given["yes"]:
            ask_user("Switch these values?", has_dry_run=False)

    def measure() -> Proof:
        with session_progress() as progress:
            return operations.prove_live(
                asked,
                chosen,
                options,
                consent=ask_consent,
                values=values,
                words=repeated_options(given),
                progress=progress,
                say=say,
            )

    return _run_session(measure, given)


@takes(_WRITTEN, file=Annotated[Path, Argument(metavar="FILE", help="A saved proof.")])
def prove_replay(given: Given) -> int:
    """Judge a saved proof again. Measures nothing.

    Exit code 0 for a proven gain, 1 for every other verdict.
    """
    from advisor.operations.measure import load_session

    return judge_again(load_session(given["file"]), given)


def judge_again(saved: Saved, given: Given) -> int:
    """Judge a saved proof, the ``file`` of what was given; a changed verdict is reported."""
    from advisor.operations.measure import analyse_session

    def judge() -> Proof:
        found = analyse_session(saved)
        say(f"{given['file']}: the session of {found.session.started}, analysed again; nothing was measured")
        if found.verdict != saved.proof.verdict:
            say(f"when it was saved the verdict was {saved.proof.verdict}: the rules have changed since")
        return found

    return _run_session(judge, given)


def _run_arms(
    given: Given, measure: Callable[[Settings, Means], Proof], write_more: Callable[[Proof], None] = lambda _: None
) -> int:
    from advisor.cli.progress import session_progress
    from advisor.errors import UsageError
    from advisor.operations.measure import choose_settings
    from advisor.proof.profile import Means

    own = choose_own(given)
    if own is None and given["target"] is None:
        raise UsageError("nothing to measure on", hint="--command CMD, or --target DIR")
    chosen = call_with(choose_settings, given, ask=ask_when_busy)
    options = repeated_options(given)

    def measure_shown() -> Proof:
        with session_progress() as progress:
            return measure(
                chosen,
                Means(
                    peer=given["peer"],
                    reconnect=given["reconnect"],
                    command=own,
                    options=options,
                    progress=progress,
                    say=say,
                ),
            )

    return _run_session(measure_shown, given, write_more)


def _run_session(
    measure: Callable[[], Proof], given: Given, write_more: Callable[[Proof], None] = lambda _: None
) -> int:
    """Measure, print the result and write its page, picture and what else is to be written; the exit code of the
    command. Of an interrupted session the partial result is printed."""
    from advisor.cli.pages import UNWRITTEN, check_page, write_page, write_picture
    from advisor.errors import AdvisorError
    from advisor.proof.arms import CheckedError
    from advisor.proof.session_runner import InterruptedSessionError

    html, svg, as_json = given["html"], given.get("svg"), given["as_json"]
    for path, option in ((html, "--html"), (svg, "--svg")):
        if path is not None:
            others = (given.get("save"), given.get("file"), svg if path is html else html)
            check_page(path, option, others=others)

    def print_proof(proof: Proof) -> bool:
        """Print the result and write its page and picture; where one cannot be done, the others are all the same."""
        try:
            if "file" not in given:
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


COMMANDS = {
    "prove": prove,
    "prove-arms": prove_arms,
    "prove-values": prove_values,
    "prove-live": prove_live,
    "prove-replay": prove_replay,
}
