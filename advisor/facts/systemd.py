"""The version of systemd, which decides on the directives that a unit can have."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from advisor.facts.printable import printable
from advisor.host import Host, Missing

VERSION: Final = ("systemctl", "--version")
NUMA_POLICY: Final = 243
"""The first version with NUMAPolicy= and NUMAMask= (systemd's NEWS). RHEL 8 has them in its 239."""
CPUS_OF_NODE: Final = 244
"""The first version with CPUAffinity=numa."""


class Systemd(msgspec.Struct, frozen=True):
    """``version`` is the number, ``text`` the distribution's own words, such as 239 (239-82.el8)."""

    version: int
    text: str


def read_systemd(host: Host) -> Systemd | None:
    """From ``systemctl --version``; None where that cannot be asked: a host may well run without systemd."""
    done = host.run(VERSION)
    return None if isinstance(done, Missing) or not done.ok else parse_version(done.stdout)


def parse_version(text: str) -> Systemd | None:
    """The first line that begins with ``systemd NUMBER``; None where there is none."""
    found = re.search(r"^systemd ((\d{1,4})\b[^\r\n]{0,80})", text, re.MULTILINE | re.ASCII)
    return Systemd(int(found[2]), printable(found[1].strip())) if found else None
