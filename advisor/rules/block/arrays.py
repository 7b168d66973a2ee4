"""Arrays: their health, and what they are spread over."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.block.block import PARITY_DISKS, STRIPED, Array
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, Remedy, RunShell, rule

ORDER = 120

_COPIES = frozenset({"raid1", "raid10", "mirror"})
_BUSY = frozenset({"recovering", "resyncing", "reshaping", "checking", "repairing"})
_EBS_MODEL = "Amazon Elastic Block Store"


def _is_degraded(array: Array) -> bool:
    if array.state in ("degraded", "failed") or array.missing:
        return True
    # Whole again, with members marked as failed still listed, is another matter; unknown is taken as the worse.
    return bool(array.failed) and array.missing is None


_NOUNS = {"dm-multipath": "path", "vxvm": "plex", "drbd": "replica", "btrfs": "device"}


def _title(array: Array, *, is_healing: bool) -> str:
    """How many members are missing and what is left of the redundancy."""
    lost = f"{array.name} has lost redundancy"
    if array.missing and array.expected:
        noun = _NOUNS.get(array.manager, "drive")
        lost = f"{array.name}: {array.missing} of {count_noun(array.expected, noun)} missing"
    if array.state == "failed":
        return f"{array.name} has failed" + (lost.removeprefix(array.name) if ":" in lost else "")
    if is_healing:
        done = "" if array.progress_percent is None else f" ({array.progress_percent:g} %)"
        return f"{array.name} is rebuilding{done}" + (", and lacks more members" if _lacks_more(array) else "")
    if array.survives is None:
        return lost
    if array.survives > 0:
        return f"{lost}, survives {array.survives} more"
    return f"{lost}, the next loss " + ("stops all I/O" if array.manager == "dm-multipath" else "loses data")


def _degraded_finding(array: Array) -> Finding:
    is_healing = array.state == "recovering" or "rebuilding" in array.detail
    # What a rebuild restores is on its way; what it does not, or another path, is lost until it is repaired.
    is_safe = (is_healing and not _lacks_more(array)) or (array.survives or 0) > 0
    return degraded.found(
        severity="warning" if is_safe and array.state != "failed" else "critical",
        title=_title(array, is_healing=is_healing),
        why="Paths to the device are down: the rest carry all of its load."
        if array.manager == "dm-multipath"
        else f"Members are failed or missing. {_explain_loss(array)}",
        evidence={
            "arrays": (array.name,),
            "level": array.level,
            "state": array.state,
            "missing": array.missing,
            "survives": array.survives,
            **{key: array.detail[key] for key in ("connection", "disk_states") if key in array.detail},
            "failed": array.failed,
            "members": array.members,
        },
        remedy=_await_rebuild(array) if is_healing else _inspect_array(array),
        hurts_when=_HURTS.get(array.manager, "A rebuild takes bandwidth from the service."),
    )


def _explain_loss(array: Array) -> str:
    """What it means for reads, and for the data, by how the members are combined."""
    spare = max(array.survives or 0, 0)
    loss = f"the loss of {f'more than {spare}' if spare else 'another'} may lose data."
    if array.level in PARITY_DISKS or array.level in ("raid50", "raid60"):
        return f"What was on them is computed from the others at each read, and {loss}"
    if array.level in _COPIES:
        return f"Reads go to the copies that are left, and {loss}"
    return f"T{loss[1:]}"


def _lacks_more(array: Array) -> bool:
    """Whether members are missing that no running rebuild fills."""
    return array.missing is not None and array.missing > (len(array.detail.get("rebuilding", "").split()) or 1)


def _await_rebuild(array: Array) -> tuple[Remedy, ...]:
    name = shlex.quote(array.name)
    wait = Decide("wait until the rebuild is done")
    match array.manager:
        case "md":
            watch = RunShell("cat /proc/mdstat", "see how far it is")
            return (wait, watch, *(_inspect_array(array) if _lacks_more(array) else ()))
        case "lvm":
            return (wait, RunShell(f"lvs -a -o name,sync_percent,lv_health_status {name}", "see how far it is"))
        case "drbd":
            return (wait, RunShell("drbdadm status", "see how far it is"))
        case "vxvm":
            return (Decide("wait until the plex is attached"), RunShell("vxtask list", "see how far it is"))
        case _:
            return (Decide("wait until the rebuild is done; the controller's own tool shows how far it is"),)


def _inspect_array(array: Array) -> tuple[Remedy, ...]:
    name = shlex.quote(array.name)
    match array.manager:
        case "md":
            show = RunShell(f"mdadm --detail /dev/{name}", "see which member is missing")
            return (show, Decide(f"replace the member, then add it: mdadm --manage /dev/{name} --add DEVICE"))
        case "lvm":
            show = RunShell(f"lvs -a -o +devices,lv_health_status {name}", "see which device is missing")
            return (show, RunShell(f"lvconvert --repair {name}", "fill its place from the group's free devices"))
        case "dm-multipath":
            return (RunShell(f"multipath -ll {name}", "see which path is down"),)
        case "drbd":
            show = RunShell("drbdadm status", "see which copy is behind, and the state of the connection to it")
            join = "drbdadm connect RESOURCE; after a split brain choose first whose changes are given up"
            return (show, Decide(f"bring the peer and the link to it back, then connect: {join}"))
        case "btrfs":
            show = RunShell("btrfs filesystem show", "see which device is missing")
            return (show, Decide("put another in its place: btrfs replace start NUMBER DEVICE MOUNT"))
        case "vxvm":
            group, _, volume = array.name.partition("/")
            place = f"-g {shlex.quote(group)}"
            show = RunShell(f"vxprint {place} -ht {shlex.quote(volume)}", "see which plex is detached")
            return (show, RunShell(f"vxrecover {place} -s", "attach it again; vxreattach where its disk was away"))
        case _:
            return (Decide("ask the controller's own tool for the state of its drives and battery"),)


def _relayout(array: Array) -> str:
    group, _, volume = array.name.partition("/")
    return (
        f"stripe it: vxassist -g {shlex.quote(group)} relayout {shlex.quote(volume)} layout=stripe "
        f"ncol={len(set(array.members))}, or when it is next made"
    )


_HURTS: Mapping[str, str] = {
    "md": "A rebuild takes bandwidth from the service: limit it with dev.raid.speed_limit_max while that matters.",
    "lvm": "A rebuild takes bandwidth from the service: limit it with lvchange --maxrecoveryrate while that matters.",
    "controller": "A rebuild takes bandwidth from the service: limit it with the controller's own rebuild rate.",
    "vxvm": "A resynchronisation takes bandwidth from the service: vxtask -i set slow=VALUE slows it down meanwhile.",
    "dm-multipath": "Paths were taken down on purpose, as for work on a switch: then they come back by themselves.",
}


@rule(
    id="arrays.degraded",
    severity="critical",
    title="An array is degraded",
    what="State, missing and failed members of md and LVM arrays, detached plexes of VxVM, failed paths of "
    "dm-multipath.",
    why="A degraded array is slow and nearer to loss: no tuning is worth more than a new drive.",
    helps_when="Always.",
    hurts_when=_HURTS["md"],
    sources=(sources.MD,),
)
def degraded(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    worst = sorted(facts.arrays, key=lambda array: array.survives or 0)
    lost = tuple(_degraded_finding(array) for array in worst if _is_degraded(array))
    return (
        *lost,
        *(
            degraded.found(
                severity="info",
                title=f"{array.name} is whole, but still lists failed members",
                why="The array has all the members it needs; those marked as failed only take a place.",
                evidence={"arrays": (array.name,), "state": array.state, "failed": array.failed},
                remedy=RunShell(
                    f"mdadm --manage /dev/{shlex.quote(array.name)} --remove failed",
                    "remove the failed members from the list",
                )
                if array.manager == "md"
                else _inspect_array(array),
            )
            for array in facts.arrays
            if array.failed and array.state != "inactive" and not _is_degraded(array)
        ),
    )


@rule(
    id="arrays.inactive",
    severity="critical",
    title="An array is inactive",
    what="md arrays that the kernel has assembled in part and not started (array_state inactive or clear, inactive in "
    "/proc/mdstat). Containers of IMSM and DDF are inactive in health.",
    why="Members were found, but too few, or they disagree: mdadm leaves the array without a block device to read.",
    helps_when="Always: nothing on the array can be reached.",
    hurts_when="Starting it with --run or --force while members are only late, or are stale, may lose what was written "
    "last. Attach what is missing first.",
    sources=(sources.MD, sources.MDADM),
)
def inactive(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for array in facts.arrays:
        if array.manager == "md" and array.state == "inactive" and array.level != "container":
            name = shlex.quote(array.name)
            members = " ".join(shlex.quote(f"/dev/{one}") for one in array.members)
            yield inactive.found(
                title=f"{array.name} is inactive and cannot be read",
                why="The kernel knows members of the array and has not started it: nothing can be read or written.",
                evidence={"arrays": (array.name,), "state": array.state, "members": array.members},
                remedy=(
                    RunShell(f"mdadm --examine {members or '--scan'}", "see what the members say about the array"),
                    "go on only once all members are there",
                    RunShell(f"mdadm --stop /dev/{name} && mdadm --assemble --scan", "assemble and start it"),
                ),
            )


@rule(
    id="multipath.suspended",
    severity="critical",
    title="A device-mapper device is suspended",
    what="/sys/block/dm-*/dm/suspended of multipath maps and logical volumes.",
    why="device-mapper holds all I/O to a suspended device back until it is resumed; programs wait without an error.",
    helps_when="The device stays so: a tool that suspended it to load a new table has died before it resumed it.",
    hurts_when="lvconvert, multipathd or a snapshot is at work right now, which takes seconds: look again first. "
    "Resumed in the middle of such work, a device runs with its old table.",
    sources=(sources.DM_SUSPEND, sources.DMSETUP),
)
def suspended(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for array in facts.arrays:
        if array.manager in ("dm-multipath", "lvm", "dm") and array.state == "suspended":
            # /sys/block/dm-3/dm/name is what dmsetup takes; an LVM name has it apart (vg0/data, vg0-data).
            name = shlex.quote(array.detail.get("dm_name", array.name))
            yield suspended.found(
                title=f"{array.name} is suspended: all I/O to it waits",
                why="Requests are held back until the device is resumed. Where it was suspended at the moment of the "
                "scan only, this finding is gone with the next scan.",
                evidence={"arrays": (array.name,), "state": array.state, "members": array.members},
                remedy=(
                    RunShell(f"dmsetup info {name}", "see whether it stays suspended"),
                    "resume it only where nothing works on it",
                    RunShell(f"dmsetup resume {name}", "let the I/O that waits go on"),
                ),
            )


@rule(
    id="arrays.rebuilding",
    severity="info",
    title="An array is rebuilding or being checked",
    what="Arrays that recover, resync, reshape or check.",
    why="The members read and write for it at up to dev.raid.speed_limit_max.",
    helps_when="Before measuring anything.",
    hurts_when="Slowing a recovery down leaves the array longer without redundancy.",
    sources=(sources.MD,),
)
def rebuilding(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    busy = tuple(array for array in facts.arrays if array.state in _BUSY or array.progress_percent is not None)
    if not busy:
        return None
    return rebuilding.found(
        title="Arrays are rebuilding or being checked" if len(busy) > 1 else None,
        why="What is measured meanwhile is the rebuild as much as the service: do not benchmark or prove a profile "
        "now.",
        evidence={
            "arrays": tuple(array.name for array in busy),
            "detail": tuple(f"{array.name}: {_activity(array)}" for array in busy),
        },
        remedy=(
            RunShell("cat /proc/mdstat", "see the progress"),
            *(Decide(f"the resync of {name} begins with the first write to it") for name in _until_written(busy)),
            "wait until it shows no progress line",
        ),
    )


def _activity(array: Array) -> str:
    """What an array does, with how far it is or what it waits for (md(4): DELAYED for another array on the same disks,
    PENDING for the first write)."""
    action = array.detail.get("sync_action")
    waiting = array.detail.get("waiting")
    if waiting:
        return f"{action or array.state} waits ({waiting})"
    doing = action if action and array.state not in _BUSY else str(array.state)
    return doing if array.progress_percent is None else f"{doing}, {array.progress_percent:g} % done"


def _until_written(busy: Iterable[Array]) -> tuple[str, ...]:
    return tuple(one.name for one in busy if one.detail.get("waiting") == "PENDING")


def _wide_evidence(facts: Facts, wide: tuple[Array, ...]) -> dict[str, tuple[str, ...]]:
    nodes = {disk.name: disk.numa_node for disk in facts.disks}
    return {
        "arrays": tuple(array.name for array in wide),
        "detail": tuple(
            f"{array.name} ({array.level}), node {node}: "
            + (", ".join(name for name in array.disks if nodes.get(name) == node) or "drives not known")
            for array in wide
            for node in array.numa_nodes
        ),
    }


@rule(
    id="arrays.span-nodes",
    severity="advice",
    title="An array spans NUMA nodes",
    what="Arrays whose members sit on several nodes; stripes are advised against, mirrors only mentioned.",
    why="A stripe is only as near as its farthest member.",
    helps_when="Several targets per host, each served by a process on its own node.",
    hurts_when="One file system must have all the bandwidth of the host; it means to create the arrays again.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STORAGE),
)
def spans_nodes(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    wide = tuple(array for array in facts.arrays if len(facts.numa.sockets_of(array.numa_nodes)) > 1)
    striped = tuple(array for array in wide if array.level in STRIPED)
    mirrors = tuple(array for array in wide if array.level in ("raid1", "mirror"))
    if striped:
        yield spans_nodes.found(
            why="Each stripe is read and written over the interconnect for the members on the other node, so no "
            "service can sit near all of its disks.",
            evidence=_wide_evidence(facts, striped),
            remedy="when it is next made, build one array per node from that node's drives, each with its own service",
        )
    if mirrors:
        yield spans_nodes.found(
            severity="info",
            title="A mirror spans NUMA nodes",
            why="Every write crosses the interconnect once, and reads are served by either half. The mirror then also "
            "outlives a socket's drives, which may be what it is for.",
            evidence=_wide_evidence(facts, mirrors),
            remedy="leave it where it guards against the loss of a node's drives; else mirror within one node",
            intent=True,
        )


@rule(
    id="arrays.redundant-on-ebs",
    severity="advice",
    title="A mirror or parity array over EBS volumes",
    what="raid1, raid10 and raid4 to 6 over two or more local EBS volumes and nothing else; not a volume with a plex "
    "on another node's disk.",
    why="Parity costs 20 to 30 per cent of the IOPS; a mirror doubles what goes from the instance to EBS.",
    helps_when="The instance's EBS limit binds.",
    hurts_when="raid0 loses all when one volume is lost: keep snapshots. A mirror over two zones is another matter.",
    sources=(sources.AWS_EBS_RAID,),
)
def redundant_on_ebs(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    volumes = {disk.name for disk in facts.disks if disk.model is not None and disk.model.strip() == _EBS_MODEL}
    found = tuple(
        array
        for array in facts.arrays
        if array.level in ("raid1", "mirror", "raid10", *PARITY_DISKS)
        and len(set(array.disks)) > 1
        and volumes.issuperset(array.disks)
        and not array.detail.get("remote")
    )
    if not found:
        return None
    return redundant_on_ebs.found(
        why="EBS replicates each volume already; parity and mirrors spend the instance's EBS bandwidth a second time.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "detail": tuple(f"{array.name}: {array.level} over {', '.join(array.disks)}" for array in found),
        },
        remedy="use raid0 (or one larger volume) and snapshots when the array is next made",
    )


@rule(
    id="arrays.linear-over-many",
    severity="info",
    title="A linear logical volume spans several devices",
    what="LVM volumes of type linear, and concatenated VxVM volumes, with more than one device.",
    why="Only stripes use all devices at once.",
    helps_when="Several EBS volumes or drives were bought for their speed together.",
    hurts_when="Stripes need as many devices again to grow, and lose all with one; a linear volume grows by any "
    "device.",
    sources=(sources.IRIS_GP3,),
)
def linear_over_many(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        a for a in facts.arrays if a.manager in ("lvm", "vxvm") and a.level == "linear" and len(set(a.members)) > 1
    )
    if not found:
        return None
    return linear_over_many.found(
        why="A linear volume fills one device after the other, so a busy range has the speed of one of them.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "detail": tuple(f"{array.name}: {', '.join(dict.fromkeys(array.members))}" for array in found),
        },
        remedy=tuple(
            Decide(
                f"when {array.name} is next made, stripe it: lvcreate -i {len(set(array.members))} -I 4m"
                if array.manager == "lvm"
                else _relayout(array)
            )
            for array in found
        ),
        intent=True,
    )
