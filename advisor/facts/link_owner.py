"""Which network manager owns a link, and in which file it keeps the link's settings.

The manager's own run-time state is asked first (NetworkManager's devices, systemd-networkd's links), then the files
that ifupdown, the network scripts and wicked act upon; what nobody claims is udev's. No process is asked.
"""

from __future__ import annotations

from collections.abc import Callable

from advisor.facts.ifupdown import read_ifupdown_owner
from advisor.facts.link_claim import LinkOwner, is_plain, udev_property
from advisor.facts.network_manager import read_network_manager_owner
from advisor.facts.networkd import read_networkd_owner
from advisor.facts.sysconfig import read_sysconfig_owner
from advisor.host import Host, Missing

__all__ = ["LinkOwner", "read_link_owner"]


def read_link_owner(host: Host, link: str) -> LinkOwner | Missing:
    """The owner of a link. Missing where it is unknown, or where nothing would configure the link at boot."""
    for ask in _IN_TURN:
        found = ask(host, link)
        if isinstance(found, LinkOwner) and not is_plain(found.evidence):
            return Missing("unreadable", f"{found.manager} has it in hand, by a name that cannot be written")
        if found is not None:
            return found
    return Missing("absent", "udev does not run here, so no .link file would be read")


def _read_udev_owner(host: Host, link: str) -> LinkOwner | None:
    if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
        return None
    file = udev_property(host, link, "ID_NET_LINK_FILE")
    kind = "a port" if host.exists(f"/sys/class/net/{link}/device") else "a virtual link that others make"
    reads = f"udev reads {file} for it" if file else "udev knows no .link file for it"
    return LinkOwner("udev", file, link, f"no network manager claims it; it is {kind}, and {reads}")


_IN_TURN: tuple[Callable[[Host, str], LinkOwner | Missing | None], ...] = (
    read_network_manager_owner,
    read_networkd_owner,
    read_ifupdown_owner,
    read_sysconfig_owner,
    _read_udev_owner,
)
