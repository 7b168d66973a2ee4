"""``advisor prove --live``: the values of a profile are switched under the traffic that is there, after consent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.cli.measuring import refuse_given, repeated_options, variables_to_repeat
from advisor.cli.output import parse_settings, say

if TYPE_CHECKING:
    from advisor.proof.live import LivePlan
    from advisor.proof.records import Proof


def make_live_session(
    names: Sequence[str],
    pairs: list[str] | None,
    live: Mapping[str, Any],
    settings: Mapping[str, Any],
    others: Mapping[str, object],
    *,
    yes: bool,
) -> Callable[[], Proof]:
    """The session, ready to run. ``live`` are arguments of `choose_live`, ``settings`` of `choose_settings`, ``others``
    the options that exclude this one. Raises UsageError."""
    from advisor.cli.progress import session_progress
    from advisor.errors import UsageError
    from advisor.operations.measure import choose_settings
    from advisor.operations.prove import choose_profile
    from advisor.operations.prove_live import choose_live, prove_live
    from advisor.report.live_consent import consent_lines

    refuse_given(
        others,
        "and --live exclude each other: nothing is run under live traffic",
        "advisor prove --help lists what belongs to --live",
    )
    if not names:
        raise UsageError("--live needs a profile or values", hint="such as sysctl:net.core.busy_poll=50")
    options, chosen = choose_live(**live), choose_settings(**settings)
    asked, values = choose_profile(names), parse_settings(pairs)
    words = repeated_options(
        {
            "--metric": live["metrics"],
            "--abort-if": live["limits"],
            "--period": live["period"],
            "--tau": live["tau"],
            "--as-user": live["user"],
            "--command-timeout": live["timeout"],
            "--directory": live["directory"],
            "--env": variables_to_repeat(live["environment"]),
            "--set": pairs,
            "--budget": settings["budget"],
        }
    )

    def ask_consent(plan: LivePlan) -> None:
        from advisor.cli.change import ask_user

        for line in consent_lines(plan):
            say(line)
        if not yes:
            ask_user("Switch these values?", has_dry_run=False)

    def measure() -> Proof:
        with session_progress() as progress:
            return prove_live(
                asked, chosen, options, consent=ask_consent, values=values, words=words, progress=progress, say=say
            )

    return measure


def replay_session(path: Path) -> Proof:
    """A saved session, judged again."""
    from advisor.operations.prove_live import replay_proof

    return replay_proof(path)
