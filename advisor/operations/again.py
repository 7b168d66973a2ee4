"""Repetitions of a kept proof: whether a gain that was proven is still there.

A repetition measures what the proof measured, with the same options, in a few pairs, and joins a sequence that may be
judged after each. It works on both states of the host: with the profile active, its values are taken away in turn and
come back. ``progress`` and ``say`` are those of `advisor.operations.prove`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from advisor.errors import CommandError, RefusedError, UsageError
from advisor.host import Missing, live_host, observe
from advisor.host.trusted_files import need_root
from advisor.operations.measure import choose_settings
from advisor.operations.prove import choose_command, name_second_host
from advisor.profiles.requested import RequestedProfile, load_one
from advisor.proof import profile as proofs
from advisor.proof.command_runner import CommandProcess
from advisor.proof.gain_history import (
    GainHistory,
    GainReport,
    add_repetition,
    find_history,
    judge_history,
    read_facts,
    require_room,
    save_history,
)
from advisor.proof.identity import read_identity
from advisor.proof.records import Proof, Session
from advisor.proof.result_store import explain_not_stored
from advisor.proof.session_runner import ProgressEvent, Settings
from advisor.tunables import parse_tunable

PAIRS = 3
"""Pairs of a repetition, unless said otherwise."""
_MAX_PAIRS = 48


def read_gain(identity: str) -> GainReport:
    """Return what is known of a proven gain, without another repetition. ``identity`` is the name of a kept proof, its
    beginning, ``last`` for the newest that can be repeated, or a file. Raises UsageError, RefusedError,
    InvalidInputError."""
    return judge_history(find_history(identity))


def prove_again(
    identity: str,
    *,
    pairs: int = PAIRS,
    force: bool = False,
    progress: Callable[[ProgressEvent], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> GainReport:
    """Repeat a kept proof in so many pairs, keep the repetition, and return whether the gain is still there.

    Changes the host and rolls it back. Raises UsageError for no such proof, RefusedError where it cannot be repeated
    here and now (another host, a profile that is gone, values that are neither those before nor those after), and what
    `advisor.operations.prove.prove_profile` raises; then nothing is added to the sequence.
    """
    if not 1 <= pairs <= _MAX_PAIRS:
        raise UsageError(f"--pairs {pairs}: expected 1 to {_MAX_PAIRS}")
    # Kept proofs are for root alone to read: to another user there would seem to be none.
    need_root()
    history = find_history(identity)
    require_room(history)
    if identity == "last":
        say(f"--again last: {history.id}")
    _require_same_host(history)
    session = history.proof.session
    options = _options_of(session)
    command = _repeat_command(history, options)
    asked, is_inverted = _choose_arms(history)
    settings = _repeat_settings(session, options, pairs, force=force)
    workloads = () if session.subject.command else [one.workload for one in session.subject.claims]
    proof = proofs.prove_profile(
        live_host(),
        asked,
        {} if is_inverted else _set_values(options),
        settings,
        workloads=workloads,
        reconnect=_one_option(options, "--reconnect"),
        allow_remount="--allow-remount" in options,
        second=name_second_host(session.peer_ssh, session.peer_address),
        command=command,
        options=session.options,
        progress=progress,
        say=say,
    )
    why = why_not_counted(proof)
    if why is not None:
        raise CommandError(f"the repetition is not counted: {why}")
    longer = add_repetition(history, proof, read_facts(live_host(), proof.session), is_inverted=is_inverted)
    try:
        say(f"the repetition is kept in {save_history(longer)}")
    except OSError as error:
        raise CommandError(f"the repetition was not kept: {explain_not_stored(error)}") from error
    return judge_history(longer)


def why_not_counted(proof: Proof) -> str | None:
    """Why a repetition is no part of the sequence: what it measured is not what the proof measured."""
    session = proof.session
    if session.faults:
        return "; ".join(session.faults)
    if session.ended == "interrupted" or not session.restored:
        return session.ended
    if session.forced:
        return "measured on a busy host by --force"
    if proof.verdict == "invalid":
        return "; ".join(proof.reasons)
    return None


def _require_same_host(history: GainHistory) -> None:
    """Raises RefusedError on another host than that of the proof."""
    then, now = history.proof.session.host, read_identity(live_host())
    # Where there is no machine-id, as in many an image of a container, the name says which host it is.
    is_same = then is not None and (
        then.machine == now.machine if then.machine or now.machine else bool(then.name) and then.name == now.name
    )
    if not is_same:
        name = then.name if then is not None and then.name else "?"
        raise RefusedError(
            f"--again {history.id}: it was made on another host ({name})",
            hint="a gain of one host is no gain of another: advisor prove shows it here",
        )


def _choose_arms(history: GainHistory) -> tuple[RequestedProfile, bool]:
    """What to put to the test: the profile where its values are those from before, else its values taken away. Raises
    RefusedError where the host is in neither of the two states."""
    values = history.proof.session.values
    if not values:
        raise RefusedError(
            f"--again {history.id}: it does not say which values it measured",
            hint="an older version made it: prove the profile again",
        )
    states = []
    for one in values:
        now = observe(live_host(), parse_tunable(one.tunable).probe)
        if isinstance(now, Missing) or now not in (one.before, one.after):
            raise RefusedError(
                (f"--again {history.id}: {one.tunable}: expected {one.before} or {one.after} as in the proof, "
f"found {now.why if isinstance(now, Missing) else now}"),
                hint="advisor verify names what was modified; a new proof starts from the present value",
            )  # fmt: skip
        states.append(now == one.after)
    if all(states):
        return load_one([f"{one.tunable}={one.before}" for one in values]), True
    if any(states):
        one = values[states.index(True)]
        raise RefusedError(
            f"--again {history.id}: the profile is active in part: {one.tunable} is, others are not",
            hint="apply it whole, or roll it back",
        )  # fmt: skip
    words = history.proof.words or (history.proof.profile,)
    try:
        return load_one(words, only_trusted=True), False
    except UsageError as error:
        raise RefusedError(
            f"--again {history.id}: its profile cannot be read: {error.message}",
            hint="restore its file, or prove another profile",
        ) from error


def _options_of(session: Session) -> dict[str, list[str]]:
    """The options that the proof was made with, as its record has them."""
    found: dict[str, list[str]] = {}
    for word in session.options:
        name, _, value = word.partition("=")
        found.setdefault(name, []).append(value)
    return found


def _one_option(options: dict[str, list[str]], name: str) -> str | None:
    return options[name][-1] if name in options else None


def _set_values(options: dict[str, list[str]]) -> dict[str, str]:
    return {key: value for one in options.get("--set", []) for key, _, value in [one.partition("=")]}


def _repeat_settings(session: Session, options: dict[str, list[str]], pairs: int, *, force: bool) -> Settings:
    def number(name: str) -> float | None:
        text = _one_option(options, name)
        return None if text is None else float(text)

    has_target = session.subject.command is None and (session.peer_ssh is None or session.schedule.area_bytes)
    byte_budget = number("--byte-budget")
    settings = choose_settings(
        target=Path(session.target) if has_target else None,
        quick=session.schedule.mode == "quick",
        deep=session.schedule.mode == "deep",
        budget=_one_option(options, "--budget"),
        byte_budget=None if byte_budget is None else int(byte_budget),
        volume=_one_option(options, "--volume"),
        seconds=number("--seconds"),
        size=_one_option(options, "--file-size"),
        target_memory=_one_option(options, "--target-memory"),
        places=options.get("--place", []),
        force=force,
        allow_link_flap=session.toggle_class == "T2",
    )
    # Each repetition would push an older proof out of those that are kept.
    return msgspec.structs.replace(settings, pairs=pairs, keep_result=False)


def _repeat_command(history: GainHistory, options: dict[str, list[str]]) -> CommandProcess | None:
    """Raises RefusedError where a variable is not set here whose value is not recorded."""
    own = history.proof.session.subject.command
    if own is None:
        return None
    missing = [name for name in options.get("--env", []) if "=" not in name and name not in os.environ]
    if missing:
        raise RefusedError(
            f"--again {history.id}: {missing[0]} of --env is not set here, and its value is not recorded",
            hint=f"{missing[0]}=VALUE advisor prove --again {history.id}",
        )  # fmt: skip
    process = choose_command(
        shlex.join(own.argv),
        options.get("--metric", []),
        user=own.user,
        timeout=own.timeout_seconds,
        directory=Path(own.directory) if "--directory" in options else None,
        environment=options.get("--env", []),
    )
    assert process is not None
    # The directory in which advisor was run, where none was given, and which need not be open to the command's user.
    process.command = msgspec.structs.replace(process.command, directory=own.directory)
    return process
