"""Counters of protocols, receive queues and connection tracking.

Kinds ``protocol`` (names and fields as in /proc/net/snmp and netstat: ``Tcp`` ``RetransSegs``), ``sockets`` (levels by
protocol), ``softnet`` (by CPU), ``conntrack``, ``udp6``, ``fragments`` and ``neighbour`` (by family), ``ports``
(by destination). Source: Linux Documentation/networking/snmp_counter.rst and ip-sysctl.rst; proc_net(5);
net/core/net-procfs.c; net/core/neighbour.c (neigh_stat_seq_show); net/netfilter/nf_conntrack_standalone.c. All are of
the caller's network namespace but softnet and neighbour.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from advisor.facts.system.memory import parse_neighbour_stat, parse_paired, parse_snmp6
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.observe.cpus import read_numbers
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
    for name, levels in parse_sockstat(reading.read_file(host, "/proc/net/sockstat", "sockets")).items():
        reading.add("sockets", name, gauges=levels)


def read_softnet(host: Host, reading: Reading) -> None:
    reading.ask("softnet")
    for name, counters in parse_softnet(reading.read_file(host, "/proc/net/softnet_stat", "softnet")).items():
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


# Counters of links: kinds ``link`` (/proc/net/dev), ``link-errors`` (sysfs, what only ends of a span need), ``pause``
# and ``ring`` (ethtool -S).
#
# Source: proc_net(5); Linux Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics; names of pause
# frames as mlx5, bnxt_en, ice, i40e and ixgbe give them to ``ethtool -S``.

_FIELDS = (
    *("rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast"),
    *("tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo", "collisions", "tx_carrier", "tx_compressed"),
)
_ERRORS = (
    *("rx_crc_errors", "rx_frame_errors", "rx_length_errors", "rx_over_errors", "rx_fifo_errors", "rx_missed_errors"),
    *("rx_nohandler", "tx_aborted_errors", "tx_carrier_errors", "tx_fifo_errors", "tx_window_errors"),
)
_CARRIER = ("carrier_changes", "carrier_up_count", "carrier_down_count")
_NET = "/sys/class/net"
_PAUSING = frozenset(
    {*("mlx4_core", "mlx5_core", "bnxt_en", "ice", "i40e", "ixgbe", "qede", "cxgb4", "be2net", "ionic", "sfc", "igb")}
)
"""Drivers of cards whose links can pause."""
_COUNTING = _PAUSING | {"vmxnet3", "ena", "enic"}
"""Drivers that are asked for their own counters: others have none that is read here."""
_PAUSE = lazy_regex(r"(?:(rx|tx)_.*(?:pause|xoff|pfc_ena_frames).*|.*_xoff_(rx|tx)(?:\.nic)?)")
_RING_DROPS = frozenset(
    {"rx_out_of_buffer", "rx_discards_phy", "rx_no_dma_resources", "port.rx_dropped", "rx_dropped.nic"}
    | {"port.rx_discards", "rx_total_discard_pkts", "pkts rx OOB", "rx_drops", "rx_no_bufs"}
)
"""What a card dropped for want of a buffer, of which its driver adds nothing to rx_missed_errors, or did not always:
mlx5 (Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst), ixgbe (QPRDC), i40e, ice, bnxt,
vmxnet3 (pktsRxOutOfBuf of each queue), ena and enic."""
_DROPS_FOR_THE_RING = frozenset({"ena"})
"""Drivers whose rx_dropped is what the card dropped for want of a buffer (ena_get_stats64): older ones have no
counter of their own for it."""
_NO_FRAMES = ("duration", "transition", "storm", "_ms", "_us")


def parse_net_dev(text: str) -> dict[str, dict[str, int]]:
    """/proc/net/dev by link; two lines of heading, and lines that are not whole, are left out."""
    found = {}
    for line in text.split("\n"):
        name, colon, rest = line.rpartition(":")
        words = rest.split()
        counts = parse_counts(words) if colon and len(words) == len(_FIELDS) else None
        if counts is not None:
            found[name.strip()] = dict(zip(_FIELDS, counts, strict=True))
    return found


def read_links(host: Host, reading: Reading) -> None:
    reading.ask("link")
    for name, counters in parse_net_dev(reading.read_file(host, "/proc/net/dev", "link")).items():
        reading.add("link", name, counters)


MOST_SPACES = 500
"""So many other network namespaces are looked at: of more the count is no longer whole, and says enough."""


def read_network_spaces(host: Host, reading: Reading) -> None:
    """How many other network namespaces with a link have processes that are seen from here: kind ``network-spaces``.
    Their counters are seen from inside alone."""
    reading.ask("network-spaces")
    own = host.readlink("/proc/self/ns/net")
    if not host.is_live or isinstance(own, Missing):
        return
    found: dict[str, str] = {}
    for pid in host.names("/proc"):
        space = host.readlink(f"/proc/{pid}/ns/net") if is_count(pid) else own
        if not isinstance(space, Missing) and space != own and len(found) < MOST_SPACES:
            found.setdefault(space, pid)
    # A service with PrivateNetwork= has one with nothing but a loopback.
    linked = sum(parse_net_dev(host.read_or_empty(f"/proc/{pid}/net/dev")).keys() > {"lo"} for pid in found.values())
    reading.add("network-spaces", "host", gauges={"others": linked})


def read_link_errors(host: Host, reading: Reading) -> None:
    """Changes of the carrier, state and speed (Mbit/s) of each link, and its errors by kind where it has a device."""
    reading.ask("link-errors")
    for name in host.names(_NET):
        place = f"{_NET}/{name}"
        counters = dict(read_numbers(host, place, _CARRIER))
        if host.exists(f"{place}/device"):
            counters |= read_numbers(host, f"{place}/statistics", _ERRORS)
        speed = host.read(f"{place}/speed") if counters else ""
        state = host.read(f"{place}/operstate") if counters else ""
        known = None if isinstance(speed, Missing) else parse_counts([speed])
        reading.add(
            "link-errors",
            name,
            counters,
            {"speed_mbps": known[0]} if known else None,
            None if isinstance(state, Missing) or not state else {"state": state},
        )


def find_pauses(statistics: Mapping[str, int | str | bool]) -> dict[str, int]:
    """Frames by which the other end asked this one to pause (``rx``), and this one the other (``tx``).

    A driver counts them for the whole link and for each priority: the largest counts.
    """
    found: dict[str, int] = {}
    for name, count in statistics.items():
        match = _PAUSE.fullmatch(name)
        if match and isinstance(count, int) and not any(word in name for word in _NO_FRAMES):
            way = match[1] or match[2]
            found[way] = max(found.get(way, 0), count)
    return found


def count_ring_drops(statistics: Mapping[str, int | str | bool]) -> int | None:
    """Packets that a card dropped for want of a buffer; None where the driver counts none of them."""
    counts = [count for name, count in statistics.items() if name.strip() in _RING_DROPS and isinstance(count, int)]
    return sum(counts) if counts else None


def read_pauses(host: Host, reading: Reading) -> None:
    """Pause frames of links whose driver counts them (kind ``pause``), and what their card dropped (``ring``)."""
    reading.ask("pause", "ring")
    for name in host.names(_NET):
        link = host.readlink(f"{_NET}/{name}/device/driver")
        driver = "" if isinstance(link, Missing) else link.rpartition("/")[2]
        if driver not in _COUNTING:
            continue
        statistics = host.ethtool(name, "statistics")
        if isinstance(statistics, Missing):
            reading.note_missing(f"pause {name}", statistics)
            continue
        reading.add("pause", name, find_pauses(statistics))
        drops: int | Missing | None = count_ring_drops(statistics)
        if drops is None and driver in _DROPS_FOR_THE_RING:
            drops = host.read_int(f"{_NET}/{name}/statistics/rx_dropped")
        reading.add("ring", name, {"dropped": drops} if isinstance(drops, int) else None)


# NFS on both sides: the threads of the kernel's server (kind ``nfsd``), and mounts of a client (kind ``nfs``).
#
# Source: Linux Documentation/filesystems/nfs/knfsd-stats.rst; net/sunrpc/svc_xprt.c; fs/nfs/super.c
# (nfs_show_stats), include/linux/nfs_iostat.h, net/sunrpc/stats.c and xprtsock.c: times in ms, queues as sums over all
# requests.

POOL_STATS = "/proc/fs/nfsd/pool_stats"
_POOL = ("packets", "queued", "woken", "timed_out")
_DEVICE = lazy_regex(r"device (\S{1,300}) mounted on (.{1,300}) with fstype nfs4?(?: statvers=\S+)?$")
_BYTES = lazy_regex(r"\s+bytes:\s+([0-9 ]{10,200})$")
_OPERATION = lazy_regex(r"\s+([A-Z][A-Z0-9_]{1,40}): ([0-9 ]{10,300})$")
_WAITED_FOR = frozenset(
    {
        *("GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "OPEN", "OPEN_NOATTR", "CREATE", "MKDIR", "SYMLINK"),
        *("MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "STATFS"),
    }
)
"""Operations on names and attributes: a call of a program waits for each. What is read ahead or written back, and what
keeps a lease, nobody waits for."""
_MAX_MOUNTS = 256


class NfsMount(msgspec.Struct, frozen=True):
    """Of a mount: sums over all operations and connections, the slots of its connections, and how many these are.

    ``queue_ms`` is the time in which requests waited on this host before they were sent, ``rtt_ms`` that of network
    and server, ``execute_ms`` the whole. ``names`` are the requests for names and attributes, with the first two of
    theirs; ``direct_bytes`` are those that programs asked for past the page cache (O_DIRECT), of all ``server_bytes``.
    """

    source: str
    requests: int = 0
    timeouts: int = 0
    queue_ms: int = 0
    rtt_ms: int = 0
    execute_ms: int = 0
    slots: int = 0
    connections: int = 0
    names: int = 0
    names_ms: int = 0
    names_queue_ms: int = 0
    direct_bytes: int = 0
    server_bytes: int = 0


def parse_pool_stats(text: str) -> dict[str, dict[str, int]]:
    """Counters of each pool of nfsd threads: packets that arrived, transports that were queued, threads woken."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        counts = parse_counts(words[: 1 + len(_POOL)]) if len(words) > len(_POOL) else None
        if counts:
            found[words[0]] = dict(zip(_POOL, counts[1:], strict=True))
    return found


