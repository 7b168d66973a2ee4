"""Veritas LLT: flow control values, links of /etc/llttab, the state of the cluster, and whether it runs.

After the manual pages lltconfig(1M), lltstat(1M) and llttab(4) of InfoScale 7.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from advisor.facts.links import Link
from advisor.facts.lltstat import LltNode, parse_lltstat_nodes
from advisor.facts.rare_subjects import LLT_FLOW_QUERY, LLTTAB
from advisor.facts.unknown import Unknowns
from advisor.host import Completed, Host, Missing
from advisor.host.lltconfig_text import FLOW_ALIASES, parse_flow

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
