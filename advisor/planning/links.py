"""The order of stacked links, and which of them the kernel changes with another."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.facts.links import Link
from advisor.planning.selection import Selected


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