def parse_mountstats(text: str) -> dict[str, NfsMount]:
    """The NFS mounts of /proc/self/mountstats by mount point; a line that is no mount, connection or operation of
    one is left out."""
    found: dict[str, NfsMount] = {}
    sums: dict[str, int] = {}
    target = ""

    def close() -> None:
        if target and target in found:
            found[target] = msgspec.structs.replace(found[target], **sums)

    for line in text.split("\n"):
        if line.startswith("device "):
            close()
            head = _DEVICE.match(line)
            target, sums = "", {}
            if head and len(found) < _MAX_MOUNTS:
                target = head[2]
                found[target] = NfsMount(head[1])
        elif target and line.lstrip().startswith("xprt:"):
            words = line.split()
            counts = parse_counts(words[2:]) if len(words) > 12 and words[1] in ("tcp", "rdma") else None
            if counts:
                # port binds connects connect-time idle sends receives bad-xids requests backlog slots …
                sums["connections"] = sums.get("connections", 0) + 1
                sums["slots"] = max(sums.get("slots", 0), counts[10] if words[1] == "tcp" else 0)
        elif target and (moved := _BYTES.match(line)):
            # By programs: read, written, both directly; by the server: read, written; then pages.
            counts = parse_counts(moved[1].split())
            if counts and len(counts) >= 6:
                sums["direct_bytes"], sums["server_bytes"] = counts[2] + counts[3], counts[4] + counts[5]
        elif target and (operation := _OPERATION.match(line)):
            counts = parse_counts(operation[2].split())
            if counts and len(counts) >= 8:
                names = ("requests", None, "timeouts", None, None, "queue_ms", "rtt_ms", "execute_ms")
                for name, count in zip(names, counts, strict=False):
                    if name:
                        sums[name] = sums.get(name, 0) + count
                if operation[1] in _WAITED_FOR:
                    sums["names"] = sums.get("names", 0) + counts[0]
                    sums["names_queue_ms"] = sums.get("names_queue_ms", 0) + counts[5]
                    sums["names_ms"] = sums.get("names_ms", 0) + counts[6]
    close()
    return found


