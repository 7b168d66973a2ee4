"""What the kernel moves along with the forwarding of packets: the switches of single links, and offloads.

``net.ipv4.ip_forward`` (the same as ``net.ipv4.conf.all.forwarding``) sets the switch of every link anew, and
``conf.all.accept_redirects`` to its opposite; ``net.ipv6.conf.all.forwarding`` sets every link's. Where forwarding
begins, the kernel switches large receive offload off for good, as joined packets cannot be sent on: inet_forward_change
and dev_disable_lro in the kernel's source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from advisor.host import Host, Missing, Step, WriteFile
from advisor.tunables.circumstances import Circumstances, Sibling
from advisor.tunables.link_driver import sibling
from advisor.tunables.link_feature import LinkFeature

_KEY: Final = re.compile(
    r"net\.(?:ipv4\.(?P<short>ip_forward)|(?P<version>ipv[46])\.conf\.(?P<link>[^.]+)\.forwarding)"
)
_LRO: Final = "rx-lro"


def is_forwarding(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def forwarding_circumstances(host: Host, key: str, before: str, after: str, *, back: tuple[Step, ...]) -> Circumstances:
    """``back`` are the steps that write the value before; what they set anew is given back with them."""
    found = _KEY.fullmatch(key)
    if found is None or before == after:
        return Circumstances()
    is_all = found["short"] is not None or found["link"] == "all"
    links = host.names("/sys/class/net") if is_all else (found["link"].replace("/", "."),)
    siblings = tuple(_lro(host, links)) if before == "0" else ()
    undo = (*back, *_switches(host, found["version"] or "ipv4", before)) if is_all else None
    return Circumstances(undo=undo, siblings=siblings, notes=_notes(siblings))


def _lro(host: Host, links: tuple[str, ...]) -> Iterator[Sibling]:
    for name in links:
        changeable = host.ethtool(name, "changeable")
        if not isinstance(changeable, Missing) and changeable.get(_LRO):
            yield from (one for one in sibling(host, LinkFeature(name, _LRO)) if one.before == "on")


def _switches(host: Host, version: str, before: str) -> Iterator[Step]:
    """What does not come back by itself: switches that are not as the one for all, and whether redirects are taken."""
    base = f"/proc/sys/net/{version}/conf"
    redirects = host.read(f"{base}/all/accept_redirects")
    if version == "ipv4" and isinstance(redirects, str):
        yield WriteFile(f"{base}/all/accept_redirects", redirects)
    for name in host.names(base):
        live = host.read(f"{base}/{name}/forwarding")
        if name != "all" and isinstance(live, str) and live != before:
            yield WriteFile(f"{base}/{name}/forwarding", live)


def _notes(siblings: tuple[Sibling, ...]) -> tuple[str, ...]:
    names = ", ".join(one.tunable.split(":")[1] for one in siblings)
    told = (
        f"the kernel switches large receive offload off on {names} where it begins to forward; a rollback gives it back"
    )
    return (told,) if siblings else ()
