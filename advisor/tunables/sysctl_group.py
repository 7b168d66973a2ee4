"""Sysctls that the kernel changes together with another one: one value in two units, and what ``all`` or ``default``
copies to the links; and which of them each namespace has for itself.

Sources: net/ipv4/devinet.c (inet_forward_change, devinet_copy_dflt_conf), net/ipv6/addrconf.c (addrconf_sysctl_*,
addrconf_notify), net/core/neighbour.c (neigh_copy_dflt_parms), net/mptcp/ctrl.c, mm/util.c of the kernel; of namespaces
net/core/sysctl_net_core.c (``netns_core_table``), net/ipv4/sysctl_net_ipv4.c, net/ipv4/route.c, net/ipv6,
net/netfilter/nf_conntrack_standalone.c, ipc/ipc_sysctl.c, ipc/mq_sysctl.c, kernel/utsname_sysctl.c, kernel/ucount.c.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from advisor.facts.settings import find_setting
from advisor.facts.settings.record import InUse, MemoryShare, Setting
from advisor.facts.settings.value import KEY as RESERVED_PORTS
from advisor.facts.settings.value import parse_ports, ports_text
from advisor.facts.system.memory import X86_PAGE_BYTES, parse_meminfo, read_page_bytes
from advisor.facts.system.roles import LISTENERS, parse_listeners
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.tunables.kind import Namespace
from advisor.tunables.preflight import has_index, is_built_in, list_choices, module_name, read_dependencies

# Sysctls whose value has to fit the host: shares of its memory, limits below what is in use, names that it has.

MIB = 1 << 20
PORT_RANGE = "net.ipv4.ip_local_port_range"
CONGESTION = "net.ipv4.tcp_congestion_control"
QDISC = "net.core.default_qdisc"
AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_LEAST_PORTS = 1000
"""Of a range that is made smaller: clients and health checks of one service alone use hundreds."""
_BUILT_IN_QDISCS = frozenset({"pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop", "mq", "noqueue"})
_NAME = lazy_regex(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_NUMBERS = lazy_regex(r"[0-9]{1,20}(?: [0-9]{1,20})*", re.ASCII)


class Judgement(NamedTuple):
    """Why a host should not get a value, and what to know where it may."""

    refusal: str | None = None
    notes: tuple[str, ...] = ()


def judge_on_host(host: Host, key: str, before: str, value: str) -> Judgement:
    """What this host makes of a value that the kernel would take. Reads the host, changes nothing."""
    if key == CONGESTION:
        return _judge_congestion(host, value)
    if key == QDISC:
        return Judgement() if value in _BUILT_IN_QDISCS else _judge_module(host, key, value, f"sch_{value}", ())
    if not _NUMBERS.fullmatch(value):
        return Judgement()
    if key == PORT_RANGE:
        return _judge_ports(host, before, value)
    setting = find_setting(key)
    if setting is None:
        return Judgement()
    largest = max(map(int, value.split()))
    was = max(map(int, before.split())) if _NUMBERS.fullmatch(before) else None
    is_lower = was is None or largest < was
    refusal = _below_use(host, setting, largest) if is_lower else None
    if refusal or setting.share is None:
        return Judgement(refusal)
    return Judgement() if largest <= (was or 0) else _judge_share(host, key, setting.share, largest)


def _below_use(host: Host, setting: Setting, largest: int) -> str | None:
    """Why a limit that is lowered leaves no room; None where it does, or where what is in use cannot be read."""
    use, least = setting.in_use, setting.least
    used = _measure_use(host, use) if use else 0
    shown = f"{used} {use.what} are in use" if use else ""
    if least is not None and largest < least.number:
        return f"{largest} is less than {least.number}, with which {least.otherwise}{f'; {shown}' if used else ''}"
    return f"{shown}, so that no other would fit under {largest}" if use is not None and used >= largest else None


def _measure_use(host: Host, use: InUse) -> int:
    """How much of a limit is used; 0 where that cannot be read."""
    places = [use.path]
    if "*" in use.path:
        places = [use.path.replace("*", name) for name in host.names("/proc") if is_count(name)]
    found = [re.findall(use.pattern, host.read_or_empty(path), re.ASCII) for path in places]
    if use.counts == "count":
        return max(map(len, found), default=0)
    numbers = [int(one) for some in found for one in some]
    if use.counts == "pages":
        return sum(numbers) // (read_page_bytes(host) or X86_PAGE_BYTES)
    return max(numbers, default=0)


def _judge_share(host: Host, key: str, share: MemoryShare, number: int) -> Judgement:
    sizes = parse_meminfo(host.read_or_empty("/proc/meminfo"))
    total = sizes.get("MemTotal")
    unit = sizes.get("Hugepagesize") if share.unit < 0 else share.unit or read_page_bytes(host) or X86_PAGE_BYTES
    if not total or not unit:
        why = "the memory of this host could not be read"
        return Judgement(notes=(f"sysctl:{key}: whether {number} fits is unknown: {why}",))
    part = number * unit / total
    if part <= share.warn:
        return Judgement()
    words = (
        f"{number * unit // MIB:,} of {total // MIB:,} MiB of memory ({100 * part:,.0f} %) {share.what} "
        f"({share.source})"
    )
    if part <= share.refuse:
        return Judgement(notes=(f"sysctl:{key}: {words}",))
    return Judgement(f"{words}; at most {int(share.refuse * total / unit)} here")


def _judge_congestion(host: Host, value: str) -> Judgement:
    offered = tuple(host.read_or_empty(AVAILABLE).split())
    return Judgement() if value in offered else _judge_module(host, CONGESTION, value, f"tcp_{value}", offered)


def _judge_module(host: Host, key: str, value: str, module: str, offered: tuple[str, ...]) -> Judgement:
    """Whether a module provides what the kernel does not have yet."""
    name = module_name(module)
    if _NAME.fullmatch(value) and is_built_in(host, name):
        return Judgement()
    if _NAME.fullmatch(value) and has_index(host):
        if read_dependencies(host, name) is not None:
            return Judgement(notes=(f"sysctl:{key}: {value} is in the module {name}, which the kernel loads for it",))
    elif _NAME.fullmatch(value):
        why = "the list of its modules (modules.dep) could not be read"
        return Judgement(notes=(f"sysctl:{key}: whether the kernel has {value} is unknown: {why}",))
    if offered:
        return Judgement(f"the kernel offers {list_choices(offered)}, and has no module {name}")
    return Judgement(f"the kernel has no module {name}")


def _judge_ports(host: Host, before: str, value: str) -> Judgement:
    """Ports that a wider range takes in while a service listens on them."""
    low, high = map(int, value.split())
    least = host.read_int("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if isinstance(least, int) and low < least:
        return Judgement(f"the kernel refuses a range below {least} (net.ipv4.ip_unprivileged_port_start)")
    old = tuple(map(int, before.split())) if _NUMBERS.fullmatch(before) else (0, 0)
    ports = high - low + 1
    if ports < min(_LEAST_PORTS, old[-1] - old[0] + 1):
        return Judgement(f"it leaves {ports} ports: connections to one address fail beyond that many")
    added = frozenset(range(low, high + 1)) - frozenset(range(old[0], old[-1] + 1))
    return Judgement(notes=tuple(_port_notes(host, added))) if added else Judgement()


def _port_notes(host: Host, added: frozenset[int]) -> Iterator[str]:
    reserved = parse_ports(host.read_or_empty("/proc/sys/net/ipv4/ip_local_reserved_ports")) or frozenset()
    inside = reserved & added
    if inside:
        yield f"of the wider range {ports_text(inside)} are reserved, and stay so ({RESERVED_PORTS})"
    listing = host.run(LISTENERS)
    if isinstance(listing, Missing) or not listing.ok:
        yield f"which services listen on ports of the wider range is unknown: {' '.join(LISTENERS)} gave no answer"
        return
    open_ports = (parse_listeners(listing.stdout) & added) - reserved
    if open_ports:
        yield (
            f"services listen on {ports_text(open_ports)}, which the wider range takes in: a connection may have "
            "such a port while its service restarts. To keep them: advisor plan "
            f"sysctl:{RESERVED_PORTS}={ports_text(reserved | open_ports)}"
        )


_FINER = {
    "base_reachable_time": "base_reachable_time_ms",
    "retrans_time": "retrans_time_ms",
    "unres_qlen": "unres_qlen_bytes",
}
# One that sets another of the same link.
_SETS = {
    "stable_secret": ("addr_gen_mode",),
    "forwarding": ("force_forwarding",),
    # With IPv6 back on the link, its IPv6 MTU is the link's.
    "disable_ipv6": ("mtu",),
}
_SET = frozenset(name for names in _SETS.values() for name in names)
_COARSER = {fine: coarse for coarse, fine in _FINER.items()}

_PER_LINK = lazy_regex(r"net\.(?P<version>ipv[46])\.(?P<table>conf|neigh)\.(?P<scope>[^.]+)\.(?P<attribute>[^.]+)")
_IPV6 = lazy_regex(r"sysctl:net\.ipv6\.(conf|neigh)\.([^.]+)\.[^.]+")
_DISABLES_IPV6 = lazy_regex(r"sysctl:net\.ipv6\.conf\.(?P<scope>[^.]+)\.disable_ipv6")


class _Place(msgspec.Struct, frozen=True):
    """A key of a table that has an entry for each link."""

    version: str
    table: str
    scope: str
    attribute: str


def twin_of(key: str) -> str | None:
    """The key that says the same in another unit, and that is zero wherever this one is not."""
    setting = find_setting(key)
    return (setting.twin or None) if setting else None


def _same_as(key: str) -> str | None:
    """The key that shows the same value under another name, or in another unit."""
    setting = find_setting(key)
    return (setting.same_as or None) if setting else None


def disables_ipv6(tunable: str, link: str | None = None) -> bool:
    """Whether setting the tunable can switch off IPv6, of this link or of any, and so take its addresses and routes.
    That of ``default`` is for links to come."""
    found = _DISABLES_IPV6.fullmatch(tunable)
    if found is None or found["scope"] == "default":
        return False
    return link is None or found["scope"] in ("all", link.replace(".", "/"))


@cache
def _find_place(key: str) -> _Place | None:
    if key == "net.ipv4.ip_forward":
        return _Place("ipv4", "conf", "all", "forwarding")
    found = _PER_LINK.fullmatch(key)
    return None if found is None else _Place(**found.groupdict())


@cache
def _changed_attributes(table: str, attribute: str) -> frozenset[str]:
    """What a write of an attribute can change, in any scope that it reaches."""
    units = (unit[attribute] for unit in (_FINER, _COARSER) if attribute in unit) if table == "neigh" else ()
    return frozenset((attribute, *units, *_SETS.get(attribute, ())))


def _is_moved_key(key: str, other: str) -> bool:
    if key == other:
        return False
    if _same_as(key) == other:
        return True
    one, two = _find_place(key), _find_place(other)
    if one is None or two is None or (one.version, one.table) != (two.version, two.table):
        return False
    if (one.version, one.scope, one.attribute) == ("ipv4", "all", "forwarding") and two.attribute == "accept_redirects":
        return two.scope == "all"
    if one.scope == "all" and one.version == "ipv4" and one.attribute != "forwarding":
        # The kernel combines these with a link's own when it uses them, and copies them nowhere.
        return False
    is_reached = one.scope in ("all", two.scope) or (one.scope == "default" and two.scope != "all")
    return is_reached and two.attribute in _changed_attributes(one.table, one.attribute)


def can_move(tunable: str, other: str) -> bool:
    """Whether setting the one tunable can change the other, a sysctl; both by id, read from their names alone."""
    if tunable.startswith("link:"):
        # A new MTU sets the link's IPv6 MTU; one below 1280 bytes removes all that IPv6 has of the link.
        return tunable.endswith(":mtu") and _IPV6.fullmatch(other) is not None
    if not (tunable.startswith("sysctl:") and other.startswith("sysctl:")):
        return False
    return _is_moved_key(tunable.removeprefix("sysctl:"), other.removeprefix("sysctl:"))


def can_be_moved(tunable: str, names: Iterable[str]) -> bool:
    """Whether setting one of ``names`` can change this tunable."""
    return tunable.startswith("sysctl:net.") and any(can_move(name, tunable) for name in names)


def coupled_among(names: Collection[str]) -> frozenset[str]:
    """Those of the tunables that setting another of them can change."""
    index: dict[tuple[str, ...], list[str]] = {}
    for one in names:
        for place in _reached_places(one):
            index.setdefault(place, []).append(one)
    movers = {one: [name for place in _own_places(one) for name in index.get(place, ())] for one in names}
    return frozenset(one for one in names if can_be_moved(one, movers[one]))


def _reached_places(tunable: str) -> Iterator[tuple[str, ...]]:
    """Where to look for what setting a tunable can change, so that not each two have to be compared."""
    if tunable.startswith("link:"):
        yield ("link",)
        return
    key = tunable.removeprefix("sysctl:")
    other, one = _same_as(key), _find_place(key)
    if other is not None:
        yield (other,)
    if one is not None:
        names = _changed_attributes(one.table, one.attribute)
        for name in (*names, "accept_redirects") if one.attribute == "forwarding" else names:
            yield (one.version, one.table, name)


def _own_places(tunable: str) -> Iterator[tuple[str, ...]]:
    """Where a tunable itself is found by that."""
    key = tunable.removeprefix("sysctl:")
    yield (key,)
    one = _find_place(key)
    if one is not None:
        yield (one.version, one.table, one.attribute)
        if one.version == "ipv6":
            yield ("link",)


def group_of(host: Host, key: str) -> tuple[str, ...]:
    """The other keys that a write of ``key`` can change on this host, in the order in which they are to be restored."""
    candidates = []
    other = _same_as(key)
    if other is not None:
        candidates.append(other)
    each = _find_place(key)
    if each is not None:
        attributes = set(_changed_attributes(each.table, each.attribute))
        if (each.version, each.attribute) == ("ipv4", "forwarding"):
            candidates.append("net.ipv4.ip_forward")
            attributes.add("accept_redirects")
        for scope in host.names(f"/proc/sys/net/{each.version}/{each.table}"):
            # A dot in a name is a slash in a key.
            candidates += (f"net.{each.version}.{each.table}.{scope.replace('.', '/')}.{name}" for name in attributes)
    found = {one for one in candidates if _is_moved_key(key, one)}
    return tuple(sorted(found, key=lambda one: (restore_rank(one), one)))


def ipv6_keys(host: Host, link: str) -> tuple[str, ...]:
    """All that IPv6 keeps of one link, in the order in which it is to be restored."""
    found = [
        f"net.ipv6.{table}.{link.replace('.', '/')}.{name}"
        for table in ("conf", "neigh")
        for name in host.names(f"/proc/sys/net/ipv6/{table}/{link}")
    ]
    return tuple(sorted(found, key=lambda one: (restore_rank(one), one)))


def restore_rank(key: str) -> int:
    """The wider first, and of two units the coarser: what comes later then has the last word. 0 for what is no part of
    a group."""
    one = _find_place(key)
    if one is None:
        setting = find_setting(key)
        return int(setting is not None and setting.is_finer)
    is_later = one.attribute in _COARSER or one.attribute in _SET or one.attribute == "accept_redirects"
    return {"all": 2, "default": 4}.get(one.scope, 6) + is_later


_CORE = "optmem_max|rps_default_mask|somaxconn|tstamp_allow_data|txrehash|xfrm_acq_expires|xfrm_aevent_etime"
_CORE_REST = "xfrm_aevent_rseqth|xfrm_larval_drop"
# In the first namespace alone, or shown to the others and not written by them.
_IPV4_OF_HOST = "|".join(
    (
        *("cipso_", "fib_sync_mem$", "inet_peer_", "ipfrag_secret_interval$", r"neigh\.default\.", "tcp_available_"),
        *(r"route\.(?:error_|gc_|max_size$|redirect_)", r"conf\..+\.mc_forwarding$", "tcp_allowed_congestion_control$"),
        *("tcp_ehash_entries$", "tcp_low_latency$", "tcp_max_orphans$", "tcp_mem$", "udp_hash_entries$", "udp_mem$"),
    )
)
_IPV6_OF_HOST = r"calipso_|ip6frag_secret_interval$|mld_|neigh\.default\.|conf\..+\.mc_forwarding$"
_NETFILTER_OF_HOST = "nf_log_all_netns$|nf_conntrack_(?:max|buckets|count|expect_max)$"

NAMESPACES: tuple[tuple[str, Namespace], ...] = (
    (rf"net\.core\.(?:{_CORE}|{_CORE_REST})", "net"),
    (rf"net\.ipv4\.(?!{_IPV4_OF_HOST}).+", "net"),
    (rf"net\.ipv6\.(?!{_IPV6_OF_HOST}).+", "net"),
    (rf"net\.netfilter\.(?!{_NETFILTER_OF_HOST}).+", "net"),
    (r"net\.mptcp\.(?!available_).+", "net"),
    (r"net\.(?:bridge|sctp|smc|unix|vrf)\..+", "net"),
    (r"kernel\.(?:shm(?:all|max|mni|_next_id|_rmid_forced)|msg(?:max|mnb|mni|_next_id)|sem|sem_next_id)", "ipc"),
    (r"kernel\.auto_msgmni|fs\.mqueue\..+", "ipc"),
    (r"kernel\.(?:host|domain)name", "uts"),
    (r"user\.max_.+", "user"),
)
"""Pattern of a key, and its namespace."""
