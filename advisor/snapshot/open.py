"""Which host is meant: the running one, a captured tree, an archive, or what the capture script printed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from advisor.errors import InvalidInputError, UsageError
from advisor.host import Host, live_host, tree_host

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.observe.span import CounterSpan


def open_host(root: str | os.PathLike[str] | None = None, snapshot: str | os.PathLike[str] | None = None) -> Host:
    """Return a host to read: a captured tree, an archive or the output of the capture script; by default this host.

    Raises UsageError for both arguments, InvalidInputError for what cannot be read.
    """
    if root is not None and snapshot is not None:
        raise UsageError("--root and --snapshot exclude each other", hint="give one: a captured tree, or an archive")
    if root is None and snapshot is None:
        return live_host()
    # Not for this host: it takes 2.5 ms to load.
    from pathlib import Path

    if snapshot is not None:
        path = Path(snapshot)
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
    from advisor.snapshot.archive import open_archive, open_snapshot
    from advisor.snapshot.remote.stream import is_capture
    from advisor.snapshot.spans import read_span

    if not path.is_file() or not is_capture(path):
        return open_snapshot(path), *read_span(path)
    from advisor.snapshot.remote.capture import read_capture

    archive = read_capture(path)
    return open_archive(archive, str(path)), *read_span(path, archive)
