"""Settings that lie in the firmware of drives and adapters, asked only along with the health of drives.

LBA formats of an NVMe namespace: NVM Express NVM Command Set, Identify Namespace (struct nvme_id_ns of libnvme). Write
ordering of an adapter: ``mlxconfig`` of NVIDIA's firmware tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from advisor.facts.disks import Disk
from advisor.facts.links import Link
from advisor.host import Host, Missing
from advisor.host.nvme_log import identify_namespace

_FORMATS_AT = 128
_CURRENT_AT = 26
_MOST_FORMATS = 64
_ORDERING = "PCI_WR_ORDERING"
_WORDS = ("best", "better", "good", "degraded")
"""Relative performance 0 to 3."""

Identify = Callable[[str], bytes | Missing]


class LbaFormat(msgspec.Struct, frozen=True):
    """``performance`` is relative to the drive's other formats: 0 is the best, 3 the worst."""

    data_bytes: int
    metadata_bytes: int
    performance: int

    @property
    def text(self) -> str:
        more = f" + {self.metadata_bytes}" if self.metadata_bytes else ""
        return f"{self.data_bytes}{more} bytes ({_WORDS[self.performance]})"


def parse_identify_namespace(data: bytes) -> tuple[LbaFormat, tuple[LbaFormat, ...]] | None:
    """The format in use, and all that the namespace supports; None for what is no such answer."""
    if len(data) < 4096:
        return None
    count = min(data[25] + 1, _MOST_FORMATS)
    formats = []
    for at in range(_FORMATS_AT, _FORMATS_AT + 4 * count, 4):
        metadata, shift, performance = int.from_bytes(data[at : at + 2], "little"), data[at + 2], data[at + 3] & 3
        formats.append(LbaFormat(1 << shift if 9 <= shift <= 20 else 0, metadata, performance))
    used = data[_CURRENT_AT] & 0xF | (data[_CURRENT_AT] & 0x60) >> 1
    if used >= len(formats) or not formats[used].data_bytes:
        return None
    return formats[used], tuple(one for one in formats if one.data_bytes)


def parse_write_ordering(text: str) -> str | None:
    """``per_mkey(0)`` or ``force_relax(1)`` in what ``mlxconfig query`` prints; the last column is that in use."""
    found = re.search(rf"^[^\w\n]{{0,40}}{_ORDERING}[ \t]{{1,80}}(\S.{{0,200}})$", text, re.MULTILINE | re.ASCII)
    words = re.findall(r"[a-z_]{1,40}\([0-9]{1,4}\)", found[1], re.ASCII) if found else []
    return words[-1] if words else None


def with_formats(host: Host, disks: Sequence[Disk], identify: Identify = identify_namespace) -> tuple[Disk, ...]:
    """The disks, those of local NVMe drives with their format and the best one; on the running host, as root."""
    return tuple(_with_format(disk, identify) if _has_formats(host, disk) else disk for disk in disks)


def _has_formats(host: Host, disk: Disk) -> bool:
    return host.is_live and host.is_root is True and disk.kind == "nvme" and disk.pci is not None and not disk.paths


def _with_format(disk: Disk, identify: Identify) -> Disk:
    data = identify(disk.name)
    found = None if isinstance(data, Missing) else parse_identify_namespace(data)
    if found is None:
        return disk
    used, every = found
    # Only formats that hold as much metadata can take the place of this one.
    alike = [one for one in every if one.metadata_bytes == used.metadata_bytes]
    best = min(alike, key=lambda one: one.performance, default=used)
    detail = {"lba_format": used.text}
    if best.performance < used.performance:
        detail["better_lba_format"] = best.text
    return msgspec.structs.replace(disk, detail={**disk.detail, **detail})


def with_write_ordering(host: Host, links: Sequence[Link]) -> tuple[Link, ...]:
    """The links, those of mlx5 with the write ordering of their adapter, where ``mlxconfig`` is installed."""
    found: list[Link] = []
    known: dict[str, str | None] = {}
    for link in links:
        if link.driver == "mlx5_core" and link.pci and link.detail.get("rdma_device") and None not in known.values():
            if link.pci not in known:
                done = host.run(("mlxconfig", "-d", link.pci, "query", _ORDERING), timeout=5.0)
                known[link.pci] = None if isinstance(done, Missing) else parse_write_ordering(done.stdout)
            if (ordering := known[link.pci]) is not None:
                found.append(msgspec.structs.replace(link, detail={**link.detail, "pci_write_ordering": ordering}))
                continue
        found.append(link)
    return tuple(found)
