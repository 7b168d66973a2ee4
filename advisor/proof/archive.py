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
from typing import Final, Literal, TypeVar

import msgspec

from advisor.errors import AdvisorError, CommandError, InvalidInputError, PermissionDeniedError, UsageError
from advisor.host.putfile import put_file
from advisor.i18n import msg
from advisor.proof.blocks import NONE, ArmsProof, ArmsSession, conclude_session
from advisor.proof.metrics import RunFigures
from advisor.proof.records import FioRun, Proof, resolve_subject
from advisor.proof.result_store import store_result
from advisor.proof.schedule import MODES
from advisor.proof.series import Bench, summarise_series
from advisor.proof.verdict import decide_session
from advisor.proof.workloads import get_workload

MAX_BYTES = 256 << 20
"""A saved proof is a few hundred kB; more than this, unpacked, is a bomb or no proof."""
MAX_RUNS: Final = 1_000
MAX_ROUNDS: Final = 80
"""Pairs or rounds, and runs of a workload in them. The longest session has 72 with its repeats; the exact tests of a
few hundred tied values take minutes."""
_FIGURE: Final = (1e-9, 1e18)
"""Within this lies whatever a run can yield, but for zero."""


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


class SavedArms(msgspec.Struct, frozen=True):
    """A comparison of several arms with what fio printed, by run number."""

    result: ArmsProof
    fio: Mapping[int, str]
    schema: Literal["advisor.arms-archive/1"] = "advisor.arms-archive/1"


class _Head(msgspec.Struct, frozen=True):
    schema: str


Result = TypeVar("Result", Proof, Bench, ArmsProof)


# -- writing -----------------------------------------------------------------------------------------------------------


def save_result(path: str | Path, result: Proof | Bench | ArmsProof, fio: Mapping[int, str]) -> None:
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
        raise CommandError(msg("{path}: {error}", path=path, error=error.strerror or error)) from error


def check_place(path: str | Path) -> None:
    """Raise UsageError where `save_result` could not write, so that it is known before anything is measured."""
    place = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(place)):
        raise UsageError(msg("--save {path}: there is no such directory", path=path), hint="make it first")
    try:
        _mode_and_owner(place)
    except OSError as error:
        hint = "name a file that is new or may be replaced"
        raise UsageError(msg("--save {path}: {error}", path=path, error=error.strerror), hint=hint) from None


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
            path = store_result(_pack_result(result, fio), _result_kind(result), _start_time(result))
            return msgspec.structs.replace(result, saved_to=str(path)), None
    except (OSError, AdvisorError) as error:
        words = error.message if isinstance(error, AdvisorError) else f"{error.filename}: {error.strerror}"
        how = "" if save_to is not None else "; --save FILE puts it elsewhere"
        return result, f"the result was not saved: {words}{how}"
    return result, None


def _pack_result(result: Proof | Bench | ArmsProof, fio: Mapping[int, str]) -> bytes:
    # A file does not say where it is: it may be moved.
    bare = msgspec.structs.replace(result, saved_to=None)
    return gzip.compress(msgspec.json.encode(_saved_record(bare, fio)), mtime=0)


def _saved_record(result: Proof | Bench | ArmsProof, fio: Mapping[int, str]) -> Saved | SavedBench | SavedArms:
    match result:
        case Proof():
            return Saved(result, fio)
        case Bench():
            return SavedBench(result, fio)
        case ArmsProof():
            return SavedArms(result, fio)


def _result_kind(result: Proof | Bench | ArmsProof) -> str:
    if isinstance(result, Proof):
        return result.profile
    return "bench" if isinstance(result, Bench) else "arms"


def _start_time(result: Proof | Bench | ArmsProof) -> datetime:
    started = result.series.started if isinstance(result, Bench) else result.session.started
    return datetime.fromisoformat(started).astimezone(UTC)


# -- reading -----------------------------------------------------------------------------------------------------------


def load_proof(path: str | Path) -> Saved:
    """A saved proof. Raises InvalidInputError that names the file and what is wrong with it."""
    saved = load_any(path)
    if isinstance(saved, SavedArms):
        raise InvalidInputError(
            msg("{path}: a saved comparison of several arms: advisor compare {path} prints it", path=path)
        )
    if not isinstance(saved, Saved):
        raise InvalidInputError(msg("{path}: not a saved proof but a saved series (advisor bench)", path=path))
    return saved


def load_any(path: str | Path) -> Saved | SavedBench | SavedArms:
    """A saved proof, series or comparison of arms, with ``saved_to`` as the path given.

    Raises InvalidInputError that names the file, PermissionDeniedError.
    """
    try:
        content = _unpack_file(path)
        schema = msgspec.json.decode(content, type=_Head).schema
        kind = _KINDS.get(schema.partition("/")[0], Saved)
        saved = msgspec.json.decode(content, type=kind)
    except PermissionError as error:
        raise PermissionDeniedError(
            msg("{path}: {error}", path=path, error=error.strerror), hint="run it as who saved it, or as root"
        ) from error
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInputError(msg("{path}: not a saved proof or series: {words}", path=path, words=words)) from error
    _check_session(path, saved)
    change = msgspec.structs.replace
    if isinstance(saved, Saved):
        return change(saved, proof=change(saved.proof, saved_to=str(path)))
    if isinstance(saved, SavedArms):
        return change(saved, result=change(saved.result, saved_to=str(path)))
    return change(saved, bench=change(saved.bench, saved_to=str(path)))


