"""Memory: sizes, transparent huge pages, huge page pools, sockets in use."""

from __future__ import annotations

import re

import msgspec

from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

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
