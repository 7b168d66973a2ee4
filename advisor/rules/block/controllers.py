"""RAID controllers: a write cache and what protects it, and RAID levels against the work and the links."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal

from advisor.facts.block.controller import Controller, ControllerVolume
from advisor.facts.block.controllers import array_name
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, rule

ORDER = 130

SMALL_BLOCK_BYTES = 64 << 10
_WRITES_BACK = frozenset({"write-back", "always-write-back"})

# What one small write costs on the drives (Chen et al.; the articles' evidence has the same).
_COSTS = {"raid5": 4, "raid6": 6}
# The article's RAID 10 of 4 and of 8 drives over the same four links: MB/s sequential, IOPS of its mixed pattern.
FOUR_DRIVES = (377.79, 171.66)
EIGHT_DRIVES = (385.3, 138.0)


def _all_volumes(facts: Facts) -> Iterator[tuple[Controller, ControllerVolume]]:
    return ((controller, volume) for controller in facts.controllers for volume in controller.volumes)


def _describe_volume(controller: Controller, volume: ControllerVolume) -> str:
    words = (volume.level, f"cache {volume.cache}" if volume.cache else None)
    return f"{array_name(controller, volume)}: {', '.join(word for word in words if word)}"


def _protection_words(controller: Controller) -> str:
    kind = {"battery": "battery", "flash": "CacheVault" if controller.tool == "storcli" else "backup unit"}
    one = controller.protection
    return f"{kind[one.kind]} {one.state}" if one else "no battery or CacheVault"


def _set_policy(controller: Controller, volume: ControllerVolume, policy: Literal["wt", "wb"]) -> str:
    """The command that has a volume write through or back, in the words of its tool."""
    is_on = policy == "wb"
    match controller.tool:
        case "storcli" | "storcli2":
            words = [
                "storcli64" if controller.tool == "storcli" else "storcli2",
                f"/{array_name(controller, volume)}",
                "set",
                f"wrcache={policy}",
            ]
        case "tw_cli":
            words = ["tw_cli", f"/c{controller.name}/{volume.name}", "set", f"cache={'on' if is_on else 'off'}"]
        case "arcconf":
            words = ["arcconf", "setcache", controller.name, "logicaldrive", volume.name, policy]
        case _:
            able = f"arrayaccelerator={'enable' if is_on else 'disable'}"
            words = ["ssacli", "ctrl", f"slot={controller.name}", "ld", volume.name, "modify", able]
    # A name is a tool's output: it stays one word.
    return shlex.join(words)


@rule(
    id="controllers.unprotected-cache",
    severity="critical",
    title="RAID write-back cache has no healthy battery",
    what="Volumes that write back (also WB that is forced: AWB) on a controller whose battery or CacheVault is absent, "
    "failed, charging or learning, as the maker's tool shows it.",
    why="A write cache is only as lasting as what feeds it.",
    helps_when="Always in production. The article allows the cache without a battery while the links are tuned, on a "
    "test bed, and restores it before the disks are measured.",
    hurts_when="Writing through is several times slower for small writes: the battery is the remedy, not the policy.",
    sources=(sources.OPENFILER, sources.STORCLI, sources.TW_CLI),
)
def unprotected(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = [one for one in _all_volumes(facts) if one[1].write_policy in _WRITES_BACK and one[0].is_protected is False]
    if not found:
        return None
    # Whether a battery that is not well now will be by itself.
    is_routine = all(
        one.protection is not None and any(word in one.protection.state.lower() for word in ("charg", "learn"))
        for one, _ in found
    )
    return unprotected.found(
        severity="warning" if is_routine else "critical",
        why="The controller acknowledges writes that are in its memory only, and nothing keeps that memory through a "
        "power cut: the file system on it is then damaged, whatever it flushed.",
        evidence={
            "arrays": tuple(array_name(*one) for one in found),
            "detail": tuple(_describe_volume(*one) for one in found),
            "protection": tuple(dict.fromkeys(_protection_words(one) for one, _ in found)),
        },
        remedy=(
            *(
                RunShell(_set_policy(*one, "wt"), f"let {array_name(*one)} write through, which slows small writes")
                for one in found
            ),
            "replace the battery or CacheVault, and switch back when it is well",
        ),
    )


@rule(
    id="controllers.write-through",
    severity="advice",
    title="RAID controller writes through, battery healthy",
    what="Volumes that write through on a controller whose battery or CacheVault is healthy; those of SSDs are left "
    "out.",
    why="Write back gathers small writes into whole stripes and acknowledges them at once.",
    helps_when="Small or random writes on disks that turn.",
    hurts_when="Volumes of SSDs, for which makers advise to write through; a cache that is shared with a volume that "
    "needs it more.",
    sources=(sources.OPENFILER, sources.STORCLI),
)
def write_through(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = [
        one
        for one in _all_volumes(facts)
        if one[1].write_policy == "write-through"
        and one[0].is_protected is True
        and one[1].media not in ("ssd", "mixed")
    ]
    if not found:
        return None
    return write_through.found(
        why="The cache is protected, and every write still waits for the drives: for small writes, and for the parity "
        "of RAID 5 and 6, that is what the cache is there to spare.",
        evidence={
            "arrays": tuple(array_name(*one) for one in found),
            "detail": tuple(_describe_volume(*one) for one in found),
            "protection": tuple(dict.fromkeys(_protection_words(one) for one, _ in found)),
        },
        remedy=tuple(RunShell(_set_policy(*one, "wb"), f"let {array_name(*one)} write back") for one in found),
    )


@rule(
    id="controllers.battery",
    severity="warning",
    title="Battery of a RAID controller is not healthy",
    what="Its state and that of the cache, as storcli, perccli, tw_cli, ssacli or arcconf show it; a word that is not "
    "known is left alone.",
    why="The active write policy depends on it.",
    helps_when="Always.",
    hurts_when="A learn cycle is routine and ends by itself: wait for it.",
    sources=(sources.STORCLI, sources.TW_CLI),
)
def battery(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    bad = tuple(
        one
        for one in facts.controllers
        if (one.protection is not None and one.protection.healthy is False) or _cache_fault(one)
    )
    if not bad:
        return None
    faults = tuple(filter(None, map(_cache_fault, bad)))
    return battery.found(
        title=f"Write cache of a RAID controller is off: {faults[0]}" if faults else None,
        why="Controllers that are set to write back write through meanwhile, or go on without protection: writes are "
        "slow, or at risk.",
        evidence={
            "controllers": tuple(f"{one.tool} {one.name}" for one in bad),
            "detail": tuple(f"{one.model or one.tool}: {_protection_words(one)}" for one in bad),
            "cache": faults,
        },
        remedy=(
            *(("repair what the status of the cache names",) if faults else ()),
            "let it charge or finish its learn cycle; where it stays so, replace it. Do not benchmark or prove a "
            "profile meanwhile",
        ),
    )


def _cache_fault(controller: Controller) -> str:
    """Why the controller itself has switched its cache off; empty where it has not."""
    status, why = (controller.detail.get(key, "") for key in ("Cache Status", "Cache Status Details"))
    return ", ".join(filter(None, (status, why))) if status.endswith("Disabled") else ""


@rule(
    id="controllers.unseen",
    severity="advice",
    title="Nothing is known behind a RAID controller",
    what="PCI functions of class RAID and drivers of RAID controllers of which no installed tool tells.",
    why="To the kernel a RAID volume is one healthy disk until it is gone: a lost drive, a dead battery and a cache "
    "that is off show in the maker's tool alone.",
    helps_when="Always: install the tool, and scan as root again.",
    hurts_when="Something else watches the controller, as its own alarms or the management processor do.",
    sources=(sources.PRACTICE,),
)
def unseen(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(one for one in facts.controllers if not one.tool)
    if not found:
        return None
    return unseen.found(
        why="Levels, lost drives, write cache and battery behind it could not be asked for; what this page says of its "
        "disks is what the kernel sees.",
        evidence={
            "controllers": tuple(one.name for one in found),
            "detail": tuple(f"{one.name}: driver {one.detail['driver']}" for one in found),
        },
        remedy=tuple(
            dict.fromkeys(Decide(f"install {one.detail['install']}, then scan as root again") for one in found)
        ),
    )


def exported(facts: Facts) -> frozenset[str]:
    """The block devices that this host's iSCSI targets export, and the disks below them."""
    names = {name for target in (facts.iscsi.targets if facts.iscsi else ()) for name in target.disks}
    return frozenset(names | {disk for array in facts.arrays if array.device in names for disk in array.disks})


