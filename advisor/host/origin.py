"""What a support archive is, and what it does not hold."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Origin(msgspec.Struct, frozen=True):
    """``kind`` is what made the archive, with its version: ``sosreport 4.5``. ``unknown`` are facts of the archive
    itself with their reasons: what was left out of it, and what failed where it was made. ``ask`` returns what its
    owner may be asked for after a scan has read what is there."""

    kind: str
    unknown: tuple[tuple[str, str], ...] = ()
    note: str = ""
    """A remark on all of it: that its names are obfuscated."""
    ask: Callable[[], str] = str
