"""A block device that has another name than it had: found again by what the kernel and udev say about it alone.

Names such as ``nvme0n1`` are given in the order in which drives answer, again at each boot. What a transaction set on
one must be restored on the same one. Paths to one unit, and clones, have one identity: their places distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.host.irqs import is_interrupt, locate_interrupt
from advisor.host.missing import Identity, Missing, Reader
from advisor.host.patterns import lazy_regex

ATTRIBUTES = ("dm/uuid", "dm/name", "md/uuid", "wwid", "device/wwid", "serial", "device/serial")
"""Files below /sys/block/DEVICE that identify it; the first one that holds anything counts."""
PLACES = ("ID_PATH", "MD_UUID")
"""Properties of udev that name a place or an array, the first one that there is counts."""

_BLOCK = "/sys/block"
_GONE = Missing("unreadable", "the device that it was is not there, under any name")
# A path of an NVMe namespace; it shows what the namespace nvme0n1 itself shows.
_NVME_PATH = lazy_regex(r"nvme[0-9]+c[0-9]+n[0-9]+")


class Marks(msgspec.Struct, frozen=True):
    """The marks of an `Identity`; empty where there is no such thing."""

    is_shared: bool = False
    place: str = ""
    device: str = ""
    sequence: str = ""


def located(host: Reader, path: str, identity: Identity | None) -> str | Missing:
    """``path`` below the name that the device has now; unchanged where nothing identifies the device.

    Missing where the device is gone, or other devices have its identity and none of them is at its place.
    """
    if identity is None:
        return path
    if is_interrupt(path):
        return locate_interrupt(host, path, identity)
    own, attribute = _split_path(path)
    name = _name_now(host, own, identity)
    return name if isinstance(name, Missing) else f"{_BLOCK}/{name}/{attribute}"


def _name_now(host: Reader, own: str, identity: Identity) -> str | Missing:
    file, words, *given = identity
    attribute, marks = _split_path(file)[1], _parse_marks(given)
    if _is_alike(host, own, attribute, words) and (not given or _is_certain(host, own, marks)):
        return own
    alike = [
        name
        for name in host.names(_BLOCK)
        if is_nvme_path(name) == is_nvme_path(own) and _is_alike(host, name, attribute, words)
    ]
    found = [name for name in alike if marks.sequence and sequence_of(host, name) == marks.sequence]
    if not found and words and not marks.is_shared and len(alike) == 1:
        found = alike
    if not found:
        found = [name for name in alike if _is_at(host, name, marks)]
        if len(found) > 1:
            found = [name for name in found if marks.device and device_of(host, name) == marks.device]
    if not words and not marks.place and not marks.device and own in alike and not _is_of_this_boot(host, marks):
        found = [own]
    return found[0] if len(found) == 1 else _gone_reason(alike if words else [], marks)


def _parse_marks(given: list[str]) -> Marks:
    named = {mark.partition("=")[0]: mark for mark in given}
    return Marks(
        is_shared="shared" in given,
        place=next((named[name] for name in PLACES if name in named), ""),
        device=named.get("device", ""),
        sequence=named.get("diskseq", ""),
    )


def marks_of(host: Reader, device: str) -> Marks:
    """The marks that a device has now."""
    properties = udev_properties(host, device)
    place = next((f"{name}={properties[name]}" for name in PLACES if properties.get(name)), "")
    return Marks(
        place=place if _is_plain(place) else "", device=device_of(host, device), sequence=sequence_of(host, device)
    )


def is_nvme_path(device: str) -> bool:
    """Whether it is one path of an NVMe namespace, and not the namespace that its paths make up."""
    return bool(_NVME_PATH.fullmatch(device))


def words_of(host: Reader, device: str, attribute: str) -> str:
    """What an attribute of a device says about it in printable ASCII; empty where it says nothing."""
    text = host.read(f"{_BLOCK}/{device}/{attribute}")
    words = "" if isinstance(text, Missing) or "\n" in text else " ".join(text.split())
    return words if words.isascii() and words.isprintable() else ""


def device_of(host: Reader, device: str) -> str:
    """Where a device sits, by its link ``device``; empty where it has none, as those that the kernel makes up."""
    link = f"{_BLOCK}/{device}/device"
    real = host.real(link)
    place = "" if isinstance(real, Missing) else real.removesuffix(f"/{device}/device")
    return "" if place in ("", _BLOCK) or not _is_plain(place) else f"device={place}"


def sequence_of(host: Reader, device: str) -> str:
    """The number that no other disk gets before the next boot (Linux 5.15 and later), with the boot."""
    number, boot_id = words_of(host, device, "diskseq"), _boot_id(host)
    return f"diskseq={number}@{boot_id}" if number and boot_id else ""


def udev_properties(host: Reader, device: str) -> Mapping[str, str]:
    """What udev found out about a device."""
    number = host.read(f"{_BLOCK}/{device}/dev")
    if isinstance(number, Missing) or not re.fullmatch(r"[0-9]+:[0-9]+", number):
        return {}
    text = host.read(f"/run/udev/data/b{number}")
    return {} if isinstance(text, Missing) else dict(re.findall(r"(?m)^E:(\w+)=(.+)$", text))


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_alike(host: Reader, name: str, attribute: str, words: str) -> bool:
    if words:
        return words_of(host, name, attribute) == words
    return host.exists(f"{_BLOCK}/{name}") and not any(words_of(host, name, one) for one in ATTRIBUTES)


def _is_certain(host: Reader, name: str, marks: Marks) -> bool:
    """Whether it is the device without a look at the others."""
    if marks.sequence and sequence_of(host, name) == marks.sequence:
        return True
    if not marks.place and not marks.device:
        return False
    is_there = not marks.place or _place_now(host, name, marks) == marks.place
    return is_there and (not marks.device or device_of(host, name) == marks.device)


def _is_at(host: Reader, name: str, marks: Marks) -> bool:
    """Whether a device is at the recorded place. Where udev says nothing yet, by the device link alone."""
    place = _place_now(host, name, marks) if marks.place else ""
    return place == marks.place if place else bool(marks.device) and device_of(host, name) == marks.device


def _place_now(host: Reader, name: str, marks: Marks) -> str:
    key = marks.place.partition("=")[0]
    value = udev_properties(host, name).get(key)
    return f"{key}={value}" if value else ""


def _is_of_this_boot(host: Reader, marks: Marks) -> bool:
    return bool(marks.sequence) and marks.sequence.rpartition("@")[2] == _boot_id(host)


def _boot_id(host: Reader) -> str:
    text = host.read("/proc/sys/kernel/random/boot_id")
    return "" if isinstance(text, Missing) else text


def _gone_reason(alike: list[str], marks: Marks) -> Missing:
    if not alike:
        return _GONE
    place = marks.place or marks.device
    what = f"the device at {place} is not there" if place else "no mark shows which device it was"
    return Missing("unreadable", f"{what}; other devices of its identity: {' '.join(alike)}")


def _split_path(path: str) -> tuple[str, str]:
    """Device and attribute of a path below /sys/block."""
    name, _, attribute = path.removeprefix(f"{_BLOCK}/").partition("/")
    return name, attribute
