"""A proof or a series on disk: its record and fio's JSON of every run, in one compressed file, to be analysed again.

What is read back is not trusted: whoever sends such a file must not be able to hold us up, fill the memory, or make
the statistics stumble.
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from advisor.errors import AdvisorError, CommandError, InvalidInputError, PermissionDeniedError, UsageError
from advisor.host.putfile import put_file
from advisor.host.safe_open import check_trusted
from advisor.proof.blocks import MAX_UNITS, conclude_session
from advisor.proof.command_runner import explain_not_stored, store_result
from advisor.proof.metrics import RunFigures
from advisor.proof.own_command import COMMAND_WORKLOAD
from advisor.proof.records import MAX_CLAIMS, NONE, FioRun, Proof, Session, Switchback, resolve_subject
from advisor.proof.schedule import MODES, SESSION_LEVEL
from advisor.proof.series import Bench, summarise_series
from advisor.proof.statistics import POCOCK
from advisor.proof.workloads import get_measured

MAX_BYTES = 256 << 20
"""A saved proof is a few hundred kB; more than this, unpacked, is a bomb or no proof."""
MAX_RUNS = 1_000
MAX_ROUNDS = 80
"""Pairs or rounds, and runs of a workload in them. The longest session has 72 with its repeats; the exact tests of a
few hundred tied values take minutes."""
_FIGURE = (1e-9, 1e18)
"""Within this lies whatever a run can yield, but for zero."""

_LEAST_LEVEL = 1e-9
"""Of significance: no session shares its 5 % among so many."""

_NO_PROOF = "not a saved proof or series"
_PROOFS = "give a file of --save, or of proofs in the state directory: NAME.json.gz"


class Saved(msgspec.Struct, frozen=True):
    """A proof with what fio printed, by run number."""

    proof: Proof
    fio: Mapping[int, str]
    schema: Literal["advisor.proof-archive/1"] = "advisor.proof-archive/1"


class SavedBench(msgspec.Struct, frozen=True):
    """A series with what fio printed, by run number."""

    bench: Bench
    fio: Mapping[int, str]
    schema: Literal["advisor.bench-archive/1"] = "advisor.bench-archive/1"


class _Head(msgspec.Struct, frozen=True):
    schema: str


Result = TypeVar("Result", Proof, Bench)


# -- writing -----------------------------------------------------------------------------------------------------------


def save_result(path: str | Path, result: Proof | Bench, fio: Mapping[int, str]) -> None:
    """Write a result, whole or not at all: mode 0600, or mode and owner of the regular file that it replaces.

    Raises CommandError with the kernel's words, also for what is there and no regular file.
    """
    place = os.path.abspath(path)
    try:
        if not os.path.isdir(os.path.dirname(place)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        mode, uid, gid = _mode_and_owner(place)
        put_file(place, _pack_result(result, fio), mode=mode, uid=uid, gid=gid)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error


def check_place(path: str | Path) -> None:
    """Raise UsageError where `save_result` could not write, so that it is known before anything is measured."""
    place = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(place)):
        raise UsageError(f"--save {path}: there is no such directory", hint="make it first")
    try:
        _mode_and_owner(place)
    except OSError as error:
        hint = "name a file that is new or may be replaced"
        raise UsageError(f"--save {path}: {error.strerror}", hint=hint) from None


def _mode_and_owner(place: str) -> tuple[int, int, int]:
    """Mode, owner and group for the file to be written."""
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        return 0o600, os.geteuid(), os.getegid()
    if not stat.S_ISREG(found.st_mode):
        # replacing a link, a device or a pipe would take away something that is no earlier result
        raise OSError(errno.EINVAL, "is there and is no regular file")
    return stat.S_IMODE(found.st_mode) & 0o777, found.st_uid, found.st_gid


def preserve_result(
    result: Result, fio: Mapping[int, str], *, save_to: str | None, keep_result: bool
) -> tuple[Result, str | None]:
    """Save a result where it was asked for, or else keep it in the state directory if it is to be kept.

    The result comes back with ``saved_to`` filled in; where saving failed as it was, with words on why. Never raises
    for what the file system says: a result that cannot be written is still to be shown.
    """
    try:
        if save_to is not None:
            save_result(save_to, result, fio)
            return msgspec.structs.replace(result, saved_to=save_to), None
        if keep_result:
            kind = "bench" if isinstance(result, Bench) else result.profile if result.session.is_paired else "arms"
            path = store_result(_pack_result(result, fio), kind, _start_time(result))
            return msgspec.structs.replace(result, saved_to=str(path)), None
    except (OSError, AdvisorError) as error:
        words = explain_not_stored(error)
        if save_to is not None:
            return result, f"the result was not saved: {words}"
        return result, f"the result was not saved: {words}; --save FILE puts it elsewhere"
    return result, None


def _pack_result(result: Proof | Bench, fio: Mapping[int, str]) -> bytes:
    # A file does not say where it is: it may be moved.
    bare = msgspec.structs.replace(result, saved_to=None)
    saved = SavedBench(bare, fio) if isinstance(bare, Bench) else Saved(bare, fio)
    return gzip.compress(msgspec.json.encode(saved), mtime=0)


def _start_time(result: Proof | Bench) -> datetime:
    started = result.series.started if isinstance(result, Bench) else result.session.started
    return datetime.fromisoformat(started).astimezone(UTC)


# -- reading -----------------------------------------------------------------------------------------------------------


def load_proof(path: str | Path, *, only_trusted: bool = False) -> Saved:
    """A saved proof. Raises InvalidInputError that names the file and what is wrong with it; with ``only_trusted``
    RefusedError for a file that anybody but root and this user can write to."""
    saved = load_any(path, only_trusted=only_trusted)
    if not isinstance(saved, Saved):
        raise InvalidInputError(f"{path}: not a saved proof but a saved series (advisor bench)")
    return saved


def load_any(path: str | Path, *, only_trusted: bool = False) -> Saved | SavedBench:
    """A saved proof, series or comparison of arms, with ``saved_to`` as the path given.

    Raises InvalidInputError that names the file, PermissionDeniedError; with ``only_trusted`` RefusedError for a file
    that anybody but root and this user can write to.
    """
    try:
        content = _unpack_file(path, only_trusted=only_trusted)
        schema = msgspec.json.decode(content, type=_Head).schema
        if schema.startswith("advisor.tune/"):
            raise InvalidInputError(
                f"{path}: a saved search, and no proof",
                hint="zcat prints it; its confirmation is a proof in a file of its own",
            )
        is_series = schema.startswith("advisor.bench-archive/")
        kind: type[Saved] | type[SavedBench] = SavedBench if is_series else Saved
        saved = _bound_looks(msgspec.json.decode(content, type=kind))
    except PermissionError as error:
        raise PermissionDeniedError(f"{path}: {error.strerror}", hint="run it as who saved it, or as root") from error
    except gzip.BadGzipFile as error:
        raise InvalidInputError(f"{path}: {_NO_PROOF}: not compressed by gzip", hint=_PROOFS) from error
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInputError(f"{path}: {_NO_PROOF}: {words}", hint=_PROOFS) from error
    _check_session(path, saved)
    change = msgspec.structs.replace
    if isinstance(saved, Saved):
        return change(saved, proof=change(saved.proof, saved_to=str(path)))
    return change(saved, bench=change(saved.bench, saved_to=str(path)))


def _bound_looks(saved: Saved | SavedBench) -> Saved | SavedBench:
    """With the level of each look such that all together stay at 5 %: a proof of before that could end after any pair
    has that of the whole session."""
    if not isinstance(saved, Saved) or len(saved.proof.session.schedule.looks) <= max(POCOCK):
        return saved
    change, session = msgspec.structs.replace, saved.proof.session
    plan = change(session.schedule, alpha=SESSION_LEVEL / len(session.schedule.looks))
    return change(saved, proof=change(saved.proof, session=change(session, schedule=plan)))


def _unpack_file(path: str | Path, *, only_trusted: bool) -> bytes:
    # O_NONBLOCK: a FIFO must not hold us up, nor a device do anything
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        if only_trusted:
            check_trusted(fd, str(path))
        with gzip.open(file) as packed:
            content = packed.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidInputError(f"{path}: larger than a saved proof or series can be")
    return content


def _check_session(path: str | Path, saved: Saved | SavedBench) -> None:
    """What the types do not say: that it is no longer than a session, and that every figure is one."""
    try:
        if isinstance(saved, Saved):
            session = saved.proof.session
            most = MAX_CLAIMS if session.is_paired else MAX_ROUNDS
            if resolve_subject(session.subject, MODES[session.schedule.mode], most=most) != session.subject:
                raise InvalidInputError("its claims are not those of a session")
            _check_arms(session)
            pairs = session.pairs
            runs = [run for pair in pairs for run in (*pair.runs, *pair.control_runs)]
            _require_that(len(pairs) <= MAX_ROUNDS, f"{len(pairs)} pairs are more than a session has")
            most = session.schedule.pairs
            _require_that(most <= MAX_ROUNDS, f"{most} planned pairs are more than a session has")
            _check_level(session.schedule.alpha)
            _check_summaries(saved.proof)
            extra = session.warm_up
            if session.live is not None:
                extra = (*extra, *_check_switchback(session.live))
        else:
            series = saved.bench.series
            runs = [run for one in series.rounds for run in one.runs]
            extra = series.warm_up
            _require_that(len(series.rounds) <= MAX_ROUNDS, f"{len(series.rounds)} rounds are more than a series has")
            for name in series.workloads:
                get_measured(name)
            is_own = series.workloads == (COMMAND_WORKLOAD,)
            _require_that(is_own == (series.command is not None), "its workloads are not those of its command")
        most = max(Counter((run.arm, run.workload) for run in runs).values(), default=0)
        _require_that(most <= MAX_ROUNDS, f"{most} runs of a workload are more than a session has")
        _require_that(len(extra) <= MAX_RUNS, f"{len(extra)} warm-up runs are more than a session has")
        _check_runs([*runs, *extra])
        _start_time(saved.bench if isinstance(saved, SavedBench) else saved.proof)
    except AdvisorError as error:
        raise InvalidInputError(f"{path}: {error.message}", hint=error.hint) from error
    except ValueError as error:
        raise InvalidInputError(f"{path}: {_NO_PROOF}: {error}", hint=_PROOFS) from error


def _check_arms(session: Session) -> None:
    """Raise InvalidInputError where the turns of a session are not those of its arms."""
    arms, ablation = session.arms, session.ablation
    is_several = arms[:1] == (NONE,) and len(arms) > 1
    _require_that(session.is_paired or is_several, "not a saved proof: its arms are not those of a session")
    turns = {run.arm for pair in session.pairs for run in (*pair.runs, *pair.control_runs)}
    if ablation is None:
        known = turns <= set(arms)
    else:
        known = all(turn == NONE or (len(turn) == len(arms) - 1 and set(turn) <= set("01")) for turn in turns)
        _require_that(tuple(ablation.units) == arms[1:], "its arms are not the values that it switched")
        is_design = 2 <= len(ablation.words) == len(ablation.units) <= MAX_UNITS
        is_design = is_design and all(0 < word < 2 * MAX_UNITS for word in ablation.words)
        _require_that(is_design, "its design is not that of a session")
    _require_that(known, "not a saved proof: a run is of an arm that the session has not")


def _check_switchback(live: Switchback) -> list[FioRun]:
    """The runs of the short pairs. Raises InvalidInputError where its times are none."""
    period, discard = live.period_seconds, live.discard_seconds
    _require_that(0 < period <= _FIGURE[1] and 0 <= discard < period, "its periods are not those of a session")
    _require_that(0 <= live.tau_seconds <= _FIGURE[1], f"{live.tau_seconds:g} s is no relaxation time")
    _require_that(0 <= live.harm <= _FIGURE[1], f"{live.harm:g} is no E of a test")
    return [run for pair in live.probes for run in pair.runs]


def _check_level(level: float) -> None:
    _require_that(_LEAST_LEVEL <= level < 1, f"{level:g} is no level of significance")


def _check_summaries(proof: Proof) -> None:
    """What is printed of a stored result, and what a repetition begins with."""
    _require_that(bool(proof.workloads), "it holds no claim")
    control = () if proof.control is None else (proof.control,)
    for one in (*proof.workloads, *proof.guardrails, *proof.exploratory, *control):
        _require_that(one.confidence is None or 0 <= one.confidence <= 1, f"{one.confidence} is no confidence")
        low, high = one.ci95 or (1.0, 1.0)
        _require_that(0 < low <= high, f"{low:g} to {high:g} is no interval of a ratio")


def _require_that(holds: bool, words: str) -> None:
    if not holds:
        raise InvalidInputError(words)


def _check_runs(runs: Iterable[FioRun]) -> None:
    low, high = _FIGURE
    for run in runs:
        get_measured(run.workload)
        named = {name: getattr(run.figures, name) for name in RunFigures.__struct_fields__ if name != "measures"}
        for name, value in {**named, **run.figures.measures}.items():
            if value and not low <= value <= high:
                raise InvalidInputError(f"run {run.number}: {name} {value:g} is no figure of a run")


def reanalyse_proof(saved: Saved | Proof | str | Path) -> Proof:
    """The proof that follows from a saved session: the verdict is identical to the one that was saved."""
    if isinstance(saved, str | Path):
        saved = load_proof(saved)
    proof = saved.proof if isinstance(saved, Saved) else saved
    return msgspec.structs.replace(conclude_session(proof.session), saved_to=proof.saved_to)


def reanalyse_series(saved: SavedBench) -> Bench:
    """The figures that follow from a saved series."""
    return msgspec.structs.replace(summarise_series(saved.bench.series), saved_to=saved.bench.saved_to)
