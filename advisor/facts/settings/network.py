"""Keys below net.core, net.ipv4 and net.netfilter: sockets, TCP, neighbours, what each link has for itself."""

from __future__ import annotations

from typing import Final

from advisor.facts.settings import sources
from advisor.facts.settings.record import Caution, Gone, InUse, Least, Machine, MemoryShare, Setting, Value

EIGHT_MB: Final = 8 << 20
ONE_LLT_WINDOW: Final = 851_968
_TCP_SHARE_OF_MEMORY: Final = 256
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
        initial = max(low, initial_size(key))
    return f"{low} {initial} {max(initial, most, maximum)}"


def initial_size(key: str) -> int:
    """Return what a connection begins with, by the kernel's own default of tcp_rmem or tcp_wmem, in bytes."""
    return int(next(one for one in SCANNED if one.key == key).default.split()[1])


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


_TW_RECYCLE = Caution(
    id="advice.tcp-tw-recycle",
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
)
_TCP_MEM_FIXED = Caution(
    id="advice.tcp-mem-fixed",
    title="tcp_mem is set too high for the host",
    when="three equal numbers, or a maximum above half of the memory",
    why="Its unit is pages, not bytes: 10,000,000 are 38 GiB. TCP then never feels memory pressure and takes what "
    "others need.",
    instead="let the kernel size it at boot",
    helps_when="The line came with a list of buffer sizes and was read as bytes.",
    hurts_when="The value was computed in pages for a host that does nothing but TCP: then keep three rising numbers.",
    sources=(sources.IP_SYSCTL, sources.OLD_IXGB),
    severity="warning",
    is_bad=_is_fixed,
)
_SACK_OFF = Caution(
    id="advice.tcp-sack-off",
    title="SACK or timestamps of TCP are switched off",
    when="0",
    why="Without SACK one loss costs a whole window, without timestamps round trips are measured badly and old "
    "segments can pass for new ones at high speed.",
    instead="1, the default of both",
    better="1",
    helps_when="Any loss on the path; links of 10 Gbit/s and more.",
    hurts_when="Amazon's ENA driver has a narrow case: headers above 96 bytes cost it speed, and timestamps take 12.",
    sources=(sources.IP_SYSCTL, sources.OLD_IXGB, sources.ENA),
    is_bad=lambda value, _: value.first == 0,
)
_WINDOW_SCALING_OFF = Caution(
    id="advice.tcp-window-scaling-off",
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
)
_SIZES_EQUAL = Caution(
    id="advice.tcp-sizes-equal",
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
)
_WITHOUT_EFFECT = Caution(
    id="advice.without-effect",
    title="Values are set that have no effect",
    when="tcp_low_latency or tcp_fack 1, or another udp_wmem_min than one page",
    why="The kernel's documentation calls them legacy: they are kept so that old files do not fail, and do nothing.",
    instead="delete the lines, so that nobody counts on them",
    helps_when="The file is read to learn how the host is tuned.",
    hurts_when="Never on these kernels; one from before Linux 4.14 still knew tcp_low_latency.",
    sources=(sources.IP_SYSCTL, sources.TUNING_NOTES),
    severity="info",
    is_bad=lambda value, machine: (
        value.first not in (4096, machine.page_bytes) if value.key.endswith("_min") else value.first == 1
    ),
)
_ADV_WIN_SCALE = Caution(
    id="advice.adv-win-scale",
    title="The obsolete tcp_adv_win_scale is set",
    when="anything but 1, on Linux 6.6 or newer",
    why="The kernel now learns from the traffic itself how much of a buffer is payload.",
    instead="delete the line",
    helps_when="The file is read to learn how the host is tuned.",
    hurts_when="The same file serves hosts with older kernels, where it still counts.",
    sources=(sources.IP_SYSCTL,),
    severity="info",
    is_bad=lambda value, machine: value.first != 1 and machine.is_since((6, 6)),
)
_LARGE_BY_DEFAULT = Caution(
    id="advice.large-by-default",
    title="Each socket may hold 8 MiB or more by default",
    when="8 MiB and more; a profile of advisor sets it for those who ask for it",
    why="Every UDP, raw and Unix datagram socket may then hold so much, asked or not. One LLT window, the case that "
    "the white paper has in mind, takes 851,968 bytes.",
    instead="more than the kernel's 212,992 is needed only where RcvbufErrors of /proc/net/snmp rises",
    better=f"<={ONE_LLT_WINDOW}",
    helps_when="The host has many datagram sockets, or little memory.",
    hurts_when="Drops at the receiver go on at 851,968 bytes: then the bursts are longer than one window.",
    sources=(sources.MEASURED_UDP, sources.SOCKET, sources.WHITE_PAPER),
    contradictions=("contradiction.socket-buffers",),
    is_bad=lambda value, _: value.first >= EIGHT_MB,
)
_OPTMEM_LARGE = Caution(
    id="advice.optmem-large",
    title="optmem_max is 8 MiB or more",
    when="8 MiB and more; a profile of advisor sets it for those who ask for it",
    why="It bounds control messages and filters of a socket and has no part in throughput.",
    instead="leave it to the kernel",
    helps_when="The bound on what one socket may hold is wanted.",
    hurts_when="Programs send with MSG_ZEROCOPY or many control messages: they need more than the default.",
    sources=(sources.SYSCTL_NET, sources.WHITE_PAPER),
    severity="info",
    is_bad=lambda value, _: value.first >= EIGHT_MB,
)
_MAXIMA_LOWERED = Caution(
    id="advice.maxima-lowered",
    title="The kernel's own buffer limits are lowered",
    when="less than this version of the kernel has by itself (tcp_rmem and tcp_wmem: their third number)",
    why="Numbers that were large for an old kernel are below the defaults of a new one: the line slows the host that "
    "it was to speed up.",
    instead="raise only what is lower",
    better=_raise_limit,
    helps_when="The kernel is newer than the guide.",
    hurts_when="The lower limit is meant, to save memory on a host with very many connections.",
    sources=(sources.MEASURED_DEFAULTS, sources.IP_SYSCTL, sources.WHITE_PAPER),
    contradictions=("contradiction.socket-buffers",),
    is_bad=_is_lowered,
)
_BACKLOG_HUGE = Caution(
    id="advice.backlog-huge",
    title="A backlog of 100,000 packets or more is set",
    when="100,000 and more",
    why="What waits in such a queue is late by the time it is served: loss becomes delay.",
    instead="raise it only where the second column of /proc/net/softnet_stat rises",
    better="<=10000",
    helps_when="Latency matters: heartbeats, small writes.",
    hurts_when="Packets are steered to few CPUs in long bursts and drops go on at 10,000.",
    sources=(sources.SCALING, sources.SYSCTL_NET, sources.TUNING_NOTES),
    is_bad=lambda value, _: value.first >= 100_000,
)
_OLD_LORE = Caution(
    id="advice.old-lore",
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
)
_TW_REUSE = Caution(
    id="advice.tcp-tw-reuse",
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
)
_NO_PATH_MTU = Caution(
    id="advice.no-path-mtu",
    title="Path MTU discovery is switched off",
    when="anything but 0",
    why="Without it a connection over a path with mixed MTUs is fragmented or falls to the smallest size, and jumbo "
    "frames have no effect.",
    instead="0, the default; net.ipv4.tcp_mtu_probing = 1 helps over paths that drop the messages",
    better="0",
    helps_when="Jumbo frames, VPNs and overlay networks.",
    hurts_when="A router on the path sends wrong sizes and cannot be fixed.",
    sources=(sources.IP_SYSCTL,),
    is_bad=lambda value, _: value.first != 0,
)

