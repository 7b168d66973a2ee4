"""The other nodes of a Veritas cluster, over those LLT links that run over IP: llttab(4), lltstat(1M)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.facts.llt import Llt, LltLink
from advisor.facts.rare_subjects import LLTTAB
from advisor.host import Host
from advisor.reach.addresses import FoundAddress, parse_address
from advisor.reach.records import Unprobeable


class NodeAddress(msgspec.Struct, frozen=True):
    """A ``set-addr`` line: the address of a node on the link with this tag."""

    node: str
    tag: str
    address: str


def parse_set_addr(text: str) -> tuple[NodeAddress, ...]:
    """The ``set-addr NODE TAG ADDRESS`` lines of /etc/llttab; a word that begins with # begins a comment."""
    found = []
    for line in text.replace("\0", "").splitlines():
        words = line.split()
        comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        match words[:comment]:
            case ["set-addr", node, tag, address]:
                found.append(NodeAddress(node, tag, address))
    return tuple(found)


def llt_peers(host: Host, llt: Llt | None) -> tuple[list[FoundAddress], list[Unprobeable]]:
    """The addresses that /etc/llttab and the running LLT name, and the links that have none."""
    if llt is None:
        return [], []
    known = list(parse_set_addr(host.read_or_empty(LLTTAB)))
    known += _from_nodes(llt)
    by_tag = {link.tag: link for link in llt.links if _is_over_ip(link)}
    found = [_found_address(one, by_tag.get(one.tag)) for one in dict.fromkeys(known)]
    tags = {one.tag for one in known}
    return found, [_unprobeable_link(link) for link in llt.links if not _is_over_ip(link) or link.tag not in tags]


def _from_nodes(llt: Llt) -> Iterator[NodeAddress]:
    """The IP addresses in what lltstat -nvv shows of links over IP; hardware addresses are of no use here."""
    tags = {link.tag for link in llt.links if _is_over_ip(link)}
    for node in llt.nodes:
        for link in node.links:
            if not node.is_self and link.tag in tags and link.address and parse_address(link.address):
                yield NodeAddress(str(node.id), link.tag, link.address)


def _is_over_ip(link: LltLink) -> bool:
    return link.type in {"udp", "udp6", "rdma"}


def _found_address(one: NodeAddress, link: LltLink | None) -> FoundAddress:
    why = f"LLT node {one.node} over {one.tag}"
    return FoundAddress(one.address, "llt", why, link.link if link else None, link.address if link else None)


def _unprobeable_link(link: LltLink) -> Unprobeable:
    if _is_over_ip(link):
        why = "LLT finds its peers by broadcast, and neither set-addr lines nor lltstat -nvv name any"
    else:
        why = "Ethernet without IP: not to be asked from here, but lltping(1M) can: -s there, -c NODE -m SIZE here"
    return Unprobeable(f"LLT link {link.tag}", "llt", link.link, why)
