"""Bad advice in sysctl files: values that harm, that do nothing any more, or that lower the kernel's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from advisor.facts.host_facts import Facts
from advisor.facts.sysctl import SysctlSource
from advisor.rules import contradictions, sources
from advisor.rules.bad_advice import (
    BadAdvice,
    Gone,
    Line,
    bad_lines,
    is_word,
    make_numbers,
    numbers_of,
    set_to,
    sysctl_text,
    where,
)
from advisor.rules.queries import kernel_version
from advisor.rules.remedy import Remedy, raise_maximum, set_sysctl

ORDER = 260

EIGHT_MB = 8 << 20
_HUGE_BACKLOG = 100_000
_HIGH_DIRTY_PERCENT = 75
_RESERVE_SHARE = 0.03
_ADV_WIN_SCALE_GONE = (6, 6)
_DEFAULTS = {"net.core.rmem_default": 851_968, "net.core.wmem_default": 212_992}
_NEW_LORE = {"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_no_metrics_save": "0"}

# The maxima that a kernel has by itself, by the version from which they are known: key, first version, field, bytes.
# Those of TCP shrink where memory is small (a 128th of it), so they count only where that is far away.
_OWN_MAXIMA: Mapping[str, tuple[tuple[tuple[int, int], int, int], ...]] = {
    "net.core.rmem_max": (((6, 18), 0, 4_194_304), ((3, 10), 0, 212_992)),
    "net.ipv4.tcp_rmem": (((6, 18), 2, 33_554_432), ((3, 10), 2, 6_291_456)),
    "net.ipv4.tcp_wmem": (((3, 10), 2, 4_194_304),),
}
_TCP_SHARE_OF_MEMORY = 256


def _binds_all(facts: Facts) -> bool:
    if facts.beegfs is None:
        return False
    from advisor.rules.beegfs import all_bound

    return all_bound(facts)


def _own_maximum(facts: Facts, key: str) -> tuple[int, int] | None:
    """Which field of the key is the maximum, and what this kernel has there by itself; None where that is unknown."""
    version, memory = kernel_version(facts), facts.memory.total_bytes
    known = _OWN_MAXIMA.get(key, ())
    own = next(((field, size) for since, field, size in known if version is not None and version >= since), None)
    is_small = own is not None and key.startswith("net.ipv4") and (memory or 0) < own[1] * _TCP_SHARE_OF_MEMORY
    return None if is_small else own


def _lowered_limits(facts: Facts) -> Iterator[tuple[str, Line]]:
    for key in _OWN_MAXIMA:
        if own := _own_maximum(facts, key):
            for line in bad_lines(facts, key, partial(_is_below, *own)):
                yield f"{sysctl_text(line)}; this kernel's own maximum is {own[1]}", line


def _raise_limit(facts: Facts, line: Line) -> Remedy | None:
    field, size = _own_maximum(facts, line.key) or (0, 0)
    if field == 2:
        return set_sysctl(line.key, raise_maximum(line.key, numbers_of(line), size))
    return set_sysctl(line.key, max(numbers_of(line)[0], size))


def _own_sizes(facts: Facts, line: Line) -> Remedy | None:
    """The kernel's own sizes with the maximum of the line, or the kernel's own where that is larger."""
    _, own = _own_maximum(facts, line.key) or (2, 0)
    return set_sysctl(line.key, raise_maximum(line.key, (), max(numbers_of(line)[2], own)))


def _is_below(field: int, size: int, line: SysctlSource) -> bool:
    values = numbers_of(line)
    return len(values) > field and values[field] < size


def _fixed_pages(facts: Facts, values: tuple[int, ...]) -> bool:
    memory = facts.memory.total_bytes
    is_beyond = memory is not None and values[-1] * facts.memory.page_bytes > memory // 2
    return len(values) == 3 and (is_beyond or len(set(values)) == 1)


def _largest_reserve(facts: Facts, _: tuple[int, ...]) -> int:
    return int((facts.memory.total_bytes or 0) * _RESERVE_SHARE) // 1024


def _above_reserve(facts: Facts, values: tuple[int, ...]) -> bool:
    memory = facts.memory.total_bytes
    return memory is not None and values[0] * 1024 > _RESERVE_SHARE * memory


def _old_lore(facts: Facts) -> Iterator[tuple[str, Line]]:
    return chain(
        is_word("net.ipv4.tcp_congestion_control", "htcp")(facts),
        where(["net.ipv4.tcp_no_metrics_save"], lambda _, values: values[0] == 1)(facts),
    )


ROWS = (
    BadAdvice(
        id="advice.tcp-tw-recycle",
        title="A sysctl file switches tcp_tw_recycle on",
        what="Lines of sysctl files that set net.ipv4.tcp_tw_recycle to anything but 0.",
        why="It drops connections of clients behind one NAT address.",
        better=set_to(0),
        instead="delete the line; tcp_tw_reuse has a safe default of its own",
        helps_when="Always.",
        hurts_when="Never: no kernel gains by it without the risk for clients behind NAT.",
        sources=(sources.TCP, sources.IP_SYSCTL),
        severity="warning",
        gone=Gone(
            since=(4, 12),
            title="A sysctl file sets tcp_tw_recycle, which is gone",
            why="Linux 4.12 removed the key: the line changes nothing and is an error at each boot.",
        ),
        lines=where(["net.ipv4.tcp_tw_recycle"], lambda _, values: values[0] != 0),
    ),
    BadAdvice(
        id="advice.tcp-mem-fixed",
        title="A sysctl file sets tcp_mem too high for the host",
        what="Lines of sysctl files whose tcp_mem has three equal fields, or a maximum above half of the memory.",
        why="Its unit is pages, not bytes: 10,000,000 are 38 GiB. TCP then never feels memory pressure and takes what "
        "others need.",
        instead="delete the line and let the kernel size it at boot",
        helps_when="The line came with a list of buffer sizes and was read as bytes.",
        hurts_when="Somebody computed it in pages for a host that does nothing but TCP: then keep three rising fields.",
        sources=(sources.IP_SYSCTL, sources.OLD_IXGB),
        severity="warning",
        lines=where(["net.ipv4.tcp_mem"], _fixed_pages),
    ),
    BadAdvice(
        id="advice.tcp-sack-off",
        title="A sysctl file turns TCP SACK or timestamps off",
        what="Lines of sysctl files that set tcp_sack or tcp_timestamps to 0.",
        why="Without SACK one loss costs a whole window, without timestamps round trips are measured badly and old "
        "segments can pass for new ones at high speed.",
        instead="delete the line; both are 1 by default",
        better=set_to(1),
        helps_when="Any loss on the path; links of 10 Gbit/s and more.",
        hurts_when="Amazon's ENA driver has a narrow case: headers above 96 bytes cost it speed, and timestamps take "
        "12.",
        sources=(sources.IP_SYSCTL, sources.OLD_IXGB, sources.ENA),
        lines=where(["net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"], lambda _, values: values[0] == 0),
    ),
    BadAdvice(
        id="advice.tcp-window-scaling-off",
        title="A sysctl file switches window scaling of TCP off",
        what="Lines of sysctl files that set tcp_window_scaling to 0.",
        why="A window without scaling is 64 KiB at most: 524 Mbit/s at a round trip of 1 ms on any link.",
        instead="delete the line; it is 1 by default",
        better=set_to(1),
        helps_when="Links of 1 Gbit/s and more, or any longer path.",
        hurts_when="A firewall on the path drops or rewrites the option: it has to be replaced, and until then "
        "connections through it work with 0 alone.",
        sources=(sources.IP_SYSCTL, sources.RFC_TCP_OPTIONS),
        severity="warning",
        lines=where(["net.ipv4.tcp_window_scaling"], lambda _, values: values[0] == 0),
    ),
    BadAdvice(
        id="advice.tcp-sizes-equal",
        title="A sysctl file sets all three TCP sizes alike",
        what="Lines of sysctl files whose tcp_rmem or tcp_wmem has three equal fields.",
        why="Every connection starts with the largest buffer and the kernel's automatic sizing has no effect.",
        instead="raise the third field alone",
        better=_own_sizes,
        helps_when="Many connections, of which few are busy.",
        hurts_when="A handful of connections that must be at full speed from the first byte.",
        sources=(sources.IP_SYSCTL, sources.OLD_IXGB),
        lines=where(
            ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"], lambda _, values: len(values) == 3 and len(set(values)) == 1
        ),
    ),
    BadAdvice(
        id="advice.without-effect",
        title="A sysctl file sets values that have no effect",
        what="Lines that set tcp_low_latency or tcp_fack to 1, or udp_wmem_min at all.",
        why="The kernel's documentation calls them legacy: they are kept so that old files do not fail, and do "
        "nothing.",
        instead="delete the lines, so that nobody counts on them",
        helps_when="The file is read to learn how the host is tuned.",
        hurts_when="Never on these kernels; one from before Linux 4.14 still knew tcp_low_latency.",
        sources=(sources.IP_SYSCTL, sources.TUNING_NOTES),
        severity="info",
        lines=lambda facts: chain(
            where(["net.ipv4.tcp_low_latency", "net.ipv4.tcp_fack"], lambda _, values: values[0] == 1)(facts),
            where(["net.ipv4.udp_wmem_min"], lambda _, values: True)(facts),
        ),
    ),
    BadAdvice(
        id="advice.adv-win-scale",
        title="A sysctl file sets obsolete tcp_adv_win_scale",
        what="Lines that set net.ipv4.tcp_adv_win_scale, on Linux 6.6 or newer.",
        why="The kernel now learns from the traffic itself how much of a buffer is payload.",
        instead="delete the line",
        helps_when="The file is read to learn how the host is tuned.",
        hurts_when="The same file serves hosts with older kernels, where it still counts.",
        sources=(sources.IP_SYSCTL,),
        severity="info",
        lines=where(
            ["net.ipv4.tcp_adv_win_scale"], lambda facts, _: (kernel_version(facts) or (0, 0)) >= _ADV_WIN_SCALE_GONE
        ),
    ),
    BadAdvice(
        id="advice.large-by-default",
        title="A sysctl file gives each socket 8 MiB or more",
        what="Lines of sysctl files that set rmem_default or wmem_default to 8 MiB or more; not those of a profile "
        "that this tool applied.",
        why="Every UDP, raw and Unix datagram socket may then hold so much, asked or not. One LLT window, the case "
        "that the white paper has in mind, takes 851,968 bytes.",
        instead="more than the kernel's 212,992 is needed only where RcvbufErrors of /proc/net/snmp rises",
        better=lambda _, line: set_sysctl(line.key, _DEFAULTS[line.key], "at-most"),
        helps_when="The host has many datagram sockets, or little memory.",
        hurts_when="Drops at the receiver go on at 851,968 bytes: then the bursts are longer than one window.",
        sources=(sources.MEASURED_UDP, sources.SOCKET, sources.WHITE_PAPER),
        contradictions=(contradictions.SOCKET_BUFFERS.id,),
        lines=where(["net.core.rmem_default", "net.core.wmem_default"], lambda _, values: values[0] >= EIGHT_MB),
    ),
    BadAdvice(
        id="advice.optmem-large",
        title="A sysctl file sets optmem_max to 8 MiB or more",
        what="Lines of sysctl files that set net.core.optmem_max to 8 MiB or more; not those of a profile that this "
        "tool applied.",
        why="It bounds control messages and filters of a socket and has no part in throughput.",
        instead="delete the line",
        helps_when="The bound on what one socket may hold is wanted.",
        hurts_when="Programs send with MSG_ZEROCOPY or many control messages: they need more than the default.",
        sources=(sources.SYSCTL_NET, sources.WHITE_PAPER),
        severity="info",
        lines=where(["net.core.optmem_max"], lambda _, values: values[0] >= EIGHT_MB),
    ),
    BadAdvice(
        id="advice.maxima-lowered",
        title="A sysctl file lowers the kernel's buffer limits",
        what="rmem_max and the third field of tcp_rmem and tcp_wmem in sysctl files, against what this version of the "
        "kernel has by itself.",
        why="Numbers that were large for an old kernel are below the defaults of a new one: the line slows the host "
        "that it was to speed up.",
        instead="delete the line, or raise only what is lower",
        better=_raise_limit,
        helps_when="The kernel is newer than the guide.",
        hurts_when="The lower limit is meant, to save memory on a host with very many connections.",
        sources=(sources.MEASURED_DEFAULTS, sources.IP_SYSCTL, sources.WHITE_PAPER),
        contradictions=(contradictions.SOCKET_BUFFERS.id,),
        lines=_lowered_limits,
    ),
    BadAdvice(
        id="advice.swappiness-zero",
        title="A sysctl file sets vm.swappiness to 0",
        what="Lines of sysctl files that set vm.swappiness to 0.",
        why="Nothing is swapped until free memory and page cache together are below a zone's high mark, and then the "
        "out-of-memory killer may be first.",
        instead="1 to 10 keeps programs in memory without that risk",
        better=set_to(10),
        helps_when="There is swap, and the host now and then needs more memory than it has.",
        hurts_when="A program must never wait for swap and would rather be killed.",
        sources=(sources.VM,),
        lines=where(["vm.swappiness"], lambda _, values: values[0] == 0),
    ),
    BadAdvice(
        id="advice.cache-pressure-zero",
        title="A sysctl file sets vm.vfs_cache_pressure to 0",
        what="Lines of sysctl files that set vm.vfs_cache_pressure to 0.",
        why="The kernel then never frees dentries and inodes, which can end in a lack of memory.",
        instead="50 already favours metadata",
        better=set_to(50),
        helps_when="Always.",
        hurts_when="Never: 50 already favours metadata.",
        sources=(sources.VM, sources.DELL_BEEGFS),
        severity="warning",
        lines=where(["vm.vfs_cache_pressure"], lambda _, values: values[0] == 0),
    ),
    BadAdvice(
        id="advice.min-free-large",
        title="A sysctl file keeps over 3 % of the memory free",
        what="Lines of sysctl files that set vm.min_free_kbytes, against 3 % of this host's memory.",
        why="What is kept free can be used by nobody else; the kernel's documentation warns that too much of it makes "
        "the machine run out of memory at once.",
        instead="keep 3 % of the memory at most",
        better=make_numbers(_largest_reserve, "at-most"),
        helps_when="The number was copied from a larger host.",
        hurts_when="Allocations in interrupts fail in bursts (allocstall in /proc/vmstat): then it may be needed.",
        sources=(sources.VM,),
        severity="warning",
        lines=where(["vm.min_free_kbytes"], _above_reserve),
    ),
    BadAdvice(
        id="advice.dirty-ratio-high",
        title="A sysctl file sets vm.dirty_ratio to 75 or more",
        what="Lines of sysctl files that set vm.dirty_ratio to 75 or more.",
        why="When it is written at last it takes minutes, during which writers are blocked; a power cut loses it all. "
        "Vendors disagree: NetApp sets 75 with a background ratio of 1, TuneD's mssql 80, BeeGFS and Dell 20.",
        instead="20 is the kernel's own; in bytes (vm.dirty_bytes) it can be what the disks write in seconds",
        better=set_to(20, "at-most"),
        helps_when="Memory is large against the speed of the disks.",
        hurts_when="Writes come in bursts that fit into memory, and a power cut may lose them.",
        sources=(sources.VM, sources.TUNED_MSSQL, sources.NETAPP_BEEGFS, sources.BEEGFS_STORAGE),
        contradictions=(contradictions.DIRTY_RATIOS.id,),
        lines=where(["vm.dirty_ratio"], lambda _, values: values[0] >= _HIGH_DIRTY_PERCENT),
    ),
    BadAdvice(
        id="advice.zone-reclaim",
        title="A sysctl file switches zone_reclaim_mode on",
        what="Lines of sysctl files that set vm.zone_reclaim_mode to anything but 0.",
        why="A node then drops its own page cache before it uses free memory of another. The kernel's documentation "
        "says to leave it off on file servers; BeeGFS and NetApp set 1, Dell 2.",
        instead="delete the line, unless every service is bound to one node",
        better=set_to(0),
        helps_when="The page cache matters more than its place.",
        hurts_when="Services are bound to their node, one for each, as on Dell's servers: then remote memory may cost "
        "more.",
        sources=(sources.VM, sources.BEEGFS_STORAGE, sources.DELL_BEEGFS, sources.NETAPP_BEEGFS),
        contradictions=(contradictions.ZONE_RECLAIM.id,),
        lines=where(["vm.zone_reclaim_mode"], lambda facts, values: values[0] != 0 and not _binds_all(facts)),
    ),
    BadAdvice(
        id="advice.backlog-huge",
        title="A sysctl file sets a backlog of 100,000 or more",
        what="Lines of sysctl files that set net.core.netdev_max_backlog to 100,000 or more.",
        why="What waits in such a queue is late by the time it is served: loss becomes delay.",
        instead="raise it only where the second column of /proc/net/softnet_stat rises",
        better=set_to(10_000, "at-most"),
        helps_when="Latency matters: heartbeats, small writes.",
        hurts_when="Packets are steered to few CPUs in long bursts and drops go on at 10,000.",
        sources=(sources.SCALING, sources.SYSCTL_NET, sources.TUNING_NOTES),
        lines=where(["net.core.netdev_max_backlog"], lambda _, values: values[0] >= _HUGE_BACKLOG),
    ),
    BadAdvice(
        id="advice.old-lore",
        title="A sysctl file follows TCP notes of the 2000s",
        what="Lines of sysctl files that set tcp_congestion_control to htcp or tcp_no_metrics_save to 1.",
        why="The module htcp may not be there, and then the line is an error; keeping metrics of earlier connections "
        "usually helps new ones.",
        instead="delete the lines: cubic and saved metrics are the defaults",
        better=lambda _, line: set_sysctl(line.key, _NEW_LORE[line.key]),
        helps_when="The notes were for one long path, and the host serves a data centre.",
        hurts_when="Somebody measured that htcp is faster on that long path.",
        sources=(sources.IP_SYSCTL, sources.TUNING_NOTES),
        severity="info",
        lines=_old_lore,
    ),
    BadAdvice(
        id="advice.tcp-tw-reuse",
        title="A sysctl file turns tcp_tw_reuse on",
        what="Lines of sysctl files that set net.ipv4.tcp_tw_reuse to 1.",
        why="The kernel's documentation asks for expert advice first; its default 2 does it for loopback alone.",
        instead="delete the line",
        better=set_to(2),
        helps_when="Nobody remembers why it is there.",
        hurts_when="The host opens so many connections to one address that local ports run out: then it is a way.",
        sources=(sources.IP_SYSCTL,),
        severity="info",
        lines=where(["net.ipv4.tcp_tw_reuse"], lambda _, values: values[0] == 1),
    ),
    BadAdvice(
        id="advice.no-path-mtu",
        title="A sysctl file switches path MTU discovery off",
        what="Lines of sysctl files that set net.ipv4.ip_no_pmtu_disc to anything but 0.",
        why="Without it a connection over a path with mixed MTUs is fragmented or falls to the smallest size, and "
        "jumbo frames have no effect.",
        instead="delete the line; net.ipv4.tcp_mtu_probing = 1 helps over paths that drop the messages",
        better=set_to(0),
        helps_when="Jumbo frames, VPNs and overlay networks.",
        hurts_when="A router on the path sends wrong sizes and cannot be fixed.",
        sources=(sources.IP_SYSCTL,),
        lines=where(["net.ipv4.ip_no_pmtu_disc"], lambda _, values: values[0] != 0),
    ),
)

for _row in ROWS:
    _row.register(__name__)