_SOCKET_LEAST = "include/net/sock.h: the least buffer of a socket"
_IP = "Documentation/networking/ip-sysctl.rst"
_IPV4_TABLE = "net/ipv4/sysctl_net_ipv4.c"
_ONE_SOCKET = MemoryShare(
    1, 0.05, 0.5, "may be taken by the buffer of one socket", "socket(7); the shares are advisor's choice"
)
_ALL_SOCKETS = MemoryShare(
    *(0, 0.25, 0.5, "may be taken by socket buffers, which are never swapped"),
    "networking/ip-sysctl: the kernel's own is 9 to 19 %",
)
_TRACKED = InUse("/proc/sys/net/netfilter/nf_conntrack_count", r"^([0-9]+)", "tracked connections")
_CONNTRACK = MemoryShare(320, 0.1, 0.5, "may be taken by tracked connections", "nf_conntrack-sysctl")
_LEAST_PAGES = Least(128, "no connection gets memory: 128 pages are the kernel's least")
_BUFFER_HIGH = "Many sockets take memory from the page cache, and deep buffers add delay."
_BUFFER_LOW = "A long path is not filled, and bursts of datagrams are lost."
_DROPPED = "RcvbufErrors of /proc/net/snmp"
_FEATURE = "Both ends have to offer it when a connection begins."


