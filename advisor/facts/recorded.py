"""Volumes and multipath maps of captures that hold no more of them than a tool's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.facts.array import Array, ArrayPart, losses_left
from advisor.facts.block import natural
from advisor.facts.lvm_text import LVS, PVS, LogicalVolume, parse_lvs, parse_pvs
from advisor.facts.multipath_text import MultipathMap, count_unread, parse_multipath
from advisor.facts.segments import structure_of_rows
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.numbers import count_noun


def path_state(failed: int, paths: int) -> str:
    """The state of a multipath map; one without any path has failed."""
    if failed >= paths:
        return "failed"
    return "degraded" if failed else "active"


def read_maps(host: Host, unknown: Unknowns) -> tuple[MultipathMap, ...]:
    """Maps in what ``multipath -ll`` answered; how many of them could not be read is noted."""
    for argv in (["multipath", "-ll"], ["multipath", "-v4", "-ll"]):
        done = host.run(argv)
        if not isinstance(done, Missing):
            unread = count_unread(done.stdout)
            if unread:
                unknown.note("arrays.multipath", f"{count_noun(unread, 'map')} of multipath -ll in an unknown form")
            return parse_multipath(done.stdout)
    return ()


def maps(host: Host, unknown: Unknowns) -> list[Array]:
    """Multipath maps of a capture that holds a tool's text only."""
    return [_map_array(one) for one in read_maps(host, unknown)]


def _map_array(one: MultipathMap) -> Array:
    lost = [path.device.strip("-#") for path in one.paths if not path.is_usable]
    texts = {"wwid": one.wwid, "vendor": one.vendor, "product": one.product, "features": one.features}
    texts |= {"hwhandler": one.hwhandler, "policy": one.groups[0].policy if one.groups else None}
    return _make_array(
        name=one.name,
        manager="dm-multipath",
        device=one.device,
        level="multipath",
        state=path_state(len(lost), len(one.paths)),
        missing=len(lost),
        members=tuple(sorted({path.device.strip("-#") for path in one.paths} - {""}, key=natural)),
        failed=tuple(dict.fromkeys(filter(None, lost))),
        expected=len(one.paths),
        detail={key: value for key, value in texts.items() if value},
    )


def volumes(host: Host) -> list[Array]:
    """Logical volumes of a capture that holds the output of lvs only; segments of one volume are put together.

    Where lvs was not asked for devices, volumes of a group with one physical volume lie on that.
    """
    done = host.run(LVS)
    rows = () if isinstance(done, Missing) else parse_lvs(done.stdout)
    if rows and not any(row.devices for row in rows):
        physical = host.run(PVS)
        groups = {} if isinstance(physical, Missing) else parse_pvs(physical.stdout)
        only = {group: devices for group, devices in groups.items() if len(devices) == 1 and devices[0]}
        rows = tuple(msgspec.structs.replace(row, devices=only.get(row.group or "", ())) for row in rows)
    segments: dict[tuple[str | None, str], list[LogicalVolume]] = {}
    for row in rows:
        segments.setdefault((row.group, row.name), []).append(row)
    return [_volume_array(those, segments) for those in segments.values() if not those[0].is_hidden]


def _volume_array(
    segments: list[LogicalVolume], everything: Mapping[tuple[str | None, str], list[LogicalVolume]]
) -> Array:
    first = segments[0]
    level = (first.level or "").partition("_")[0] if (first.level or "").startswith("raid") else first.level
    name = f"{first.group}/{first.name}" if first.group else first.name
    found: set[str] = set()
    seen: set[str] = set()
    pending = [(segments[0].group, device) for segment in segments for device in segment.devices]
    while pending:
        group, device = pending.pop()
        below = everything.get((group, device)) or []
        if not below:
            found.add(device)
        elif device not in seen:
            seen.add(device)
            pending += [(group, one) for segment in below for one in segment.devices]
    return _make_array(
        name=name,
        manager="lvm",
        device=first.name,
        level=level or None,
        chunk_bytes=first.stripe_bytes or first.chunk_bytes,
        data_disks=first.stripes if first.stripe_bytes else None,
        members=tuple(sorted(found, key=natural)),
        size_bytes=first.size_bytes,
        detail={"attributes": first.attributes} if first.attributes else {},
        structure=structure_of_rows(name, segments),
    )


def _make_array(
    *,
    name: str,
    manager: Literal["lvm", "dm-multipath"],
    device: str,
    level: str | None,
    members: tuple[str, ...],
    detail: Mapping[str, str],
    state: str | None = None,
    missing: int | None = None,
    expected: int | None = None,
    failed: tuple[str, ...] = (),
    chunk_bytes: int | None = None,
    data_disks: int | None = None,
    size_bytes: int | None = None,
    structure: ArrayPart | None = None,
) -> Array:
    return Array(
        name=name,
        manager=manager,
        device=device,
        level=level,
        chunk_bytes=chunk_bytes,
        data_disks=data_disks,
        state=state,
        missing=missing,
        members=members,
        spares=(),
        failed=failed,
        journal=(),
        numa_nodes=(),
        size_bytes=size_bytes,
        progress_percent=None,
        mountpoints=(),
        detail=detail,
        structure=structure,
        expected=expected,
        survives=losses_left(level, expected, missing),
    )
