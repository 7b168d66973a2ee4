"""What ``ip -d address`` prints, for an iproute2 without ``-j`` (before 4.14: RHEL 7) and for captured texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from advisor.facts.ip_json import DETAILS, BareLink, bare_link
from advisor.host.patterns import lazy_regex

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