def _buffer(end: str, which: str, does: str, least: int, default: str, *cautions: Caution, shown_by: str) -> Setting:
    return Setting(
        f"net.core.{end}_{which}",
        does,
        "bytes",
        low=least,
        bounds_source=_SOCKET_LEAST,
        default=default,
        takes_effect="new-sockets",
        grows=True,
        is_shown=True,
        shown_by=shown_by,
        lower_hurts=_BUFFER_LOW,
        higher_hurts=_BUFFER_HIGH,
        share=_ONE_SOCKET,
        cautions=cautions,
        sources=(sources.SOCKET,),
    )


def _tcp_sizes(end: str, does: str, default: str) -> Setting:
    return Setting(
        f"net.ipv4.tcp_{end}mem",
        does,
        "bytes",
        fields=("min", "default", "max"),
        low=1,
        bounds_source=_IPV4_TABLE,
        default=default,
        derived_from="memory, where it is small: the maximum is at most a 128th of it",
        takes_effect="new-sockets",
        grows=True,
        is_shown=True,
        shown_by="ss -ti: rwnd_limited, sndbuf_limited",
        lower_hurts=_BUFFER_LOW,
        higher_hurts=_BUFFER_HIGH,
        share=_ONE_SOCKET,
        derives=_is_own_size,
        cautions=(_SIZES_EQUAL, _MAXIMA_LOWERED),
        sources=(sources.TCP,),
    )


def _pages(protocol: str, pattern: str, *cautions: Caution) -> Setting:
    return Setting(
        f"net.ipv4.{protocol.lower()}_mem",
        f"Memory of all {protocol} sockets together: from which it is saved, and which is the most.",
        "pages",
        fields=("min", "pressure", "max"),
        holds="unsigned",
        derived_from="memory: 9 to 19 % of it",
        grows=True,
        shown_by=f"mem of {protocol} in /proc/net/sockstat",
        lower_hurts=_BUFFER_LOW,
        higher_hurts=_BUFFER_HIGH,
        share=_ALL_SOCKETS,
        least=_LEAST_PAGES,
        derives=_is_own_share,
        in_use=InUse("/proc/net/sockstat", pattern, f"pages of {protocol}'s buffers"),
        cautions=cautions,
    )


def _neighbours(version: int) -> tuple[Setting, ...]:
    told = (
        ("Entries of the neighbour table below which none is removed.", "128"),
        ("Entries above which those older than five seconds are removed.", "512"),
        ("The most entries of the neighbour table.", "1024"),
    )
    return tuple(
        Setting(
            f"net.ipv{version}.neigh.default.gc_thresh{number}",
            does,
            "entries",
            low=0,
            bounds_source="net/core/neighbour.c",
            default=default,
            grows=True,
            shown_by="table_fulls of /proc/net/stat/arp_cache",
            lower_hurts="Neighbours are resolved again and again, and packets to them are lost meanwhile.",
            not_above=f"net.ipv{version}.neigh.default.gc_thresh{number + 1}" if number < 3 else "",
            otherwise="the table is full before an old entry is dropped",
        )
        for number, (does, default) in enumerate(told, 1)
    )


