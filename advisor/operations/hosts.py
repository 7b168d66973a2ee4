"""The host of an operation: this one, or a captured one."""

from __future__ import annotations

from pathlib import Path

from advisor.host import Host, live_host
from advisor.snapshot import open as snapshots


def open_host(root: Path | None = None, snapshot: Path | None = None) -> Host:
    """Return this host, or the captured one of a tree or an archive. Raises UsageError, InvalidInputError."""
    return snapshots.open_host(root, snapshot)


def open_live_host() -> Host:
    """Return this host."""
    return live_host()


def require_root() -> None:
    """Raises PermissionDeniedError for every user but root: a change of this host follows."""
    from advisor.host.trusted_files import need_root

    need_root()
