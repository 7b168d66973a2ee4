"""``link:IFACE:channels.KEY`` — how many queues of a kind a link has (ethtool -l), persisted in a udev rule.

KEY is rx, tx, other or combined; a driver has those for which ethtool shows a maximum, and more than that are refused.
Many drivers take the link down for a moment, reset RSS to all queues, and request new interrupts with default
affinities; RPS and XPS of removed queues are lost. A rollback restores them and reads them back. Two things cannot be
restored: interrupts whose count or names have changed, and an RSS indirection table that ethtool -X cannot set. Both
are then named.
"""

from __future__ import annotations

import msgspec

from advisor.host import Host
from advisor.tunables.link_driver import DriverValue
from advisor.tunables.link_queue_state import queue_state, rss_notes
from advisor.tunables.preflight import Preflight

# A link receives by its combined channels and by those for receiving alone.
_BESIDE = {"combined": "rx", "rx": "combined"}


class LinkChannels(DriverValue, frozen=True):
    risk = "link"
    group = "channels"
    word = "channels"
    keys = ("rx", "tx", "other", "combined")
    unit = "queues"

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        around = super().run_preflight(host, before, after, profile=profile)
        if before == after:
            return around
        siblings, notes = queue_state(host, self.link)
        others = {one.tunable: one.before for one in around.side_effects}
        queues = int(after) + int(others.get(f"link:{self.link}:channels.{_BESIDE.get(self.key)}", "0"))
        notes += rss_notes(self.link, siblings, queues) if self.key in _BESIDE else ()
        return msgspec.structs.replace(around, side_effects=(*around.side_effects, *siblings), notes=notes)
