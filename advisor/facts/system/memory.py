"""Memory: sizes, transparent huge pages, huge page pools, sockets in use."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count, is_hexadecimal, lazy_regex

_MM = "/sys/kernel/mm"
_EDAC = "/sys/devices/system/edac/mc"
_AT_PAGESZ = 6  # getauxval(3)
X86_PAGE_BYTES = 4096


class HugePagePool(msgspec.Struct, frozen=True):
    size_bytes: int
    total: int
    free: int | None


class Sockets(msgspec.Struct, frozen=True):
    """Sockets in use, IPv4 and IPv6 together (/proc/net/sockstat, sockstat6)."""

    tcp: int | None
    udp: int | None


class Memory(msgspec.Struct, frozen=True):
    """``page_bytes`` is 4096, and noted as unknown, where the host does not show its page size.

    ``default_hugepage_bytes`` is the size that vm.nr_hugepages counts; None where the kernel has no huge pages.
    ``uncorrected_errors`` counts what the memory controllers could not correct since the drivers were loaded; None
    where no EDAC driver counts.
    """

    total_bytes: int | None
    available_bytes: int | None
    page_bytes: int
    thp_enabled: str | None
    thp_defrag: str | None
    hugepages: tuple[HugePagePool, ...]
    sockets: Sockets
    default_hugepage_bytes: int | None = None
    uncorrected_errors: int | None = None
    corrected_errors: int | None = None
    """As ``uncorrected_errors``, of those that ECC corrected."""
    poisoned_bytes: int | None = None
    """Pages that the kernel no longer uses after a hardware error (HardwareCorrupted of /proc/meminfo)."""
    swap_bytes: int | None = None
    """All swap areas together, whether used or not."""


def read_memory(host: Host, unknown: Unknowns) -> Memory:
    """Memory facts. Sources: /proc/meminfo in proc(5), Documentation/admin-guide/mm/{hugetlbpage,transhuge}.rst."""
    text = host.read("/proc/meminfo")
    sizes = {} if isinstance(text, Missing) else parse_meminfo(text)
    if "MemTotal" not in sizes:
        unknown.note("memory.total_bytes", text if isinstance(text, Missing) else "no MemTotal in /proc/meminfo")
    found = (re.fullmatch(r"hugepages-(\d{1,12})kB", name, re.ASCII) for name in host.names(f"{_MM}/hugepages"))
    pools = (_read_pool(host, int(name[1]), unknown) for name in found if name)
    size = read_page_bytes(host)
    if size is None:
        unknown.note("memory.page_bytes", f"no page size in /proc/self/auxv; {X86_PAGE_BYTES} is that of x86 and s390")
    used: dict[str, int] = {}
    for name in ("sockstat", "sockstat6"):
        used |= parse_sockets(unknown.value("memory.sockets", host.read(f"/proc/net/{name}")) or "")
    return Memory(
        total_bytes=sizes.get("MemTotal"),
        available_bytes=sizes.get("MemAvailable"),
        page_bytes=size or X86_PAGE_BYTES,
        thp_enabled=_read_selected(host, "enabled", unknown),
        thp_defrag=_read_selected(host, "defrag", unknown),
        hugepages=tuple(sorted((pool for pool in pools if pool), key=lambda pool: pool.size_bytes))
        or _default_pool(sizes),
        sockets=Sockets(tcp=_add_families(used, "TCP"), udp=_add_families(used, "UDP")),
        default_hugepage_bytes=sizes.get("Hugepagesize") or None,
        uncorrected_errors=_sum_errors(host, "ue_count", "memory.uncorrected_errors", unknown),
        corrected_errors=_sum_errors(host, "ce_count", "memory.corrected_errors", unknown),
        poisoned_bytes=sizes.get("HardwareCorrupted"),
        swap_bytes=sizes.get("SwapTotal"),
    )


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes (and plain counts such as HugePages_Total) by name, from /proc/meminfo or a node's meminfo."""
    lines = re.findall(r"^(?:Node \d+ )?([\w()]+):[ \t]+(\d{1,18})( kB)?[ \t\r]*$", text, re.MULTILINE | re.ASCII)
    return {name: int(number) * (1024 if unit else 1) for name, number, unit in lines}


def parse_sockets(text: str) -> dict[str, int]:
    """Sockets in use by protocol (``TCP``, ``UDP6`` …), from sockstat or sockstat6."""
    lines = re.findall(r"^(\w+): inuse (\d{1,18})\b", text, re.MULTILINE | re.ASCII)
    return {protocol: int(number) for protocol, number in lines}


def parse_selected(text: str) -> str | None:
    """The word in brackets of ``always [madvise] never``; None where there is none."""
    found = re.search(r"\[([\w+-]+)\]", text)
    return found[1] if found else None


def read_page_bytes(host: Host) -> int | None:
    """The page size of the host; None where it does not show it."""
    auxv = host.read_bytes("/proc/self/auxv")
    return None if isinstance(auxv, Missing) else parse_page_bytes(auxv[:4096])


def parse_page_bytes(auxv: bytes) -> int | None:
    """The page size in the auxiliary vector of a process (/proc/PID/auxv), of either word size and byte order."""
    for width in (8, 4):
        for order in ("little", "big"):
            words = [int.from_bytes(auxv[at : at + width], order) for at in range(0, len(auxv), width)]
            size = dict(zip(words[::2], words[1::2], strict=False)).get(_AT_PAGESZ, 0)
            if 4096 <= size <= 1 << 20 and not size & (size - 1):
                return size
    return None


