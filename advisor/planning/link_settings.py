"""Which links a line of a profile sets something of, other than the MTU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.network.link_stack import SubnetLink, keeper_of
from advisor.facts.network.links import Link
from advisor.planning.links import default_route_refusal, unclear_link
from advisor.planning.selectors import Selected, judge_link, select_named
from advisor.profiles.profile import Only, Values, Wanted
from advisor.tunables import parse_tunable

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
