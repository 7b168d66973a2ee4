"""Counters since start that show whether a limit was ever reached: socket buffers, queues, the receive path, memory."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.unknown import Unknowns
from advisor.host import Host, is_count, is_hexadecimal

# Kernels before 4.8 count these by zone.
_ZONES = ("", "_dma", "_dma32", "_normal", "_high", "_movable")
_BY_ZONE = {name: tuple(name + zone for zone in _ZONES) for name in ("pgsteal_direct", "pgsteal_kswapd")}


class Counters(msgspec.Struct, frozen=True):
    """Events since the network namespace began (softnet and memory: since boot); None where the kernel counts none.

    The ``udp_`` ones are IPv4 and IPv6 together. ``softnet_squeezed`` counts the rounds that ended with packets left
    over because the budget or the time was used up. ``neighbours`` is how many there are now, IPv4; the table of
    neighbours was found full ``neighbour_table_full`` times. Of memory: pages that tasks reclaimed themselves because
    an allocation could not wait, pages that kswapd did, allocations that waited for a huge page to be put together
    against the faults that got or missed one, pages written to swap, and how many pages are dirty now against the
    limit. Sources: proc_net(5), proc_vmstat(5), Linux kernel documentation, networking/snmp_counter.
    """

    udp_received: int | None = None
    udp_receive_buffer_errors: int | None = None
    udp_send_buffer_errors: int | None = None
    ip_fragments_created: int | None = None
    ip_reassembly_failures: int | None = None
    tcp_pruned: int | None = None
    tcp_collapsed: int | None = None
    listen_overflows: int | None = None
    softnet_processed: int | None = None
    softnet_dropped: int | None = None
    softnet_squeezed: int | None = None
    reverse_path_filtered: int | None = None
    neighbours: int | None = None
    neighbour_table_full: int | None = None
    reclaimed_directly_pages: int | None = None
    reclaimed_by_kswapd_pages: int | None = None
    compaction_stalls: int | None = None
    huge_page_faults: int | None = None
    swapped_out_pages: int | None = None
    dirty_pages: int | None = None
    dirty_limit_pages: int | None = None
    file_handles: int | None = None
    """Open files of all processes now (/proc/sys/fs/file-nr)."""


def parse_paired(text: str) -> dict[str, dict[str, int]]:
    """/proc/net/snmp and netstat: a line of names, then one of values, per protocol. What is no count is left out."""
    tables: dict[str, dict[str, int]] = {}
    lines = [line.split() for line in text.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if names and len(names) == len(values) and names[0] == values[0]:
            pairs = zip(names[1:], values[1:], strict=True)
            tables[names[0].rstrip(":")] = {name: int(value) for name, value in pairs if is_count(value)}
    return tables


def parse_snmp6(text: str) -> dict[str, int]:
    """/proc/net/snmp6: a name and a value per line."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and is_count(pair[1])}


def parse_softnet(text: str) -> tuple[int, int, int] | None:
    """/proc/net/softnet_stat over all CPUs: processed, dropped, squeezed (columns 1 to 3, hexadecimal)."""
    rows = [line.split()[:3] for line in text.splitlines()]
    if not rows or not all(list(map(len, row)) == [8, 8, 8] and all(map(is_hexadecimal, row)) for row in rows):
        return None
    processed, dropped, squeezed = (sum(int(row[column], 16) for row in rows) for column in range(3))
    return processed, dropped, squeezed


def believed_softnet(host_counts: tuple[int, int, int] | None, unknown: Unknowns) -> tuple[int | None, ...]:
    """The counts of `parse_softnet`, but None, with the reason, for a count of used-up budgets that cannot be: the
    budget and the time of a round are looked at after packets were taken (net_rx_action)."""
    if host_counts is None:
        return None, None, None
    processed, dropped, squeezed = host_counts
    if squeezed > processed:
        times, packets = "time" if squeezed == 1 else "times", "packet" if processed == 1 else "packets"
        reason = f"/proc/net/softnet_stat counts a used-up budget {squeezed:,} {times} for {processed:,} {packets}"
        reason += ": impossible"
        unknown.note("counters.softnet_squeezed", reason)
        return processed, dropped, None
    return processed, dropped, squeezed


