"""What a guest is, as one text: what "as before" means. `STATE` is everything that a profile could touch, and all of
/etc; `NEAR` is what is quick to ask."""

from __future__ import annotations

from tests.cases import cases

CASES = cases(__file__)

NEAR = CASES["NEAR"]

STATE = CASES["STATE"]


def changed(before: list[str], after: list[str]) -> list[str]:
    """Lines that differ, but for what each boot makes new: interrupts, keys, and sizes reckoned from free memory."""
    per_boot = (
        "/proc/irq/",
        "net.core.netdev_rss_key",
        "net.ipv4.tcp_mem",
        "net.ipv4.udp_mem",
        "vm.min_free",
        "vm.user_",
        "vm.admin_",
    )
    return [line for line in sorted({*before} ^ {*after}) if not line.startswith(per_boot)]
