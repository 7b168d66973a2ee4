"""Which host is meant: the running one, a captured tree, an archive, or what the capture script printed."""

from __future__ import annotations

import os
from pathlib import Path

from advisor.errors import InvalidInputError, UsageError
from advisor.host import Host, live_host, tree_host
from advisor.i18n import msg


def open_host(root: str | os.PathLike[str] | None = None, snapshot: str | os.PathLike[str] | None = None) -> Host:
    """Return a host to read: a captured tree, an archive or the output of the capture script; by default this host.

    Raises UsageError for both arguments, InvalidInputError for what cannot be read.
    """
    if root is not None and snapshot is not None:
        raise UsageError("--root and --snapshot exclude each other")
    if snapshot is not None:
        return _open_capture(Path(snapshot))
    if root is None:
        return live_host()
    root = Path(root)
    if not root.is_dir():
        raise InvalidInputError(
            msg("{root}: not a directory", root=root), hint="--root takes a directory with a captured /proc and /sys"
        )
    if not any((root / name).is_dir() for name in ("proc", "sys")):
        raise InvalidInputError(
            msg("{root}: holds neither proc nor sys", root=root), hint="--root takes the top of a captured host"
        )
    return tree_host(str(root))


def _open_capture(path: Path) -> Host:
    from advisor.snapshot.remote.stream import is_capture

    if is_capture(path):
        from advisor.snapshot.remote.capture import open_capture

        return open_capture(path)
    from advisor.snapshot.archive import open_snapshot

    return open_snapshot(path)
