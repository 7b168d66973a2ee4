"""md arrays: ``/sys/block/md*/md`` (kernel: Documentation/admin-guide/md.rst) together with ``/proc/mdstat``.

sysfs is exact where it is there; mdstat adds what only it says, and stands alone where only it was captured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from advisor.facts.block.block import PARITY_DISKS, clean, kernel_name, natural, read_size
from advisor.facts.block.md import (
    DOING,
    PARITY_LAYOUTS,
    Device,
    Md,
    MdadmDetail,
    MdstatArray,
    parse_mdadm_detail,
    parse_mdstat,
)
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing

# Read where they are there; what is not a field of `Array` of its own goes into its detail.
_ATTRIBUTES = (
    "level",
    "chunk_size",
    "raid_disks",
    "degraded",
    "array_state",
    "sync_action",
    "sync_completed",
    "sync_speed",
    "layout",
    "metadata_version",
    "consistency_policy",
    "mismatch_cnt",
    "stripe_cache_size",
    "group_thread_cnt",
    "preread_bypass_threshold",
    "journal_mode",
    "sync_speed_min",
    "sync_speed_max",
    "uuid",
)
_OWN_FIELDS = frozenset({"level", "chunk_size", "degraded", "layout", "metadata_version"})
_AT_REST = {
    "clean": "clean",
    "active": "active",
    "active-idle": "active",
    "write-pending": "active",
    # Read-only until the first write, as every array is after assembly: nothing is wrong with it.
    "read-auto": "clean",
    "readonly": "readonly",
    "suspended": "suspended",
    "inactive": "inactive",
    "clear": "inactive",
    "broken": "failed",
}


def read_md(host: Host, names: Sequence[str], unknown: Unknowns) -> tuple[Md, ...]:
    """Arrays by name. ``names`` are those in /sys/block; an array that only mdstat names is returned too."""
    text = host.read("/proc/mdstat")
    listed = {} if isinstance(text, Missing) else {array.name: array for array in parse_mdstat(text)}
    if isinstance(text, Missing) and not text.is_absent:
        unknown.note("arrays.mdstat", text)
    found: dict[str, Md] = {name: from_mdstat(array) for name, array in listed.items()}
    for name in names:
        array = _read_array(host, name, unknown)
        if array is not None:
            found[name] = _with_mdstat(array, listed.get(name), unknown)
        elif name not in listed:
            # The last resort, for captures without md's sysfs directory and without mdstat.
            done = host.run(["mdadm", "--detail", f"/dev/{name}"])
            mdadm = () if isinstance(done, Missing) else parse_mdadm_detail(done.stdout)
            found[name] = next((from_mdadm(name, one) for one in mdadm), Md(name, None, None))
    return tuple(found[name] for name in sorted(found, key=natural))


def _with_mdstat(array: Md, text: MdstatArray | None, unknown: Unknowns) -> Md:
    if text is None:
        return array
    if None not in (text.level, array.level) and text.level != array.level:
        why = f"sysfs says {array.level}, /proc/mdstat {text.level}: sysfs is taken"
        unknown.note(f"arrays.{array.name}.level", why)
        return array
    other = from_mdstat(text)
    # Only mdstat's list is there for a container whose dev-* entries a capture left out.
    progress = array.progress_percent if array.progress_percent is not None else other.progress_percent
    return msgspec.structs.replace(
        array,
        devices=array.devices or other.devices,
        progress_percent=progress if array.action else None,
        detail={**other.detail, **array.detail},
    )


def _read_array(host: Host, name: str, unknown: Unknowns) -> Md | None:
    """An array from its sysfs directory; None where there is none."""
    directory = f"/sys/block/{name}/md"
    entries = host.listdir(directory)
    if isinstance(entries, Missing):
        return None
    fact = f"arrays.{name}"
    raw: dict[str, str] = {}
    for attribute in _ATTRIBUTES:
        text = (
            unknown.value(f"{fact}.{attribute}", host.read(f"{directory}/{attribute}"))
            if attribute in entries
            else None
        )
        if text is not None and clean(text):
            raw[attribute] = clean(text)
    bitmap = host.read(f"{directory}/bitmap/location") if "bitmap" in entries else ""
    if not isinstance(bitmap, Missing) and clean(bitmap) not in ("", "none"):
        raw["bitmap_location"] = clean(bitmap)
    slots = _slots_by_link(host, directory, entries)
    devices = tuple(_read_device(host, directory, entry, slots) for entry in entries if entry.startswith("dev-"))
    return from_sysfs(name, raw, devices, read_size(host, name, f"{fact}.size_bytes", unknown))


def _slots_by_link(host: Host, directory: str, entries: Sequence[str]) -> dict[str, int]:
    """Slots by the links rdN, for kernels and captures without dev-*/slot; a failed device keeps its link a while."""
    slots: dict[str, int] = {}
    for entry in entries:
        if re.fullmatch(r"rd\d{1,5}", entry, re.ASCII):
            target = host.readlink(f"{directory}/{entry}")
            if not isinstance(target, Missing):
                slots[target.rpartition("/")[2]] = int(entry[2:])
    return slots


def _read_device(host: Host, directory: str, entry: str, links: Mapping[str, int]) -> Device:
    state = host.read(f"{directory}/{entry}/state")
    words = frozenset() if isinstance(state, Missing) else frozenset(re.split(r"[,\s]+", clean(state)))
    slot = host.read_int(f"{directory}/{entry}/slot")
    if isinstance(slot, Missing):
        slot_number = None if "faulty" in words or not slot.is_absent else links.get(entry)
    else:
        slot_number = slot if slot >= 0 else None
    return Device(entry.removeprefix("dev-"), slot_number, words)


def from_sysfs(name: str, raw: Mapping[str, str], devices: Sequence[Device], size_bytes: int | None) -> Md:
    """An array from its raw attributes. During a reshape several of them read ``new (old)``."""
    level = raw.get("level")
    disks, chunk, layout = (_new_number(raw.get(name, "")) for name in ("raid_disks", "chunk_size", "layout"))
    metadata = raw.get("metadata_version", "")
    if level is None and raw.get("array_state") == "inactive" and re.match(r"external:[^/]", metadata):
        level = "container"
    array_state = raw.get("array_state", "")
    action = raw.get("sync_action")
    found = re.fullmatch(r"(\d{1,18}) / (\d{1,18})", raw.get("sync_completed", ""), re.ASCII)
    return Md(
        name=name,
        level=level,
        at_rest=_AT_REST.get(array_state, array_state or None),
        disks=disks,
        missing=_count_missing(raw, level, array_state),
        chunk_bytes=chunk or None,
        near_copies=layout & 255 if level == "raid10" and layout else None,
        far_copies=layout >> 8 & 255 if level == "raid10" and layout else None,
        size_bytes=size_bytes,
        action=action if action in DOING else None,
        progress_percent=round(100 * int(found[1]) / int(found[2]), 1) if found and int(found[2]) else None,
        devices=tuple(devices),
        detail=_sysfs_detail(raw, layout, level, devices),
    )


def _new_number(text: str) -> int | None:
    """The number, or the new one of two."""
    found = re.fullmatch(r"(\d{1,18})(?: \(\d{1,18}\))?", text, re.ASCII)
    return int(found[1]) if found else None


def _count_missing(raw: Mapping[str, str], level: str | None, array_state: str) -> int | None:
    degraded = _new_number(raw.get("degraded", ""))
    if degraded is not None:
        return degraded
    # These levels have no such attribute: they run with all of their members or not at all.
    return 0 if level in ("raid0", "linear") and array_state not in ("inactive", "broken", "clear", "") else None


def _sysfs_detail(
    raw: Mapping[str, str], layout: int | None, level: str | None, devices: Sequence[Device]
) -> dict[str, str]:
    detail = {key: value for key, value in raw.items() if key not in _OWN_FIELDS}
    metadata = raw.get("metadata_version")
    if metadata:
        detail["metadata"] = metadata
    detail |= _parse_container(metadata)
    # The layout in mdstat's words.
    if layout is None or level is None:
        words = None
    elif level in PARITY_DISKS:
        words = PARITY_LAYOUTS.get(layout)
    elif level != "raid10":
        words = None
    else:
        near, far = layout & 255, layout >> 8 & 255
        spread = [f"{near} near-copies"] if near > 1 else []
        spread += [f"{far} {'offset' if layout >> 16 & 1 else 'far'}-copies"] if far > 1 else []
        words = ", ".join(spread) or None
    if words:
        detail["layout"] = words
    rebuilding = [one.name for one in devices if "spare" in one.words and one.slot is not None]
    if rebuilding:
        detail["rebuilding"] = " ".join(rebuilding)
    return detail


def _parse_container(metadata: str | None) -> dict[str, str]:
    found = re.match(r"external:/([^/]+)/", metadata or "")
    return {"container": found[1]} if found else {}


def from_mdstat(text: MdstatArray) -> Md:
    """An array from mdstat alone. Slots are not in it: which member a rebuild goes to is unknown."""
    missing, contradicts = _count_members(text)
    level = "container" if text.is_container else text.level
    at_rest = {"broken": "failed"}.get(text.state, text.state)
    if text.read_only == "read-only":
        at_rest = "readonly"
    copies = {kind: int(number) for number, kind in re.findall(r"([0-9]{1,9}) (near|far|offset)", text.layout or "")}
    values: dict[str, object | None] = {
        "metadata": text.metadata,
        "layout": text.layout,
        "pattern": text.pattern,
        "read_only": text.read_only,
        "bitmap": text.bitmap,
        "waiting": text.waiting,
        "finish_minutes": text.finish_minutes,
        "sync_speed": text.speed_kib,
        "sync_action": text.action,
    }
    return Md(
        name=text.name,
        level=level,
        at_rest=at_rest,
        disks=text.disks
        if text.disks is not None
        else (len(text.members) if text.level in ("raid0", "linear") and text.state == "active" else None),
        missing=missing,
        contradicts=contradicts,
        chunk_bytes=text.chunk_bytes,
        near_copies=copies.get("near", 1) if copies else None,
        far_copies=copies.get("far", copies.get("offset", 1)) if copies else None,
        size_bytes=text.size_bytes,
        action=text.action,
        progress_percent=text.progress_percent,
        devices=tuple(Device(one.name, None, _flag_words(one.flags)) for one in text.members),
        detail={key: str(value) for key, value in values.items() if value is not None}
        | _parse_container(text.metadata),
    )


def _count_members(text: MdstatArray) -> tuple[int | None, str | None]:
    """How many members are missing by ``[n/up]``, and what contradicts it in the pattern of U and _."""
    if text.disks is None or text.up is None:
        return (0 if text.level in ("raid0", "linear") and text.state == "active" else None), None
    missing = max(text.disks - text.up, 0)
    if text.pattern is not None and text.pattern.count("_") != missing:
        return None, f"/proc/mdstat gives [{text.disks}/{text.up}] and [{text.pattern}]"
    return missing, None


def _flag_words(flags: str) -> frozenset[str]:
    names = {"F": "faulty", "S": "spare", "J": "journal", "W": "write_mostly", "R": "replacement"}
    return frozenset(names.get(flag, flag) for flag in flags)


def from_mdadm(name: str, text: MdadmDetail) -> Md:
    """An array from ``mdadm --detail``; its state reads like ``clean, degraded, recovering``."""
    # "resyncing (PENDING)" is resyncing.
    words = [part.partition(" (")[0].strip() for part in (text.state or "").split(",")]
    missing = None if text.raid_devices is None or text.active is None else max(text.raid_devices - text.active, 0)
    doing = {value: key for key, value in DOING.items()}
    devices = (
        Device(kernel_name(one.path), one.slot, _detail_words(one.state))
        for one in text.devices
        if one.path is not None
    )
    values = {"metadata": text.metadata, "layout": text.layout, "consistency_policy": text.consistency}
    values |= {"uuid": text.uuid, "container": (text.container or "").partition(",")[0] or None}
    return Md(
        name=name,
        level=text.level,
        at_rest="failed" if "FAILED" in words else _AT_REST.get(words[0], words[0] or None),
        disks=text.raid_devices,
        missing=missing,
        chunk_bytes=text.chunk_bytes,
        size_bytes=text.size_bytes,
        action=next((doing[word] for word in words if word in doing), None),
        progress_percent=text.progress_percent,
        devices=tuple(devices),
        detail={key: value for key, value in values.items() if value},
    )


def _detail_words(state: str) -> frozenset[str]:
    return frozenset("write_mostly" if word == "writemostly" else word for word in state.split())
