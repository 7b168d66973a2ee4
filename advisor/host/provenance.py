"""Where a scan comes from, and of when it is."""

from __future__ import annotations

import os
import time
from typing import Literal

import msgspec

from advisor.host.files import DirectoryFiles
from advisor.host.machine import Host
from advisor.host.origin import Origin

Source = Literal["live", "root", "snapshot"]


class Provenance(msgspec.Struct, frozen=True):
    """``source``: this machine, a tree (``--root``) or a capture (``--snapshot``). ``scanned_at`` is when it was read,
    ``captured_at`` when a capture was taken, None where that is unknown: both in seconds since the epoch.

    ``place`` is the directory or file as it was given; empty for this machine. ``options`` are those that the numbers
    of the findings depend on, each followed by its value. ``origin`` is that of a support archive.
    """

    source: Source
    scanned_at: int
    captured_at: int | None = None
    place: str = ""
    options: tuple[str, ...] = ()
    origin: Origin | None = None

    @property
    def is_this_host(self) -> bool:
        """Whether it is of the machine that this runs on, read as such or as the tree ``/``."""
        return self.source == "live" or is_own_tree(self.place)


def is_own_tree(place: object) -> bool:
    """Whether a directory, as it was given, is the tree of this machine itself."""
    return bool(place) and os.path.realpath(str(place)) == "/"


def read_provenance(host: Host, place: str = "", options: tuple[str, ...] = ()) -> Provenance:
    """The provenance of what is read of ``host`` now."""
    source: Source = "live" if host.is_live else "root" if isinstance(host.files, DirectoryFiles) else "snapshot"
    return Provenance(source, int(time.time()), host.captured_at, place, options, host.origin)
