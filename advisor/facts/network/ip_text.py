"""What ``ip -d address`` prints, for an iproute2 without ``-j`` (before 4.14: RHEL 7) and for captured texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

import msgspec

from advisor.host.numbers import is_hexadecimal
from advisor.host.patterns import lazy_regex

# What ``ip -j -d addr show`` says about each link (iproute2): kind, MTU range, addresses, what it is stacked on.

Json: TypeAlias = Mapping[str, object]


class BareLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link by the kernel's netlink answer or by sysfs, before drivers are asked.

    ``kind`` is None where it is unknown. ``below`` names the one link that this one is bound to (the parent
    of a VLAN or macvlan, the underlay of a tunnel), ``master`` the one that it is enslaved to. ``mtu_min`` and
    ``mtu_max`` are None where the kernel knows no bound or nothing reports it.
    """

    name: str
    ifindex: int | None = None
    kind: str | None = None
    mtu: int | None = None
    mtu_min: int | None = None
    mtu_max: int | None = None
    state: str | None = None
    carrier: bool | None = None
    txqueuelen: int | None = None
    mac: str | None = None
    permanent_mac: str | None = None
    below: str | None = None
    master: str | None = None
    addresses: tuple[str, ...] = ()
    qdisc: str | None = None
    detail: Mapping[str, str] = {}


# What ``detail`` holds for a kind; every scalar for a kind that is not listed.
DETAILS: Mapping[str | None, tuple[str, ...]] = {
    "bond": (
        *("mode", "xmit_hash_policy", "miimon", "arp_interval", "active_slave", "primary", "min_links"),
        *("ad_lacp_rate", "ad_select", "tlb_dynamic_lb", "updelay", "downdelay"),
    ),
    "bridge": ("stp_state", "forward_delay", "vlan_filtering", "bridge_id", "root_id", "mcast_snooping"),
    "ethernet": (),
    "infiniband": ("key", "mode", "umcast"),
    "ipvlan": ("mode", "mode_flag"),
    "macvlan": ("mode",),
    "macvtap": ("mode",),
    "tap": ("user", "group", "multi_queue", "numqueues", "persist", "vnet_hdr"),
    "tun": ("user", "group", "multi_queue", "numqueues", "persist"),
    "vlan": ("protocol", "id"),
    "vxlan": (
        *("id", "group", "group6", "remote", "remote6", "local", "local6", "link", "port", "ttl", "df"),
        *("learning", "external", "udp_csum"),
    ),
}
_OWN_NAMES = {"ad_lacp_rate": "lacp_rate", "key": "pkey"}
_PORT_NAMES = {
    "state": "port_state",
    "mii_status": "port_mii_status",
    "hairpin": "port_hairpin",
    "ad_aggregator_id": "port_ad_aggregator_id",
}
_LACP_NAMES = {"aggregator": "ad_aggregator", "partner_mac": "ad_partner_mac"}
_LINK_TYPES = {"ether": "ethernet", "ieee802.11": "wlan", "ipip": "ipip", "tunnel6": "ip6tnl"}
# Their ``link`` is the other end, which they do not rest on.
_PEERED = frozenset({"veth", "netkit", "vxcan"})
_LARGEST = (1 << 63) - 1
# Never white space: no link name can hold that.
_CONTROL = lazy_regex("[\x00-\x08\x0e-\x1f]")
# Ubuntu's ip (6.1 of 24.04) prints the heading of its fan networks as it is, among the details of a vxlan.
_FAN_MAP = lazy_regex(r"(?<=[0-9}\]])fan-map (?=[,}])")


def parse_ip_links(text: str) -> dict[str, BareLink]:
    """Links by name. Entries that say nothing (old iproute2 prints ``{}``) are passed over.

    Raises ValueError where the text is not a JSON list.
    """
    entries = _decode_json(text)
    if not isinstance(entries, list):
        raise ValueError("not a list of links")
    return links_by_name(entry for entry in entries if isinstance(entry, dict))


def links_by_name(entries: Iterable[Json]) -> dict[str, BareLink]:
    """Links by name, of the entries of ip's list."""
    return {link.name: link for link in map(bare_link, entries) if link is not None}


