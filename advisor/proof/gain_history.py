"""A proven gain and its repetitions: what is kept of them, what differs on the host since, and what follows.

A history stands by itself, in ``again`` of the state directory: the proof that it began with is removed with others
that are old.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from advisor.errors import AdvisorError, InvalidInputError, RefusedError, UsageError
from advisor.host import Host
from advisor.host.putfile import put_file
from advisor.host.trusted_files import make_own_directory, read_own_file
from advisor.proof.archive import load_proof
from advisor.proof.gain_sequence import LEVEL, REPETITIONS, weigh_repetitions
from advisor.proof.records import Proof, Session, Summary
from advisor.proof.result_store import results_directory
from advisor.proof.statistics import median
from advisor.proof.verdict import counted_pairs, make_sample
from advisor.transaction.journal import Store

MAX_BYTES: Final = 8 << 20
MAX_EFFECT: Final = 50.0
"""No ln ratio of two figures is larger."""
_ENDING: Final = ".json.gz"


class TrackedGain(msgspec.Struct, frozen=True):
    """A claim whose gain was proven: ``gain`` as a fraction, and ``least``, the ln ratio at the lower end of its
    interval."""

    workload: str
    metric: str
    gain: float
    least: float

    @property
    def key(self) -> str:
        return f"{self.workload} {self.metric}"


class Repetition(msgspec.Struct, frozen=True):
    """One repetition: ``effects`` are the ln ratios of its pairs by claim, plus is better; ``facts`` are of the host
    then. ``is_inverted`` where the profile was active and its values were taken away in turn."""

    at: str
    effects: Mapping[str, tuple[float, ...]]
    facts: Mapping[str, str]
    is_inverted: bool = False


class GainHistory(msgspec.Struct, frozen=True):
    """A proof, without its runs, and its repetitions. ``facts`` are those that the proof recorded."""

    id: str
    proof: Proof
    gains: tuple[TrackedGain, ...]
    facts: Mapping[str, str]
    repetitions: tuple[Repetition, ...] = ()
    schema: Literal["advisor.gain-history/1"] = "advisor.gain-history/1"


class GainState(msgspec.Struct, frozen=True):
    """What is known of one gain. ``evidence`` against it is enough from ``needed`` on; ``since`` is the repetition from
    which on it has gone, or has become smaller. ``effect`` is the median of its pairs since then, else of all, as a
    fraction; ``differences`` are facts of the host before and since."""

    workload: str
    metric: str
    gain: float
    least: float
    state: Literal["there", "gone", "smaller"]
    evidence: float
    needed: float
    pairs: int
    effect: float | None = None
    since: str | None = None
    differences: tuple[tuple[str, str, str], ...] = ()


class GainReport(msgspec.Struct, frozen=True):
    """``advisor.gain/1``: whether a proven gain is still there, after so many repetitions."""

    id: str
    profile: str
    proven: str
    repetitions: int
    gains: tuple[GainState, ...]
    is_inverted: bool = False
    schema: Literal["advisor.gain/1"] = "advisor.gain/1"

    @property
    def is_there(self) -> bool:
        """Whether no gain is shown to have gone or become smaller."""
        return all(one.state == "there" for one in self.gains)


def find_history(identity: str) -> GainHistory:
    """The history of a proof: by the file of the proof, or the name, or its beginning, of one in the state directory;
    ``last`` is the newest that can be repeated, whatever was measured after it.
    Raises UsageError for none, RefusedError for a proof that cannot be repeated, InvalidInputError."""
    if identity == "last":
        return _find_last()
    path = Path(identity)
    if "/" in identity or identity.endswith(_ENDING):
        return _load_history(path.name.removesuffix(_ENDING), path, identity)
    return _kept_history(_find_name(identity))


def _find_last() -> GainHistory:
    names = _kept_names()
    reasons = []
    for name in reversed(names):
        try:
            return _kept_history(name)
        except AdvisorError as error:
            reasons.append(error.message)
    if not names:
        raise _no_such_proof("last")
    raise RefusedError(
        f"--again last: no kept session can be repeated; the newest of {len(names)}: {reasons[0]}",
        hint="--again repeats a proof of a gain: advisor prove PROFILE makes one",
    )  # fmt: skip


def _kept_history(name: str) -> GainHistory:
    return _load_history(name, results_directory() / f"{name}{_ENDING}", name)


def _load_history(name: str, path: Path, identity: str) -> GainHistory:
    kept = _history_path(name)
    if not kept.exists():
        # It names a command, which is run: nobody else may have written that.
        return begin_history(name, load_proof(path, only_trusted=True).proof)
    history = _read_history(kept)
    # The proof itself may be gone: those that are old are removed.
    if path.exists():
        session, own = load_proof(path).proof.session, history.proof.session
        if (session.started, session.seed) != (own.started, own.seed):
            raise UsageError(
                f"--again {identity}: another proof of that name was repeated, made at {own.started}",
                hint=f"rename {path}, and name the new file",
            )  # fmt: skip
    return history


def _kept_names() -> list[str]:
    """Of kept sessions of all kinds, the oldest first: a name begins with the time."""
    names = {one.name.removesuffix(_ENDING) for one in _files(results_directory(), _ENDING)}
    return sorted(names | {one.stem for one in _files(_history_directory(), ".json")})


def _find_name(identity: str) -> str:
    found = [name for name in _kept_names() if name.startswith(identity)]
    if identity in found:
        return identity
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"--again {identity}: begins several proofs: {', '.join(found[:4])}")
    raise _no_such_proof(identity)


def _no_such_proof(identity: str) -> UsageError:
    return UsageError(f"--again {identity}: there is no such proof", hint=f"kept proofs are in {results_directory()}")


def _files(directory: Path, ending: str) -> list[Path]:
    try:
        return [one for one in directory.iterdir() if one.name.endswith(ending)]
    except OSError:
        return []


def begin_history(identity: str, proof: Proof) -> GainHistory:
    """A history without a repetition. Raises RefusedError where the proof shows no gain, or is of an unused disk."""
    if proof.session.self_test or proof.verdict != "gain":
        raise RefusedError(
            f"--again {identity}: its verdict is {proof.verdict}, so there is no gain that could go"
        )  # fmt: skip
    if proof.session.raw_device is not None:
        raise RefusedError(f"--again {identity}: it was made on a disk itself, which may be in use by now")
    if proof.session.live is not None:
        raise RefusedError(
            f"--again {identity}: it was made under live traffic", hint="advisor prove --live proves it again"
        )
    gains = tuple(_tracked_gain(one) for one in proof.workloads if one.verdict == "gain" and one.ci95 is not None)
    if not gains:
        raise RefusedError(f"--again {identity}: no claim in it shows a gain")
    session = msgspec.structs.replace(proof.session, pairs=(), warm_up=(), holds=())
    bare = msgspec.structs.replace(proof, session=session, saved_to=None)
    return GainHistory(identity, bare, gains, recorded_facts(proof.session))


def _tracked_gain(claim: Summary) -> TrackedGain:
    assert claim.ci95 is not None
    low, high = claim.ci95
    least = math.log(low) if claim.better == "higher" else -math.log(high)
    return TrackedGain(claim.name, claim.metric, claim.effect or 0.0, max(least, 0.0))


# -- the host ----------------------------------------------------------------------------------------------------------


def recorded_facts(session: Session) -> dict[str, str]:
    """What a session recorded of its host that may explain another result."""
    host = session.host
    found = {
        "kernel": host.kernel if host else None,
        "advisor": host.version if host else None,
        "fio": session.fio_version,
    }
    return {name: value for name, value in found.items() if value}


def read_facts(host: Host, session: Session) -> dict[str, str]:
    """The same now, with the firmware of the machine and of the device that was measured, and the benchmark's file."""
    found = {
        "firmware": host.read_text("/sys/class/dmi/id/bios_version"),
        "firmware date": host.read_text("/sys/class/dmi/id/bios_date"),
    }
    if session.device:
        name = re.sub(r"^/dev/", "", session.device).replace("/", "!")
        for file in ("firmware_rev", "rev"):
            found[f"firmware of {name}"] = host.read_text(f"/sys/class/block/{name}/device/{file}") or found.get(
                f"firmware of {name}"
            )
    command = session.subject.command
    if command is not None:
        found[f"file of {command.argv[0]}"] = _digest_of(command.argv[0], command.directory)
    return {**recorded_facts(session), **{name: value.strip() for name, value in found.items() if value}}


