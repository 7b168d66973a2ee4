"""Links by sysfs and /proc/net, where ``ip`` does not report them.

After Documentation/ABI/testing/sysfs-class-net, bonding.rst and the headers linux/if_arp.h and linux/if_tun.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.facts.ip_json import BareLink
from advisor.facts.link_tables import Bonding, BondMember, parse_bonding, parse_vlan_config
from advisor.facts.printable import printable
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_count

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
