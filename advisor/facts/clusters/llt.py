"""Veritas LLT: flow control values, links of /etc/llttab, the state of the cluster, and whether it runs.

After the manual pages lltconfig(1M), lltstat(1M) and llttab(4) of InfoScale 7.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.network.links import Link
from advisor.facts.unknown import LLT_FLOW_QUERY, LLTTAB, Unknowns
from advisor.host import Completed, Host, Missing
from advisor.host.config_text import FLOW_ALIASES, parse_flow
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

# What ``lltstat -nvv`` and ``lltstat -n`` print: the nodes of the cluster and the state of the links to each.

_NODE = lazy_regex(r"(\*?)\s*([0-9]{1,5})\s+(\S.*)", re.ASCII)


class LltNodeLink(msgspec.Struct, frozen=True):
    """A link to a node. ``status`` is UP, DOWN or another word of LLT's; ``address`` is None where it prints none."""

    tag: str
    status: str
    address: str | None


class LltNode(msgspec.Struct, frozen=True):
    """A node. ``state`` as printed (OPEN, CONNWAIT …); ``name`` is None for one that LLT only knows by number."""

    id: int
    name: str | None
    state: str | None
    is_self: bool
    links_up: int | None
    links: tuple[LltNodeLink, ...]


def parse_lltstat_nodes(text: str) -> tuple[LltNode, ...]:
    """The nodes in the order they are printed; lines that do not fit are passed over."""
    nodes: list[LltNode] = []
    for line in text.splitlines():
        link = _parse_link(line) if nodes else None
        node = _parse_node(line) if link is None else None
        if link is not None:
            nodes[-1] = msgspec.structs.replace(nodes[-1], links=(*nodes[-1].links, link))
        elif node is not None:
            nodes.append(node)
    return tuple(_count_links(node) for node in nodes)


def _parse_node(line: str) -> LltNode | None:
    """``*0 north OPEN 2``, ``* 0 north OPEN``, ``2 CONNWAIT``: the own node has a star, the count is of ``-n`` only."""
    found = _NODE.fullmatch(line.strip())
    if found is None:
        return None
    words = found[3].split()
    count = int(words.pop()) if len(words) > 1 and re.fullmatch("[0-9]{1,3}", words[-1], re.ASCII) else None
    if len(words) > 2:
        return None
    return LltNode(int(found[2]), words[0] if len(words) == 2 else None, words[-1], found[1] == "*", count, ())


def _parse_link(line: str) -> LltNodeLink | None:
    """``eth6 UP 00:50:56:00:00:E1``, ``lan2 DOWN``; a tag may be a number."""
    words = line.split()
    if not 2 <= len(words) <= 3 or words[0].startswith("*") or words[1] not in {"UP", "DOWN", "TROUBLE"}:
        return None
    if is_count(words[0]) and len(words) == 3 and not re.search("[:.]", words[2]):
        return None
    return LltNodeLink(words[0], words[1], words[2] if len(words) == 3 else None)


def _count_links(node: LltNode) -> LltNode:
    if node.links_up is not None or not node.links:
        return node
    return msgspec.structs.replace(node, links_up=sum(link.status == "UP" for link in node.links))


TIMER_QUERY = ("lltconfig", "-T", "query")
STATUS_QUERY = ("lltconfig",)
NODE_QUERY = ("lltstat", "-nvv")

# No line of these has been seen with more fields; what is more is kept by nobody.
_LINK_FIELDS = ("tag", "device", "nodes", "type", "port", "mtu", "address", "broadcast")
_IP_TYPES = frozenset({"udp", "udp6", "rdma"})


class LltLink(msgspec.Struct, frozen=True):
    """A ``link`` or ``link-lowpri`` line.

    ``type`` is kept as written: ether, udp, udp6, rdma, one unknown to us, or ``-`` where the line leaves it to LLT.
    """

    tag: str
    device: str
    type: str
    low_priority: bool
    port: str | None
    mtu: int | None
    """The MTU field; None where it is ``-`` (the type's default)."""
    address: str | None
    link: str | None
    """The kernel link that carries it, found by name or by address."""
    broadcast: str | None = None
    """The broadcast address of the line; None where it is ``-`` or left out."""


