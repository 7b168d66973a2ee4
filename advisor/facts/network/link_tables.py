"""Tables below /proc/net that describe links: bonding, VLANs, routes and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.facts.network.ip_text import BareLink
from advisor.facts.text import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.numbers import is_count, is_hexadecimal
from advisor.host.patterns import lazy_regex

# RTF_UP and RTF_REJECT of linux/route.h: a reject route leads nowhere.
_UP, _REJECT = 0x0001, 0x0200
_BOND_MODES = (
    ("load balancing (round-robin)", "balance-rr"),
    ("fault-tolerance (active-backup)", "active-backup"),
    ("load balancing (xor)", "balance-xor"),
    ("fault-tolerance (broadcast)", "broadcast"),
    ("IEEE 802.3ad", "802.3ad"),
    ("transmit load balancing", "balance-tlb"),
    ("adaptive load balancing", "balance-alb"),
)
_BOND_NAMES = {
    "MII Polling Interval (ms)": "miimon",
    "Up Delay (ms)": "updelay",
    "Down Delay (ms)": "downdelay",
    "ARP Polling Interval (ms)": "arp_interval",
    "LACP rate": "lacp_rate",
    "Min links": "min_links",
    "Aggregator selection policy (ad_select)": "ad_select",
    "Currently Active Slave": "active_slave",
}


class BondMember(msgspec.Struct, frozen=True):
    """A member as /proc/net/bonding prints it. ``speed_mbps`` in Mbit/s, None where unknown."""

    name: str
    mii_status: str | None
    speed_mbps: int | None
    permanent_mac: str | None
    churned: str | None = None
    """Who never came to agree on the aggregation (IEEE 802.3ad): actor, partner or both."""


class Bonding(msgspec.Struct, frozen=True):
    """A bond. ``detail`` by the names of the bonding options (mode, xmit_hash_policy, miimon …)."""

    mode: str | None
    mii_status: str | None
    detail: Mapping[str, str]
    members: tuple[BondMember, ...]


def parse_bonding(text: str) -> Bonding:
    """/proc/net/bonding/BOND (bonding.rst). What a truncated text no longer says is None or left out."""
    head, *sections = re.split(r"^Slave Interface:", text, flags=re.MULTILINE)
    fields = _parse_fields(head)
    mode = _bond_mode(fields.get("Bonding Mode", ""))
    detail = {own: fields[name] for name, own in _BOND_NAMES.items() if fields.get(name, "None") != "None"}
    if mode:
        detail["mode"] = mode
    policy = fields.get("Transmit Hash Policy", "").split(" ")[0]
    if policy:
        detail["xmit_hash_policy"] = policy
    primary = fields.get("Primary Slave", "None").split(" ")[0]
    if primary != "None":
        detail["primary"] = primary
    return Bonding(mode, fields.get("MII Status"), detail, tuple(_make_member(section) for section in sections))


def _bond_mode(words: str) -> str | None:
    return next((mode for printed, mode in _BOND_MODES if words.startswith(printed)), None)


def _make_member(section: str) -> BondMember:
    name, _, rest = section.partition("\n")
    fields = _parse_fields(rest)
    speed = re.fullmatch(r"([0-9]{1,9}) Mbps", fields.get("Speed", ""), re.ASCII)
    mac = fields.get("Permanent HW addr")
    churned = [side for side in ("actor", "partner") if fields.get(f"{side.title()} Churn State") == "churned"]
    return BondMember(
        name.strip(), fields.get("MII Status"), int(speed[1]) if speed else None, mac, ", ".join(churned) or None
    )


def _parse_fields(text: str) -> dict[str, str]:
    """``Name: value`` lines; a name without a value is left out."""
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


_ROUTE_MTU = lazy_regex(r"^([0-9a-f:.]+(?:/[0-9]+)?|default)(?= )[^\n]*? mtu (lock )?([0-9]{1,9})\\b", re.MULTILINE)


def parse_route_mtus(text: str) -> dict[str, int]:
    """``ip -o route show``: the MTU of each route that has one of its own, in bytes, by destination. After a ``lock``
    the destination has ``, locked`` behind it: path MTU discovery is off there (ip-route(8))."""
    return {
        destination + (", locked" if lock else ""): int(size) for destination, lock, size in _ROUTE_MTU.findall(text)
    }


def parse_vlan_config(text: str) -> dict[str, tuple[str, str]]:
    """/proc/net/vlan/config: VLAN id and the link below, by the name of the VLAN link."""
    rows = (tuple(field.strip() for field in line.split("|")) for line in text.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3 and is_count(row[1])}


class _Route(msgspec.Struct, frozen=True):
    link: str
    network: int
    gateway: int
    mask: int


def parse_default_routes(text: str) -> frozenset[str]:
    """Links with a default route in /proc/net/route (the main IPv4 table).

    Of a route with several next hops the kernel lists the first only.
    """
    return frozenset(route.link for route in _parse_routes(text) if not route.network and not route.mask)


def parse_default_routes6(text: str) -> frozenset[str]:
    """Links with a default route in /proc/net/ipv6_route; each next hop has a line of its own."""
    links = set()
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 10 and fields[1] == "00" and not fields[0].strip("0"):
            flags = _parse_hex(fields[8])
            if flags is not None and flags & _UP and not flags & _REJECT:
                links.add(fields[9])
    return frozenset(links)


def _parse_routes(text: str) -> Iterator[_Route]:
    """The usable IPv4 routes; addresses as numbers, most significant byte first."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 8 or (flags := _parse_hex(fields[3])) is None or not flags & _UP or flags & _REJECT:
            continue
        network, gateway, mask = [_parse_address(fields[at]) for at in (1, 2, 7)]
        if network is not None and gateway is not None and mask is not None:
            yield _Route(fields[0], network, gateway, mask)


