"""Lasting addresses and routes in what ``ip`` prints, as one canonical line; ``templates/rollback.sh.j2`` has the same.

``addresses``  ``192.0.2.1/24 2001:db8::1/64+noprefixroute``, sorted
``routes:6``   ``6:default via fe80::1 metric 1024; 6:2001:db8::/64 proto kernel metric 256``, sorted: routes that stay;
               those that a router advertises or DHCP gives, that expire or have several next hops are left out
"""

from __future__ import annotations

import re

from advisor.host.text_words import split_words

# How the kernel finds a route at the moment, which cannot be set.
_STATES = frozenset({"linkdown", "dead", "pervasive", "offload", "trap", "rt_offload", "rt_trap", "notify"})
# The first one comes with every link-local address.
_NOT_OURS = frozenset({"fe80::/64", "nexthop", "nhid", "expires", "cache", "ra", "dhcp", "redirect", "local"})


def addresses(text: str, _: str) -> str:
    """From ``ip -o address show``."""
    found: set[str] = set()
    for line in text.split("\n"):
        words = split_words(line)
        for place in range(len(words) - 1):
            if words[place] in ("inet", "inet6"):
                found.add(words[place + 1] + ("+noprefixroute" if "noprefixroute" in words else ""))
                break
    return " ".join(sorted(found))


def routes(text: str, version: str) -> str:
    """From ``ip -VERSION -o route show table all dev LINK``."""
    found: set[str] = set()
    for line in text.split("\n"):
        words = split_words(line)
        # Local, broadcast and multicast ones begin with their type and come with an address.
        # "pref medium" is what every IPv6 route has by default, and what busybox' ip does not know.
        words = words[:-2] if words[-2:] == ["pref", "medium"] else words
        if words and re.fullmatch(r"default|[0-9a-f:.]+(/[0-9]+)?", words[0]) and not _NOT_OURS & set(words):
            found.add(f"{version}:" + " ".join(word for word in words if word not in _STATES))
    return "; ".join(sorted(found))
