"""Which host is meant: the running one, a captured tree, an archive, or what the capture script printed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from advisor.errors import InvalidInputError, UsageError
from advisor.host import Host, live_host, tree_host

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.observe.sample import CounterSpan


def open_host(root: str | os.PathLike[str] | None = None, snapshot: str | os.PathLike[str] | None = None) -> Host:
    """Return a host to read: a captured tree, an archive or the output of the capture script; by default this host.

    The archive ``-`` is standard input. Raises UsageError for both arguments and for a terminal there,
    InvalidInputError for what cannot be read.
    """
    if root is not None and snapshot is not None:
        raise UsageError("--root and --snapshot exclude each other", hint="give one: a captured tree, or an archive")
    if root is None and snapshot is None:
        return live_host()
    # Not for this host: it takes 2.5 ms to load.
    from pathlib import Path

    if snapshot is not None:
        path = _place_of(Path(snapshot))
        if path.is_dir():
            from advisor.snapshot.archive import open_unpacked

            return open_unpacked(path)
        from advisor.snapshot.remote.stream import is_capture

        if is_capture(path):
            from advisor.snapshot.remote.capture import open_capture

            return open_capture(path)
        from advisor.snapshot.archive import open_snapshot

        return open_snapshot(path)
    assert root is not None
    root = Path(root)
    if not root.is_dir():
        hint: str = "--root takes a directory with a captured /proc and /sys"
        if root.is_file():
            hint = f"--snapshot {root} reads an archive of advisor snapshot"
        raise InvalidInputError(f"{root}: not a directory", hint=hint)
    if not any((root / name).is_dir() for name in ("proc", "sys")):
        raise InvalidInputError(f"{root}: holds neither proc nor sys", hint="--root takes the top of a captured host")
    return tree_host(str(root))


def open_observed(path: Path) -> tuple[Host, CounterSpan, float]:
    """The host of an archive, or of what the capture script printed, with its span and when that was taken, in seconds
    since the epoch. Raises InvalidInputError for what cannot be read, and for one without a span."""
    from advisor.snapshot.archive import open_archive, open_snapshot, read_span
    from advisor.snapshot.remote.stream import is_capture

    path = _place_of(path)
    if not path.is_file() or not is_capture(path):
        return open_snapshot(path), *read_span(path)
    from advisor.snapshot.remote.capture import read_capture

    archive = read_capture(path)
    return open_archive(archive, str(path)), *read_span(path, archive)


def _place_of(path: Path) -> Path:
    """The file to read. For ``-`` it is standard input: what comes through a pipe is kept in a file without a name, of
    which nothing is left however this process ends, and which is standard input from then on."""
    if str(path) != "-":
        return path
    import sys
    import tempfile

    from advisor.snapshot.archive import MAX_SUPPORT_BYTES

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "--snapshot -: standard input is a terminal, or closed",
            hint="--snapshot - < FILE, or behind a pipe: ssh HOST sh -s < capture.sh | advisor scan --snapshot -",
        )
    if not os.path.isfile("/dev/stdin"):
        try:
            with tempfile.TemporaryFile() as kept, open(0, "rb", closefd=False) as given:
                while data := given.read(1 << 20):
                    if kept.tell() > MAX_SUPPORT_BYTES:
                        raise InvalidInputError("standard input: larger than any archive of a host")
                    kept.write(data)
                kept.flush()
                os.dup2(kept.fileno(), 0)
        except OSError as error:
            where = tempfile.gettempdir()
            raise InvalidInputError(f"{where}: {error.strerror}", hint="TMPDIR=DIR names another place") from error
    return type(path)("/dev/stdin")