def _parse_address(text: str) -> int | None:
    """An IPv4 address in the host's byte order, as the kernel prints it; all hosts that we know are little-endian."""
    number = _parse_hex(text) if len(text) == 8 else None
    return None if number is None else int.from_bytes(number.to_bytes(4, "little"), "big")


def _parse_hex(text: str) -> int | None:
    return int(text, 16) if len(text) <= 8 and is_hexadecimal(text) else None


def parse_local_addresses(text: str) -> frozenset[str]:
    """IPv4 addresses of this host, from the local table in /proc/net/fib_trie."""
    found = re.findall(r"\|-- ([0-9.]{7,15})\n\s*/32 host LOCAL", text)
    return frozenset(address for address in found if _address_number(address) >= 0)


def place_addresses(local: Iterable[str], routes: str) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """IPv4 addresses with prefix length by link, and those whose link is unknown.

    The kernel's text names no link with a local address. It is certain only where a network that is directly
    connected (/proc/net/route) holds one local address: a second one may as well sit on ``lo``.
    127.0.0.0/8, whose route is not listed, belongs to ``lo``.
    """
    connected = [
        _Route("lo", 127 << 24, 0, 255 << 24),
        *(row for row in _parse_routes(routes) if row.mask and not row.gateway),
    ]
    holders: dict[_Route | None, list[str]] = {}
    for address in sorted(local, key=_address_number):
        holders.setdefault(_narrowest_route(connected, _address_number(address)), []).append(address)
    placed: dict[str, tuple[str, ...]] = {}
    homeless: list[str] = []
    for route, addresses in holders.items():
        if route is not None and len(addresses) == 1:
            placed[route.link] = (*placed.get(route.link, ()), f"{addresses[0]}/{route.mask.bit_count()}")
        else:
            homeless.extend(addresses)
    return placed, tuple(homeless)


def _narrowest_route(routes: Iterable[_Route], address: int) -> _Route | None:
    around = [route for route in routes if address & route.mask == route.network]
    narrowest = max((route.mask for route in around), default=None)
    found = [route for route in around if route.mask == narrowest]
    return found[0] if len(found) == 1 else None


def _address_number(address: str) -> int:
    """-1 for what is no IPv4 address."""
    parts = address.split(".")
    if len(parts) != 4 or not all(re.fullmatch("[0-9]{1,3}", part) and int(part) < 256 for part in parts):
        return -1
    return int.from_bytes(bytes(int(part) for part in parts), "big")


def parse_inet6(text: str) -> dict[str, tuple[str, ...]]:
    """IPv6 addresses with prefix length by link, from /proc/net/if_inet6."""
    import socket

    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = line.split()
        if (
            len(fields) == 6
            and re.fullmatch("[0-9a-f]{32}", fields[0])
            and (length := _parse_hex(fields[2])) is not None
        ):
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0]))
            found.setdefault(fields[5], []).append(f"{address}/{length}")
    return {name: tuple(addresses) for name, addresses in found.items()}


# Links by sysfs and /proc/net, where ``ip`` does not report them.

NET = "/sys/class/net"
LARGEST = (1 << 63) - 1