def _unpack_file(path: str | Path) -> bytes:
    # O_NONBLOCK: a FIFO must not hold us up, nor a device do anything
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        with gzip.open(file) as packed:
            content = packed.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidInputError(msg("{path}: larger than a saved proof or series can be", path=path))
    return content


_KINDS: Final[Mapping[str, type[Saved] | type[SavedBench] | type[SavedArms]]] = {
    "advisor.bench-archive": SavedBench,
    "advisor.arms-archive": SavedArms,
}


def _check_session(path: str | Path, saved: Saved | SavedBench | SavedArms) -> None:
    """What the types do not say: that it is no longer than a session, and that every figure is one."""
    try:
        if isinstance(saved, Saved):
            session = saved.proof.session
            if resolve_subject(session.subject, MODES[session.schedule.mode]) != session.subject:
                raise InvalidInputError("its claims are not those of a session")
            pairs = session.pairs
            runs = [run for pair in pairs for run in (*pair.runs, *pair.control_runs)]
            _require_that(len(pairs) <= MAX_ROUNDS, f"{len(pairs)} pairs are more than a session has")
            level = session.schedule.alpha
            _require_that(0 < level < 1, f"{level:g} is no level of significance")
            extra = session.warm_up
        elif isinstance(saved, SavedArms):
            runs, extra = _arms_runs(saved.result.session), saved.result.session.warm_up
        else:
            series = saved.bench.series
            runs = [run for one in series.rounds for run in one.runs]
            extra = series.warm_up
            _require_that(len(series.rounds) <= MAX_ROUNDS, f"{len(series.rounds)} rounds are more than a series has")
            for name in series.workloads:
                get_workload(name)
        arms = len(saved.result.session.arms) if isinstance(saved, SavedArms) else 1
        most = max(Counter((run.arm, run.workload) for run in runs).values(), default=0)
        _require_that(most <= MAX_ROUNDS * arms, f"{most} runs of a workload are more than a session has")
        _require_that(len(extra) <= MAX_RUNS, f"{len(extra)} warm-up runs are more than a session has")
        _check_runs([*runs, *extra])
        _start_time(_result_of(saved))
    except AdvisorError as error:
        raise InvalidInputError(msg("{path}: {reason}", path=path, reason=error.message), hint=error.hint) from error
    except ValueError as error:
        raise InvalidInputError(msg("{path}: not a saved proof or series: {error}", path=path, error=error)) from error


def _result_of(saved: Saved | SavedBench | SavedArms) -> Proof | Bench | ArmsProof:
    match saved:
        case Saved():
            return saved.proof
        case SavedBench():
            return saved.bench
        case SavedArms():
            return saved.result


def _arms_runs(session: ArmsSession) -> list[FioRun]:
    """The runs of a saved comparison. Raises InvalidInputError where its blocks are not those of its arms."""
    _require_that(session.arms[:1] == (NONE,) and len(session.arms) > 1, "its arms are not those of a session")
    _require_that(len(session.blocks) <= MAX_ROUNDS, f"{len(session.blocks)} blocks are more than a session has")
    for name in session.workloads:
        get_workload(name)
    cells = [cell for block in session.blocks for cell in block.cells]
    _require_that(all(cell.arm in session.arms for cell in cells), "a block has an arm that the session has not")
    return [run for cell in cells for run in (*cell.runs, *([cell.control] if cell.control else []))]


def reanalyse_arms(saved: SavedArms) -> ArmsProof:
    """The comparison that follows from a saved session."""
    return msgspec.structs.replace(conclude_session(saved.result.session), saved_to=saved.result.saved_to)


def _require_that(holds: bool, words: str) -> None:
    if not holds:
        raise InvalidInputError(words)


def _check_runs(runs: Iterable[FioRun]) -> None:
    low, high = _FIGURE
    for run in runs:
        get_workload(run.workload)
        for name in RunFigures.__struct_fields__:
            value: float | None = getattr(run.figures, name)
            if value and not low <= value <= high:
                raise InvalidInputError(
                    msg(
                        "run {number}: {name} {value:g} is no figure of a run",
                        number=run.number,
                        name=name,
                        value=value,
                    )
                )


def reanalyse_proof(saved: Saved | Proof | str | Path) -> Proof:
    """The proof that follows from a saved session: the verdict is identical to the one that was saved."""
    if isinstance(saved, str | Path):
        saved = load_proof(saved)
    proof = saved.proof if isinstance(saved, Saved) else saved
    return msgspec.structs.replace(decide_session(proof.session), saved_to=proof.saved_to)


def reanalyse_series(saved: SavedBench) -> Bench:
    """The figures that follow from a saved series."""
    return msgspec.structs.replace(summarise_series(saved.bench.series), saved_to=saved.bench.saved_to)
