"""A proof on the canary before any host is changed for good. It needs advisor, and fio, on that host: a proof cannot be
run by a script alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from advisor.errors import RefusedError, UsageError
from advisor.fleet.runs.executor import Hands
from advisor.fleet.runs.planning import FleetPlan
from advisor.i18n import msg
from advisor.shell.quote import shell_quote

LOOK_SECONDS: Final = 60
PROVE_SECONDS: Final = 4 * 3600
_ABSENT: Final = 127


def choose_provers(plan: FleetPlan, profiles: Sequence[str]) -> tuple[str, ...]:
    """The hosts that a proof is made on: the canaries. Raises UsageError where there is none, or several profiles."""
    if len(profiles) != 1:
        raise UsageError("--prove-canary proves one profile", hint="run the profiles one after the other")
    found = next((wave.hosts for wave in plan.waves.waves if wave.is_canary), ())
    if not found:
        raise UsageError("--prove-canary: there is no canary", hint="--canary HOST")
    return found


def check_provers(hands: Hands, names: Sequence[str]) -> None:
    """Raises RefusedError where advisor is not installed on one of them."""
    answers = hands.command(f"command -v advisor >/dev/null 2>&1 || exit {_ABSENT}", names, seconds=LOOK_SECONDS)
    for name in names:
        answer = answers.get(name)
        if answer is None or answer.state != "ok" or answer.rc != 0:
            why = "advisor is not installed there" if answer and answer.rc == _ABSENT else "it could not be asked"
            raise RefusedError(
                msg("--prove-canary: {name}: {why}, and a proof cannot be made without it", name=name, why=why),
                hint="install it there, or let a --gate-command of your own decide",
            )


def prove_on_canaries(
    hands: Hands, names: Sequence[str], profile: str, settings: Sequence[tuple[str, str]], place: str
) -> str | None:
    """None where the gain is proven on each of them; else in words why not."""
    words = ["advisor", "prove", profile, "--target", place, "--json"]
    words += [word for key, value in settings for word in ("--set", f"{key}={value}")]
    answers = hands.command(" ".join(map(shell_quote, words)), names, seconds=PROVE_SECONDS)
    for name in names:
        answer = answers.get(name)
        if answer is None or answer.state != "ok":
            return f"{name}: the proof did not come to its end: {answer.message if answer else 'no answer'}"
        if answer.rc == 1:
            return f"{name}: no gain is proven there; what was measured is in {answer.path}"
        if answer.rc:
            return f"{name}: the proof ended with {answer.rc}: {answer.message}"
    return None
