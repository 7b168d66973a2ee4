"""Pressure stall information: kind ``pressure``, names ``cpu``, ``io``, ``memory`` and ``irq``.

Source: Linux Documentation/accounting/psi.rst. Kernels before 4.20 have none; others may have it switched off.
"""

from __future__ import annotations

import errno
import os

from advisor.host import Host, Missing
from advisor.observe.sample import Reading, parse_counts

_RESOURCES = ("cpu", "io", "memory")


def parse_pressure(text: str) -> dict[str, int]:
    """Microseconds for which some (``some_us``) or all (``full_us``) tasks that are not idle waited."""
    found = {}
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")
        count = parse_counts([rest.rpartition("total=")[2]]) if kind in ("some", "full") and "total=" in rest else None
        if count:
            found[f"{kind}_us"] = count[0]
    return found


def read_pressure(host: Host, reading: Reading) -> None:
    reading.ask("pressure")
    names = host.names("/proc/pressure")
    for name in names or _RESOURCES:
        text = host.read(f"/proc/pressure/{name}")
        if not isinstance(text, Missing):
            reading.add("pressure", name, parse_pressure(text))
        elif text.why == os.strerror(errno.EOPNOTSUPP):
            reading.note_missing("pressure", "switched off in this kernel; psi=1 on its command line switches it on")
        else:
            reading.note_missing("pressure", text)
