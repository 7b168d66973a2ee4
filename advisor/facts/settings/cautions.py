"""Values of kernel parameters that harm, and values that a kernel makes by itself from its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from advisor.facts.settings import sources
from advisor.facts.settings.record import Caution, Gone, Machine, Value

EIGHT_MB: Final = 8 << 20
ONE_LLT_WINDOW: Final = 851_968
_TCP_SHARE_OF_MEMORY: Final = 256
_INITIAL_SIZES: Final = {"net.ipv4.tcp_rmem": 131_072, "net.ipv4.tcp_wmem": 16_384}
# The maxima that a kernel has by itself: their field, then the versions from which they are known, with bytes. Those of
# TCP shrink where memory is small (a 128th of it), so they count only where that is far away.
_OWN_MAXIMA: Final = {
    "net.core.rmem_max": (0, (((6, 18), 4_194_304), ((3, 10), 212_992))),
    "net.ipv4.tcp_rmem": (2, (((6, 18), 33_554_432), ((3, 10), 6_291_456))),
    "net.ipv4.tcp_wmem": (2, (((3, 10), 4_194_304),)),
}


def own_maximum(key: str, machine: Machine) -> tuple[int, int]:
    """Return which field of a key is the maximum, and the bytes that this kernel has there by itself; 0 bytes where
    that is unknown."""
    field, known = _OWN_MAXIMA[key]
    own = next((size for since, size in known if machine.is_since(since)), 0)
    is_small = key.startswith("net.ipv4") and (machine.memory_bytes or 0) < own * _TCP_SHARE_OF_MEMORY
    return field, 0 if is_small else own


def _is_lowered(value: Value, machine: Machine) -> bool:
    field, own = own_maximum(value.key, machine)
    return len(value.numbers) > field and value.numbers[field] < own


def _raise_limit(value: Value, machine: Machine) -> str:
    field, own = own_maximum(value.key, machine)
    return raise_maximum(value.key, value.numbers, own) if field else str(max(value.first, own))


def raise_maximum(key: str, values: tuple[int, ...], maximum: int) -> str:
    """Return minimum, default and maximum of tcp_rmem or tcp_wmem with at least this maximum, each at least the one
    before it and none below ``values``; the kernel's own where those are no such three, or the default is below the
    minimum."""
    low, initial, most = values if len(values) == 3 else (4096, 0, 0)
    if initial < low:
        initial = max(low, _INITIAL_SIZES[key])
    return f"{low} {initial} {max(initial, most, maximum)}"


def _is_own_size(value: Value, machine: Machine) -> bool:
    """Whether the sizes of TCP are the kernel's own; the maximum is a 128th of the memory where that is less."""
    usual, share = (6_291_456, 33_554_432, 4_194_304), (machine.memory_bytes or 0) // 128
    if len(value.numbers) != 3 or value.numbers[:2] not in ((4096, 131_072), (4096, 87_380), (4096, 16_384)):
        return False
    return value.numbers[2] in usual or 0.75 * share <= value.numbers[2] <= 1.1 * share


def _is_own_share(value: Value, _: Machine) -> bool:
    """Whether limit / 4 × 3, limit, twice the first (tcp_init_mem, udp_init in net/ipv4)."""
    numbers = value.numbers
    return len(numbers) == 3 and numbers[0] == numbers[1] // 4 * 3 and numbers[2] == 2 * numbers[0]


def _is_fixed(value: Value, machine: Machine) -> bool:
    memory, numbers = machine.memory_bytes, value.numbers
    is_beyond = memory is not None and len(numbers) == 3 and numbers[2] * machine.page_bytes > memory // 2
    return len(numbers) == 3 and (is_beyond or len(set(numbers)) == 1)


_RESERVE_SHARE: Final = 0.03
# For huge pages the kernel itself keeps up to a twentieth of the memory free, and no more than this in KiB: 22,528 for
# each of twelve zones (mm/khugepaged.c, set_recommended_min_free_kbytes).
_OWN_RESERVE: Final = 0.05
_OWN_RESERVE_KB: Final = 270_336