# ARPHRD_… of linux/if_arp.h. 1 and 65534 (none) say little; see _kind.
_TYPES = {
    1: "ethernet",
    32: "infiniband",
    280: "can",
    512: "ppp",
    519: "rawip",
    768: "ipip",
    769: "ip6tnl",
    772: "loopback",
    776: "sit",
    778: "gre",
    801: "wlan",
    802: "wlan",
    803: "wlan",
    823: "ip6gre",
    824: "nlmon",
    65534: "none",
}
_DRIVER_KINDS = {"bonding": "bond", "802.1Q VLAN Support": "vlan"}
# Kinds of link that sit on the one that their iflink names; a veth's iflink is its other end.
_ON_IFLINK = frozenset({"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "gre", "ipip", "sit", "ip6tnl", "ip6gre"})
_BRIDGE_PORT_STATES = ("disabled", "listening", "learning", "forwarding", "blocking")
_BOND_OPTIONS = ("mode", "xmit_hash_policy", "miimon", "arp_interval", "active_slave", "primary", "min_links")
_BOND_OPTIONS_LACP = (
    "lacp_rate",
    "ad_select",
    "tlb_dynamic_lb",
    "updelay",
    "downdelay",
    "ad_aggregator",
    "ad_partner_mac",
)
_BRIDGE_OPTIONS = ("stp_state", "forward_delay", "vlan_filtering", "bridge_id", "root_id")


class LinkDirectory(msgspec.Struct, frozen=True):
    """A directory of /sys/class/net. ``name`` can be printed; ``path`` is what the kernel calls it."""

    name: str
    path: str
    entries: frozenset[str]

    def named(self, prefix: str) -> tuple[str, ...]:
        """Names after a prefix (``lower_``), sorted."""
        return tuple(sorted(printable(name.removeprefix(prefix)) for name in self.entries if name.startswith(prefix)))


class _Tables(msgspec.Struct, frozen=True):
    """What /proc/net says: VLANs (id, link below), bonds, and members of bonds with the name of their bond."""

    vlans: Mapping[str, tuple[str, str]]
    bonds: Mapping[str, Bonding]
    members: Mapping[str, tuple[str, BondMember]]


def list_links(host: Host) -> dict[str, LinkDirectory] | Missing:
    """The link directories by printable name."""
    names = host.listdir(NET)
    if isinstance(names, Missing):
        return names
    # A file that the bonding module puts among the links.
    paths = ((printable(name), f"{NET}/{name}") for name in names if name != "bonding_masters")
    return {name: LinkDirectory(name, path, frozenset(host.names(path))) for name, path in paths}


def number(host: Host, path: str) -> int | Missing | None:
    """A count; None for an empty file or one below 0 (the kernel's *unknown*), unreadable for one beyond 64 bits."""
    text = host.read(path)
    if isinstance(text, Missing):
        return text
    if not is_count(text.removeprefix("-")) or int(text) > LARGEST:
        return Missing("unreadable", f"not a number: {text[:40]!r}") if text else None
    return int(text) if int(text) >= 0 else None


def read_sysfs_links(
    host: Host, directories: Mapping[str, LinkDirectory], drivers: Mapping[str, str], unknown: Unknowns
) -> dict[str, BareLink]:
    """Links by sysfs alone. ``drivers`` is what ethtool calls the drivers, where it could be asked.

    Without netlink a dummy and an ifb look the same: a virtual link whose kind leaves no trace is ``virtual``.
    """
    vlans = host.read("/proc/net/vlan/config")
    texts = {printable(name): host.read(f"/proc/net/bonding/{name}") for name in host.names("/proc/net/bonding")}
    bonds = {name: parse_bonding(text) for name, text in texts.items() if not isinstance(text, Missing)}
    members = {member.name: (name, member) for name, bond in bonds.items() for member in bond.members}
    tables = _Tables({} if isinstance(vlans, Missing) else parse_vlan_config(vlans), bonds, members)
    indices = {name: _read_field(host, place, "ifindex", unknown) for name, place in directories.items()}
    names = {index: name for name, index in indices.items() if index is not None}
    links = {}
    for name, place in directories.items():
        iflink = _read_field(host, place, "iflink", unknown)
        is_bound = iflink is not None and iflink != indices[name]
        kind = _find_kind(host, place, tables, driver=drivers.get(name), is_bound=is_bound)
        bound_to = names.get(iflink) if iflink is not None and is_bound else None
        links[name] = _make_link(host, place, kind, indices[name], bound_to, tables, unknown)
    return links


def _make_link(
    host: Host,
    place: LinkDirectory,
    kind: str,
    ifindex: int | None,
    bound_to: str | None,
    tables: _Tables,
    unknown: Unknowns,
) -> BareLink:
    vlan, member = tables.vlans.get(place.name), tables.members.get(place.name)
    permanent = host.read_text(f"{place.path}/bonding_slave/perm_hwaddr") if "bonding_slave" in place.entries else None
    # None for a link that is not up: the kernel answers EINVAL.
    text = host.read_text(f"{place.path}/carrier")
    detail: dict[str, str] = {}
    if kind == "bond":
        bond = tables.bonds.get(place.name)
        printed = dict(bond.detail) if bond else {}
        if "bonding" not in place.entries:
            detail = printed
        else:
            # "balance-rr 0": the word, then the number.
            options = _read_options(host, f"{place.path}/bonding", _BOND_OPTIONS + _BOND_OPTIONS_LACP)
            detail = printed | {name: value.split()[0] for name, value in options.items() if value.strip()}
    elif kind == "infiniband":
        detail = _read_options(host, place.path, ("mode",))
    elif kind == "bridge":
        detail = _read_options(host, f"{place.path}/bridge", _BRIDGE_OPTIONS)
    elif place.name in tables.vlans:
        detail = {"id": tables.vlans[place.name][0]}
    elif kind == "veth" and bound_to is not None:
        detail = {"peer": bound_to}
    return BareLink(
        name=place.name,
        ifindex=ifindex,
        kind=kind,
        mtu=_read_field(host, place, "mtu", unknown),
        state=host.read_text(f"{place.path}/operstate"),
        carrier={"1": True, "0": False}.get(text) if text else None,
        txqueuelen=_read_field(host, place, "tx_queue_len", unknown),
        mac=host.read_text(f"{place.path}/address"),
        permanent_mac=permanent or (member[1].permanent_mac if member else None),
        below=vlan[1] if vlan else bound_to if kind in _ON_IFLINK else None,
        master=_find_master(host, place, tables),
        detail=detail | _port_detail(host, place),
    )


def _read_field(host: Host, place: LinkDirectory, name: str, unknown: Unknowns) -> int | None:
    """A number that the kernel always knows: one below 0, which elsewhere says *unknown*, is none of its own."""
    found = number(host, f"{place.path}/{name}")
    if found is None and (text := host.read(f"{place.path}/{name}")):
        found = text if isinstance(text, Missing) else Missing("unreadable", f"not a number: {text!r}")
    return unknown.value(f"links.{place.name}.{name}", found)


def _find_kind(host: Host, place: LinkDirectory, tables: _Tables, *, driver: str | None, is_bound: bool) -> str:
    entries = place.entries
    if "bonding" in entries or place.name in tables.bonds:
        return "bond"
    if "bridge" in entries:
        return "bridge"
    if "tun_flags" in entries:
        # IFF_TAP is 0x2 (linux/if_tun.h).
        flags = host.read_int(f"{place.path}/tun_flags", 0)
        return "tap" if isinstance(flags, int) and flags & 0x2 else "tun"
    if "macvtap" in entries:
        return "macvtap"
    text = host.read_text(f"{place.path}/uevent") or ""
    found = re.search(r"^DEVTYPE=([A-Za-z0-9_.-]+)$", text, re.MULTILINE)
    own_word = found[1] if found else None
    if own_word:
        return own_word
    if place.name in tables.vlans:
        return "vlan"
    type_number = number(host, f"{place.path}/type")
    kind = _TYPES.get(type_number, f"type-{type_number}") if isinstance(type_number, int) else "ethernet"
    if kind not in ("ethernet", "none") or not _is_virtual(host, place):
        return kind
    if driver in _DRIVER_KINDS:
        return _DRIVER_KINDS[driver]
    if driver and re.fullmatch(r"[a-z][a-z0-9_]*", driver):
        return driver
    # Bound to another link, yet not resting on it: the two ends of a veth.
    return "veth" if is_bound and not place.named("lower_") else "virtual"


def _is_virtual(host: Host, place: LinkDirectory) -> bool:
    if "device" in place.entries:
        return False
    target = host.readlink(place.path)
    return not isinstance(target, Missing) and "/virtual/" in target


def _port_detail(host: Host, place: LinkDirectory) -> dict[str, str]:
    if "bonding_slave" in place.entries:
        options = _read_options(host, f"{place.path}/bonding_slave", ("state", "mii_status", "ad_aggregator_id"))
        return {f"port_{name}": value for name, value in options.items() if value != "N/A"}
    if "brport" in place.entries:
        state = number(host, f"{place.path}/brport/state")
        if isinstance(state, int) and state < len(_BRIDGE_PORT_STATES):
            return {"port_state": _BRIDGE_PORT_STATES[state]}
    return {}


def _read_options(host: Host, directory: str, names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name in names if (value := host.read_text(f"{directory}/{name}"))}


def _find_master(host: Host, place: LinkDirectory, tables: _Tables) -> str | None:
    if "master" in place.entries:
        target = host.readlink(f"{place.path}/master")
        if not isinstance(target, Missing):
            return printable(target.rpartition("/")[2])
    member = tables.members.get(place.name)
    return member[0] if member else None