SCANNED: Final = (
    _buffer(
        "rmem",
        "default",
        "The receive buffer that a socket begins with; TCP has its own.",
        2048,
        "212992",
        *(_LARGE_BY_DEFAULT,),
        shown_by=_DROPPED,
    ),
    _buffer(
        "rmem",
        "max",
        "The largest receive buffer that a program may ask for (SO_RCVBUF).",
        2048,
        "212992; 4194304 from Linux 6.18 on",
        _MAXIMA_LOWERED,
        shown_by=_DROPPED,
    ),
    _buffer(
        "wmem",
        "default",
        "The send buffer that a socket begins with; TCP has its own.",
        4096,
        "212992",
        _LARGE_BY_DEFAULT,
        shown_by="SndbufErrors of /proc/net/snmp",
    ),
    _buffer(
        "wmem",
        "max",
        "The largest send buffer that a program may ask for (SO_SNDBUF).",
        4096,
        "212992; 4194304 from Linux 6.18 on",
        shown_by="SndbufErrors of /proc/net/snmp",
    ),
    Setting(
        "net.core.optmem_max",
        "The most memory for control messages and filters of one socket.",
        "bytes",
        default="131072 from Linux 6.8 on; 20480 before",
        grows=True,
        is_shown=True,
        lower_hurts="Programs that send with MSG_ZEROCOPY or many control messages fail with ENOBUFS.",
        higher_hurts="Each socket may take more memory that is never swapped; throughput gains nothing.",
        share=_ONE_SOCKET,
        cautions=(_OPTMEM_LARGE,),
    ),
    Setting(
        "net.core.netdev_max_backlog",
        "Packets that may wait for one CPU after they were received.",
        "packets",
        default="1000",
        grows=True,
        is_shown=True,
        shown_by="second column of /proc/net/softnet_stat",
        lower_hurts="Bursts are dropped before any socket sees them.",
        least=Least(300, "one round of polling fills it"),
        higher_hurts="What waits in a long queue is late by the time it is served.",
        cautions=(_BACKLOG_HUGE,),
        sources=(sources.SCALING,),
    ),
    Setting(
        "net.core.netdev_budget",
        "Packets that one round of polling handles on a CPU, over all its links.",
        "packets",
        default="300",
        grows=True,
        is_shown=True,
        shown_by="third column of /proc/net/softnet_stat",
        lower_hurts="Rounds end early and packets wait.",
        higher_hurts="Other work of that CPU waits longer for each round.",
    ),
    Setting(
        "net.core.netdev_budget_usecs",
        "The longest time of one round of polling.",
        "microseconds",
        since=(4, 12),
        default="2000",
        grows=True,
        shown_by="third column of /proc/net/softnet_stat",
        lower_hurts="Rounds end early and packets wait.",
        higher_hurts="Other work of that CPU waits longer for each round.",
    ),
    Setting(
        "net.core.somaxconn",
        "The most connections that may wait for accept(2), whatever the program asks for at listen(2).",
        "connections",
        low=0,
        bounds_source="net/core/sysctl_net_core.c",
        default="4096; 128 before Linux 5.4",
        takes_effect="new-sockets",
        grows=True,
        is_shown=True,
        shown_by="ListenOverflows of /proc/net/netstat",
        lower_hurts="Connections are dropped when many arrive at once.",
        least=Least(128, "clients that come at once are dropped: it was the default until Linux 5.4"),
        higher_hurts="A program that is too slow keeps clients waiting instead of refusing them.",
        sources=(sources.IP_SYSCTL,),
    ),
    Setting(
        "net.core.default_qdisc",
        "The queueing discipline of links that come up from then on.",
        holds="words",
        default="pfifo_fast; distributions set fq_codel",
        takes_effect="new-links",
        is_shown=True,
        shown_by="tc -s qdisc",
    ),
    *(
        Setting(
            f"net.core.busy_{name}",
            does,
            "microseconds",
            default="0",
            lower_hurts="Without polling, each answer waits for an interrupt and for a wake-up.",
            higher_hurts="Busy polling burns CPU time that other threads may need.",
        )
        for name, does in (
            ("read", "How long a read polls the link's queue before it sleeps."),
            ("poll", "How long poll(2) and select(2) poll the links' queues before they sleep."),
        )
    ),
    Setting(
        "net.core.rps_sock_flow_entries",
        "Entries of the table that says on which CPU the program of a flow runs (RFS).",
        "entries",
        default="0",
        lower_hurts="Flows share entries, and packets go to the wrong CPU; 0 switches RFS off.",
        higher_hurts="The table takes memory that nothing uses.",
        sources=(sources.SCALING,),
    ),
    _tcp_sizes("r", "The receive buffer of a TCP connection: least, at first, most.", "4096 131072 6291456"),
    _tcp_sizes("w", "The send buffer of a TCP connection: least, at first, most.", "4096 16384 4194304"),
    _pages("TCP", r"(?m)^TCP:.* mem ([0-9]+)", _TCP_MEM_FIXED),
    _pages("UDP", r"(?m)^UDP:.* mem ([0-9]+)"),
    Setting(
        "net.ipv4.udp_rmem_min",
        "The receive buffer that a UDP socket keeps even when memory is short.",
        "bytes",
        low=1,
        bounds_source=_IPV4_TABLE,
        default="4096",
        grows=True,
        lower_hurts=_BUFFER_LOW,
        higher_hurts=_BUFFER_HIGH,
    ),
    Setting(
        "net.ipv4.udp_wmem_min",
        "Nothing: sent memory of UDP is not counted.",
        "bytes",
        low=1,
        bounds_source=_IPV4_TABLE,
        default="4096",
        grows=True,
        cautions=(_WITHOUT_EFFECT,),
    ),
    Setting(
        "net.ipv4.tcp_congestion_control",
        "How new TCP connections find their speed.",
        holds="words",
        default="cubic",
        takes_effect="new-sockets",
        is_shown=True,
        shown_by="ss -ti",
        cautions=(_OLD_LORE,),
    ),
    Setting(
        "net.ipv4.tcp_mtu_probing",
        "Whether TCP tries smaller packets by itself: 1 after a black hole was seen, 2 always.",
        "mode",
        default="0",
        is_shown=True,
        shown_by="TCPMTUPFail, TCPMTUPSuccess of /proc/net/netstat",
        lower_hurts="Where a firewall drops ICMP, a connection hangs at its first large packet.",
        higher_hurts="Loss is taken for a black hole now and then, and the connection goes on with small packets.",
    ),
    Setting(
        "net.ipv4.ip_no_pmtu_disc",
        "Whether packets may be cut on the way instead of the sender learning the path's MTU.",
        "mode",
        default="0",
        higher_hurts="Packets are fragmented or fall to the smallest size; jumbo frames have no effect.",
        cautions=(_NO_PATH_MTU,),
    ),
    Setting(
        "net.ipv4.tcp_slow_start_after_idle",
        "Whether a connection begins slowly again after a pause of one retransmission time-out.",
        "switch",
        default="1",
        lower_hurts="On a shared or wide-area path a burst meets queues that have filled meanwhile, and loses.",
        higher_hurts="Bursts of replication begin with a small window after each pause.",
    ),
    Setting(
        "net.ipv4.tcp_sack",
        f"Selective acknowledgements of TCP. {_FEATURE}",
        "switch",
        default="1",
        takes_effect="new-sockets",
        shown_by="ss -ti: sack",
        lower_hurts=_SACK_OFF.why,
        cautions=(_SACK_OFF,),
    ),
    Setting(
        "net.ipv4.tcp_timestamps",
        f"Timestamps of TCP; 2 without a random offset. {_FEATURE}",
        "mode",
        default="1",
        takes_effect="new-sockets",
        shown_by="ss -ti: ts",
        lower_hurts=_SACK_OFF.why,
        higher_hurts=_SACK_OFF.hurts_when,
        cautions=(_SACK_OFF,),
    ),
    Setting(
        "net.ipv4.tcp_window_scaling",
        f"Windows of TCP above 64 KiB. {_FEATURE}",
        "switch",
        default="1",
        takes_effect="new-sockets",
        shown_by="ss -ti: wscale",
        lower_hurts=_WINDOW_SCALING_OFF.why,
        cautions=(_WINDOW_SCALING_OFF,),
    ),
    Setting(
        "net.ipv4.tcp_fack",
        "Nothing: forward acknowledgement gave way to RACK.",
        "switch",
        until=(4, 15),
        is_kept=True,
        moved_to="RACK (net.ipv4.tcp_recovery), which is on by default",
        cautions=(_WITHOUT_EFFECT,),
    ),
    Setting(
        "net.ipv4.tcp_low_latency",
        "Nothing: it chose against the prequeue, which is gone.",
        "switch",
        until=(4, 14),
        is_kept=True,
        moved_to="nothing: all TCP is handled so",
        cautions=(_WITHOUT_EFFECT,),
    ),
    Setting(
        "net.ipv4.tcp_adv_win_scale",
        "How much of a receive buffer counts as payload.",
        "shift",
        default="1",
        until=(6, 6),
        is_kept=True,
        moved_to="a ratio that each connection learns from its traffic",
        cautions=(_ADV_WIN_SCALE,),
    ),
    Setting(
        "net.ipv4.tcp_no_metrics_save",
        "Whether what a connection learnt of its path is forgotten when it ends.",
        "switch",
        default="0",
        higher_hurts="Each new connection learns the path again.",
        cautions=(_OLD_LORE,),
    ),
    Setting(
        "net.ipv4.tcp_tw_reuse",
        "Whether a new connection may take the port of one in TIME-WAIT: 1 always, 2 over loopback.",
        "mode",
        low=0,
        high=2,
        bounds_source=_IP,
        default="2; 0 before Linux 4.19",
        shown_by="ss -s: timewait",
        lower_hurts="A host that connects to one address very often runs out of local ports.",
        higher_hurts="The kernel's documentation asks for expert advice first.",
        cautions=(_TW_REUSE,),
    ),
    Setting(
        "net.ipv4.tcp_tw_recycle",
        "It ended TIME-WAIT early.",
        "switch",
        default="0",
        until=(4, 12),
        moved_to="nothing: it broke connections from behind NAT; net.ipv4.tcp_tw_reuse is left",
        cautions=(_TW_RECYCLE,),
    ),
    Setting(
        "net.ipv4.tcp_moderate_rcvbuf",
        "Whether TCP sizes its receive buffers by itself, up to tcp_rmem's maximum.",
        "switch",
        default="1",
        lower_hurts="Connections keep the buffer that they began with, and a long path is not filled.",
    ),
    Setting(
        "net.ipv4.ip_local_port_range",
        "The ports from which the kernel gives one to each outgoing connection.",
        "ports",
        fields=("first", "last"),
        low=1,
        high=65535,
        bounds_source=_IP,
        is_ordered=True,
        default="32768 60999",
        shown_by="connect(2) fails with EADDRNOTAVAIL",
        lower_hurts="A first port that is lower takes in ports on which services listen.",
        higher_hurts="Fewer ports are left for connections to one address.",
    ),
    Setting(
        "net.ipv4.ip_local_reserved_ports",
        "Ports that the kernel gives to no outgoing connection.",
        holds="words",
        default="none",
    ),
    Setting(
        "net.ipv4.ip_forward",
        "Whether the host passes packets on between its links.",
        "switch",
        default="0",
        lower_hurts="Containers, virtual machines and routed networks lose their way out.",
        higher_hurts="The host becomes a router: without a firewall it passes on what its links reach.",
    ),
    Setting(
        "net.ipv4.tcp_max_syn_backlog",
        "Connections that may be half open on each listening socket.",
        "connections",
        derived_from="memory: from 128 on",
        derives=lambda value, _: value.first >= 128 and value.first & (value.first - 1) == 0,
        grows=True,
        shown_by="TCPReqQFullDrop, TCPReqQFullDoCookies of /proc/net/netstat",
        lower_hurts="Many clients at once get SYN cookies, or no answer.",
        higher_hurts="A flood of SYN packets takes more memory.",
    ),
    Setting(
        "net.ipv4.tcp_syncookies",
        "Whether a full queue of half-open connections is answered with cookies: 1 then, 2 always.",
        "mode",
        default="1",
        shown_by="SyncookiesSent of /proc/net/netstat",
        lower_hurts="A flood of SYN packets keeps clients out.",
        higher_hurts="With 2 every connection goes without the options that do not fit into a cookie.",
    ),
    Setting(
        "net.ipv4.tcp_keepalive_time",
        "How long a connection with SO_KEEPALIVE idles before it is probed.",
        "seconds",
        default="7200",
        lower_hurts="Idle connections cause traffic, and break at short interruptions.",
        higher_hurts="A dead peer is noticed late, and firewalls forget idle connections.",
    ),
    Setting(
        "net.ipv4.tcp_keepalive_intvl",
        "The time between two probes.",
        "seconds",
        default="75",
        lower_hurts="Connections break at short interruptions.",
        higher_hurts="A dead peer is noticed late.",
    ),
    Setting(
        "net.ipv4.tcp_keepalive_probes",
        "Unanswered probes after which a connection is dead.",
        "probes",
        default="9",
        lower_hurts="Connections break at short interruptions.",
        higher_hurts="A dead peer is noticed late.",
    ),
    Setting(
        "net.ipv4.conf.*.rp_filter",
        "Whether packets whose way back leads by another link are dropped: 1 strict, 2 by any link. The larger of "
        "all's and the link's counts.",
        "mode",
        default="0; distributions set 1 or 2",
        shown_by="IPReversePathFilter of /proc/net/netstat",
        lower_hurts="Packets with a forged source come in.",
        higher_hurts="1 drops what comes in on another link than the answer takes.",
    ),
    Setting(
        "net.ipv4.conf.*.arp_filter",
        "Whether a link answers ARP only for addresses that are routed by it.",
        "switch",
        default="0",
        higher_hurts="Without routes by source an address may get no answer on its own link.",
    ),
    Setting(
        "net.ipv4.conf.*.arp_ignore",
        "For which addresses a link answers ARP: 1 its own, 2 its own in the same network.",
        "mode",
        default="0",
        lower_hurts="With several links in one network, a neighbour may learn another link's MAC address.",
        higher_hurts="Addresses of other links, or of lo, get no answer.",
    ),
    Setting(
        "net.ipv4.conf.*.arp_announce",
        "Which source address ARP requests have: 1 one of the target's network, 2 the best one.",
        "mode",
        default="0",
        lower_hurts="With several links in one network, a neighbour may learn another link's MAC address.",
    ),
    *_neighbours(4),
)


