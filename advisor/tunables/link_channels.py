"""``link:IFACE:channels.KEY`` — how many queues of a kind a link has (ethtool -l), persisted in a udev rule.

KEY is rx, tx, other or combined; a driver has those for which ethtool shows a maximum, and more than that are refused.
Many drivers take the link down for a moment, and ask for new interrupts: their affinities begin anew. What RPS and XPS
had in queues that went comes back with them on rollback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.host import Host, observe
from advisor.tunables.circumstances import Sibling
from advisor.tunables.link_driver import DriverValue
from advisor.tunables.link_queues import QueueValue
from advisor.tunables.link_rps import LinkRps
from advisor.tunables.link_rps_flows import LinkRpsFlows
from advisor.tunables.link_xps import LinkXps
from advisor.tunables.tunable import Risk


class LinkChannels(DriverValue, frozen=True):
    group = "channels"
    word = "channels"
    keys = ("rx", "tx", "other", "combined")
    unit = "queues"

    @property
    def risk(self) -> Risk:
        return "link"

    def siblings(self, host: Host) -> Iterator[Sibling]:
        yield from super().siblings(host)
        for one in _queues(host, self.link):
            live = observe(host, one.probe)
            if isinstance(live, str):
                yield Sibling(one.id, live, one.probe, one.steps(live))


def _queues(host: Host, link: str) -> Iterator[QueueValue]:
    for name in host.names(f"/sys/class/net/{link}/queues"):
        found = re.fullmatch(r"(rx|tx)-(\d{1,5})", name, re.ASCII)
        for kind in (LinkRps, LinkRpsFlows, LinkXps) if found else ():
            if found and found[1] == kind.side:
                yield kind(link, int(found[2]))
