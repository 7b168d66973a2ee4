"""``link:IFACE:rps-flow-cnt.rx-N`` — the flows whose CPU a receive queue remembers (RFS), persisted in a udev rule.

The value is 0 or a power of two. It has an effect where sysctl:net.core.rps_sock_flow_entries is set too.
"""

from __future__ import annotations

import re

from advisor.tunables.link_queues import QueueValue

_MAX_FLOWS = 1 << 29


class LinkRpsFlows(QueueValue, frozen=True):
    word = "rps-flow-cnt"
    side = "rx"
    file = "rps_flow_cnt"
    holds_count = True

    def check_value(self, value: str) -> str | None:
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", value) or int(value) > _MAX_FLOWS:
            return f"is not a number of flows up to {_MAX_FLOWS}"
        return "is no power of two, to which the kernel would round it up" if int(value) & (int(value) - 1) else None
