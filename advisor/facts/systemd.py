"""The version of systemd, which decides on the directives that a unit can have."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.printable import printable
from advisor.host import Host, Missing

VERSION = ("systemctl", "--version")
TIMERS = ("/etc/systemd/system/timers.target.wants", "/usr/lib/systemd/system/timers.target.wants")
NUMA_POLICY = 243
"""The first version with NUMAPolicy= and NUMAMask= (systemd's NEWS). RHEL 8 has them in its 239."""
CPUS_OF_NODE = 244
"""The first version with CPUAffinity=numa."""


class Systemd(msgspec.Struct, frozen=True):
    """``version`` is the number, ``text`` the distribution's own words, such as 239 (239-82.el8). ``is_running``:
    whether it is the init of this host, by sd_booted(3); None where nobody looked."""

    version: int
    text: str
    is_running: bool | None = None
    trims: bool | None = None
    """Whether fstrim.timer is enabled: a link to it stands in timers.target.wants. None where systemd does not run."""


def read_systemd(host: Host, *, with_version: bool = True) -> Systemd | None:
    """From ``systemctl --version``; None where that cannot be asked: a host may well run without systemd.

    Without the version, which takes a process, it is 0; then None where systemd does not run.
    """
    is_running = host.is_dir("/run/systemd/system")
    trims = any(name == "fstrim.timer" for place in TIMERS for name in host.names(place)) if is_running else None
    if not with_version:
        return Systemd(0, "", is_running, trims) if is_running else None
    done = host.run(VERSION)
    found = None if isinstance(done, Missing) or not done.ok else parse_version(done.stdout)
    return found and msgspec.structs.replace(found, is_running=is_running, trims=trims)


def parse_version(text: str) -> Systemd | None:
    """The first line that begins with ``systemd NUMBER``; None where there is none."""
    found = re.search(r"^systemd ((\d{1,4})\b[^\r\n]{0,80})", text, re.MULTILINE | re.ASCII)
    return Systemd(int(found[2]), printable(found[1].strip())) if found else None
