"""``link:IFACE:coalesce.KEY`` — when a link's interrupts come (ethtool -c), persisted in a udev rule.

KEY is rx-usecs or tx-usecs, the microseconds after a packet; rx-frames or tx-frames, the number of packets; adaptive-rx
or adaptive-tx, on where the driver finds the values by itself. A driver has those for which ethtool shows a value.
"""

from __future__ import annotations

from advisor.tunables.link_driver import DriverValue


class LinkCoalesce(DriverValue, frozen=True):
    group = "coalesce"
    word = "coalesce"
    keys = ("adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "tx-usecs", "tx-frames")
    switches = frozenset({"adaptive-rx", "adaptive-tx"})
    unit = "microseconds or frames"