def _largest_reserve(machine: Machine) -> int:
    """The most that may be kept free, in KiB: 3 % of the memory, and what the kernel keeps by itself."""
    kib = (machine.memory_bytes or 0) // 1024
    return max(int(kib * _RESERVE_SHARE), min(int(kib * _OWN_RESERVE), _OWN_RESERVE_KB))


CAUTIONS: Final = (
    Caution(
        id="advice.tcp-tw-recycle",
        keys=("net.ipv4.tcp_tw_recycle",),
        title="tcp_tw_recycle is switched on",
        when="anything but 0",
        why="It drops connections of clients behind one NAT address.",
        better="0",
        instead="0: tcp_tw_reuse has a safe default of its own",
        helps_when="Always.",
        hurts_when="Never: no kernel gains by it without the risk for clients behind NAT.",
        sources=(sources.TCP, sources.IP_SYSCTL),
        severity="warning",
        gone=Gone(
            (4, 12),
            "tcp_tw_recycle is set, which is gone",
            "Linux 4.12 removed the key: the line changes nothing and is an error at each boot.",
        ),
        is_bad=lambda value, _: value.first != 0,
    ),
    Caution(
        id="advice.tcp-mem-fixed",
        keys=("net.ipv4.tcp_mem",),
        title="tcp_mem is set too high for the host",
        when="three equal numbers, or a maximum above half of the memory",
        why="Its unit is pages, not bytes: 10,000,000 are 38 GiB. TCP then never feels memory pressure and takes what "
        "others need.",
        instead="let the kernel size it at boot",
        helps_when="The line came with a list of buffer sizes and was read as bytes.",
        hurts_when="The value was computed in pages for a host that does nothing but TCP: then keep three rising "
        "numbers.",
        sources=(sources.IP_SYSCTL, sources.OLD_IXGB),
        severity="warning",
        is_bad=_is_fixed,
    ),
    Caution(
        id="advice.tcp-sack-off",
        keys=("net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"),
        title="SACK or timestamps of TCP are switched off",
        when="0",
        why="Without SACK one loss costs a whole window, without timestamps round trips are measured badly and old "
        "segments can pass for new ones at high speed.",
        instead="1, the default of both",
        better="1",
        helps_when="Any loss on the path; links of 10 Gbit/s and more.",
        hurts_when="Amazon's ENA driver has a narrow case: headers above 96 bytes cost it speed, and timestamps take "
        "12.",
        sources=(sources.IP_SYSCTL, sources.OLD_IXGB, sources.ENA),
        is_bad=lambda value, _: value.first == 0,
    ),
    Caution(
        id="advice.tcp-window-scaling-off",
        keys=("net.ipv4.tcp_window_scaling",),
        title="Window scaling of TCP is switched off",
        when="0",
        why="A window without scaling is 64 KiB at most: 524 Mbit/s at a round trip of 1 ms on any link.",
        instead="1, the default",
        better="1",
        helps_when="Links of 1 Gbit/s and more, or any longer path.",
        hurts_when="A firewall on the path drops or rewrites the option: it has to be replaced, and until then "
        "connections through it work with 0 alone.",
        sources=(sources.IP_SYSCTL, sources.RFC_TCP_OPTIONS),
        severity="warning",
        is_bad=lambda value, _: value.first == 0,
    ),
    Caution(
        id="advice.tcp-sizes-equal",
        keys=("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
        title="All three sizes of TCP's buffers are alike",
        when="three equal numbers",
        why="Every connection starts with the largest buffer and the kernel's automatic sizing has no effect.",
        instead="raise the third number alone",
        better=lambda value, machine: raise_maximum(
            value.key, (), max(value.numbers[2], own_maximum(value.key, machine)[1])
        ),
        helps_when="Many connections, of which few are busy.",
        hurts_when="A handful of connections that must be at full speed from the first byte.",
        sources=(sources.IP_SYSCTL, sources.OLD_IXGB),
        is_bad=lambda value, _: len(value.numbers) == 3 and len(set(value.numbers)) == 1,
    ),
    Caution(
        id="advice.without-effect",
        keys=("net.ipv4.udp_wmem_min", "net.ipv4.tcp_fack", "net.ipv4.tcp_low_latency"),
        title="Values are set that have no effect",
        when="tcp_low_latency or tcp_fack 1, or another udp_wmem_min than one page",
        why="The kernel's documentation calls them legacy: they are kept so that old files do not fail, and do "
        "nothing.",
        instead="delete the lines, so that nobody counts on them",
        helps_when="The file is read to learn how the host is tuned.",
        hurts_when="Never on these kernels; one from before Linux 4.14 still knew tcp_low_latency.",
        sources=(sources.IP_SYSCTL, sources.TUNING_NOTES),
        severity="info",
        is_bad=lambda value, machine: (
            value.first not in (4096, machine.page_bytes) if value.key.endswith("_min") else value.first == 1
        ),
    ),
    Caution(
        id="advice.adv-win-scale",
        keys=("net.ipv4.tcp_adv_win_scale",),
        title="The obsolete tcp_adv_win_scale is set",
        when="anything but 1, on Linux 6.6 or newer",
        why="The kernel now learns from the traffic itself how much of a buffer is payload.",
        instead="delete the line",
        helps_when="The file is read to learn how the host is tuned.",
        hurts_when="The same file serves hosts with older kernels, where it still counts.",
        sources=(sources.IP_SYSCTL,),
        severity="info",
        is_bad=lambda value, machine: value.first != 1 and machine.is_since((6, 6)),
    ),
    Caution(
        id="advice.large-by-default",
        keys=("net.core.rmem_default", "net.core.wmem_default"),
        title="Each socket may hold 8 MiB or more by default",
        when="8 MiB and more; a profile of advisor sets it for those who ask for it",
        why="Every UDP, raw and Unix datagram socket may then hold so much, asked or not. One LLT window, the case "
        "that the white paper has in mind, takes 851,968 bytes.",
        instead="more than the kernel's 212,992 is needed only where RcvbufErrors of /proc/net/snmp rises",
        better=f"<={ONE_LLT_WINDOW}",
        helps_when="The host has many datagram sockets, or little memory.",
        hurts_when="Drops at the receiver go on at 851,968 bytes: then the bursts are longer than one window.",
        sources=(sources.MEASURED_UDP, sources.SOCKET, sources.WHITE_PAPER),
        contradictions=("contradiction.socket-buffers",),
        is_bad=lambda value, _: value.first >= EIGHT_MB,
    ),
    Caution(
        id="advice.optmem-large",
        keys=("net.core.optmem_max",),
        title="optmem_max is 8 MiB or more",
        when="8 MiB and more; a profile of advisor sets it for those who ask for it",
        why="It bounds control messages and filters of a socket and has no part in throughput.",
        instead="leave it to the kernel",
        helps_when="The bound on what one socket may hold is wanted.",
        hurts_when="Programs send with MSG_ZEROCOPY or many control messages: they need more than the default.",
        sources=(sources.SYSCTL_NET, sources.WHITE_PAPER),
        severity="info",
        is_bad=lambda value, _: value.first >= EIGHT_MB,
    ),
    Caution(
        id="advice.maxima-lowered",
        keys=("net.core.rmem_max", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
        title="The kernel's own buffer limits are lowered",
        when="less than this version of the kernel has by itself (tcp_rmem and tcp_wmem: their third number)",
        why="Numbers that were large for an old kernel are below the defaults of a new one: the line slows the host "
        "that it was to speed up.",
        instead="raise only what is lower",
        better=_raise_limit,
        helps_when="The kernel is newer than the guide.",
        hurts_when="The lower limit is meant, to save memory on a host with very many connections.",
        sources=(sources.MEASURED_DEFAULTS, sources.IP_SYSCTL, sources.WHITE_PAPER),
        contradictions=("contradiction.socket-buffers",),
        is_bad=_is_lowered,
    ),
    Caution(
        id="advice.backlog-huge",
        keys=("net.core.netdev_max_backlog",),
        title="A backlog of 100,000 packets or more is set",
        when="100,000 and more",
        why="What waits in such a queue is late by the time it is served: loss becomes delay.",
        instead="raise it only where the second column of /proc/net/softnet_stat rises",
        better="<=10000",
        helps_when="Latency matters: heartbeats, small writes.",
        hurts_when="Packets are steered to few CPUs in long bursts and drops go on at 10,000.",
        sources=(sources.SCALING, sources.SYSCTL_NET, sources.TUNING_NOTES),
        is_bad=lambda value, _: value.first >= 100_000,
    ),
    Caution(
        id="advice.old-lore",
        keys=("net.ipv4.tcp_congestion_control", "net.ipv4.tcp_no_metrics_save"),
        title="TCP is set by notes of the 2000s",
        when="tcp_congestion_control htcp, tcp_no_metrics_save 1",
        why="The module htcp may not be there, and then the line is an error; keeping metrics of earlier connections "
        "usually helps new ones.",
        instead="cubic and saved metrics are the defaults",
        better=lambda value, _: "cubic" if value.text == "htcp" else "0",
        helps_when="The notes were for one long path, and the host serves a data centre.",
        hurts_when="It was measured that htcp is faster on that long path.",
        sources=(sources.IP_SYSCTL, sources.TUNING_NOTES),
        severity="info",
        is_bad=lambda value, _: value.text == "htcp" or value.first == 1,
    ),
    Caution(
        id="advice.tcp-tw-reuse",
        keys=("net.ipv4.tcp_tw_reuse",),
        title="tcp_tw_reuse is switched on for every peer",
        when="1",
        why="The kernel's documentation asks for expert advice first; its default 2 does it for loopback alone.",
        instead="2, the default",
        better="2",
        helps_when="Nobody remembers why it is there.",
        hurts_when="The host opens so many connections to one address that local ports run out: then it is a way.",
        sources=(sources.IP_SYSCTL,),
        severity="info",
        is_bad=lambda value, _: value.first == 1,
    ),
    Caution(
        id="advice.no-path-mtu",
        keys=("net.ipv4.ip_no_pmtu_disc",),
        title="Path MTU discovery is switched off",
        when="anything but 0",
        why="Without it a connection over a path with mixed MTUs is fragmented or falls to the smallest size, and "
        "jumbo frames have no effect.",
        instead="0, the default; net.ipv4.tcp_mtu_probing = 1 helps over paths that drop the messages",
        better="0",
        helps_when="Jumbo frames, VPNs and overlay networks.",
        hurts_when="A router on the path sends wrong sizes and cannot be fixed.",
        sources=(sources.IP_SYSCTL,),
        is_bad=lambda value, _: value.first != 0,
    ),
    Caution(
        id="advice.swappiness-zero",
        keys=("vm.swappiness",),
        title="vm.swappiness is 0",
        when="0",
        why="Nothing is swapped until free memory and page cache together are below a zone's high mark, and then the "
        "out-of-memory killer may be first.",
        instead="1 to 10 keeps programs in memory without that risk",
        better="10",
        helps_when="There is swap, and the host now and then needs more memory than it has.",
        hurts_when="A program must never wait for swap and would rather be killed.",
        sources=(sources.VM,),
        is_bad=lambda value, _: value.first == 0,
    ),
    Caution(
        id="advice.cache-pressure-zero",
        keys=("vm.vfs_cache_pressure",),
        title="vm.vfs_cache_pressure is 0",
        when="0",
        why="The kernel then never frees dentries and inodes, which can end in a lack of memory.",
        instead="50 already favours metadata",
        better="50",
        helps_when="Always.",
        hurts_when="Never: 50 already favours metadata.",
        sources=(sources.VM, sources.DELL_BEEGFS),
        severity="warning",
        is_bad=lambda value, _: value.first == 0,
    ),
    Caution(
        id="advice.min-free-large",
        keys=("vm.min_free_kbytes",),
        title="Over 3 % of the memory is kept free",
        when="above 3 % of the memory of the host, or what the kernel keeps free for huge pages by itself",
        why="What is kept free can be used by nobody else; the kernel's documentation warns that too much of it makes "
        "the machine run out of memory at once.",
        instead="keep 3 % of the memory at most",
        better=lambda _, machine: f"<={_largest_reserve(machine)}",
        helps_when="The number was copied from a larger host.",
        hurts_when="Allocations in interrupts fail in bursts (allocstall in /proc/vmstat): then it may be needed.",
        sources=(sources.VM,),
        severity="warning",
        is_bad=lambda value, machine: machine.memory_bytes is not None and value.first > _largest_reserve(machine),
    ),
    Caution(
        id="advice.dirty-ratio-high",
        keys=("vm.dirty_ratio",),
        title="vm.dirty_ratio is 75 or more",
        when="75 and more",
        why="When it is written at last it takes minutes, during which writers are blocked; a power cut loses it all. "
        "Vendors disagree: NetApp sets 75 with a background ratio of 1, TuneD's mssql 80, BeeGFS and Dell 20.",
        instead="20 is the kernel's own; in bytes (vm.dirty_bytes) it can be what the disks write in seconds",
        better="<=20",
        helps_when="Memory is large against the speed of the disks.",
        hurts_when="Writes come in bursts that fit into memory, and a power cut may lose them.",
        sources=(sources.VM, sources.TUNED_MSSQL, sources.NETAPP_BEEGFS, sources.BEEGFS_STORAGE),
        contradictions=("contradiction.dirty-ratios",),
        is_bad=lambda value, _: value.first >= 75,
    ),
    Caution(
        id="advice.zone-reclaim",
        keys=("vm.zone_reclaim_mode",),
        title="vm.zone_reclaim_mode is switched on",
        when="anything but 0, unless every storage service is bound to a node",
        why="A node then drops its own page cache before it uses free memory of another. The kernel's documentation "
        "says to leave it off on file servers; BeeGFS and NetApp set 1, Dell 2.",
        instead="0, unless every service is bound to one node",
        better="0",
        helps_when="The page cache matters more than its place.",
        hurts_when="Services are bound to their node, one for each, as on Dell's servers: then remote memory may cost "
        "more.",
        sources=(sources.VM, sources.BEEGFS_STORAGE, sources.DELL_BEEGFS, sources.NETAPP_BEEGFS),
        contradictions=("contradiction.zone-reclaim-mode",),
        is_bad=lambda value, machine: value.first != 0 and not machine.binds_services,
    ),
)

DERIVES: Final[Mapping[str, Callable[[Value, Machine], bool]]] = {
    **dict.fromkeys(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), _is_own_size),
    **dict.fromkeys(("net.ipv4.tcp_mem", "net.ipv4.udp_mem"), _is_own_share),
    "net.ipv4.tcp_max_syn_backlog": lambda value, _: value.first >= 128 and value.first & (value.first - 1) == 0,
    "vm.min_free_kbytes": lambda value, machine: value.first <= _largest_reserve(machine),
    "kernel.pid_max": lambda value, machine: value.first in (32_768, 4_194_304, 1024 * (machine.cpus or 0)),
    "fs.file-max": lambda value, machine: 0.75 <= 10240 * value.first / (machine.memory_bytes or 1) <= 1.25,
}
"""Whether the kernel of such a machine has a value of the key by itself, without a file that sets it."""