def _read_selected(host: Host, name: str, unknown: Unknowns) -> str | None:
    fact = f"memory.thp_{name}"
    text = unknown.value(fact, host.read(f"{_MM}/transparent_hugepage/{name}"))
    if text is None:
        return None
    if (value := parse_selected(text)) is None:
        unknown.note(fact, f"no value is selected in brackets: {text[:40]!r}")
    return value


def _read_pool(host: Host, size_kb: int, unknown: Unknowns) -> HugePagePool | None:
    place = f"{_MM}/hugepages/hugepages-{size_kb}kB"
    fact = f"memory.hugepages.{size_kb}kB"
    total = unknown.value(fact, host.read_int(f"{place}/nr_hugepages"))
    free = unknown.value(f"{fact}.free", host.read_int(f"{place}/free_hugepages"))
    return None if total is None else HugePagePool(size_kb * 1024, total, free)


def _default_pool(sizes: dict[str, int]) -> tuple[HugePagePool, ...]:
    # Kernels before 2.6.27 know one size of huge page, in /proc/meminfo only.
    size, total = sizes.get("Hugepagesize"), sizes.get("HugePages_Total")
    return () if not size or total is None else (HugePagePool(size, total, sizes.get("HugePages_Free")),)


def _sum_errors(host: Host, name: str, fact: str, unknown: Unknowns) -> int | None:
    """The sum over all memory controllers (kernel: ABI/testing/sysfs-devices-edac, ue_count and ce_count)."""
    controllers = [name for name in host.names(_EDAC) if re.fullmatch(r"mc\d{1,4}", name, re.ASCII)]
    counts = [unknown.value(fact, host.read_int(f"{_EDAC}/{one}/{name}")) for one in controllers]
    known = [count for count in counts if count is not None and count >= 0]
    return sum(known) if known else None


def _add_families(used: dict[str, int], protocol: str) -> int | None:
    """IPv4 and IPv6 together; a host without IPv6 has no second file."""
    return used[protocol] + used.get(f"{protocol}6", 0) if protocol in used else None


# Memory modules and their slots, by ``dmidecode`` as root.

DMIDECODE = ("dmidecode", "--quiet", "--type", "17")
_SIZE = lazy_regex(r"([0-9]{1,9}) ([MGT])B", re.ASCII)
_SPEED = lazy_regex(r"([0-9]{1,6}) MT/s", re.ASCII)
_UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MAX_SLOTS = 512
_WANTED = frozenset(
    {*("Size", "Locator", "Bank Locator", "Speed", "Configured Memory Speed", "Configured Clock Speed", "Type")}
)


class MemoryModule(msgspec.Struct, frozen=True):
    """A slot: ``size_bytes`` is 0 where it is empty. Speeds are in MT/s: the module's own, and that at which it runs;
    None where the firmware does not say."""

    slot: str
    bank: str
    size_bytes: int
    kind: str | None
    rated_mt_s: int | None
    configured_mt_s: int | None


def parse_dmidecode(text: str) -> tuple[MemoryModule, ...]:
    """The slots of memory devices; a block without a size, as of firmware or flash, is left out."""
    found = []
    for block in re.split(r"\n[ \t]*\n", text.replace("\r", ""))[: 4 * _MAX_SLOTS]:
        head, _, body = block.strip("\n").partition("\n")
        if head.strip() != "Memory Device":
            continue
        lines = (line.strip().partition(":") for line in body.split("\n"))
        fields = {name: value.strip() for name, colon, value in lines if colon and name in _WANTED}
        size = _SIZE.fullmatch(fields.get("Size", ""))
        if size is None and fields.get("Size") != "No Module Installed":
            continue
        # Releases before 3.0 call it Configured Clock Speed, and some print MHz.
        now = fields.get("Configured Memory Speed") or fields.get("Configured Clock Speed", "")
        rated, configured = (
            int(speed[1]) if (speed := _SPEED.fullmatch(words.replace("MHz", "MT/s"))) else None
            for words in (fields.get("Speed", ""), now)
        )
        found.append(
            MemoryModule(
                printable(fields.get("Locator", "")[:80]),
                printable(fields.get("Bank Locator", "")[:80]),
                int(size[1]) * _UNITS[size[2]] if size else 0,
                printable(fields.get("Type", "")[:40]) or None,
                rated,
                configured,
            )
        )
    return tuple(found[:_MAX_SLOTS])


def read_memory_modules(host: Host, *, is_virtual: bool, unknown: Unknowns) -> tuple[MemoryModule, ...]:
    """Slots of the machine; none of a virtual one, whose modules are the hypervisor's invention."""
    if is_virtual or not (host.is_root or not host.is_live):
        return ()
    done = host.run(DMIDECODE)
    if isinstance(done, Missing) or not done.ok:
        if host.is_live:
            unknown.note("memory_modules", done.why if isinstance(done, Missing) else f"dmidecode returned {done.rc}")
        return ()
    return parse_dmidecode(done.stdout)


# Counters since start that show whether a limit was ever reached: socket buffers, queues, the receive path, memory.

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


def _add_counter_families(ipv4: int | None, ipv6: int | None) -> int | None:
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
        udp_received=_add_counter_families(udp.get("InDatagrams"), snmp6.get("Udp6InDatagrams")),
        udp_receive_buffer_errors=_add_counter_families(udp.get("RcvbufErrors"), snmp6.get("Udp6RcvbufErrors")),
        udp_send_buffer_errors=_add_counter_families(udp.get("SndbufErrors"), snmp6.get("Udp6SndbufErrors")),
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
