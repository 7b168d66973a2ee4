"""The links that are seen to carry data: storage over the network, and LLT where writes cross it."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.rules.llt_path import heartbeat_only, private_carriers, stays_local
from advisor.rules.queries import by_name, carries_default_route, links_below
from advisor.rules.storage_path import carriers


def data_links(facts: Facts) -> tuple[str, ...]:
    """The links by name, each once: those of the storage that is seen, and LLT's private links unless it is certain
    that no write crosses LLT. A storage link with the default route is left out; none where nothing is seen."""
    links = by_name(facts)
    storage = (
        name for name in carriers(facts) if name in links and carries_default_route(links[name], links) is not True
    )
    return tuple(dict.fromkeys((*storage, *(() if stays_local(facts) else private_carriers(facts)))))


def idle_links(facts: Facts) -> frozenset[str]:
    """The links, with all below them, that carry heartbeats of LLT and no data: low-priority links, and every link of
    LLT where disks are shared or the node is alone. Links that carry storage as well are not among them."""
    links = by_name(facts)
    storage = {each.name for name in carriers(facts) for each in links_below(name, links)}
    private = private_carriers(facts) if stays_local(facts) else ()
    return (heartbeat_only(facts) | {each.name for name in private for each in links_below(name, links)}) - storage
