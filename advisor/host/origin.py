"""What a support archive is, and what it does not hold."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Origin(msgspec.Struct, frozen=True):
    """``kind`` is what made the archive, such as ``sosreport``, and ``version`` which of it. ``user`` is who ran it:
    ``root``, or another's name or number. ``unknown`` are facts of the archive itself with their reasons: what was left
    out of it, and what failed where it was made. ``ask`` returns what its owner may be asked for after a scan has read
    what is there."""

    kind: str
    version: str | None = None
    user: str | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    note: str = ""
    """A remark on all of it: that its names are obfuscated."""
    ask: Callable[[], str] = str

    @property
    def title(self) -> str:
        """The kind with its version: ``sosreport 4.5``."""
        return f"{self.kind} {self.version}" if self.version else self.kind

    @property
    def as_whom(self) -> str:
        """Who ran it, as the end of a sentence: ``, as root``; empty where that is not known."""
        return f", as {'' if self.user == 'root' else 'user '}{self.user}" if self.user else ""
