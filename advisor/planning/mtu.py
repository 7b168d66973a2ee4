"""Which links get a new MTU, in which order, and which cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from advisor.facts.clusters.infoscale_configuration import TITLES
from advisor.facts.host_facts import Facts
from advisor.facts.network.link_stack import explain_keeper, keeper_of, leader_of, mode_mtu, overhead_bytes, ports_of
from advisor.facts.network.links import Link
from advisor.facts.settings.value import KEY, parse_ports, ports_text
from advisor.host.numbers import is_count
from advisor.planning.links import default_route_refusal, depth_of, unclear_link
from advisor.planning.records import Change
from advisor.planning.selectors import Selected, judge_link, select_named
from advisor.profiles.profile import Only, Values
from advisor.rules.clusters.infoscale import DATAGRAMS, private_carriers, private_links, stays_local
from advisor.rules.clusters.llt import llt_ports, open_ports
from advisor.rules.network.mtu import DATAGRAM_OVERHEAD, LLT_UDP_MTU, data_links, idle_links
from advisor.rules.queries import by_name, carriers, links_below, sysctl_numbers
from advisor.tunables.link_mtu import LinkMtu

# What the profiles of mirrored InfoScale configurations set for LLT besides links and marks: the ports that the
# kernel may not hand out, and the MTU field of a link line whose kernel link cannot carry LLT's packets whole. Pure.


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


LINK_RANK = 100
_WITH_OWN_MTU = frozenset({"vlan", "macvlan", "macvtap", "ipvlan", "infiniband"})


def select_links(
    values: Values, facts: Facts, only: Only | None = None, *, has_field: bool = False
) -> tuple[Selected, ...]:
    """The links of ``--set links=``, or those with a role: links that are seen to carry data, else ports in use that
    carry no default route; with the parameter ``role`` iscsi those that carry iSCSI sessions, and no others.

    ``only`` bounds them. Every link below a selected one is selected with it, so that a stack is raised from the
    bottom. With ``has_field`` a link under LLT that cannot be raised blocks nothing, as the MTU field of its link line
    is set in its place. Raises UsageError for a name that is no link of this host.
    """
    links = {link.name: link for link in facts.links}
    mtu = int(str(values["mtu"]))
    asked = values.get("links")
    given = (
        tuple(link.name for link in select_named(facts.links, lambda link: (link.name,), asked, "link"))
        if asked
        else ()
    )
    judged = {name: judge_link(links[name], only or Only()) for name in given or links_by_role(values, facts)}
    wanted = _with_lower(tuple(name for name, unclear in judged.items() if unclear == ""), links, mtu)
    chosen = [name for name in sorted(wanted) if name in given or leader_of(links[name], links) is None]
    unable = unable_links(values, facts) if has_field and not given else {}
    meant = (
        _skip_unable(name, unable[name])
        if name in unable
        else _select_link(links[name], wanted[name], name in given, links)
        for name in chosen
    )
    unclear = (unclear_link(name, why) for name, why in sorted(judged.items()) if why and name not in wanted)
    idle = () if given or values.get("role") == "iscsi" else _low_priority(facts, wanted)
    return (*meant, *unclear, *idle)


def links_by_role(values: Values, facts: Facts) -> tuple[str, ...]:
    """The links that are meant where none is named."""
    if values.get("role") == "iscsi":
        # The links that are known to carry a session.
        links = {link.name: link for link in facts.links}
        sessions = facts.iscsi.sessions if facts.iscsi else ()
        return tuple(sorted({name for session in sessions for name in session.links if name in links}))
    # The links that are seen to carry data: of storage over the network, and LLT's private ones where writes cross LLT.
    # Else ports that are up with an address and carry no default route; never links that carry heartbeats only.
    seen = data_links(facts)
    if seen:
        return tuple(sorted(seen))
    idle = idle_links(facts)
    return tuple(
        link.name
        for link in facts.links
        if link.name not in idle
        and link.default_route is False
        and link.carrier
        and link.addresses
        and (link.kind in ("bond", "team", "infiniband", "vlan") or (link.kind == "ethernet" and link.pci is not None))
    )


def idle_notes(changes: Iterable[Change], facts: Facts) -> Iterator[str]:
    """That no write crosses what is changed for LLT, where that is certain: LLT's values, and links without storage."""
    name, links = stays_local(facts), {link.name: link for link in facts.links}
    if name is None:
        return
    storage = {each.name for carrier in carriers(facts) for each in links_below(carrier, links)}
    mtus = {one.tunable.split(":")[1] for one in changes if one.tunable.startswith("link:")}
    idle = sorted(mtus - storage) if not facts.network_storage or storage else []
    if idle or any(one.tunable.startswith("llt:") for one in changes):
        on = f": nothing of its storage is known to cross {', '.join(idle)}" if idle else ""
        yield f"no write crosses LLT here, as this host is {TITLES[name]}{on}; the white paper gains nothing here"


