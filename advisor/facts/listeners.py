"""Ports on which something listens, by ss(8) of iproute2."""

from __future__ import annotations

import re

from advisor.host.patterns import lazy_regex

LISTENERS = ("ss", "-Htuln")
"""TCP and UDP, listening, as numbers, without a heading."""
# Protocol, state, two queues, then address and port: 0.0.0.0:22, [::]:22, *:22, 127.0.0.53%lo:53.
_LINE = lazy_regex(r"(?m)^(?:tcp|udp)\s+\S+\s+\d+\s+\d+\s+\S*:(\d{1,5})\s", re.ASCII)


def parse_listeners(text: str) -> frozenset[int]:
    """The local ports of a listing; lines that are not understood are left out."""
    return frozenset(int(port) for port in _LINE.findall(text))
