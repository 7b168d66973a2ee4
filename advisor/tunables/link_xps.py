"""``link:IFACE:xps.tx-N`` — the CPUs that send by a transmit queue (XPS), persisted in a udev rule.

The value is a kernel list such as 0-3, or none (the kernel's Documentation/networking/scaling). A link with a single
queue has no such thing.
"""

from __future__ import annotations

from advisor.tunables.link_queues import QueueCpus


class LinkXps(QueueCpus, frozen=True):
    word = "xps"
    side = "tx"
    file = "xps_cpus"
