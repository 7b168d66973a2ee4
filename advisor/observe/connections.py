"""What TCP connections wait for: kind ``tcp`` by ``LOCAL > PEER``, from ``ss``.

The kernel adds up for each connection the time in which it had data to send (``busy_ms``), and of that the time in
which the peer's window (``rwnd_limited_ms``) or its own send buffer (``sndbuf_limited_ms``) held it up. Source: ss(8);
tcp_info of include/uapi/linux/tcp.h, since Linux 4.10. No process names are asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import NamedTuple

from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.observe.sample import LARGEST, Reading

CONNECTIONS = ("ss", "-tin", "state", "established")
MAX_CONNECTIONS = 200
"""Those that carried the most; a sample holds no more."""
_COUNTERS = {
    **{name: name for name in ("bytes_sent", "bytes_acked", "bytes_received", "segs_out", "data_segs_out")},
    **{"busy": "busy_ms", "rwnd_limited": "rwnd_limited_ms", "sndbuf_limited": "sndbuf_limited_ms"},
}
_WORD = re.compile(r"(?<![a-z_])([a-z_]+):([0-9][0-9./]*)(?:ms)?(?:\([0-9.]+%\))?", re.ASCII)


class Connection(NamedTuple):
    counters: Mapping[str, int]
    gauges: Mapping[str, float]


def parse_connections(text: str) -> dict[str, Connection]:
    """``ss -tin``: two lines for each connection, or one line where it was asked for with -O."""
    found: dict[str, Connection] = {}
    name = ""
    for line in text.split("\n"):
        own = line[:1].isspace()
        if not own:
            words = line.split()
            ends = [pair for pair in itertools.pairwise(words) if all(map(_is_end, pair))]
            name = " > ".join(ends[0]) if ends else ""
        elif name:
            found[name] = _parse_info(line)
    return found


def _is_end(word: str) -> bool:
    address, _, port = word.rpartition(":")
    return bool(address) and is_count(port)


def _parse_info(line: str) -> Connection:
    values = {key: value for key, value in _WORD.findall(line) if len(value) <= 40}
    counters = {}
    for key, field in _COUNTERS.items():
        whole = values.get(key, "").partition(".")[0]
        if is_count(whole) and int(whole) <= LARGEST:
            counters[field] = int(whole)
    resent = values.get("retrans", "0/0").rpartition("/")[2]
    counters["retransmitted"] = int(resent) if is_count(resent) and len(resent) < 20 else 0
    # What ss leaves out is 0: once a connection was busy, it names the others only where they are more.
    for field in ("busy_ms", "rwnd_limited_ms", "sndbuf_limited_ms", "bytes_sent", "bytes_received"):
        counters.setdefault(field, 0)
    gauges = {}
    for key, field in (("rtt", "rtt_ms"), ("minrtt", "min_rtt_ms"), ("cwnd", "cwnd"), ("mss", "mss_bytes")):
        try:
            gauges[field] = float(values[key].partition("/")[0])
        except (KeyError, ValueError):
            continue
    return Connection(counters, gauges)


def read_connections(host: Host, reading: Reading) -> None:
    reading.ask("tcp")
    done = host.run(CONNECTIONS)
    if isinstance(done, Missing) or not done.ok:
        reading.note_missing("tcp", done if isinstance(done, Missing) else f"ss: {done.stderr.strip()[:200]}")
        return
    found = parse_connections(done.stdout)
    busiest = sorted(found, key=lambda one: -sum(found[one].counters.get(f"bytes_{way}", 0) for way in _WAYS))
    for name in busiest[:MAX_CONNECTIONS]:
        reading.add("tcp", name, *found[name])


_WAYS = ("acked", "sent", "received")
