"""Disks, arrays, file systems and RAID controllers as a fleet compares them.

Names of disks are a matter of the order in which they were found, so disks are compared by kind and model: how many,
and which settings they have. An array or a file system is known by where it is mounted, else by its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TypeVar

from advisor.facts.array import Array
from advisor.facts.controller import Controller
from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.fleet.compare.collected import Collected
from advisor.host.grouping import group_pairs
from advisor.host.patterns import lazy_regex

MAX_OBJECTS = 64
# What a package mounts comes and goes with its version.
_PASSING = frozenset({"squashfs", "iso9660"})
_PASSING_DISKS = frozenset({"loop", "zram", "ram", "nbd"})
OWN_DETAIL = frozenset({"backing_file", "path_states", "wwid", "dm_name"})
"""Keys of `Disk.detail` and `Array.detail` that are of one host: names of devices, states, numbers that move."""
# What names a device or a place of one host.
_OWN_OPTION = lazy_regex(r"(journal_path|logdev|rtdev|subvolid)=.*", re.DOTALL)

T = TypeVar("T")


def collect_storage(facts: Facts, found: Collected) -> None:
    """Attributes ``disk.MODEL.…``, ``array.ROLE.…``, ``filesystem.MOUNTPOINT.…`` and ``controller.NAME.…``."""
    noted = {one.fact for one in facts.unknown}
    _collect_disks([disk for disk in facts.disks if disk.kind not in _PASSING_DISKS], noted, found)
    for array in _first_objects(facts.arrays, "array.*", found):
        _collect_array(array, noted, found)
    mounted = [one for one in facts.filesystems if one.mountpoints and one.kind not in _PASSING]
    for filesystem in _first_objects(mounted, "filesystem.*", found):
        base = f"filesystem.{filesystem.mountpoints[0]}"
        found.put(f"{base}.present", "yes")
        found.put(f"{base}.kind", filesystem.kind)
        if filesystem.options is not None:
            words = {word for word in filesystem.options.split(",") if not _OWN_OPTION.fullmatch(word)}
            found.put(f"{base}.options", ",".join(sorted(words)))
        found.fields(base, filesystem, "block_bytes", "stripe_unit_bytes", "stripe_width_bytes")
    for controller in _first_objects(facts.controllers, "controller.*", found):
        _collect_controller(controller, found)


def _first_objects(objects: Sequence[T], pattern: str, found: Collected) -> Sequence[T]:
    if len(objects) > MAX_OBJECTS:
        found.unknown(pattern)
    return objects[:MAX_OBJECTS]


def _collect_disks(disks: Sequence[Disk], noted: Collection[str], found: Collected) -> None:
    models = group_pairs((disk.model or disk.kind, disk) for disk in disks)
    for model, alike in _first_objects(sorted(models.items()), "disk.*", found):
        base = f"disk.{model}"
        found.put(f"{base}.present", "yes")
        found.put(f"{base}.count", len(alike))
        found.several(f"{base}.size_bytes", [disk.size_bytes for disk in alike])
        found.several(f"{base}.scheduler", [disk.scheduler for disk in alike])
        names = {name for disk in alike for name in disk.queue if name != "scheduler"}
        for name in sorted(names):
            found.several(f"{base}.queue.{name}", [disk.queue.get(name) for disk in alike])
        details = {name for disk in alike for name in disk.detail if name not in OWN_DETAIL}
        for name in sorted(details):
            found.several(f"{base}.detail.{name}", [disk.detail.get(name) for disk in alike])
        found.several(f"{base}.pcie", [f"x{one.pcie.width} {one.pcie.speed_gts} GT/s" for one in alike if one.pcie])
        for disk in alike:
            prefix = f"disks.{disk.name}."
            leaves = (fact[len(prefix) :] for fact in noted if fact.startswith(prefix))
            found.unknown(*(pattern for leaf in leaves for pattern in (f"{base}.{leaf}", f"{base}.{leaf}.*")))


def _collect_array(array: Array, noted: Collection[str], found: Collected) -> None:
    role = array.mountpoints[0] if array.mountpoints else array.name
    base = f"array.{role}"
    found.put(f"{base}.present", "yes")
    found.fields(base, array, "manager", "level", "chunk_bytes", "data_disks", "state", "missing")
    for name in ("members", "spares", "failed", "journal"):
        found.put(f"{base}.{name}", len(getattr(array, name)))
    found.put(f"{base}.numa_nodes", ", ".join(map(str, array.numa_nodes)) or None)
    found.entries(f"{base}.queue", array.queue)
    found.entries(f"{base}.detail", array.detail, OWN_DETAIL)
    prefix = f"arrays.{array.name}."
    found.unknown(*(f"{base}.{fact[len(prefix) :]}" for fact in noted if fact.startswith(prefix)))


def _collect_controller(controller: Controller, found: Collected) -> None:
    base = f"controller.{controller.name}"
    found.put(f"{base}.present", "yes")
    found.fields(base, controller, "model", "firmware")
    found.flag(f"{base}.protection_healthy", controller.is_protected)
    found.put(f"{base}.volumes", len(controller.volumes))
    for name in ("level", "state", "write_policy", "cache", "chunk_bytes", "drives"):
        found.several(f"{base}.volume.{name}", [getattr(one, name) for one in controller.volumes])