def upper_notes(planned: Mapping[str, int], facts: Facts) -> Iterator[str]:
    """What lies on a link that is raised and keeps its own MTU, as a VLAN or a child of IPoIB does, and ports of a
    raised bridge that other programs keep."""
    links = {link.name: link for link in facts.links}
    for name, mtu in sorted(planned.items()):
        upper = (link for link in facts.links if name in link.lower and link.kind in _WITH_OWN_MTU)
        kept = [link.name for link in upper if (link.mtu or mtu) < mtu and link.name not in planned]
        if kept:
            yield f"what lies on {name} keeps its own MTU: {', '.join(kept)}; --set links= names what is meant too"
        ports = ports_of(links[name], links) if name in links else ()
        if narrow := [one.name for one in ports if keeper_of(one, links) and (one.mtu or mtu) < mtu]:
            yield f"ports of {name} drop larger frames until who made them raises them: {', '.join(narrow)}"


def _skip_unable(name: str, limit: int) -> Selected:
    return Selected(
        {"link": name},
        refusal=f"a driver allows at most {limit:,}: the MTU field of its link line in /etc/llttab is set instead",
    )


def _low_priority(facts: Facts, wanted: Collection[str]) -> Iterator[Selected]:
    """A line for each link that is left out because no data of LLT's crosses it."""
    for one in facts.llt.links if facts.llt else ():
        if one.low_priority and one.link and one.link not in wanted:
            why = (
                f"carries LLT's low-priority link {one.tag}, heartbeats only: left out; --set links= names it if meant"
            )
            yield Selected({"link": one.link}, refusal=why)
    name = stays_local(facts)
    for carrier in private_carriers(facts) if name else ():
        if carrier not in wanted:
            why = f"carries LLT, and no write crosses LLT here (this host is {TITLES[name or '']}): left out; "
            yield Selected({"link": carrier}, refusal=f"{why}--set links= names it if meant")


def _with_lower(names: tuple[str, ...], links: dict[str, Link], mtu: int) -> dict[str, int]:
    """MTU per link: those named, and on all that lies below enough for them, never less than it has."""
    wanted = dict.fromkeys(names, mtu)
    for name, need in _needed_mtus(names, links, mtu).items():
        # Only a link that was named itself is brought to just what is needed.
        has = 0 if name in names else links[name].mtu or 0
        wanted[name] = max(need, has, wanted.get(name, 0))
    return wanted


def _needed_mtus(names: tuple[str, ...], links: dict[str, Link], mtu: int) -> dict[str, int]:
    """The least MTU that each link below some links must have for them to have ``mtu``."""
    needs: dict[str, int] = {}
    pending = [(name, mtu, frozenset((name,))) for name in names]
    while pending:
        name, carried, above = pending.pop()
        need = carried + overhead_bytes(links[name])
        for lower in links[name].lower:
            # A guest's or a container's port of a bridge is left: what made it sets its MTU.
            if keeper_of(links[lower], links) if lower in links else True:
                continue
            if lower not in above and need > needs.get(lower, 0):
                needs[lower] = need
                pending.append((lower, need, above | {lower}))
    return needs


def _select_link(link: Link, mtu: int, is_named: bool, links: dict[str, Link]) -> Selected:
    refusal = _explain_refusal(link, mtu, links, is_named=is_named)
    is_lowered = link.mtu is not None and mtu < link.mtu
    above = depth_of(link.name, links)
    return Selected(
        names={"link": link.name},
        value=str(mtu),
        why=f"Carried by {', '.join(link.lower)}." if link.lower else "",
        # A stack is raised from the bottom and lowered from the top.
        rank=LINK_RANK - above if is_lowered else LINK_RANK + above,
        refusal=refusal,
        state="blocked" if is_named or keeper_of(link, links) is None else "not-applicable",
        # Without a value before, the refusal stands however large the MTU is already.
        before=None if link.mtu is None or link.kind == "loopback" else str(link.mtu),
    )


def explain_range(tunable: str, value: str, facts: Facts) -> str | None:
    """Why the driver of a link refuses an MTU, with the range that it gave for it; None for other tunables, for a value
    in the range, and where no range is known."""
    kind, _, name = tunable.removesuffix(":mtu").partition(":")
    if kind != "link" or tunable != LinkMtu(name).id:
        return None
    link = next((one for one in facts.links if one.name == name), None)
    if link is None or not is_count(value) or (link.mtu_min, link.mtu_max) == (None, None):
        return None
    low, high = link.mtu_min or 0, link.mtu_max
    if low <= int(value) and (high is None or int(value) <= high):
        return None
    span = f"from {low} on" if high is None else f"{low} to {high}"
    return f"is refused by the link's driver: {value} is not {span} bytes (ip -details link show {link.name})"


def _explain_refusal(link: Link, mtu: int, links: dict[str, Link], *, is_named: bool) -> str | None:
    if link.kind == "loopback":
        return "the loopback link carries no frames on a wire"
    kept = explain_keeper(link, links, mtu)
    if kept is not None:
        return kept
    team = leader_of(link, links)
    if team is not None and link.mtu != mtu:
        return f"it is a port of {team}, which alone can change its MTU: name {team} instead"
    if link.kind == "team":
        for port in ports_of(link, links):
            if port.mtu_max is not None and mtu > port.mtu_max:
                return f"the driver of its port {port.name} allows at most {port.mtu_max}"
    most = mode_mtu(link)
    if most is not None and mtu > most:
        return f"it takes at most {most} in its mode or by its driver"
    if link.mtu_max is not None and mtu > link.mtu_max:
        return f"its driver allows at most {link.mtu_max}"
    if link.mtu_min is not None and mtu < link.mtu_min:
        return f"its driver needs at least {link.mtu_min}"
    return default_route_refusal(link, is_named=is_named)
