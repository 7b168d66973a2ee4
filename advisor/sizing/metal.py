"""Drives × RAID × links: what carries a demand on hardware of one's own.

Drives are those of the user's file, else classes of the articles and of the textbooks, each with its source; a figure
that the class has not is unknown. Links carry reads out and writes in at the same time; drives divide their time
between them. PCI Express, processors and memory are not counted: `advisor limits` shows them on the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from advisor.facts.block.block import PARITY_DISKS
from advisor.limits import links as wire
from advisor.limits.declared import Declared
from advisor.limits.figures import Figures, combined
from advisor.limits.notes import mixed
from advisor.limits.records import Measure, Rate
from advisor.sizing.records import (
    Choice,
    Demand,
    Excluded,
    Links,
    Short,
    SizedPart,
    VolumePurchase,
    finite_value,
    size_part,
)

MOST_DRIVES = 128
MOST_LINKS = 16
SERVER_DRIVES = 24
SERVER_LINKS = 2
"""What a server of the BeeGFS article has: a demand that takes more is divided among several such servers, too."""
MOST_SERVERS = 64
_ROUNDING = 1 - 1e-9
LEAST = {"raid0": 1, "raid10": 4, "raid5": 3, "raid6": 4}
"""Drives that a level needs."""


class Drive(msgspec.Struct, frozen=True):
    """A class of drives; infinite where nothing is known of a figure. ``gib`` of one, None where not known."""

    name: str
    figures: Figures
    source: str
    gib: int | None = None
    least_ms: float = 0.0
    """Below that no request can be answered on average; 0 where nothing is known."""


CLASSES = (
    Drive(
        "Intel P4600 1.6 TB",
        Figures(3200.0, 1300.0),
        "S004, Dell reference architecture for BeeGFS: 3.2 GB/s read, 1.3 GB/s written",
        gib=1490,
    ),
    Drive(
        "SATA 7,200 rpm",
        Figures(read_iops=75.0, write_iops=75.0),
        "rule of thumb: 75 to 100 IOPS; half a turn takes 4.17 ms",
        least_ms=60_000 / 7_200 / 2,
    ),
)


def link_kinds() -> tuple[Links, ...]:
    """Ethernet at an MTU of 9,000 and InfiniBand, less their headers."""
    ethernet = (
        Links(
            f"{gbit} Gbit/s Ethernet, MTU 9,000",
            1,
            wire.mb_per_s(gbit * 1000) * wire.tcp_efficiency(9000),
            wire.ETHERNET_SOURCE,
        )
        for gbit in (10, 25, 40, 100, 200)
    )
    infiniband = (
        Links(name, 1, wire.mb_per_s(gbit * 1000) * wire.infiniband_efficiency(), wire.INFINIBAND_SOURCE)
        for name, gbit in (("EDR InfiniBand", 100), ("HDR InfiniBand", 200))
    )
    return (*ethernet, *infiniband)


def drives_of(declared: Declared) -> tuple[Drive, ...]:
    """The drives of a user's file, by the name of their device; else the classes."""
    found: list[Drive] = []
    for one in declared.volume:
        if one.type == "drive":
            limits = (one.read_mb_per_s, one.write_mb_per_s, one.read_iops, one.write_iops)
            figures = Figures(*(math.inf if value is None else float(value) for value in limits))
            # Drives that are alike are one model, known by the first of them.
            if figures not in {drive.figures for drive in found}:
                found.append(Drive(one.device or "drive", figures, f"as declared in {declared.where}"))
    return tuple(found) or CLASSES


def choices(
    demand: Demand, declared: Declared, layouts: tuple[tuple[str, int | None], ...] = (), *, all_links: bool = False
) -> Iterator[Choice]:
    """For each drive and level the fewest drives, with the fewest links that are enough, or with every kind of link."""
    wanted = [(level, count) for level, count in layouts if level in LEAST] or [(level, None) for level in LEAST]
    if layouts and not any(level in LEAST for level, _ in layouts):
        return
    for drive in drives_of(declared):
        if demand.latency_ms is not None and drive.least_ms > demand.latency_ms:
            continue
        for level, count in wanted:
            for servers in range(1, MOST_SERVERS + 1):
                part = demand.divided(servers)
                found = _fewest_drives(drive, level, count, part, MOST_DRIVES if servers == 1 else SERVER_DRIVES)
                wires = _fewest_links(part, MOST_LINKS if servers == 1 else SERVER_LINKS)
                if found is None or not wires:
                    continue
                few = wires if all_links else [min(wires, key=lambda one: (one.count, one.mb_s))]
                yield from (_make_choice(drive, level, found, links, demand, servers) for links in few)
                if servers > 1 or (found <= SERVER_DRIVES and few[0].count <= SERVER_LINKS):
                    break


def _fewest_links(demand: Demand, most: int) -> list[Links]:
    """Of each kind as many as are enough: a link carries reads one way and writes the other."""
    needed = max(demand.read_mb_s or 0, demand.write_mb_s or 0)
    wires = (msgspec.structs.replace(one, count=max(1, math.ceil(needed / one.mb_s - 1e-9))) for one in link_kinds())
    return [one for one in wires if one.count <= most]


def _fewest_drives(drive: Drive, level: str, count: int | None, demand: Demand, most: int) -> int | None:
    """Drives of one server; of RAID 10 an even number."""
    if count is not None:
        return count if LEAST[level] <= count <= most and _is_enough(drive, level, count, demand) else None
    numbers = range(LEAST[level], most + 1, 2 if level == "raid10" else 1)
    return next((number for number in numbers if _is_enough(drive, level, number, demand)), None)


