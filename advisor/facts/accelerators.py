"""Accelerators on PCI: GPUs, processing accelerators, NEC's vector engines, DPUs and Intel QuickAssist, with the
node that they are near.

They are known by class code and ids (PCI Code and ID Assignment Specification; pci.ids; the kernel's drivers/crypto/
intel/qat). The display adapter of a management controller is none. Virtual functions of QuickAssist have ids of their
own and are left out.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.facts.block import natural
from advisor.facts.pci import PcieLink, PlaceReader
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing, is_hexadecimal

AcceleratorKind = Literal["gpu", "dpu", "accelerator", "quickassist"]

_DEVICES = "/sys/bus/pci/devices"
_MAX = 256
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel", "0x15b3": "NVIDIA BlueField", "0x1bcf": "NEC"}
# 3D controllers and other displays have no screen; a VGA controller of these makers is a card.
_GPU_CLASSES = ("0x0302", "0x0380")
_GPU_MAKERS = frozenset({"0x10de", "0x1002"})
_BLUEFIELD = frozenset({"0xa2d2", "0xa2d6", "0xa2dc", "0xa2de"})
_QUICKASSIST = frozenset({"0x0435", "0x37c8", "0x19e2", "0x6f54", "0x4940", "0x4942", "0x4944", "0x4946"})


class Accelerator(msgspec.Struct, frozen=True):
    """``ids`` are vendor and device in hexadecimal (10de:20b0), ``vendor`` the maker's name where it is known."""

    address: str
    kind: AcceleratorKind
    vendor: str | None
    ids: str
    driver: str | None
    numa_node: int | None
    pcie: PcieLink | None


def read_accelerators(host: Host, unknown: Unknowns) -> tuple[Accelerator, ...]:
    """By PCI address; of a DPU its first function."""
    places = PlaceReader(host, unknown)
    found = []
    for address in sorted(host.names(_DEVICES), key=natural):
        place = f"{_DEVICES}/{address}"
        code = host.read(f"{place}/class")
        # Most of the functions of a host need no more than this read.
        if isinstance(code, Missing) or not code.startswith(("0x03", "0x12", "0x0b40", "0x02")):
            continue
        vendor, device = (_read_id(host, f"{place}/{name}") for name in ("vendor", "device"))
        kind = None if vendor is None or device is None else kind_of_function(code, vendor, device, address)
        if kind is None or vendor is None or device is None:
            continue
        driver = host.readlink(f"{place}/driver")
        where = places.read(place, f"accelerators.{address}")
        found.append(
            Accelerator(
                address=address,
                kind=kind,
                vendor=_VENDORS.get(vendor),
                ids=f"{vendor[2:]}:{device[2:]}",
                driver=None if isinstance(driver, Missing) else driver.rpartition("/")[2] or None,
                numa_node=where.numa_node if where else None,
                pcie=where.pcie if where else None,
            )
        )
    return tuple(found[:_MAX])


def kind_of_function(code: str, vendor: str, device: str, address: str) -> AcceleratorKind | None:
    """What a PCI function is by its class and ids; None for what is no accelerator."""
    if code.startswith(_GPU_CLASSES) or (code.startswith("0x0300") and vendor in _GPU_MAKERS):
        return "gpu"
    if code.startswith("0x12") or (code.startswith("0x0b40") and vendor == "0x1bcf"):
        return "accelerator"
    if code.startswith("0x02") and vendor == "0x15b3" and device in _BLUEFIELD and address.endswith(".0"):
        return "dpu"
    return "quickassist" if vendor == "0x8086" and device in _QUICKASSIST else None


def _read_id(host: Host, path: str) -> str | None:
    text = host.read(path)
    if isinstance(text, Missing) or len(text) != 6 or not text.startswith("0x"):
        return None
    return text if is_hexadecimal(text[2:]) else None
