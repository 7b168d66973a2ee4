"""What the kernel changes with the forwarding of packets besides other sysctls, which `sysctl_group` names.

Where forwarding begins, the kernel switches large receive offload off for good, as joined packets cannot be sent on:
inet_forward_change and dev_disable_lro in the kernel's source.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex
from advisor.tunables.link_driver import LinkFeature, observe_side_effect
from advisor.tunables.preflight import Preflight, SideEffect

_KEY = lazy_regex(r"net\.(?:ipv4\.(?P<short>ip_forward)|(?P<version>ipv[46])\.conf\.(?P<link>[^.]+)\.forwarding)")
_LRO = "rx-lro"


def forwarding_preflight(host: Host, key: str, before: str) -> Preflight:
    """What goes beyond other sysctls where ``key`` is a switch of forwarding; nothing for all other keys."""
    found = _KEY.fullmatch(key)
    if found is None or before != "0":
        return Preflight()
    is_all = found["short"] is not None or found["link"] == "all"
    links = host.names("/sys/class/net") if is_all else (found["link"].replace("/", "."),)
    siblings = tuple(_lro_side_effects(host, links))
    names = ", ".join(one.tunable.split(":")[1] for one in siblings)
    note = (
        f"the kernel switches large receive offload off on {names} where it begins to forward; a rollback restores it"
    )
    return Preflight(side_effects=siblings, notes=(note,) if siblings else ())


def _lro_side_effects(host: Host, links: tuple[str, ...]) -> Iterator[SideEffect]:
    for name in links:
        changeable = host.ethtool(name, "changeable")
        if not isinstance(changeable, Missing) and changeable.get(_LRO):
            yield from (one for one in observe_side_effect(host, LinkFeature(name, _LRO)) if one.before == "on")
