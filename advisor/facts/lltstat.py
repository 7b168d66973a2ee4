"""What ``lltstat -nvv`` and ``lltstat -n`` print: the nodes of the cluster and the state of the links to each."""

from __future__ import annotations

import re

import msgspec

from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

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