def _tracked(key: str, other: str, *, is_finer: bool) -> Setting:
    return Setting(
        key,
        "The most connections that the firewall tracks.",
        "connections",
        is_finer=is_finer,
        derived_from="memory: 65,536 to 262,144 by default",
        same_as=other,
        grows=True,
        shown_by="dmesg: nf_conntrack: table full; drop of conntrack -S",
        lower_hurts="New connections are dropped when the table is full.",
        higher_hurts="Each entry takes 320 bytes, and a table that outgrows its buckets is slow.",
        share=_CONNTRACK,
        in_use=_TRACKED,
        sources=(sources.CONNTRACK,),
    )


def _same_in_ms(version: int) -> tuple[Setting, Setting]:
    coarse = f"net.ipv{version}.route.gc_min_interval"
    does = "The least time between two cleanings of the route table."
    return (
        Setting(coarse, does, "seconds", same_as=f"{coarse}_ms"),
        Setting(f"{coarse}_ms", does, "milliseconds", same_as=coarse, is_finer=True),
    )


OTHERS: Final = (
    *_neighbours(6),
    *_same_in_ms(4),
    *_same_in_ms(6),
    Setting("net.mptcp.pm_type", "Who manages the paths of MPTCP.", "mode", same_as="net.mptcp.path_manager"),
    Setting(
        "net.mptcp.path_manager",
        "Who manages the paths of MPTCP.",
        holds="words",
        same_as="net.mptcp.pm_type",
        is_finer=True,
    ),
    _tracked("net.nf_conntrack_max", "net.netfilter.nf_conntrack_max", is_finer=False),
    _tracked("net.netfilter.nf_conntrack_max", "net.nf_conntrack_max", is_finer=True),
    Setting(
        "net.ipv4.tcp_max_tw_buckets",
        "The most connections in TIME-WAIT; beyond it they end at once.",
        "connections",
        derived_from="memory",
        grows=True,
        shown_by="TCPTimeWaitOverflow of /proc/net/netstat",
        lower_hurts="Late segments of an ended connection may meet a new one.",
        higher_hurts="Each takes memory.",
    ),
    Setting(
        "net.ipv4.tcp_fin_timeout",
        "How long a connection that its program has closed waits for the peer's end.",
        "seconds",
        default="60",
        lower_hurts="Peers that close late are reset.",
        higher_hurts="Orphaned connections keep memory.",
    ),
    *(
        Setting(f"net.ipv4.tcp_{name}", does, "mode", default=default, takes_effect="new-sockets", lower_hurts=lower)
        for name, does, default, lower in (
            ("ecn", "Whether TCP takes marks of congestion in place of loss: 1 asks, 2 answers.", "2", ""),
            ("fastopen", "Whether data may go with the first segment: 1 as a client, 2 as a server.", "1", ""),
        )
    ),
    Setting(
        "net.ipv4.ip_default_ttl",
        "How many routers a packet may pass.",
        "hops",
        low=1,
        high=255,
        bounds_source=_IP,
        default="64",
        lower_hurts="Peers that are further away are not reached.",
    ),
    Setting(
        "net.ipv4.ipfrag_high_thresh",
        "Memory for the parts of cut packets.",
        "bytes",
        holds="unsigned",
        default="4194304",
        shown_by="ReasmFails of /proc/net/snmp",
        lower_hurts="Datagrams larger than the MTU are lost under load.",
        higher_hurts="A flood of parts takes more memory.",
    ),
    Setting(
        "net.ipv6.ip6frag_high_thresh",
        "Memory for the parts of cut IPv6 packets.",
        "bytes",
        holds="unsigned",
        default="4194304",
        shown_by="Ip6ReasmFails of /proc/net/snmp6",
        lower_hurts="Datagrams larger than the MTU are lost under load.",
        higher_hurts="A flood of parts takes more memory.",
    ),
    *(
        Setting(
            f"net.sctp.sctp_{end}mem",
            "The buffer of an SCTP association: least, at first, most.",
            "bytes",
            fields=("min", "default", "max"),
        )
        for end in "rw"
    ),
    Setting(
        "net.sctp.sctp_mem",
        "Memory of all SCTP sockets together: from which it is saved, and which is the most.",
        "pages",
        fields=("min", "pressure", "max"),
        holds="unsigned",
        derived_from="memory",
        share=_ALL_SOCKETS,
    ),
    *(
        Setting(
            f"net.bridge.bridge-nf-call-{table}",
            f"Whether packets of bridges pass {table}; the module br_netfilter has it.",
            "switch",
            default="1 once the module is loaded",
            lower_hurts="Rules for containers and virtual machines on a bridge are not applied.",
            higher_hurts="Each packet of a bridge passes the firewall's rules.",
            sources=(sources.BRIDGE,),
        )
        for table in ("iptables", "ip6tables", "arptables")
    ),
)
