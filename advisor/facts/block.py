"""What disks, arrays and file systems share: names, numbers and queue attributes of block devices.

A block device is named here as ``/sys/class/block`` names it: ``sda2``, ``md0``, ``dm-3``, and ``cciss!c0d0`` for what
is ``/dev/cciss/c0d0``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, lazy_regex

SECTOR_BYTES = 512  # sysfs counts in these, whatever the device's own block size (kernel: block/stat, ABI sysfs-block)

_NUMBERS = lazy_regex(r"([0-9]+)")
# Disks that the kernel letters as it numbers others: sda … sdz, sdaa (sd_format_disk_name).
_LETTERED = lazy_regex(r"(sd|vd|xvd|hd|dasd)([a-z]{1,4})(?![a-z])(.*)", re.DOTALL)
_NVME_PATH = lazy_regex(r"(nvme[0-9]+)c[0-9]+(n[0-9]+)")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key by which sda9 comes before sda10, and sdz before sdaa."""
    lettered = _LETTERED.match(name)
    if lettered is not None:
        kind, letters, rest = lettered.groups()
        return (-1, kind), (len(letters), letters), *natural(rest)
    parts = _NUMBERS.split(name)
    return tuple((int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts) if len(part) < 400)


def multipath_head(path: str) -> str | None:
    """The device that requests of a path of NVMe's own multipath come from: nvme0n1 of nvme0c1n1, the path by
    controller 1 (nvme: nvme_mpath_set_disk_name). None for what is no such path."""
    found = _NVME_PATH.fullmatch(path)
    return f"{found[1]}{found[2]}" if found else None


def clean(text: str) -> str:
    """One line, without NUL bytes and padding."""
    return " ".join(text.replace("\0", " ").split())


def node_path(name: str) -> str:
    """The device node of a kernel name."""
    return "/dev/" + name.replace("!", "/")


def kernel_name(path: str) -> str:
    """The kernel name that a device node of this path has if it is no link."""
    return path.removeprefix("/dev/").replace("/", "!")


def read_word(host: Host, path: str, fact: str, unknown: Unknowns) -> str | None:
    """A short attribute as one line; None where it is absent, empty or unreadable (which is noted)."""
    text = unknown.value(fact, host.read(path))
    return (clean(text) or None) if text is not None else None


def read_count(host: Host, path: str, fact: str, unknown: Unknowns) -> int | None:
    """A number that cannot be negative; None where it is absent, or no such number (which is noted)."""
    number = unknown.value(fact, host.read_int(path))
    if number is not None and number < 0:
        unknown.note(fact, f"the kernel gives {number}")
        return None
    return number


def read_size(host: Host, name: str, fact: str, unknown: Unknowns) -> int | None:
    """Bytes of a whole device; every device has a size, so that its absence is noted too."""
    sectors = read_count(host, f"/sys/block/{name}/size", fact, unknown)
    if sectors is None:
        unknown.note(fact, f"/sys/block/{name}/size does not exist")
        return None
    return sectors * SECTOR_BYTES


def read_queue(host: Host, name: str, attributes: Iterable[str], fact: str, unknown: Unknowns) -> dict[str, str]:
    """The raw values of those queue attributes that this kernel has for this device."""
    values: dict[str, str] = {}
    for attribute in attributes:
        text = host.read(f"/sys/block/{name}/queue/{attribute}")
        if not isinstance(text, Missing):
            values[attribute] = clean(text)
        elif not text.is_absent and not _does_not_apply(attribute, text):
            unknown.note(f"{fact}.queue.{attribute}", text)
    return values


def _does_not_apply(attribute: str, missing: Missing) -> bool:
    # The kernel answers EINVAL where write-back throttling is off for the device (blk-sysfs.c, queue_wbt_lat_show).
    return attribute == "wbt_lat_usec" and missing.why == "Invalid argument"


def partitions_of(name: str, entries: Iterable[str]) -> tuple[str, ...]:
    """The partitions among the entries of ``/sys/block/NAME``: sda1, nvme0n1p1, cciss!c0d0p1."""
    found = (entry for entry in entries if entry.startswith(name) and re.fullmatch(r"p?[0-9]+", entry[len(name) :]))
    return tuple(sorted(found, key=natural))


def whole_of(partition: str, known: Container[str]) -> str | None:
    """The known device that a name like sda2 or nvme0n1p2 is a partition of, by its form alone."""
    found = re.fullmatch(r"(.*[0-9])p[0-9]+|(.*\D)[0-9]+", partition, re.DOTALL)
    whole = (found[1] or found[2]) if found else None
    return whole if whole in known else None


class BlockNames:
    """Kernel names of block devices by device number or by path. Tables are read when first needed, then kept."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._numbers: Mapping[str, str] | None = None
        self._mapped: Mapping[str, str] | None = None

    def by_number(self, number: str) -> str | None:
        """The device with a ``major:minor`` number."""
        link = self._host.readlink(f"/sys/dev/block/{number}")
        if not isinstance(link, Missing):
            return link.rstrip("/").rpartition("/")[2] or None
        if self._numbers is None:
            self._numbers = self._read_numbers()
        return self._numbers.get(number)

    def by_path(self, path: str) -> str | None:
        """The device that a path below /dev means; None where the host shows no such device."""
        if not path.startswith("/dev/"):
            return None
        real = self._host.real(path)
        for candidate in (path if isinstance(real, Missing) else real, path):
            name = kernel_name(candidate)
            if self._host.exists(f"/sys/class/block/{name}") or self._host.exists(f"/sys/block/{name}"):
                return name
        # `/dev/vg/lv` as device-mapper spells it: hyphens doubled, one between the two.
        return self.by_mapping(path.removeprefix("/dev/mapper/")) or self.by_mapping(
            "-".join(part.replace("-", "--") for part in path.removeprefix("/dev/").split("/"))
        )

    def by_mapping(self, mapping: str) -> str | None:
        """The dm device that device-mapper calls ``mapping``."""
        if self._mapped is None:
            self._mapped = self._read_mappings()
        return self._mapped.get(mapping)

    def _read_numbers(self) -> dict[str, str]:
        # A captured tree may lack /sys/dev; on a live host this is reached for devices that have just gone only.
        if self._host.is_live:
            return {}
        numbers: dict[str, str] = {}
        for directory in ("/sys/block", "/sys/class/block"):
            for name in self._host.names(directory):
                number = self._host.read(f"{directory}/{name}/dev")
                if not isinstance(number, Missing):
                    numbers[number] = name
        return numbers

    def _read_mappings(self) -> dict[str, str]:
        mapped: dict[str, str] = {}
        for name in self._host.names("/sys/block"):
            if name.startswith("dm-"):
                mapping = self._host.read(f"/sys/block/{name}/dm/name")
                if not isinstance(mapping, Missing):
                    mapped[mapping] = name
        return mapped
