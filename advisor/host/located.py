"""A block device that has another name than it had: found again by what the kernel says of it alone.

Names such as ``nvme0n1`` are given in the order in which drives answer, anew at each boot. What a transaction set on
one must come back on the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.host.missing import Missing

if TYPE_CHECKING:
    from advisor.host.machine import Host

# A file of a device below /sys/block, and its words: ``("/sys/block/sda/device/wwid", "naa.5000c500…")``.
Identity = tuple[str, str]

_BLOCK = "/sys/block"
_GONE = Missing("unreadable", "the device that it was is not there, under any name")


def located(host: Host, path: str, identity: Identity | None) -> str | Missing:
    """``path`` below the name that the device has now; as it is where nothing tells the device from others."""
    if identity is None:
        return path
    file, words = identity
    if _words(host, file) == words:
        return path
    own, attribute = _parted(file)
    for name in host.names(_BLOCK):
        if name != own and _words(host, f"{_BLOCK}/{name}/{attribute}") == words:
            return f"{_BLOCK}/{name}/{_parted(path)[1]}"
    return _GONE


def _parted(path: str) -> tuple[str, str]:
    """Device and attribute of a path below /sys/block."""
    name, _, attribute = path.removeprefix(f"{_BLOCK}/").partition("/")
    return name, attribute


def _words(host: Host, path: str) -> str | None:
    text = host.read(path)
    return None if isinstance(text, Missing) else " ".join(text.split())