def parse_vmstat(text: str) -> dict[str, int]:
    """/proc/vmstat: a name and a value per line."""
    return parse_snmp6(text)


def parse_file_handles(text: str) -> int | None:
    """The first of the three numbers of /proc/sys/fs/file-nr: handles that are allocated (admin-guide/sysctl/fs)."""
    words = text.split()
    return int(words[0]) if len(words) == 3 and all(map(is_count, words)) else None


def parse_neighbour_stat(text: str) -> tuple[int | None, int | None]:
    """/proc/net/stat/arp_cache: entries now, and how often the table was full; columns in hexadecimal, a row per CPU.

    The entries are the whole table's and the same in every row. Kernels before 3.19 do not count full tables.
    """
    head, *rows = [line.split() for line in text.splitlines()] or [[]]
    columns = {
        name: [int(row[at], 16) for row in rows if len(row) == len(head) and is_hexadecimal(row[at])]
        for at, name in enumerate(head)
        if name in ("entries", "table_fulls")
    }
    entries, full = columns.get("entries"), columns.get("table_fulls")
    return (entries[0] if entries else None), (sum(full) if full else None)


def _sum_known(values: Mapping[str, int], *names: str) -> int | None:
    """The sum of those that the kernel has; None where it has none of them."""
    found = [values[name] for name in names if name in values]
    return sum(found) if found else None


def _add_families(ipv4: int | None, ipv6: int | None) -> int | None:
    return None if ipv4 is None else ipv4 + (ipv6 or 0)


def read_counters(host: Host, unknown: Unknowns) -> Counters:
    """The counters of the caller's network namespace."""

    def text(name: str) -> str:
        return unknown.value(f"counters.{name}", host.read(f"/proc/net/{name}")) or ""

    snmp, snmp6 = parse_paired(text("snmp")), parse_snmp6(text("snmp6"))
    tcp = parse_paired(text("netstat")).get("TcpExt", {})
    udp: Mapping[str, int] = snmp.get("Udp", {})
    ip: Mapping[str, int] = snmp.get("Ip", {})
    softnet = believed_softnet(parse_softnet(text("softnet_stat")), unknown)
    neighbours = parse_neighbour_stat(text("stat/arp_cache"))
    memory = parse_vmstat(unknown.value("counters.vmstat", host.read("/proc/vmstat")) or "")
    return Counters(
        udp_received=_add_families(udp.get("InDatagrams"), snmp6.get("Udp6InDatagrams")),
        udp_receive_buffer_errors=_add_families(udp.get("RcvbufErrors"), snmp6.get("Udp6RcvbufErrors")),
        udp_send_buffer_errors=_add_families(udp.get("SndbufErrors"), snmp6.get("Udp6SndbufErrors")),
        ip_fragments_created=ip.get("FragCreates"),
        ip_reassembly_failures=ip.get("ReasmFails"),
        tcp_pruned=tcp.get("PruneCalled"),
        tcp_collapsed=tcp.get("TCPRcvCollapsed"),
        listen_overflows=tcp.get("ListenOverflows"),
        softnet_processed=softnet[0],
        softnet_dropped=softnet[1],
        softnet_squeezed=softnet[2],
        reverse_path_filtered=tcp.get("IPReversePathFilter"),
        neighbours=neighbours[0],
        neighbour_table_full=neighbours[1],
        reclaimed_directly_pages=_sum_known(memory, *_BY_ZONE["pgsteal_direct"]),
        reclaimed_by_kswapd_pages=_sum_known(memory, *_BY_ZONE["pgsteal_kswapd"]),
        compaction_stalls=memory.get("compact_stall"),
        huge_page_faults=_sum_known(memory, "thp_fault_alloc", "thp_fault_fallback"),
        swapped_out_pages=memory.get("pswpout"),
        dirty_pages=_sum_known(memory, "nr_dirty", "nr_writeback"),
        dirty_limit_pages=memory.get("nr_dirty_threshold"),
        file_handles=parse_file_handles(unknown.value("counters.file-nr", host.read("/proc/sys/fs/file-nr")) or ""),
    )
