"""ARP and source checks of links that share an IPv4 network, link by link, so that no other link is touched.

The kernel takes the larger of a link's own value and of conf.all for arp_ignore, arp_announce and rp_filter, and either
of them for arp_filter (networking/ip-sysctl; IN_DEV_MAXCONF and IN_DEV_ORCONF in include/linux/inetdevice.h). So a
link's own value suffices to raise what takes effect, and cannot lower it below that of conf.all.
"""

from __future__ import annotations

import re

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.subnets import SubnetLink
from advisor.planning.selection import Selected
from advisor.profiles.profile import Values, Wanted
from advisor.tunables import parse_tunable

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