@rule(
    id="controllers.parity-small-writes",
    severity="advice",
    title="A parity array for small random writes",
    what="RAID 5 and 6, of a controller, md, LVM or VxVM, where the declared workload is random with writes below 64 "
    "KiB; without a declared one those that this host exports over iSCSI.",
    why="Less than a stripe cannot be written without reading old data and parity first.",
    helps_when="Databases, metadata, virtual machines.",
    hurts_when="RAID 10 gives half of the drives away, and any second drive of a pair takes the array with it.",
    sources=(sources.RAID_SMALL_WRITES, sources.OPENFILER),
)
def parity(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if workload is None or workload.access != "random":
        is_declared = False
    else:
        is_small = workload.block_bytes is not None and workload.block_bytes < SMALL_BLOCK_BYTES
        is_declared = is_small and bool(workload.write_share)
    if workload is not None and not is_declared:
        return None
    shipped = None if is_declared else exported(facts)
    found = tuple(
        one
        for one in facts.arrays
        if one.level in _COSTS and (shipped is None or shipped.intersection((one.device, *one.disks)))
    )
    if not found:
        return None
    return parity.found(
        severity="advice" if is_declared else "info",
        why="A small write to RAID 5 costs 4 operations of its drives, to RAID 6 it costs 6, to RAID 10 it costs 2. "
        "The article's RAID 6 of 8 drives was slower than its RAID 10, most of all at random.",
        evidence={
            "arrays": tuple(one.name for one in found),
            "detail": tuple(f"{one.name}: {one.level}, {_COSTS[one.level or '']} for a write" for one in found),
        },
        remedy="when it is next made, use RAID 10 for this work, and keep parity for what is large and seldom "
        "written. Until then a protected write cache helps most",
        intent=not is_declared,
    )


def gain_percent(before: float, after: float) -> int:
    """The change from one figure to another, in whole per cent."""
    return round(100 * (after / before - 1))


@rule(
    id="controllers.two-small-arrays",
    severity="info",
    title="One wide RAID 10 is exported over iSCSI",
    what="RAID 10 of eight drives and more behind a target of this host.",
    why="More drives in one array add nothing where the links bind; two arrays keep two loads apart.",
    helps_when="The links are the smallest ceiling, and several datastores or hosts share the storage.",
    hurts_when="One volume needs the space or the random reads of all drives, over links that are not full.",
    sources=(sources.OPENFILER,),
)
def wide_mirror(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    shipped = exported(facts)
    found = tuple(
        one
        for one in facts.arrays
        if (one.level == "raid10" and (one.data_disks or 0) >= 4) and shipped.intersection((one.device, *one.disks))
    )
    if not found:
        return None
    sequential, random = (gain_percent(*pair) for pair in zip(FOUR_DRIVES, EIGHT_DRIVES, strict=True))
    return wide_mirror.found(
        why=f"Over four 1 GbE links, eight drives instead of four in one RAID 10 gave {sequential:+d} % sequentially "
        f"and {random:+d} % at random (377.8 to 385.3 MB/s, 171.7 to 138.0 IOPS): the links were full already, and the "
        "queue was shared.",
        evidence={
            "arrays": tuple(one.name for one in found),
            "detail": tuple(
                f"{one.name}: {one.level}, {count_noun(one.data_disks or 0, 'data disk')}" for one in found
            ),
        },
        remedy=(
            RunShell("advisor limits", "see on the initiator whether the links bind"),
            "where they do, make two arrays of half the drives and export each by itself",
        ),
        intent=True,
    )