class Llttab(msgspec.Struct, frozen=True):
    """/etc/llttab. ``flow`` and ``timers`` are its set-flow and set-timer lines; ``other`` its remaining directives."""

    node: str | None
    cluster: str | None
    links: tuple[LltLink, ...]
    peers: tuple[str, ...]
    """Addresses of set-addr lines."""
    flow: Mapping[str, int]
    timers: Mapping[str, int]
    other: tuple[str, ...]


class Llt(msgspec.Struct, frozen=True):
    """LLT as it runs and as /etc/llttab has it.

    ``flow_control`` in packets (largepktlen in bytes), ``timers`` in hundredths of a second, both as lltconfig prints
    them; empty where LLT does not run. ``links`` are those of /etc/llttab, each with the kernel link that carries it.
    """

    running: bool | None
    flow_control: Mapping[str, int]
    links: tuple[LltLink, ...]
    llttab: Llttab | None
    timers: Mapping[str, int] = {}
    nodes: tuple[LltNode, ...] = ()


def parse_llttab(text: str) -> Llttab:
    """Read /etc/llttab; lines that are not understood are kept under ``other``, as they stand.

    A ``link`` line whose MTU is neither a number nor ``-`` is kept in both places.
    """
    found: dict[str, str] = {}
    numbers: dict[str, dict[str, int]] = {"set-flow": {}, "set-timer": {}}
    links: list[LltLink] = []
    peers: list[str] = []
    other: list[str] = []
    for words in _split_lines(text):
        match words:
            case [("set-node" | "set-cluster") as directive, value]:
                found[directive] = value
            case ["link" | "link-lowpri", _, _, *_]:
                given = {name: word for name, word in zip(_LINK_FIELDS, words[1:], strict=False) if word != "-"}
                mtu = given.get("mtu", "")
                links.append(
                    LltLink(
                        tag=words[1],
                        device=words[2],
                        type=given.get("type", "-"),
                        low_priority=words[0] == "link-lowpri",
                        port=given.get("port"),
                        mtu=int(mtu) if _is_mtu(mtu) else None,
                        address=given.get("address"),
                        link=None,
                        broadcast=given.get("broadcast"),
                    )
                )
                other.extend(
                    [" ".join(words)] if (len(words) > 6 and words[6] != "-" and not _is_mtu(words[6])) else []
                )
            case ["set-addr", _, _, address]:
                peers.append(address)
            case [("set-flow" | "set-timer") as directive, *settings] if values := _parse_settings(settings):
                numbers[directive].update(values)
            case _:
                other.append(" ".join(words))
    return Llttab(
        node=found.get("set-node"),
        cluster=found.get("set-cluster"),
        links=tuple(links),
        peers=tuple(peers),
        flow={FLOW_ALIASES.get(name, name): value for name, value in numbers["set-flow"].items()},
        timers=numbers["set-timer"],
        other=tuple(other),
    )


def _split_lines(text: str) -> Iterable[list[str]]:
    """Words of each line; a word that begins with # begins a comment."""
    for line in text.replace("\0", "").splitlines():
        words = line.split()
        comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        if words[:comment]:
            yield words[:comment]


def _is_mtu(text: str) -> bool:
    return re.fullmatch("[0-9]{1,9}", text, re.ASCII) is not None


def _parse_settings(words: list[str]) -> dict[str, int] | None:
    """``name:value`` words; None if one of them is anything else."""
    pairs = [re.fullmatch(r"([A-Za-z][\w-]*):([0-9]{1,18})", word, re.ASCII) for word in words]
    return {pair[1]: int(pair[2]) for pair in pairs if pair} if pairs and all(pairs) else None