def _is_enough(drive: Drive, level: str, count: int, demand: Demand) -> bool:
    if not drive.figures.is_limit:
        return False
    array = combined(level, [drive.figures] * count)
    mb_s, iops = (_combine_demand(array, measure, demand) for measure in ("mb_per_s", "iops"))
    if drive.gib is None:
        data = None
    else:
        data = drive.gib * (count / 2 if level == "raid10" else count - PARITY_DISKS.get(level, 0))
    # What is not known of a drive carries nothing.
    return (
        (not demand.mb_s or (mb_s or 0) >= demand.mb_s * _ROUNDING)
        and (not demand.iops or (iops or 0) >= demand.iops * _ROUNDING)
        and (not demand.capacity_bytes or (data or 0) >= demand.capacity_gib)
    )


def _combine_demand(array: Figures, measure: Measure, demand: Demand) -> float | None:
    """Reads and writes in the proportion of the demand, each for its part of the time; None where not known."""
    writes = demand.write_share
    if measure == "mb_per_s" and demand.mb_s:
        writes = (demand.write_mb_s or 0) / demand.mb_s
    values = (array.read_mb_per_s, array.write_mb_per_s, array.read_iops, array.write_iops)
    return mixed(Rate(*(finite_value(value) for value in values)), measure, 1 - writes, duplex=False)


def _make_choice(drive: Drive, level: str, each: int, links: Links, demand: Demand, servers: int) -> Choice:
    array = combined(level, [drive.figures] * each).map(lambda value: value * servers)
    mb_s, iops = _combine_demand(array, "mb_per_s", demand), _combine_demand(array, "iops", demand)
    count, links = each * servers, msgspec.structs.replace(links, count=links.count * servers)
    layout = level if servers == 1 else f"{level} of {each} in each of {servers} servers"
    name = f"{count} × {drive.name} in {layout}"
    media = size_part(name, mb_s, iops, demand, drive.source)
    total = links.count * links.mb_s
    asked = max(demand.read_mb_s or 0, demand.write_mb_s or 0)
    parts = (SizedPart(f"{links.count} × {links.kind}", total, None, 1 - asked / total, links.source), media)
    binds = min(parts, key=lambda one: round(one.headroom, 6))
    reads = _part_of(demand.read_mb_s, demand.mb_s, mb_s, total)
    writes = _part_of(demand.write_mb_s, demand.mb_s, mb_s, total)
    unusable = max(0.0, 1 - total / finite_value(array.read_mb_per_s)) if finite_value(array.read_mb_per_s) else 0.0  # type: ignore[operator]
    unknown = [] if demand.latency_ms is None else [f"latency of {drive.name}"]
    return Choice(
        cloud="metal",
        instance=None,
        vcpus=None,
        memory_gib=None,
        volumes=(
            VolumePurchase(
                drive.name,
                count,
                layout,
                drive.gib,
                finite_value(drive.figures.read_iops),
                finite_value(drive.figures.read_mb_per_s),
                source=drive.source,
            ),
        ),
        links=(links,),
        read_mb_s=reads,
        write_mb_s=writes,
        iops=iops,
        binds=binds.what,
        headroom=binds.headroom,
        unusable=unusable,
        price=None,
        parts=parts,
        unknown=tuple(unknown),
    )


def excluded(demand: Demand, declared: Declared) -> Iterator[Excluded]:
    """The drives of which something is not known that is asked for."""
    for drive in drives_of(declared):
        pairs = (
            ("MB/s", demand.mb_s, _combine_demand(drive.figures, "mb_per_s", demand)),
            ("IOPS", demand.iops, _combine_demand(drive.figures, "iops", demand)),
            ("size", demand.capacity_bytes, drive.gib),
        )
        lacks = [what for what, asked, has in pairs if asked and has is None]
        if lacks:
            why = f"not known of it: {', '.join(lacks)}; --volumes FILE takes the data sheet of a drive"
            yield Excluded(drive.name, why, drive.source)


def shortfalls(demand: Demand, declared: Declared) -> Iterator[Short]:
    """What the most drives of each class, or the most links, lack."""
    needed = max(demand.read_mb_s or 0, demand.write_mb_s or 0)
    fastest = max(link_kinds(), key=lambda one: one.mb_s)
    if (most := MOST_LINKS * fastest.mb_s) < needed:
        of = f"{MOST_LINKS} × {fastest.kind} ({fastest.source})"
        yield Short("metal", "mb_s", needed, most, needed - most, of)
    for drive in drives_of(declared):
        array = combined("raid0", [drive.figures] * MOST_DRIVES)
        of = f"{MOST_DRIVES} × {drive.name} in raid0 ({drive.source})"
        mb_s, iops = _combine_demand(array, "mb_per_s", demand), _combine_demand(array, "iops", demand)
        if demand.mb_s and mb_s is not None and mb_s < demand.mb_s:
            yield Short("metal", "mb_s", demand.mb_s, mb_s, demand.mb_s - mb_s, of)
        if demand.iops and iops is not None and iops < demand.iops:
            yield Short("metal", "iops", demand.iops, iops, demand.iops - iops, of)


def _part_of(part: float | None, whole: float | None, media: float | None, links: float) -> float | None:
    """What one direction has of what the drives carry together, and its own direction of the links."""
    return None if not part or not whole or media is None else min(media * part / whole, links)