def _decode_json(text: str) -> object:
    # ip escapes quotes and backslashes in link names but prints other control characters as they are.
    text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    if "fan-map " in text:
        text = _FAN_MAP.sub("", text)
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def bare_link(entry: Json) -> BareLink | None:
    """One entry of ip's list; None where it names no link."""
    name = _get_text(entry, "ifname")
    if name is None:
        return None
    info = _get_mapping(entry, "linkinfo")
    data = _get_mapping(info, "info_data")
    kind = _find_kind(_get_text(info, "info_kind"), _get_text(entry, "link_type"), data)
    flags = _parse_flags(entry)
    address = _get_text(entry, "address")
    text = _get_text(entry, "operstate")
    detail = _select_scalars(data, {name: _OWN_NAMES.get(name, name) for name in DETAILS.get(kind, tuple(data))})
    if kind in _PEERED and (peer := _get_text(entry, "link")) is not None:
        detail["peer"] = peer
    if (namespace := _get_number(entry, "link_netnsid")) is not None:
        detail["link_netnsid"] = str(namespace)
    if (port := _get_text(entry, "phys_port_name")) is not None:
        detail["phys_port_name"] = port
    detail |= _select_scalars(_get_mapping(data, "ad_info"), _LACP_NAMES) if kind == "bond" else {}
    # As what it serves its master: the state of a bridge port, the role and health of a bond member.
    return BareLink(
        name=name,
        ifindex=_get_number(entry, "ifindex"),
        kind=kind,
        mtu=_get_number(entry, "mtu"),
        mtu_min=_get_number(entry, "min_mtu") or None,
        mtu_max=_get_number(entry, "max_mtu") or None,
        state=text.lower() if text else None,
        # The kernel reports carrier for links that are set up only; sysfs answers EINVAL for the others.
        carrier="LOWER_UP" in flags if "UP" in flags else None,
        # ip leaves a length of 0 out.
        txqueuelen=_get_number(entry, "txqlen") if "txqlen" in entry else 0,
        mac=address if address and _is_mac(address) else None,
        permanent_mac=_get_text(entry, "permaddr") or _get_text(_get_mapping(info, "info_slave_data"), "perm_hwaddr"),
        below=None if kind in _PEERED else _get_text(entry, "link") or _get_text(data, "link"),
        master=_get_text(entry, "master"),
        addresses=_parse_addresses(entry.get("addr_info")),
        qdisc=_get_text(entry, "qdisc"),
        detail=detail | _select_scalars(_get_mapping(info, "info_slave_data"), _PORT_NAMES),
    )


def _is_mac(text: str) -> bool:
    pairs = text.split(":")
    return len(pairs) > 1 and all(len(pair) == 2 and is_hexadecimal(pair) for pair in pairs)


def _find_kind(info_kind: str | None, link_type: str | None, data: Json) -> str | None:
    if link_type == "infiniband" or info_kind == "ipoib":
        return "infiniband"
    if info_kind == "tun":
        return _get_text(data, "type") or "tun"
    return info_kind or (_LINK_TYPES.get(link_type, link_type) if link_type else None)


def _select_scalars(data: Json, names: Mapping[str, str]) -> dict[str, str]:
    if not data:
        return {}
    return {own: text for name, own in names.items() if (text := _format_scalar(data.get(name))) is not None}


def _parse_addresses(entries: object) -> tuple[str, ...]:
    if not isinstance(entries, list):
        return ()
    found: dict[str, list[str]] = {"inet": [], "inet6": []}
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        local, length = _get_text(entry, "local"), _get_number(entry, "prefixlen")
        family = entry.get("family")
        if local and length is not None and isinstance(family, str) and family in found:
            found[family].append(f"{local}/{length}")
    return (*found["inet"], *found["inet6"])


def _parse_flags(entry: Json) -> frozenset[str]:
    flags = entry.get("flags")
    return frozenset(flag for flag in flags if isinstance(flag, str)) if isinstance(flags, list) else frozenset()


def _get_mapping(entry: Json, key: str) -> Json:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def _get_text(entry: Json, key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) else None


def _get_number(entry: Json, key: str) -> int | None:
    value = entry.get(key)
    return value if type(value) is int and 0 <= value <= _LARGEST else None


def _format_scalar(value: object) -> str | None:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, str | int | float) else None


_HEAD = lazy_regex(r"(\d{1,9}): ([^:@\s]+)(?:@([^:\s]+))?: <([^>]*)>(.*)", re.ASCII)
_ONE_LINE = lazy_regex(r"\d{1,9}: (\S+) +(inet6? .*)", re.ASCII)
_NOT_DETAIL = ("link/", "inet", "valid_lft", "RX:", "TX:", "vf", "altname", "alias")
# What ``detail`` holds of a kind that `ip_json` does not list: words, as here, do not distinguish names from values.
_TUNNEL_NAMES = frozenset({"id", "remote", "local", "ttl", "mode", "table", "key", "ikey", "okey", "dstport"})