def read_llt(
    host: Host, links: tuple[Link, ...], unknown: Unknowns, flow: Completed | Missing | None = None
) -> Llt | None:
    """None where neither /etc/llttab nor lltconfig exists. ``links`` are the host's, to find those that carry LLT.

    ``flow`` is what `LLT_FLOW_QUERY` answered, where it has been asked.
    """
    text = unknown.value("llt.llttab", host.read(LLTTAB))
    llttab = None if text is None else parse_llttab(text)
    flow = host.run(LLT_FLOW_QUERY) if flow is None else flow
    if isinstance(flow, Missing):
        # LLT where lltconfig is missing or does not answer: without its kernel module it does not run.
        if flow.is_absent and llttab is None:
            return None
        has_modules = host.is_dir("/sys/module")
        running = False if has_modules and not host.exists("/sys/module/llt") else None
        if running is None:
            unknown.note("llt.running", flow)
            unknown.note("llt.flow_control", flow)
        return Llt(running=running, flow_control={}, links=_resolve_links(llttab, links, unknown), llttab=llttab)
    values = parse_flow(flow.stdout) if flow.ok else {}
    # What `lltconfig` without options says; where that is not clear, whether it had values to print.
    status = host.run(STATUS_QUERY)
    words = "" if isinstance(status, Missing) else f"{status.stdout} {status.stderr}".lower()
    if re.search(r"\bnot\s+(running|configured|loaded)\b", words):
        running = False
    elif re.search(r"\b(running|configured)\b", words) or values:
        running = True
    else:
        why = status if isinstance(status, Missing) else f"lltconfig says {words.strip()[:80]!r}"
        unknown.note("llt.running", why)
        running = None
    if running is not False and not values:
        message = flow.stderr.strip() or flow.stdout.strip() or "no message"
        unknown.note("llt.flow_control", f"lltconfig -F query returned {flow.rc} and no values: {message[:200]}")
    return Llt(
        running=running,
        flow_control={} if running is False else values,
        links=_resolve_links(llttab, links, unknown),
        llttab=llttab,
        timers=_read_timers(host) if running else {},
        nodes=_read_nodes(host, unknown) if running else (),
    )


def _read_timers(host: Host) -> dict[str, int]:
    """Timers of ``lltconfig -T query``; some releases print the flow control values below them."""
    done = host.run(TIMER_QUERY)
    if isinstance(done, Missing) or not done.ok:
        return {}
    return parse_flow(re.split(r"(?im)^.*flow control.*$", done.stdout, maxsplit=1)[0])


def _read_nodes(host: Host, unknown: Unknowns) -> tuple[LltNode, ...]:
    done = host.run(NODE_QUERY)
    if isinstance(done, Missing):
        unknown.note("llt.nodes", done)
        return ()
    nodes = parse_lltstat_nodes(done.stdout)
    if not nodes:
        unknown.note("llt.nodes", f"lltstat -nvv returned {done.rc} and printed no nodes")
    return nodes


def _resolve_links(llttab: Llttab | None, links: tuple[Link, ...], unknown: Unknowns) -> tuple[LltLink, ...]:
    found = []
    for one in llttab.links if llttab else ():
        carrier = find_carrier(one, links)
        if carrier is None and links:
            unknown.note(f"llt.links.{one.tag}.link", f"no link of this host is {_describe_wanted(one)}")
        found.append(msgspec.structs.replace(one, link=carrier))
    return tuple(found)


def _describe_wanted(one: LltLink) -> str:
    return f"at {one.address}" if one.type in _IP_TYPES and one.address else one.device


def find_carrier(one: LltLink, links: Iterable[Link]) -> str | None:
    """The kernel link that carries an LLT link; None where there is none or more than one.

    By its address for one over IP, whose device is a placeholder; else by its device: a link name (``eth1``,
    ``/dev/eth1``) or a hardware address (``eth-00:04:23:ac:12:c4``), the permanent one before the present one.
    """
    if one.address is not None and one.type != "ether":
        wanted = _pack_address(one.address)
        found = _only_name(link.name for link in links if wanted and wanted in map(_pack_address, link.addresses))
        if found or one.type in _IP_TYPES:
            return found
    mac = re.search(r"-((?:[0-9a-f]{2}:){5}[0-9a-f]{2})$", one.device.lower())
    if mac is None:
        name = one.device.removeprefix("/dev/")
        return _only_name(link.name for link in links if link.name == name)
    permanent = [link.name for link in links if (link.permanent_mac or "").lower() == mac[1]]
    present = [link.name for link in links if (link.mac or "").lower() == mac[1] and not link.lower]
    return _only_name(permanent) or _only_name(present)


