"""Words of the picture: CPUs, PCIe links, nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from advisor.facts.cpulist import fold_list, format_list, parse_list
from advisor.facts.links import Link
from advisor.facts.pci import PcieLink
from advisor.report.layout import listed
from advisor.report.units import format_speed
from advisor.rules.queries import is_physical, is_up

MAX_CPU_TEXT: Final = 34
BELOW: Final = "below maximum"
_MAX_NODES: Final = 3


def cpu_words(cpus: str) -> str:
    """A kernel list string for a chip: exact where there is room for it, else its ends and its number of ranges."""
    ids = _cpu_ids(cpus)
    folded = fold_list(ids)
    return folded if len(folded) <= MAX_CPU_TEXT else f"{ids[0]} … {ids[-1]} in {len(cpus.split(','))} ranges"


def cpu_count(cpus: str | None) -> int:
    """How many CPUs a kernel list string names; 0 for one that is none."""
    return len(_cpu_ids(cpus or ""))


def _cpu_ids(cpus: str) -> tuple[int, ...]:
    try:
        return parse_list(cpus)
    except ValueError:
        return ()


def node_words(nodes: Iterable[int]) -> str:
    """``node 1``, ``nodes 0 and 1``, ``nodes 0-7``."""
    names = [str(node) for node in sorted(nodes)]
    if len(names) > _MAX_NODES:
        return f"nodes {format_list(map(int, names))}"
    return f"{'node' if len(names) == 1 else 'nodes'} {listed(names)}"


def is_below(pcie: PcieLink | None) -> bool:
    """Whether a PCIe link has fewer lanes, or runs slower, than the device could."""
    if pcie is None:
        return False
    return _is_less(pcie.width, pcie.width_max) or _is_less(pcie.speed_gts, pcie.speed_max_gts)


def _is_less(now: float | None, most: float | None) -> bool:
    return now is not None and most is not None and 0 < now < most


def pcie_words(pcie: PcieLink | None, *, real: bool) -> str:
    """Width and speed, now and where it is less at most: ``PCIe x8 of x16, 8 GT/s``; empty where nothing is known.

    Without ``real`` (a virtual machine, whose PCIe is make-believe) nothing is called too low.
    """
    if pcie is None or not pcie.width or not pcie.speed_gts:
        return ""
    lanes, pace = f"x{pcie.width}", f"{pcie.speed_gts:g} GT/s"
    if real and _is_less(pcie.width, pcie.width_max):
        lanes += f" of x{pcie.width_max}"
    if real and _is_less(pcie.speed_gts, pcie.speed_max_gts):
        pace = f"{pcie.speed_gts:g} of {pcie.speed_max_gts:g} GT/s"
    return f"PCIe {lanes}, {pace}"


def limit_words(pcie: PcieLink | None, *, real: bool) -> str:
    """Which hop above the device is narrower than the device's own, and what it carries; else empty."""
    if not real or pcie is None or pcie.limiting is None or pcie.bandwidth_mbps is None:
        return ""
    return f"{pcie.limiting} above it carries {format_speed(pcie.bandwidth_mbps)}"


def link_state(link: Link) -> str:
    """``25 Gbit/s up``, ``no carrier``, ``down``."""
    state = "no carrier" if link.carrier is False and link.state == "up" else link.state or "state unknown"
    if link.speed_mbps:
        return f"{format_speed(link.speed_mbps)} {state}"
    return f"{state}, speed unknown" if is_physical(link) and is_up(link) else state


def first_names(names: Sequence[str], most: int) -> tuple[str, ...]:
    """The first of some texts, and how many more there are; one more than ``most`` is named, not counted."""
    if len(names) <= most + 1:
        return tuple(names)
    return (*names[:most], f"and {len(names) - most} more")