def read_nfs_server(host: Host, reading: Reading) -> None:
    """Pools of a server that runs; nothing where none does."""
    reading.ask("nfsd")
    text = host.read(POOL_STATS)
    threads = host.read_int("/proc/fs/nfsd/threads")
    if isinstance(text, Missing):
        if not text.is_absent:
            reading.note_missing("nfsd", text)
        return
    levels: Mapping[str, float] = {} if isinstance(threads, Missing) else {"threads": threads}
    for name, counters in parse_pool_stats(text).items():
        reading.add("nfsd", name, counters, levels)


def read_nfs_mounts(host: Host, reading: Reading) -> None:
    """Mounts that this process sees; a host without any has a short table."""
    reading.ask("nfs")
    text = host.read("/proc/self/mountstats")
    for target, mount in parse_mountstats("" if isinstance(text, Missing) else text).items():
        counters = {name: getattr(mount, name) for name in _COUNTED}
        levels = {"slots": mount.slots, "connections": mount.connections}
        reading.add("nfs", re.sub(r"\s", "?", target), counters, levels, {"source": mount.source})


_COUNTED = (
    *("requests", "timeouts", "queue_ms", "rtt_ms", "execute_ms", "names", "names_ms", "names_queue_ms"),
    *("direct_bytes", "server_bytes"),
)