def _only_name(names: Iterable[str]) -> str | None:
    found = list(names)
    return found[0] if len(found) == 1 else None


def _pack_address(address: str) -> bytes | None:
    """An IP address without prefix length or scope, in one form for all spellings."""
    import socket

    text = address.partition("/")[0].partition("%")[0]
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):
        return None


# LLT's high-water marks: what their default is, where that can be known.

HIGH_WATER_MARKS = ("highwater", "rporthighwater")
KNOWN_DEFAULTS = frozenset({200, 1000})
"""In packets, of both marks: the manuals of 7.0 to 7.4, and what 7.4.2 prints."""
_DOUBLED = frozenset(2 * one for one in KNOWN_DEFAULTS)
_KNOWN_TEXT = " and ".join(f"{one:,}" for one in sorted(KNOWN_DEFAULTS))


class MarkDefault(msgspec.Struct, frozen=True):
    """The default of a mark in packets; None where it cannot be known, ``why`` says the reason then."""

    packets: int | None
    why: str = ""


def mark_defaults(
    live: Mapping[str, int], llttab: Llttab | None, first: Mapping[str, int] = {}
) -> dict[str, MarkDefault]:
    """The default of each mark of ``live``, all in packets. ``first`` are the values before advisor's own transactions
    changed them. One release has one default for both marks: where they disagree, it is known for neither.
    """
    found = {
        name: _odd_default(name, llttab)
        or _mark_default(name, value, llttab.flow.get(name) if llttab else None, first.get(name))
        for name, value in live.items()
    }
    known = {name: one.packets for name, one in found.items() if one.packets is not None}
    if len(set(known.values())) > 1:
        shown = " and ".join(f"{name} {packets:,}" for name, packets in known.items())
        split = _unknown_default(f"a release has one default for both marks, and this host points to two ({shown})")
        return {name: split if name in known else one for name, one in found.items()}
    return found


def _odd_default(name: str, llttab: Llttab | None) -> MarkDefault | None:
    """Where a set-flow line of this mark is not understood; None where there is no such line."""
    for line in llttab.other if llttab else ():
        directive, *settings = line.split()
        names = [one.partition(":")[0] for one in settings]
        if directive == "set-flow" and name in [FLOW_ALIASES.get(one, one) for one in names]:
            return _unknown_default(f'the line "{line[:80]}" of {LLTTAB} does not set a number of packets')
    return None


def _mark_default(name: str, live: int, in_file: int | None, first: int | None) -> MarkDefault:
    """The default of a mark, by its live value and its set-flow line. A value that is twice a known default counts as
    that default doubled.
    """
    if live < 1:
        return _unknown_default(f"lltconfig prints {live} for {name}, which is not a number of packets")
    if first is not None and first != live:
        if first in KNOWN_DEFAULTS or live == 2 * first:
            return MarkDefault(first)
        return MarkDefault(first // 2) if first in _DOUBLED else _mark_default(name, live, in_file, None)
    if in_file is None:
        return MarkDefault(live) if live in KNOWN_DEFAULTS else _unknown_default(_describe_unsaved(name, live))
    if in_file == live:
        return MarkDefault(live // 2) if live in _DOUBLED else _unknown_default(_by_hand(name, live))
    lower, higher = sorted((live, in_file))
    if lower in KNOWN_DEFAULTS and higher == 2 * lower:
        return MarkDefault(lower)
    return _unknown_default(f"{name} is {live:,} live and {in_file:,} in /etc/llttab")


def _unknown_default(why: str) -> MarkDefault:
    return MarkDefault(None, f"{why}, so LLT's default cannot be known from this host (known defaults: {_KNOWN_TEXT})")


def _describe_unsaved(name: str, live: int) -> str:
    return f"{name} was set to {live:,} with lltconfig, and no set-flow line of /etc/llttab keeps it"


def _by_hand(name: str, live: int) -> str:
    return f"the administrator set {name} to {live:,} in /etc/llttab"
