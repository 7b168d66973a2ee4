"""The order of stacked links, and which of them the kernel changes with another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.network.link_stack import SubnetLink, keeper_of
from advisor.facts.network.links import Link
from advisor.host import Host, Probe, ReadCommand, RunCommand, observe
from advisor.planning.records import Change, Selected, judge_link, select_named
from advisor.profiles.profile import Only, Values, Wanted
from advisor.tunables import parse_tunable
from advisor.tunables.link_mtu import IPV6_MTU_BYTES
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl import coupled_side_effects
from advisor.tunables.sysctl_group import disables_ipv6


def depth_of(name: str, links: dict[str, Link]) -> int:
    """How many links lie below: 0 for a port. Raising goes from 0 upwards, lowering the other way."""
    return _count_below(name, links, frozenset())


def _count_below(name: str, links: dict[str, Link], above: frozenset[str]) -> int:
    link = links.get(name)
    if link is None or name in above:
        return 0
    return max((1 + _count_below(lower, links, above | {name}) for lower in link.lower), default=0)


def unclear_link(name: str, why: str) -> Selected:
    """A link of which it is not known whether the line is for it."""
    return Selected({"link": name}, refusal=f"whether it is meant is unknown: {why}", state="unknown")


def default_route_refusal(link: Link, *, is_named: bool) -> str | None:
    """Why a link is not interrupted that nobody has named: this host may be reached over it."""
    if link.default_route is None and not is_named:
        return "whether it carries the default route is unknown: name it with --set links= if it is meant"
    if link.default_route and not is_named:
        return "it carries the default route: name it with --set links= if it is meant"
    return None


def related_links(changed: Iterable[str], links: Iterable[Link]) -> tuple[Link, ...]:
    """Links above or below a changed one that are not changed themselves, in order of depth then name.

    The kernel changes them as a side effect: a bridge takes the least MTU of its ports, macvlan and VLAN follow their
    parent down but not up again, a bond hands its MTU to its members.
    """
    by_name = {link.name: link for link in links}
    own = set(changed)
    related: set[str] = set()
    pending = list(own)
    while pending:
        link = by_name.get(pending.pop())
        for other in (*link.upper, *link.lower) if link else ():
            if other not in related and other not in own:
                related.add(other)
                pending.append(other)
    return tuple(
        by_name[name] for name in sorted(related, key=lambda name: (depth_of(name, by_name), name)) if name in by_name
    )


# ARP and source checks of links that share an IPv4 network, link by link, so that no other link is touched.

NO_SHARED_NETWORK = "no two links of this host share a network"


def select_shared_links(wanted: Wanted, values: Values, facts: Facts) -> tuple[Selected, ...]:
    """The links of the networks that several links share, each once, by name; none where there is no such network."""
    subnets = facts.beegfs.shared_subnets if facts.beegfs else ()
    links = {one.link: one for subnet in subnets for one in subnet.links}
    return tuple(_select_link(links[name], wanted, values, facts) for name in sorted(links))


def _select_link(link: SubnetLink, wanted: Wanted, values: Values, facts: Facts) -> Selected:
    attribute = wanted.tunable.rpartition(".")[2]
    # A dot in a name is a slash in a key.
    name = link.link.replace(".", "/")
    try:
        parse_tunable(f"sysctl:net.ipv4.conf.{name}.{attribute}")
    except UsageError:
        return Selected(
            {"shared_link": "LINK"}, refusal=f"{link.link[:80]!r} is no name that a setting could be given by"
        )
    names = {"shared_link": name}
    text = wanted.value if isinstance(wanted.value, str) else ""
    place = re.fullmatch(r"\{(\w+)\}", text)
    value = _parse_number(str(values.get(place[1])) if place else text)
    everywhere = _parse_number(facts.sysctl.get(f"net.ipv4.conf.all.{attribute}"))
    if value is None or everywhere is None:
        return Selected(names)
    if everywhere == value or (everywhere > value and wanted.sense == "at-least"):
        reason = f"net.ipv4.conf.all.{attribute} is {everywhere}, and the larger of the two takes effect"
        return Selected(names, str(value), refusal=reason, state="in-place", before=str(everywhere))
    if everywhere > value:
        reason = (
            f"net.ipv4.conf.all.{attribute} is {everywhere} and the larger of the two takes effect: lower that first"
        )
        return Selected(names, str(value), refusal=reason, before=str(everywhere))
    return Selected(names)


def _parse_number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,9}", text, re.ASCII) else None


# Which links a line of a profile sets something of, other than the MTU.


def select_link_settings(
    wanted: Wanted, values: Values, facts: Facts, by_role: Iterable[str], *, is_given: bool = False
) -> tuple[Selected, ...]:
    """The links of ``--set links=``, else the ports of those ``by_role``, as far as ``only`` lets them pass and they
    have the setting. What lies below a link that was named is not touched.

    ``is_given`` says that a person gave ``links`` and not the profile: one whose whole name is there has to take the
    value, any other is left out where its driver cannot. Raises UsageError for a name that is no link of this host.
    """
    links = {link.name: link for link in facts.links}
    asked = values.get("links")
    chosen = (
        select_named(facts.links, lambda link: (link.name,), asked, "link") if asked else _find_ports(by_role, links)
    )
    attribute = wanted.tunable.rpartition(":")[2]
    found = (_select_set_link(link, attribute, wanted.only or Only(), facts, is_named=bool(asked)) for link in chosen)
    asked_for = asked if is_given and isinstance(asked, tuple) else ()
    return tuple(
        msgspec.structs.replace(one, may_be_left_out=one.names["link"] not in asked_for)
        for one in found
        if one is not None
    )


def _find_ports(names: Iterable[str], links: Mapping[str, Link]) -> tuple[Link, ...]:
    """What carries some links at the end: a bond has no ring, and no queue discipline that would count."""
    found: set[str] = set()
    seen: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in seen or name not in links:
            continue
        seen.add(name)
        below = [lower for lower in links[name].lower if lower in links]
        pending += below
        if not below:
            found.add(name)
    return tuple(links[name] for name in sorted(found))


def _select_set_link(link: Link, attribute: str, only: Only, facts: Facts, *, is_named: bool) -> Selected | None:
    unclear = judge_link(link, only)
    has = _has_setting(link, attribute, facts)
    if unclear is None or has is False:
        return None
    try:
        one = parse_tunable(f"link:{link.name}:{attribute}")
    except UsageError:
        return Selected({"link": "LINK"}, refusal=f"{link.name[:80]!r} is no name that a setting could be given by")
    names = {"link": link.name}
    keeper = keeper_of(link, {one.name: one for one in facts.links}) if link.pci is None else None
    if keeper is not None:
        return Selected(names, refusal=f"belongs to {keeper.name}, which makes it anew")
    if unclear:
        return unclear_link(link.name, unclear)
    if has is None:
        return Selected(names, refusal=f"whether it has {attribute} could not be read", state="unknown")
    refusals = (default_route_refusal(each, is_named=is_named) for each in _with_upper(link, facts))
    refusal = next(filter(None, refusals), None) if one.risk == "link" else None
    return Selected(names, refusal=refusal, state="blocked") if refusal else Selected(names)


def _with_upper(link: Link, facts: Facts) -> Iterator[Link]:
    """A link and all that rest on it: they are cut off with it."""
    links = {one.name: one for one in facts.links}
    seen: set[str] = set()
    pending = [link.name]
    while pending:
        name = pending.pop()
        if name in links and name not in seen:
            seen.add(name)
            pending += links[name].upper
            yield links[name]


def _has_setting(link: Link, attribute: str, facts: Facts) -> bool | None:
    """Whether a link has the setting, as far as a scan shows; the plan reads what a scan does not show."""
    word, _, key = attribute.partition(".")
    if word == "feature":
        return _answered_setting(link, "features", facts, None if link.features is None else key in link.features)
    if word == "channels":
        most = None if link.channels is None else getattr(link.channels, f"{key}_max")
        return _answered_setting(link, "channels", facts, None if most is None else most > 0)
    if word == "ring" and key in ("rx", "tx"):
        most = None if link.rings is None else getattr(link.rings, f"{key}_max")
        return _answered_setting(link, "rings", facts, None if most is None else most > 0)
    queue = re.fullmatch(r"(rx|tx)-(\d{1,5})", key, re.ASCII)
    if queue is None or link.channels is None:
        return True
    count = link.channels.combined + (link.channels.rx if queue[1] == "rx" else link.channels.tx)
    # A single transmit queue has no XPS.
    return int(queue[2]) < count and (word != "xps" or count > 1)


def _answered_setting(link: Link, what: str, facts: Facts, has: bool | None) -> bool | None:
    """A driver that was asked and answered nothing has none; one that could not be asked may."""
    if has is not None:
        return has
    unknown = {one.fact for one in facts.unknown}
    return None if unknown & {f"links.{what}", f"links.{link.name}.{what}"} else False


def no_setting(wanted: Wanted, facts: Facts) -> str:
    """Why no link is selected, in words that follow the role."""
    here = ", ".join(link.name for link in facts.links if link.kind != "loopback") or "none but loopback"
    return (
        f"no link is meant that has {wanted.tunable.rpartition(':')[2]}: name those that are with --set links=, "
        f"whose own setting it must be; links here: {here}"
    )


# Addresses and routes of the links that a plan changes, and of those stacked on them: recorded, so that they can be
# restored.

Neighbours = Mapping[str, tuple[SideEffect, ...]]
"""By the name of the link."""


def read_neighbours(host: Host, tunables: Iterable[str], links: Iterable[Link]) -> Neighbours:
    """Lasting addresses and routes of the links that these tunables name, and of those above and below them."""
    known = tuple(links)
    names = tuple(tunables)
    disabling = [one for one in names if disables_ipv6(one)]
    named = {one.split(":")[1] for one in names if one.startswith("link:")} & {link.name for link in known}
    related = {link.name for link in related_links(named, known)} | named if named else set()
    without = {link.name for link in known if any(disables_ipv6(one, link.name) for one in disabling)}
    return {name: tuple(_record_link(host, name, is_changed=name in related)) for name in sorted(related | without)}


def _record_link(host: Host, link: str, *, is_changed: bool) -> Iterator[SideEffect]:
    """``is_changed``: the link itself is, and not only whether it has IPv6."""
    # A name that begins with a dash would be an option to ip(8).
    if link.startswith("-"):
        return
    for what, probe, undo in (
        ("addresses", _addresses_probe(link), _address_steps),
        ("routes4", _routes_probe(link, 4), _route_steps),
        ("routes6", _routes_probe(link, 6), _route_steps),
    ):
        if what == "routes4" and not is_changed:
            continue
        before = observe(host, probe)
        if isinstance(before, str) and before:
            yield SideEffect(f"link:{link}:{what}", before, probe, tuple(undo(link, before)), keeps=True)
    # The kernel sets it to the link's MTU with each new one.
    for one in coupled_side_effects(host, (f"net.ipv6.conf.{link.replace('.', '/')}.mtu",)):
        yield SideEffect(one.tunable, one.before, one.probe, one.undo, coupled=True)


def _addresses_probe(link: str) -> Probe:
    # Those with a lifetime come and go by themselves.
    return ReadCommand(("ip", "-o", "address", "show", "dev", link, "permanent"), "addresses")


def _routes_probe(link: str, version: int) -> Probe:
    return ReadCommand(("ip", "-o", f"-{version}", "route", "show", "table", "all", "dev", link), f"routes:{version}")


def _address_steps(link: str, addresses: str) -> Iterator[RunCommand]:
    for word in addresses.split(" "):
        address, _, flag = word.partition("+")
        # A kernel route to its own prefix goes with an address, unless it was made without.
        yield RunCommand(("ip", "address", "replace", address, "dev", link, *((flag,) if flag else ())))


def _route_steps(link: str, routes: str) -> Iterator[RunCommand]:
    for route in routes.split("; "):
        words = re.sub(r"^([0-9]):", r"\1 ", route).split(" ")
        yield RunCommand(("ip", f"-{words[0]}", "route", "replace", *words[1:], "dev", link))


def with_lost(found: SideEffect, earlier: SideEffect, left: str | None) -> SideEffect:
    """What a later change found of a link's addresses or routes, and what an earlier one had taken of them by then.

    ``left`` is what that one had left; None where it is unknown.
    """
    divider, steps = (" ", _address_steps) if found.tunable.endswith(":addresses") else ("; ", _route_steps)
    lost = set(earlier.before.split(divider)) - set((left or "").split(divider))
    everything = divider.join(sorted({*found.before.split(divider), *lost} - {""}))
    if everything == found.before:
        return found
    undo = tuple(steps(found.tunable.split(":")[1], everything))
    return SideEffect(found.tunable, everything, found.probe, undo, keeps=True)


def ipv6_notes(changes: Iterable[Change]) -> Iterator[str]:
    """What cannot be restored on a link that loses IPv6 with a change."""
    for change in changes:
        if disables_ipv6(change.tunable) and change.before == "0":
            yield (
                f"{change.tunable}: the kernel removes all IPv6 addresses and routes of the links that it applies to. "
                "The lasting ones are restored with the rollback; neighbours that were added by hand, and the flags "
                "and lifetimes of addresses, are not"
            )
        link, setting = change.tunable.split(":")[1:3] if change.tunable.startswith("link:") else ("", "")
        if setting == "mtu" and int(change.after) < IPV6_MTU_BYTES <= int(change.before):
            yield (
                f"{link}: below {IPV6_MTU_BYTES} bytes the kernel removes IPv6 from the link. Its lasting addresses, "
                "routes and settings in /proc/sys/net/ipv6 are restored with the rollback; neighbours that were added "
                "by hand, and the flags and lifetimes of its addresses, are not"
            )
