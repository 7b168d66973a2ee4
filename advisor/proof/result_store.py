"""Results that are kept without being asked for: the newest ones, in the state directory, for root alone to read."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.host.patterns import lazy_regex
from advisor.host.putfile import put_file
from advisor.host.trusted_files import make_own_directory
from advisor.transaction.journal import Store

KEPT_RESULTS = 50
_NAME = lazy_regex(r"[0-9]{8}T[0-9]{6}Z-[a-z0-9_.+-]{1,100}\.json\.gz")
_STRANGE = lazy_regex(r"[^a-z0-9_.+-]+")


def results_directory() -> Path:
    """``proofs`` in the state directory."""
    return Store().directory.absolute() / "proofs"


def store_result(content: bytes, what: str, started: datetime) -> Path:
    """Write a result under a name with its time and what it is; all but the newest fifty are removed. Its path.

    Raises OSError and RefusedError where the state directory cannot be written to or is not its owner's alone.
    """
    directory = results_directory()
    for place in (directory.parent, directory):
        make_own_directory(str(place))
    path = _reserve_name(directory, f"{started:%Y%m%dT%H%M%SZ}-{_STRANGE.sub('-', what.lower())[:80]}")
    try:
        put_file(str(path), content, mode=0o600, uid=os.geteuid(), gid=os.getegid())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    # a result that was written is not lost because an old one cannot be removed
    with contextlib.suppress(OSError):
        others = sorted(
            (name for name in os.listdir(directory) if _NAME.fullmatch(name) and name != path.name), reverse=True
        )
        for name in others[KEPT_RESULTS - 1 :]:
            with contextlib.suppress(FileNotFoundError):
                (directory / name).unlink()
    return path


def explain_not_stored(error: OSError | AdvisorError) -> str:
    """Why a result could not be written, with its place."""
    if isinstance(error, AdvisorError):
        return error.message
    return f"{error.filename}: {error.strerror}"


def _reserve_name(directory: Path, stem: str) -> Path:
    """A name that nobody else has; an empty file stands for it."""
    number = 1
    while True:
        path = directory / f"{stem}{f'.{number}' if number > 1 else ''}.json.gz"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            number += 1
            continue
        return path
