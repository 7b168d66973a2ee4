"""Counters of protocols, receive queues and connection tracking.

Kinds ``protocol`` (names and fields as in /proc/net/snmp and netstat: ``Tcp`` ``RetransSegs``), ``sockets`` (levels by
protocol), ``softnet`` (by CPU), ``conntrack``, ``udp6``, ``fragments`` and ``neighbour`` (by family), ``ports``
(by destination). Source: Linux Documentation/networking/snmp_counter.rst and ip-sysctl.rst; proc_net(5);
net/core/net-procfs.c; net/core/neighbour.c (neigh_stat_seq_show); net/netfilter/nf_conntrack_standalone.c. All are of
the caller's network namespace but softnet and neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from advisor.facts.counters import parse_neighbour_stat, parse_paired, parse_snmp6
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.observe.sample import LARGEST, Reading, parse_counts

_LEVELS = frozenset({"CurrEstab", "RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "Forwarding", "DefaultTTL"})
"""What /proc/net/snmp has besides counters."""
_HEXADECIMAL = lazy_regex(r"[0-9a-f]{1,16}", re.ASCII)
_SOFTNET = {0: "processed", 1: "dropped", 2: "squeezed", 9: "steered", 10: "flow_limited"}
_SOFTNET_CPU = 12
_CONNTRACK = ("insert_failed", "drop", "early_drop", "error", "search_restart", "chaintoolong", "clash_resolve")


def parse_sockstat(text: str) -> dict[str, dict[str, int]]:
    """/proc/net/sockstat: levels by protocol; ``mem`` is in pages, ``memory`` in bytes."""
    found = {}
    for line in text.split("\n"):
        name, colon, rest = line.partition(":")
        words = rest.split()
        counts = parse_counts(words[1::2]) if colon and words and len(words) % 2 == 0 else None
        if counts:
            found[name] = dict(zip(words[::2], counts, strict=True))
    return found


def parse_softnet(text: str) -> dict[str, dict[str, int]]:
    """/proc/net/softnet_stat by CPU: packets, drops, rounds that were cut off, packets steered here, flow limits.

    Rows are online CPUs and say which since 5.10; of earlier kernels the number of the row, which is the CPU's where
    all are online.
    """
    found = {}
    for number, line in enumerate(text.split("\n") if text else ()):
        words = line.split()
        if len(words) < 3 or not all(_HEXADECIMAL.fullmatch(word) for word in words):
            continue
        cpu = int(words[_SOFTNET_CPU], 16) if len(words) > _SOFTNET_CPU else number
        found[str(cpu)] = {name: int(words[at], 16) for at, name in _SOFTNET.items() if at < len(words)}
    return found


def parse_conntrack_stat(text: str) -> dict[str, int]:
    """/proc/net/stat/nf_conntrack over all CPUs: connections that could not be tracked, by reason."""
    head, *rows = [line.split() for line in text.split("\n")]
    whole = [row for row in rows if len(row) == len(head) and all(_HEXADECIMAL.fullmatch(word) for word in row)]
    return {
        name: sum(int(row[at], 16) for row in whole) for at, name in enumerate(head) if whole and name in _CONNTRACK
    }


def read_protocols(host: Host, reading: Reading) -> None:
    reading.ask("protocol")
    for path in ("/proc/net/snmp", "/proc/net/netstat"):
        text = host.read(path)
        if isinstance(text, Missing):
            reading.note_missing("protocol", f"{path}: {text.why}")
            continue
        for name, values in parse_paired(text).items():
            counters = {field: value for field, value in values.items() if field not in _LEVELS and value <= LARGEST}
            reading.add("protocol", name, counters, {field: values[field] for field in _LEVELS & values.keys()})
    text = host.read("/proc/net/sockstat")
    if isinstance(text, Missing):
        reading.note_missing("sockets", text)
    else:
        for name, levels in parse_sockstat(text).items():
            reading.add("sockets", name, gauges=levels)


def read_softnet(host: Host, reading: Reading) -> None:
    reading.ask("softnet")
    text = host.read("/proc/net/softnet_stat")
    if isinstance(text, Missing):
        reading.note_missing("softnet", text)
        return
    for name, counters in parse_softnet(text).items():
        reading.add("softnet", name, counters)


def read_conntrack(host: Host, reading: Reading) -> None:
    """Connections that are tracked now against the most; nothing where the module is not loaded."""
    reading.ask("conntrack")
    levels: dict[str, float] = {}
    for name in ("count", "max"):
        value = host.read_int(f"/proc/sys/net/netfilter/nf_conntrack_{name}")
        if not isinstance(value, Missing):
            levels[name] = value
        elif not value.is_absent:
            reading.note_missing("conntrack", value)
    text = host.read("/proc/net/stat/nf_conntrack") if levels else ""
    reading.add("conntrack", "host", {} if isinstance(text, Missing) else parse_conntrack_stat(text), levels)


def read_udp6(host: Host, reading: Reading) -> None:
    """Datagrams of IPv6; those of IPv4 are a ``protocol``. Nothing where IPv6 is off."""
    reading.ask("udp6")
    names = ("InDatagrams", "OutDatagrams", "RcvbufErrors", "SndbufErrors")
    reading.add("udp6", "host", _pick(parse_snmp6(host.read_or_empty("/proc/net/snmp6")), "Udp6", names))


def _pick(counts: Mapping[str, int], prefix: str, names: Iterable[str]) -> dict[str, int]:
    """The counters of these names, without their prefix."""
    found = {name: counts[f"{prefix}{name}"] for name in names if f"{prefix}{name}" in counts}
    return {name: count for name, count in found.items() if count <= LARGEST}


def read_fragments(host: Host, reading: Reading) -> None:
    """Fragments of each family and what became of them, the memory that they take now, and the most that they may."""
    reading.ask("fragments")
    names = ("ReasmReqds", "ReasmTimeout", "ReasmFails")
    older = parse_paired(host.read_or_empty("/proc/net/snmp")).get("Ip", {})
    newer = parse_snmp6(host.read_or_empty("/proc/net/snmp6"))
    for family, counters, sockets, limit in (
        ("IPv4", _pick(older, "", names), ("sockstat", "FRAG"), "ipv4/ipfrag_high_thresh"),
        ("IPv6", _pick(newer, "Ip6", names), ("sockstat6", "FRAG6"), "ipv6/ip6frag_high_thresh"),
    ):
        file, row = sockets
        levels: dict[str, float] = dict(parse_sockstat(host.read_or_empty(f"/proc/net/{file}")).get(row, {}))
        most = host.read_int(f"/proc/sys/net/{limit}")
        levels |= {} if isinstance(most, Missing) else {"most": most}
        reading.add("fragments", family, counters, levels)


_FAMILIES = {"IPv4": ("arp_cache", "ipv4"), "IPv6": ("ndisc_cache", "ipv6")}


def read_neighbours(host: Host, reading: Reading) -> None:
    """How often the table of neighbours was full, its entries and the most of them, for each family."""
    reading.ask("neighbour")
    for family, (table, directory) in _FAMILIES.items():
        entries, full = parse_neighbour_stat(host.read_or_empty(f"/proc/net/stat/{table}"))
        most = host.read_int(f"/proc/sys/net/{directory}/neigh/default/gc_thresh3")
        levels: dict[str, float] = {} if entries is None else {"entries": entries}
        levels |= {} if isinstance(most, Missing) else {"most": most}
        reading.add("neighbour", family, None if full is None else {"full": full}, levels)


ALL_SOCKETS = ("ss", "-tan")
PORTS_FROM = 0.5
"""Of the range: with fewer sockets no destination can have used it up, and none of them is listed."""


def parse_port_use(text: str, low: int, high: int) -> dict[str, int]:
    """``ss -tan``: how many local ports of a range are used towards each destination, by ``LOCAL > PEER:PORT``."""
    found: dict[str, set[str]] = {}
    for line in text.split("\n"):
        words = line.split()
        if len(words) < 5 or words[0] == "LISTEN":
            continue
        address, _, port = words[3].rpartition(":")
        if is_count(port) and len(port) <= 5 and low <= int(port) <= high:
            found.setdefault(f"{address} > {words[4]}", set()).add(port)
    return {name: len(ports) for name, ports in found.items()}


def read_ports(host: Host, reading: Reading) -> None:
    """The destination towards which most ports of net.ipv4.ip_local_port_range are used, where there are many sockets.
    Read after the protocols."""
    reading.ask("ports")
    words = host.read_or_empty("/proc/sys/net/ipv4/ip_local_port_range").split()
    if len(words) != 2 or not all(map(is_count, words)):
        return
    low, high = int(words[0]), int(words[1])
    sockets = reading.gauges.get("sockets", {}).get("TCP", {})
    newer = parse_sockstat(host.read_or_empty("/proc/net/sockstat6")).get("TCP6", {})
    count = sockets.get("inuse", 0) + sockets.get("tw", 0) + newer.get("inuse", 0)
    if count < PORTS_FROM * (high - low + 1):
        return
    done = host.run(ALL_SOCKETS)
    used = {} if isinstance(done, Missing) or not done.ok else parse_port_use(done.stdout, low, high)
    most = max(used, key=lambda one: used[one], default=None)
    if most is not None:
        reading.add("ports", most, gauges={"used": used[most], "range": high - low + 1})