def parse_ip_text(text: str) -> dict[str, BareLink]:
    """Links by name; lines that do not fit are passed over."""
    links: dict[str, BareLink] = {}
    # The lines of each link, its head first.
    # What `ip -d link` and `ip address` print of one link, both of which a capture may hold, is put together.
    blocks: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            name = head[2]
            blocks.setdefault(name, [line])
        elif name and line[:1].isspace():
            blocks[name].append(line.strip())
        elif (short := _ONE_LINE.match(line)) and short[1] in blocks:
            blocks[short[1]].append(short[2])
    for block in blocks.values():
        link = bare_link(_parse_block(block))
        if link is not None:
            links[link.name] = link
    return links


def _parse_block(block: list[str]) -> dict[str, object]:
    """A block in the form in which ``ip -j`` would have given it."""
    head = _HEAD.match(block[0])
    if head is None:
        return {}
    words = _pair_words(head[5])
    # The lines that begin with a kind: `vlan protocol 802.1Q id 5 …`, `bond_slave state ACTIVE …`.
    lines = block[1:]
    info: dict[str, object] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        if line.startswith(_NOT_DETAIL) or not re.fullmatch("[a-z][a-z0-9_]*", kind):
            continue
        if kind.endswith("_slave"):
            info["info_slave_data"] = _pair_words(rest)
        elif "info_kind" not in info:
            info.update(info_kind=kind, info_data=_rename_words(kind, _pair_words(rest)))
    entry: dict[str, object] = {
        "ifindex": int(head[1]),
        "ifname": head[2],
        "flags": head[4].split(","),
        "operstate": words.get("state"),
        "master": words.get("master"),
        "qdisc": words.get("qdisc"),
        "addr_info": [_parse_address(line) for line in block[1:] if line.startswith("inet")],
        "linkinfo": info,
    }
    if head[3] not in (None, "NONE") and not re.fullmatch(r"if[0-9]+", head[3]):
        entry["link"] = head[3]
    _add_numbers(entry, words, {"mtu": "mtu", "qlen": "txqlen"})
    _add_link_layer(entry, block[1:])
    return entry


def _add_link_layer(entry: dict[str, object], lines: list[str]) -> None:
    line = next((line for line in lines if line.startswith("link/")), None)
    if line is None:
        return
    kind, _, rest = line.removeprefix("link/").partition(" ")
    # Without -d, a bridge and a card look alike.
    if kind not in ("ether", "none", "[65534]") or "promiscuity" in rest:
        entry["link_type"] = "none" if kind == "[65534]" else kind
    if rest and not rest.startswith(("brd ", "promiscuity ")):
        entry["address"] = rest.split()[0]
    words = _pair_words(rest)
    if "permaddr" in words:
        entry["permaddr"] = words["permaddr"]
    _add_numbers(entry, words, {"minmtu": "min_mtu", "maxmtu": "max_mtu"})


def _rename_words(kind: str, words: dict[str, str]) -> Mapping[str, object]:
    if kind == "bond":
        lacp = {name: words[f"ad_{name}"] for name in ("aggregator", "partner_mac") if f"ad_{name}" in words}
        own = {("ad_lacp_rate" if name == "lacp_rate" else name): value for name, value in words.items()}
        return {**own, "ad_info": lacp}
    if kind == "bridge":
        return {("root_id" if name == "designated_root" else name): value for name, value in words.items()}
    if kind == "vxlan":
        return {{"dstport": "port", "dev": "link"}.get(name, name): value for name, value in words.items()}
    return words if kind in DETAILS else {name: value for name, value in words.items() if name in _TUNNEL_NAMES}


def _pair_words(text: str) -> dict[str, str]:
    """Every word with the word after it: which of them are names, the caller knows."""
    # Backwards, so that the first of a name counts.
    return dict(reversed(list(pairwise(text.split()))))


def _parse_address(line: str) -> dict[str, object]:
    family, _, rest = line.partition(" ")
    address, slash, length = (rest.split() or [""])[0].partition("/")
    words = _pair_words(rest)
    if not slash and "peer" in words:
        # "inet 10.1.0.1 peer 10.1.0.2/32": the prefix length stands with the peer.
        length = words["peer"].rpartition("/")[2]
    return {
        "family": family,
        "local": address,
        "prefixlen": int(length) if re.fullmatch(r"[0-9]{1,3}", length) else None,
    }


def _add_numbers(entry: dict[str, object], words: dict[str, str], names: dict[str, str]) -> None:
    for printed, own in names.items():
        value = words.get(printed, "")
        if re.fullmatch(r"\d{1,10}", value, re.ASCII):
            entry[own] = int(value)
