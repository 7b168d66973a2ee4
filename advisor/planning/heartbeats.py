"""What the profiles of mirrored InfoScale configurations set for LLT besides links and marks: the ports that the kernel
may not hand out, and the MTU field of a link line whose kernel link cannot carry LLT's packets whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.facts.host_facts import Facts
from advisor.facts.links import Link
from advisor.facts.reserved_ports import KEY, parse_ports, ports_text
from advisor.planning.selection import Selected
from advisor.profiles.profile import Values
from advisor.rules.llt import llt_ports, open_ports
from advisor.rules.llt_path import DATAGRAMS, private_links
from advisor.rules.mtu import DATAGRAM_OVERHEAD, LLT_UDP_MTU
from advisor.rules.queries import by_name, links_below, sysctl_numbers


def reserved_ports(facts: Facts) -> Selected:
    """The list of reserved ports with LLT's own, and all that is reserved already."""
    ports = llt_ports(facts)
    if not ports:
        return Selected({}, refusal="no link line of /etc/llttab has a port of UDP or TCP")
    if KEY not in facts.sysctl:
        return Selected({}, value=ports_text(ports))
    there = parse_ports(facts.sysctl[KEY])
    if there is None:
        return Selected({}, refusal=f"it holds what is no list of ports: {facts.sysctl[KEY][:60]!r}", state="unknown")
    missing = open_ports(facts)
    if not missing and not there.intersection(ports):
        span = "-".join(map(str, sysctl_numbers(facts, "net.ipv4.ip_local_port_range"))) or "that is not known"
        listed = ports_text(ports)
        why = f"LLT's ports ({listed}) lie outside the range that the kernel hands out ({span}): none must be reserved"
        return Selected({}, refusal=why)
    why = f"LLT's ports: {ports_text(ports)}." + (" What is reserved already stays." if there else "")
    return Selected({}, value=ports_text(there | set(missing)), why=why)


def select_heartbeats(values: Values, facts: Facts) -> tuple[Selected, ...]:
    """LLT's private links over UDP whose packets the kernel link will not carry whole, with the MTU that fits."""
    found, tags = [], [one.tag for one in facts.llt.links] if facts.llt else []
    for one in private_links(facts, *DATAGRAMS):
        link = by_name(facts).get(one.link or "")
        carried = None if link is None else _mtu_after(link, values, facts)
        names, overhead = {"heartbeat": one.tag}, DATAGRAM_OVERHEAD[one.type]
        if tags.count(one.tag) > 1:
            why = f"{tags.count(one.tag)} link lines have the tag {one.tag}: give each its own"
            found.append(Selected(names, refusal=why, state="unknown"))
        elif carried is None:
            found.append(Selected(names, refusal="which kernel link carries it is unknown", state="unknown"))
        elif (one.mtu or LLT_UDP_MTU) + overhead > carried:
            why = f"{one.link} carries {carried:,} bytes, {overhead} of them headers."
            found.append(Selected(names, value=str(carried - overhead), why=why))
    return tuple(found)


def _mtu_after(link: Link, values: Values, facts: Facts) -> int | None:
    """The MTU that a link under LLT will have; what blocks the plan elsewhere counts as raised."""
    wanted, asked = int(str(values["mtu"])), values.get("links")
    is_raised = (
        link.name in asked if isinstance(asked, tuple) and asked else link.name not in unable_links(values, facts)
    )
    return None if link.mtu is None else max(link.mtu, wanted) if is_raised else link.mtu


def unable_links(values: Values, facts: Facts) -> Mapping[str, int]:
    """Links under LLT's private links over UDP that are not raised, as a driver below allows no such MTU: name → the
    largest MTU there. Links that another private link needs are not among them."""
    links, wanted = by_name(facts), int(str(values["mtu"]))
    unable: dict[str, int] = {}
    able: set[str] = set()
    for name in dict.fromkeys(one.link for one in private_links(facts) if one.link):
        stack = links_below(name, links)
        limit = min((each.mtu_max for each in stack if each.mtu_max is not None), default=wanted)
        is_datagram = any(one.link == name for one in private_links(facts, *DATAGRAMS))
        if limit < wanted and is_datagram:
            unable.update({each.name: limit for each in stack})
        else:
            able.update(each.name for each in stack)
    return {name: limit for name, limit in unable.items() if name not in able}
