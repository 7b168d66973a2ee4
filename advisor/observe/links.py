"""Counters of links: kinds ``link`` (/proc/net/dev), ``link-errors`` (sysfs, what only ends of a span need), ``pause``
and ``ring`` (ethtool -S).

Source: proc_net(5); Linux Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics; names of pause
frames as mlx5, bnxt_en, ice, i40e and ixgbe give them to ``ethtool -S``.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.observe.cpus import read_numbers
from advisor.observe.sample import Reading, parse_counts

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
    text = host.read("/proc/net/dev")
    if isinstance(text, Missing):
        reading.note_missing("link", text)
        return
    for name, counters in parse_net_dev(text).items():
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
