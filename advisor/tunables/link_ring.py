"""``link:IFACE:ring.KEY`` — the size of a link's ring in descriptors (ethtool -g), persisted in a udev rule.

KEY is rx, rx-mini, rx-jumbo or tx; a driver has those for which ethtool shows a maximum, and a larger one is refused.
Many drivers take the link down for a moment to make new rings.
"""

from __future__ import annotations

from advisor.tunables.link_driver import DriverValue


class LinkRing(DriverValue, frozen=True):
    risk = "link"
    group = "rings"
    word = "ring"
    keys = ("rx", "rx-mini", "rx-jumbo", "tx")
    unit = "descriptors"