# What TCP connections wait for: kind ``tcp`` by ``LOCAL > PEER``, from ``ss``.
#
# The kernel adds up for each connection the time in which it had data to send (``busy_ms``), and of that the time in
# which the peer's window (``rwnd_limited_ms``) or its own send buffer (``sndbuf_limited_ms``) held it up.
# Source: ss(8); tcp_info of include/uapi/linux/tcp.h, since Linux 4.10. No process names are asked for.

CONNECTIONS = ("ss", "-tin", "state", "established")
ASKED = ("ss", "-tn", "state", "syn-sent")
MAX_CONNECTIONS = 200
"""Those that carried the most; a sample holds no more."""
_COUNTERS = {
    **{name: name for name in ("bytes_sent", "bytes_acked", "bytes_received", "segs_out", "data_segs_out")},
    **{"busy": "busy_ms", "rwnd_limited": "rwnd_limited_ms", "sndbuf_limited": "sndbuf_limited_ms"},
}
_MOST_ASKED = 20
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


def count_asked(text: str) -> Counter[str]:
    """``ss -tn state syn-sent``: how many sockets ask each ``PEER:PORT`` for a connection."""
    ends = ([word for word in line.split() if _is_end(word)] for line in text.split("\n"))
    return Counter(found[1] for found in ends if len(found) == 2)


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
    # Some were asked for again since boot: who is asked now.
    if reading.counters.get("protocol", {}).get("TcpExt", {}).get("TCPSynRetrans"):
        asked = host.run(ASKED)
        for name, count in count_asked("" if isinstance(asked, Missing) else asked.stdout).most_common(_MOST_ASKED):
            reading.add("asked", name, gauges={"sockets": count})


_WAYS = ("acked", "sent", "received")
