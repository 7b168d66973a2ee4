"""``link:IFACE:rps.rx-N`` — the CPUs that a receive queue's packets are spread over (RPS), persisted in a udev rule.

The value is a kernel list such as 0-3, or none, which leaves a packet on the CPU of its interrupt (the kernel's
Documentation/networking/scaling).
"""

from __future__ import annotations

from advisor.tunables.link_queues import QueueCpus


class LinkRps(QueueCpus, frozen=True):
    word = "rps"
    side = "rx"
    file = "rps_cpus"
