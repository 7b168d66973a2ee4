"""``link:IFACE:pause.KEY`` — Ethernet flow control of a link, on or off (ethtool -a), persisted in a udev rule.

KEY is autoneg, rx or tx. Most drivers renegotiate the link.
"""

from __future__ import annotations

from advisor.tunables.link_driver import DriverValue


class LinkPause(DriverValue, frozen=True):
    risk = "link"
    group = "pause"
    word = "pause"
    keys = ("autoneg", "rx", "tx")
    switches = frozenset({"autoneg", "rx", "tx"})
