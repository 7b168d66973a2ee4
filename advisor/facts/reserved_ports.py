"""Lists of ports as net.ipv4.ip_local_reserved_ports has them (kernel: networking/ip-sysctl)."""

from __future__ import annotations

import re
from collections.abc import Collection

from advisor.host.patterns import lazy_regex

KEY = "net.ipv4.ip_local_reserved_ports"
# The kernel reads a number that begins with 0 to another base.
_NUMBER = "0|[1-9][0-9]{0,11}"
_PART = lazy_regex(rf"({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)


def parse_ports(text: str) -> frozenset[int] | None:
    """The ports of ``8080,9148-9150``; None where the text is no such list."""
    spans: set[tuple[int, int]] = set()
    for part in filter(None, text.strip().split(",")):
        match = _PART.fullmatch(part.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            return None
        spans.add((low, min(high, 65535)))
    found: set[int] = set()
    above = 0
    # In order, so that what overlaps is counted once however often it is named.
    for low, high in sorted(spans):
        found.update(range(max(low, above), high + 1))
        above = max(above, high + 1)
    return frozenset(found)


def ports_text(ports: Collection[int]) -> str:
    """The list as the kernel prints it: in order, neighbours as one range."""
    spans: list[tuple[int, int]] = []
    for port in sorted(ports):
        if spans and spans[-1][1] == port - 1:
            spans[-1] = (spans[-1][0], port)
        else:
            spans.append((port, port))
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in spans)
