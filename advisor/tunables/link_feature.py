"""``link:IFACE:feature.NAME`` — an offload of a link, on or off (ethtool -k), persisted in a udev rule.

NAME is the kernel's own, such as tx-tcp-segmentation or rx-gro: the words that ethtool(8) takes too. What ethtool shows
as [fixed] is refused. Features hang together (no segmentation without checksums): those that are on are recorded, so
that a rollback finds what was switched off along with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.host import Host, Missing
from advisor.tunables.link_driver import SWITCH, DriverValue, observe_side_effect
from advisor.tunables.preflight import SideEffect
from advisor.tunables.tunable import Risk

# NETIF_F_UPPER_DISABLES: switched off on a bond or VLAN, it goes off on the links below, and not on again.
_HANDED_DOWN = "rx-lro"


class LinkFeature(DriverValue, frozen=True):
    group = "features"
    word = "feature"
    keys = ()

    @property
    def risk(self) -> Risk:
        # Nothing leaves a link that is looped back.
        return "link" if self.key == "loopback" else "none"

    @staticmethod
    def is_name(word: str) -> bool:
        return bool(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,30}", word))

    def check_value(self, value: str) -> str | None:
        return None if value in SWITCH else "is not on or off"

    def refusal(self, host: Host, value: str) -> str | None:
        changeable, requested = host.ethtool(self.link, "changeable"), host.ethtool(self.link, "requested")
        if isinstance(changeable, Missing) or isinstance(requested, Missing):
            return None
        if not changeable.get(self.key):
            return "it is [fixed]: the driver does not let it be changed"
        if requested.get(self.key) == (value == "on"):
            # Asked for once more it would stay as it is, and a rollback would take the earlier request away.
            return f"{value} is requested already: blocked by the kernel or another feature"
        return None

    def find_side_effects(self, host: Host) -> Iterator[SideEffect]:
        """Every other feature that is on and can be changed; of one that links hand down, also that of those below."""
        for key in _changeable_features(host, self.link):
            if key != self.key:
                yield from observe_side_effect(host, LinkFeature(self.link, key))
        if self.key == _HANDED_DOWN:
            # The links that this one is made of, and theirs in turn, sorted.
            found: set[str] = set()
            pending = [self.link]
            while pending:
                names = host.names(f"/sys/class/net/{pending.pop()}")
                lower = {name.removeprefix("lower_") for name in names if name.startswith("lower_")} - found
                found |= lower
                pending += lower
            for link in tuple(sorted(found)):
                if self.key in _changeable_features(host, link):
                    yield from observe_side_effect(host, LinkFeature(link, self.key))


def _changeable_features(host: Host, link: str) -> tuple[str, ...]:
    features, changeable = host.ethtool(link, "features"), host.ethtool(link, "changeable")
    if isinstance(features, Missing) or isinstance(changeable, Missing):
        return ()
    return tuple(key for key, on in features.items() if on and changeable.get(key))
