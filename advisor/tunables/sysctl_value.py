"""What the kernel makes of a value of a sysctl: numbers are read to the base that their prefix says, words behind them
are not read, and some keys take a part of the numbers only (kernel/sysctl.c: proc_dointvec, proc_get_long)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from advisor.facts.reserved_ports import KEY as RESERVED_PORTS
from advisor.facts.reserved_ports import parse_ports, ports_text
from advisor.facts.sysctl_keys import UNSIGNED_KEYS, kernel_number, numbers_of
from advisor.host.patterns import lazy_regex

# Keys whose words are no such numbers: text, lists and masks of CPUs or ports, hexadecimal in what is read back.
_TEXT: Final = lazy_regex(
    r"kernel\.(hostname|domainname|core_pattern|modprobe|hotplug|poweroff_cmd|printk_devkmsg|watchdog_cpumask)"
    r"|kernel\.(ftrace_dump_on_oops|seccomp\..*|random\.(boot_id|uuid))|fs\.binfmt_misc\..*|sunrpc\..*_debug"
    r"|net\.core\.(default_qdisc|rps_default_mask|flow_limit_cpu_bitmap|netdev_rss_key)"
    r"|net\.ipv[46]\.(ip_local_reserved_ports|tcp_\w*congestion_control|tcp_available_ulp|tcp_fastopen_key)"
    r"|net\.ipv6\.conf\..*\.stable_secret|net\.mptcp\.(scheduler|path_manager)|net\.netfilter\.nf_log\..*"
    r"|net\.sctp\.cookie_hmac_alg|vm\.numa_zonelist_order|.*(mask|bitmap)"
)


class Bounds(msgspec.Struct, frozen=True):
    """What every number of a key has to be, as the kernel documents it in ``source``, where it refuses the others too.

    ``is_ordered``: none is smaller than the one before it.
    """

    low: int
    high: int | None
    source: str
    is_ordered: bool = False


_VM: Final = "Documentation/admin-guide/sysctl/vm.rst"
_IP: Final = "Documentation/networking/ip-sysctl.rst"
_CORE_TABLE: Final = "net/core/sysctl_net_core.c"
_SOCKET_LEAST: Final = "include/net/sock.h: the least buffer of a socket"
_IPV4_TABLE: Final = "net/ipv4/sysctl_net_ipv4.c"
_UNSIGNED: Final = "kernel/sysctl.c: it has no sign, and a negative number is left out"
# Where kernels differ, the widest. A key whose other values a kernel takes without a word is not here (rp_filter).
_BOUNDS: Final[Mapping[str, Bounds]] = {
    **dict.fromkeys(sorted(UNSIGNED_KEYS), Bounds(0, None, _UNSIGNED)),
    # SOCK_MIN_RCVBUF and SOCK_MIN_SNDBUF of kernels since 3.11, without what their records add.
    **dict.fromkeys(("net.core.rmem_default", "net.core.rmem_max"), Bounds(2048, None, _SOCKET_LEAST)),
    **dict.fromkeys(("net.core.wmem_default", "net.core.wmem_max"), Bounds(4096, None, _SOCKET_LEAST)),
    **dict.fromkeys(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), Bounds(1, None, _IPV4_TABLE)),
    **dict.fromkeys(("net.ipv4.udp_rmem_min", "net.ipv4.udp_wmem_min"), Bounds(1, None, _IPV4_TABLE)),
    **{f"net.ipv4.neigh.default.gc_thresh{number}": Bounds(0, None, "net/core/neighbour.c") for number in (1, 2, 3)},
    "net.core.somaxconn": Bounds(0, None, _CORE_TABLE),
    "vm.max_map_count": Bounds(0, None, "kernel/sysctl.c"),
    "vm.min_free_kbytes": Bounds(0, None, "kernel/sysctl.c"),
    "vm.dirty_expire_centisecs": Bounds(0, None, "mm/page-writeback.c"),
    "vm.swappiness": Bounds(0, 200, _VM),
    "vm.overcommit_memory": Bounds(0, 2, _VM),
    "vm.panic_on_oom": Bounds(0, 2, _VM),
    "vm.compaction_proactiveness": Bounds(0, 100, _VM),
    "vm.watermark_scale_factor": Bounds(1, 3000, _VM),
    "vm.dirty_ratio": Bounds(0, 100, _VM),
    "vm.dirty_background_ratio": Bounds(0, 100, _VM),
    "vm.dirty_bytes": Bounds(8192, None, f"{_VM}: two pages"),
    "net.ipv4.ip_default_ttl": Bounds(1, 255, _IP),
    "net.ipv4.ip_local_port_range": Bounds(1, 65535, _IP, is_ordered=True),
    "net.ipv4.tcp_tw_reuse": Bounds(0, 2, _IP),
}


_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.sctp.sctp_rmem", "net.sctp.sctp_wmem"),
        ("min", "default", "max"),
    ),
    **dict.fromkeys(("net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.sctp.sctp_mem"), ("min", "pressure", "max")),
    "net.ipv4.ip_local_port_range": ("first", "last"),
}
"""Keys whose numbers have these names and rise (ip-sysctl). The kernel takes fewer of them and keeps the others, and
takes most of these keys in any order: a buffer is then never larger than the least of them."""


def explain_fields(key: str, value: str) -> str | None:
    """Why the numbers of a key are too few or do not rise, with what to write; None where they are neither."""
    names, numbers = _FIELDS.get(key, ()), [kernel_number(word) for word in value.split()]
    read = [number for number in numbers if number is not None]
    if not names or len(read) != len(numbers):
        return None
    shown = " ".join(name.upper() for name in names)
    if len(read) < len(names):
        return f"has {len(read)} of {len(names)} numbers: write {shown}, none below the one before it"
    falling = next((place for place in range(1, len(names)) if read[place] < read[place - 1]), None)
    if falling is None:
        return None
    return (
        f"has {names[falling]} {read[falling]} below {names[falling - 1]} {read[falling - 1]}: write {shown}, "
        "none below the one before it"
    )


def is_text_key(key: str) -> bool:
    """Whether a key is known to hold words, a list or a mask, whatever it reads."""
    return bool(_TEXT.fullmatch(key))


def to_canonical(key: str, value: str, *, numbers: int | None = None) -> str:
    """The value as the kernel shows it once it is set: ``050 # why`` is ``40``.

    ``numbers``: how many of them the key holds, where that is known of a host. What is not numbers, or not known to
    be, is returned unchanged, but for its blanks, of which one is left between two words.
    """
    folded = " ".join(value.split())
    if key == RESERVED_PORTS and (ports := parse_ports(folded)) is not None:
        return ports_text(ports)
    if is_text_key(key):
        return folded
    words = re.split("[ \t\n]+", value.strip(" \t\n"))
    end = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    most = numbers_of(key) or numbers
    read = [kernel_number(word) for word in words[:end][:most]]
    if not read or None in read:
        return folded
    return " ".join(map(str, read))


def documented_bounds(key: str) -> Bounds | None:
    """What every number of a key has to be; None where nothing is documented."""
    return _BOUNDS.get(key)


def out_of_bounds(key: str, value: str) -> str | None:
    """Why the kernel refuses numbers for a key, by its own documentation; None where it does not or is not known to."""
    bounds = _BOUNDS.get(key)
    read = [kernel_number(word) for word in value.split()]
    if bounds is None or not read:
        return None
    found = [number for number in read if number is not None]
    if len(found) < len(read):
        return None
    wrong = next((one for one in found if one < bounds.low or (bounds.high is not None and one > bounds.high)), None)
    if wrong is not None:
        low, high, source = bounds.low, bounds.high, bounds.source
        if high is None:
            return f"{wrong} is not from {low} on ({source})"
        return f"{wrong} is not {low} to {high} ({source})"
    if bounds.is_ordered and found != sorted(found):
        return f"{found[-1]} is less than {found[0]} ({bounds.source})"
    return None
