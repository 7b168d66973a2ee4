"""Where a scan comes from, and of when it is."""

from __future__ import annotations

import time
from typing import Literal

import msgspec

from advisor.host.files import DirectoryFiles
from advisor.host.machine import Host

Source = Literal["live", "root", "snapshot"]


class Provenance(msgspec.Struct, frozen=True):
    """``source``: this machine, a tree (``--root``) or a capture (``--snapshot``). ``scanned_at`` is when it was read,
    ``captured_at`` when a capture was taken, None where that is unknown: both in seconds since the epoch.

    ``place`` is the directory or file as it was given; empty for this machine.
    """

    source: Source
    scanned_at: int
    captured_at: int | None = None
    place: str = ""


def read_provenance(host: Host, place: str = "") -> Provenance:
    """The provenance of what is read of ``host`` now."""
    source: Source = "live" if host.is_live else "root" if isinstance(host.files, DirectoryFiles) else "snapshot"
    return Provenance(source, int(time.time()), host.captured_at, place)
