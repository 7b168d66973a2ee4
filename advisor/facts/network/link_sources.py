"""What is read once for all links: ip's answer, the directories of sysfs, the drivers' answers, routes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.network.ip_text import BareLink, parse_ip_links, parse_ip_text
from advisor.facts.network.link_tables import (
    NET,
    LinkDirectory,
    list_links,
    number,
    parse_default_routes,
    parse_default_routes6,
    parse_inet6,
    parse_local_addresses,
    place_addresses,
    read_sysfs_links,
)
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.ethtool import NOT_RECORDED, Answer

IP_JSON = ("ip", "-j", "-d", "addr", "show")
IP_TEXT = ("ip", "-d", "address")
_QUERIES = ("driver", "rings", "channels", "features")
# Links of this many are compared with ip's when the names agree; all of them when they do not.
_SAMPLE = 3


class Sources(msgspec.Struct, frozen=True):
    """What was read once for all links."""

    bare: Mapping[str, BareLink]
    directories: Mapping[str, LinkDirectory]
    answers: Mapping[tuple[str, str], Answer | Missing]
    addresses: Mapping[str, tuple[str, ...]] | None
    """By /proc/net; None where ip gave them."""
    default_routes: frozenset[str] | None


def read_sources(host: Host, unknown: Unknowns) -> Sources:
    by_ip = _read_ip(host, unknown)
    directories = _read_directories(host, by_ip, unknown)
    # What the drivers say, by printable link name and query.
    own_names = {name: _own_name(name, directories) for name in sorted(by_ip.keys() | directories.keys())}
    answers = {(name, what): _query_driver(host, own, what) for name, own in own_names.items() for what in _QUERIES}
    untold = {name: place for name, place in directories.items() if not by_ip or by_ip[name].kind is None}
    drivers = {name: driver for name in untold if (driver := driver_word(answers[name, "driver"], "driver"))}
    by_sysfs = read_sysfs_links(host, untold, drivers, unknown) if untold else {}
    return Sources(
        bare={**by_sysfs, **{name: _complete_link(link, by_sysfs.get(name)) for name, link in by_ip.items()}},
        directories=directories,
        answers=answers,
        addresses=None if by_ip else _read_addresses(host, unknown),
        default_routes=_read_default_routes(host, unknown),
    )


def _complete_link(by_ip: BareLink, by_sysfs: BareLink | None) -> BareLink:
    if by_ip.kind is not None or by_sysfs is None:
        return by_ip
    return msgspec.structs.replace(by_ip, kind=by_sysfs.kind, detail={**by_sysfs.detail, **by_ip.detail})


def _read_ip(host: Host, unknown: Unknowns) -> dict[str, BareLink]:
    """Return the links that ip(8) lists; none, with the reason noted, if it fails."""
    done = host.run(IP_JSON)
    why = done.why if isinstance(done, Missing) else f"ip returned {done.rc}: {done.stderr.strip()[:200]}"
    if not isinstance(done, Missing):
        if done.ok:
            try:
                return parse_ip_links(done.stdout)
            except ValueError as error:
                why = f"ip printed no valid JSON: {error}"
        done = host.run(IP_TEXT)
    elif not host.is_live and done.is_absent:
        done = host.run(IP_TEXT)
    links = {} if isinstance(done, Missing) else _links_of_text(done.stdout)
    if not any(link.mtu_max for link in links.values()):
        unknown.note("links.mtu_min", why)
        unknown.note("links.mtu_max", why)
    return links


def _links_of_text(printed: str) -> dict[str, BareLink]:
    # Loaded only where ip is too old for JSON: start-up is a feature.

    return parse_ip_text(printed)


def _read_directories(host: Host, by_ip: Mapping[str, BareLink], unknown: Unknowns) -> dict[str, LinkDirectory]:
    """The link directories of sysfs: of the links that ip sees, where it sees any.

    Others came or went between the two readings, or /sys shows another network namespace. Where that is certain, as
    links of one name are not the same link, there are none.
    """
    directories = list_links(host)
    if isinstance(directories, Missing):
        if not by_ip:
            unknown.note("links", directories)
        return {}
    both = sorted(directories.keys() & by_ip.keys())
    suspects = both if directories.keys() != by_ip.keys() else both[:_SAMPLE]
    if by_ip and any(_has_other_index(host, directories[name], by_ip[name]) for name in suspects):
        unknown.note("links.pci", f"{NET} shows the links of another network namespace")
        return {}
    return {name: directories[name] for name in both} if by_ip else directories


def _has_other_index(host: Host, place: LinkDirectory, link: BareLink) -> bool:
    index = number(host, f"{place.path}/ifindex")
    return isinstance(index, int) and link.ifindex is not None and index != link.ifindex


def _own_name(name: str, directories: Mapping[str, LinkDirectory]) -> str:
    place = directories.get(name)
    return place.path.rpartition("/")[2] if place else name


def _query_driver(host: Host, link: str, what: str) -> Answer | Missing:
    """The driver's answer or, where none was recorded, what a captured text of ethtool(8) says in its place."""
    answer = host.ethtool(link, what)
    if answer != NOT_RECORDED:
        return answer
    from advisor.facts.network.ethtool_text import PARSERS, kernel_feature_names, parse_ethtool_features

    options = ("-k",) if what == "features" else PARSERS[what][0]
    done = host.run(("ethtool", *options, link))
    if isinstance(done, Missing):
        return NOT_RECORDED
    # Complaints are on standard error, and of a link that is not there nothing else.
    text = f"{done.stderr}\n{done.stdout}"
    if what != "features":
        return PARSERS[what][1](text)
    printed = parse_ethtool_features(text)
    return printed if isinstance(printed, Missing) else dict(kernel_feature_names(printed))


def _read_addresses(host: Host, unknown: Unknowns) -> dict[str, tuple[str, ...]]:
    """Addresses by link from /proc/net, IPv4 before IPv6."""
    trie, routes, inet6 = (host.read(f"/proc/net/{name}") for name in ("fib_trie", "route", "if_inet6"))
    if isinstance(trie, Missing):
        unknown.note("links.addresses", "neither ip nor /proc/net/fib_trie could be read")
    local = frozenset() if isinstance(trie, Missing) else parse_local_addresses(trie)
    placed, homeless = place_addresses(local, "" if isinstance(routes, Missing) else routes)
    if homeless:
        unknown.note("links.addresses", f"without ip the link is unknown that has {', '.join(homeless)}")
    by_link6 = {} if isinstance(inet6, Missing) else parse_inet6(inet6)
    return {name: placed.get(name, ()) + by_link6.get(name, ()) for name in placed.keys() | by_link6.keys()}


def _read_default_routes(host: Host, unknown: Unknowns) -> frozenset[str] | None:
    inet, inet6 = host.read("/proc/net/route"), host.read("/proc/net/ipv6_route")
    if isinstance(inet, Missing):
        unknown.note("links.default_route", f"/proc/net/route: {inet.why}")
        return None
    return parse_default_routes(inet) | (frozenset() if isinstance(inet6, Missing) else parse_default_routes6(inet6))


def driver_word(answer: Answer | Missing, name: str) -> str | None:
    """A word of a driver's answer; None for the ways in which drivers say nothing."""
    word = None if isinstance(answer, Missing) else answer.get(name)
    return word if isinstance(word, str) and word.strip(" -").lower() not in ("", "n/a") else None
