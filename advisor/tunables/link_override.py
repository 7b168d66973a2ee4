"""What a network manager sets on a link after udev's rules have run (nm-settings-keyfile(5), ethtool setting)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.facts.ini_text import last_value
from advisor.facts.link_owner import read_link_owner
from advisor.host import Host, Missing
from advisor.host.steps import DriverGroup

_PREFIXES: Final[Mapping[DriverGroup, str]] = {
    "rings": "ring-",
    "channels": "channels-",
    "coalesce": "coalesce-",
    "pause": "pause-",
    "features": "feature-",
}
# NetworkManager calls a few features by the names that ethtool had for them first.
_SHORT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "rx-gro": ("gro",),
    "rx-lro": ("lro",),
    "tx-generic-segmentation": ("gso",),
    "tx-tcp-segmentation": ("tso", "tx-tcp-segmentation"),
    "tx-tcp6-segmentation": ("tso", "tx-tcp6-segmentation"),
    "tx-scatter-gather": ("sg", "tx-scatter-gather"),
    "rx-checksum": ("rx",),
    "rx-vlan-hw-parse": ("rxvlan",),
    "tx-vlan-hw-insert": ("txvlan",),
    "rx-ntuple-filter": ("ntuple",),
    "rx-hashing": ("rxhash",),
}
_SWITCHES: Final[Mapping[str, str]] = {"true": "on", "false": "off"}


def overriding_setting(host: Host, link: str, group: DriverGroup, key: str, value: str) -> str | None:
    """Why a rule of udev would not last on this link: NetworkManager activates its profile afterwards. Else None."""
    owner = read_link_owner(host, link)
    if isinstance(owner, Missing):
        return None
    file = owner.file if owner.manager == "NetworkManager" else owner.profile
    text = host.read(file) if file else Missing("absent", "NetworkManager does not have it in hand")
    if isinstance(text, Missing):
        return None
    for name in _SHORT_NAMES.get(key, (key,)):
        option = f"{_PREFIXES[group]}{name}"
        found = last_value(text, "ethtool", option, continued=False)
        if found is not None and _SWITCHES.get(found, found) != value:
            return (
                f"NetworkManager sets {option}={found} ([ethtool] of {file}) when it activates the link,"
                " after udev: change it there, or use --runtime-only"
            )
    return None