def _digest_of(program: str, directory: str) -> str | None:
    import hashlib
    import shutil

    place = os.path.join(directory, program) if "/" in program else shutil.which(program)
    try:
        with open(place or "", "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:12]
    except OSError:
        return None


# -- repetitions -------------------------------------------------------------------------------------------------------


def add_repetition(history: GainHistory, proof: Proof, facts: Mapping[str, str], *, is_inverted: bool) -> GainHistory:
    """The history with what a session of the same call measured."""
    session, sign = proof.session, -1 if is_inverted else 1
    pairs = counted_pairs(session)
    claims = {f"{one.workload} {one.metric}": one for one in session.subject.claims}
    effects = {
        one.key: tuple(
            sign * effect
            for effect in make_sample(pairs, one.workload, session.subject.metric_of(claims[one.key])).effects
        )
        for one in history.gains
    }
    one = Repetition(session.started, effects, facts, is_inverted)
    return msgspec.structs.replace(history, repetitions=(*history.repetitions, one))


def require_room(history: GainHistory) -> None:
    """Raises RefusedError for a history whose level is spent."""
    if len(history.repetitions) >= REPETITIONS:
        raise RefusedError(
            f"--again {history.id}: it was repeated {REPETITIONS} times, for which its level is made",
            hint="prove the profile again, and repeat that proof",
        )  # fmt: skip


def judge_history(history: GainHistory) -> GainReport:
    """Whether the gain is still there: at most 5 % of all histories of gains that are there ever say that one is
    gone."""
    needed = len(history.gains) / LEVEL
    last = history.repetitions[-1:]
    return GainReport(
        history.id,
        history.proof.profile,
        history.proof.session.started,
        len(history.repetitions),
        tuple(_judge_gain(history, one, needed) for one in history.gains),
        bool(last and last[0].is_inverted),
    )


def _judge_gain(history: GainHistory, one: TrackedGain, needed: float) -> GainState:
    repeated = [repetition.effects.get(one.key, ()) for repetition in history.repetitions]
    found = weigh_repetitions(repeated, one.least)
    is_lost = found.stake >= needed and found.since is not None
    first = found.since if is_lost and found.since is not None else 0
    later = [effect for effects in repeated[first:] for effect in effects]
    effect = math.expm1(median(later)) if later else None
    state = GainState(
        one.workload, one.metric, one.gain, math.expm1(one.least), "there", found.stake, needed, len(later), effect
    )
    if not is_lost:
        return state
    since = history.repetitions[first]
    return msgspec.structs.replace(
        state,
        state="smaller" if effect is not None and effect > one.gain / 2 else "gone",
        since=since.at,
        differences=_differences(history, first),
    )


def _differences(history: GainHistory, first: int) -> tuple[tuple[str, str, str], ...]:
    """Facts that are others since a repetition than they were before it: in the last one before, else in the proof."""
    before: dict[str, str] = dict(history.facts)
    for one in history.repetitions[:first]:
        before.update(one.facts)
    since = history.repetitions[first].facts
    return tuple((name, before[name], value) for name, value in since.items() if before.get(name, value) != value)


# -- on disk -----------------------------------------------------------------------------------------------------------


def _history_directory() -> Path:
    return Store().directory.absolute() / "again"


def _history_path(name: str) -> Path:
    return _history_directory() / f"{name}.json"


def save_history(history: GainHistory) -> Path:
    """Write a history, whole or not at all. Raises OSError, RefusedError."""
    path = _history_path(history.id)
    for place in (path.parent.parent, path.parent):
        make_own_directory(str(place))
    put_file(str(path), msgspec.json.encode(history), mode=0o600, uid=os.geteuid(), gid=os.getegid())
    return path


def _read_history(path: Path) -> GainHistory:
    with contextlib.suppress(FileNotFoundError):
        try:
            found = msgspec.json.decode(read_own_file(str(path), limit=MAX_BYTES), type=GainHistory)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInputError(f"{path}: {error}") from error
        if not found.gains:
            raise InvalidInputError(f"{path}: it holds no gain")
        figures = [gain.least for gain in found.gains]
        for repetition in found.repetitions:
            figures += [one for effects in repetition.effects.values() for one in effects]
        if not all(abs(one) < MAX_EFFECT for one in figures):
            raise InvalidInputError(f"{path}: a figure in it is none of a run")
        return found
    raise UsageError(f"{path}: there is no such file")
