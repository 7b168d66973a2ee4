"""What is done to a host, as data: executed here, rendered as shell by ``advisor.script``.

Apply, dry run, rollback, the rollback script and the documentation all print or execute the same steps.
"""

from __future__ import annotations

import msgspec


class WriteFile(msgspec.Struct, frozen=True, tag="write"):
    """Write ``value`` and a newline into an existing kernel attribute; never creates a file."""

    path: str
    value: str


class SetMtu(msgspec.Struct, frozen=True, tag="mtu"):
    """Set a link's MTU in bytes (``ip link set dev LINK mtu MTU``)."""

    link: str
    mtu: int


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Run a command; a return code other than 0 is a failure."""

    argv: tuple[str, ...]


class PutFile(msgspec.Struct, frozen=True, tag="put"):
    """Make a configuration file hold exactly ``content``, atomically; None removes it.

    ``prune`` are directories, innermost first, that are removed after it if they are empty.
    """

    path: str
    content: bytes | None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    prune: tuple[str, ...] = ()


Step = WriteFile | SetMtu | Run | PutFile
