"""The order of stacked links, and which of them the kernel changes with another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.network.links import Link
from advisor.host import Host, Probe, ReadCommand, RunCommand, observe
from advisor.planning.records import Change
from advisor.planning.selectors import Selected
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
