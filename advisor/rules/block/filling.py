"""What is nearly full, and what keeps it from being used well: file systems, thin pools, ZFS, trimming."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from advisor.facts.block.block import whole_of
from advisor.host.numbers import count_noun, is_count
from advisor.rules import sources
from advisor.rules.queries import leading_count
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, Severity, rule

ORDER = 121

_NEARLY = 90
_FULL = 98
_POOL_NEARLY = 85
_POOL_FULL = 95
_TRIMS = frozenset({"ext4", "xfs", "btrfs", "f2fs"})
_GATHERS = frozenset({"btrfs", "f2fs"})


@rule(
    id="filesystems.nearly-full",
    severity="critical",
    title="A file system is nearly full",
    what="Used space by df of file systems on this host's devices: a warning from 90 %, critical from 98 %.",
    why="Near full, allocation searches long and files are laid out in pieces; at the end writers fail.",
    helps_when="Always: free space, or grow it.",
    hurts_when="A volume that is filled once and never written again, as of an archive.",
    sources=(sources.NETDATA_DISKS,),
)
def nearly_full(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for one in facts.filesystems:
        if (
            one.used_percent is not None
            and one.used_percent >= _NEARLY
            and one.mountpoints
            and _is_writable(one.options)
        ):
            place = shlex.quote(one.mountpoints[0])
            yield nearly_full.found(
                severity="critical" if one.used_percent >= _FULL else "warning",
                title=f"{one.mountpoints[0]} is {one.used_percent} % full",
                why="What is left may not last; a copy-on-write file system is slow well before.",
                evidence={"device": one.device, "mountpoint": one.mountpoints[0], "used_percent": one.used_percent},
                remedy=(
                    RunShell(f"du -xh --max-depth=2 {place} | sort -h | tail", "see what takes the space"),
                    "free or grow it",
                ),
            )


def _is_writable(options: str | None) -> bool:
    return "ro" not in (options or "").split(",")


@rule(
    id="filesystems.inodes-nearly-used",
    severity="critical",
    title="A file system has few inodes left",
    what="Used inodes by df: a warning from 90 %, critical from 98 %.",
    why="Without a free inode no file can be made, however much space there is.",
    helps_when="Many small files: remove those that are left over, or move to a file system that makes inodes as "
    "needed.",
    hurts_when="XFS shows a number that grows with the free space: there space is what lacks.",
    sources=(sources.NETDATA_DISKS,),
)
def inodes_nearly_used(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for one in facts.filesystems:
        used = one.inodes_used_percent
        if used is not None and used >= _NEARLY and one.mountpoints and _is_writable(one.options):
            place = shlex.quote(one.mountpoints[0])
            yield inodes_nearly_used.found(
                severity="critical" if used >= _FULL else "warning",
                title=f"{one.mountpoints[0]} has used {used} % of its inodes",
                why="New files fail when none is left, with the same error as a full disk.",
                evidence={"device": one.device, "mountpoint": one.mountpoints[0], "inodes_used_percent": used},
                remedy=(
                    RunShell(f"du -x --inodes --max-depth=2 {place} | sort -n | tail", "see where the files are"),
                    "remove what is left over, or move to a file system with more inodes",
                ),
            )


@rule(
    id="lvm.thin-pool-full",
    severity="critical",
    title="A thin pool is nearly full",
    what="Data and metadata blocks of each thin pool (dmsetup status, as root): a warning from 85 %, critical from "
    "95 %.",
    why="A full pool queues writes for a minute and then fails them; full metadata may cost the volumes.",
    helps_when="Always: extend it, or remove snapshots, or trim what the file systems above have freed.",
    hurts_when="The pool extends itself (thin_pool_autoextend_threshold) and its group has room.",
    sources=(sources.NETDATA_LVM, sources.THIN),
)
def thin_pool_full(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for array in (one for one in facts.arrays if one.level != "vdo"):
        shares = {name: _used_percent(array.detail.get(f"{name}_blocks")) for name in ("data", "metadata")}
        most = max((share for share in shares.values() if share is not None), default=0)
        if most < _POOL_NEARLY:
            continue
        name = shlex.quote(array.name)
        yield thin_pool_full.found(
            severity="critical" if most >= _POOL_FULL else "warning",
            title=f"Thin pool {array.name} is {most} % full",
            why="All volumes of the pool stop together when it is full.",
            evidence={"arrays": (array.name,), **{f"{name}_percent": share for name, share in shares.items()}},
            remedy=(
                RunShell("lvs -a -o+data_percent,metadata_percent", "see which of both it is"),
                RunShell(f"lvextend -L+20% {name}" if (shares["data"] or 0) >= (shares["metadata"] or 0)
                         else f"lvextend --poolmetadatasize +256M {name}", "extend it"),
            ),
        )  # fmt: skip


@rule(
    id="lvm.store-full",
    severity="critical",
    title="A snapshot or a VDO pool is nearly full",
    what="Used space of snapshots and VDO volumes (dmsetup status, as root): a warning from 85 %, critical from 95 %.",
    why="Both promise more than they have: at 100 % a snapshot is invalid, and a VDO volume fails its writes.",
    helps_when="Always: extend it, or remove what is no longer needed.",
    hurts_when="A snapshot that is about to be removed or merged.",
    sources=(sources.NETDATA_LVM, sources.SNAPSHOT, sources.VDO),
)
def store_full(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for array in facts.arrays:
        is_snapshot = array.level == "snapshot"
        share = _used_percent(array.detail.get("used_sectors" if is_snapshot else "data_blocks"))
        if array.level not in ("snapshot", "vdo") or share is None or share < _POOL_NEARLY:
            continue
        name = shlex.quote(array.name)
        yield store_full.found(
            severity="critical" if share >= _POOL_FULL else "warning",
            title=f"{'Snapshot' if is_snapshot else 'VDO pool'} {array.name} is {share} % full",
            why="At 100 % the snapshot is invalid, and what it kept is lost."
            if is_snapshot
            else "At 100 % writes fail, on every volume of the pool and although these show free space.",
            evidence={"arrays": (array.name,), "used_percent": share},
            remedy=(
                RunShell("lvs -a -o+data_percent", "see how full each is"),
                RunShell(f"lvextend -L+20% {name}", "extend it"),
                "or remove the snapshot" if is_snapshot else "or free space in it: delete and trim (fstrim)",
            ),
        )


def _used_percent(blocks: str | None) -> int | None:
    """Of ``used/all`` as the kernel prints it, rounded down."""
    used, _, whole = (blocks or "").partition("/")
    return int(used) * 100 // int(whole) if is_count(used) and is_count(whole) and int(whole) else None


@rule(
    id="zfs.pool-degraded",
    severity="critical",
    title="A ZFS pool is not healthy",
    what="State of each imported pool.",
    why="A degraded pool has lost redundancy; a suspended one has stopped all I/O.",
    helps_when="Always: replace the device, then let it resilver.",
    hurts_when="A device was taken offline on purpose.",
    sources=(sources.NETDATA_ZFS, sources.ZPOOL),
    seen_live=False,
)
def zfs_degraded(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for pool in facts.zfs_pools:
        if pool.state in {"DEGRADED", "FAULTED", "UNAVAIL", "SUSPENDED", "REMOVED", "OFFLINE"}:
            name = shlex.quote(pool.name)
            is_safe = pool.state == "DEGRADED" and (pool.survives or 0) > 0
            lost = f": {pool.missing} of {count_noun(pool.expected, 'device')} missing" if pool.expected else ""
            yield zfs_degraded.found(
                severity="warning" if is_safe else "critical",
                title=f"ZFS pool {pool.name} is {pool.state}{lost}"
                + (f", survives {pool.survives} more" if is_safe else ""),
                why="It reads and writes on, with less redundancy."
                if is_safe
                else "Another failure may lose data."
                if pool.state == "DEGRADED"
                else "Its data cannot be reached as a whole.",
                evidence={
                    **{"device": pool.name, "state": pool.state},
                    **({"missing": pool.missing, "survives": pool.survives} if pool.expected else {}),
                },
                remedy=(
                    RunShell(f"zpool status -v {name}", "see the device, and which files are damaged"),
                    "replace the device (zpool replace), or clear the errors once it is back (zpool clear)",
                ),
            )


@rule(
    id="zfs.pool-full",
    severity="warning",
    title="A ZFS pool is nearly full",
    what="Capacity of each pool (zpool list): from 85 % on.",
    why="ZFS never overwrites: with little free space it searches long for each block, and deletes need space, too.",
    helps_when="Pools that are written at random: below 80 to 85 % they keep their speed.",
    hurts_when="Pools with large records that are only appended to, up to 95 %.",
    sources=(sources.NETDATA_ZFS, sources.ZPOOL),
    seen_live=False,
)
def zfs_full(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for pool in facts.zfs_pools:
        if pool.used_percent is not None and pool.used_percent >= _POOL_NEARLY:
            severity: Severity = "warning" if pool.used_percent >= _NEARLY else "advice"
            yield zfs_full.found(
                severity=severity,
                title=f"ZFS pool {pool.name} is {pool.used_percent} % full",
                why="Writes slow down from here on, and a full pool is hard to free.",
                evidence={"device": pool.name, "used_percent": pool.used_percent},
                remedy=(
                    RunShell(
                        f"zfs list -o space -r {shlex.quote(pool.name)}", "see what takes the space, snapshots too"
                    ),
                    "free space or add a vdev",
                ),
            )


@rule(
    id="filesystems.not-trimmed",
    severity="info",
    title="Flash or thin file systems are never trimmed",
    what="Mounted ext4 and XFS without discard on devices that take discards, where fstrim.timer is not enabled.",
    why="What was deleted stays allocated: flash has less room to move data in, and thin storage pays for it.",
    helps_when="SSDs and thin LUNs on which files come and go: once a week is enough.",
    hurts_when="A drive or array whose trims are slow: choose the hour (systemctl edit fstrim.timer).",
    sources=(sources.FSTRIM,),
)
def not_trimmed(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.systemd is None or facts.systemd.trims is not False:
        return None
    disks = {disk.name: disk for disk in facts.disks}
    found: dict[str, str] = {}
    for one in facts.filesystems:
        name = one.device if one.device in disks else whole_of(one.device, disks) or ""
        disk = disks.get(name)
        options = (one.options or "").split(",")
        if disk is None or disk.kind == "loop" or not one.mountpoints or one.kind not in _TRIMS - _GATHERS:
            continue
        takes = leading_count(disk.queue.get("discard_max_bytes"))
        if takes and not re.search(r"(?:^|,)(?:ro|discard)(?:$|,)", ",".join(options)):
            found[one.mountpoints[0]] = f"{one.mountpoints[0]} on {name}"
    if not found:
        return None
    return not_trimmed.found(
        why="The timer comes with util-linux and waits to be enabled.",
        evidence={"mountpoints": tuple(found), "detail": tuple(found.values())},
        remedy=(
            RunShell("systemctl enable --now fstrim.timer", "trim all mounted file systems once a week"),
            RunShell("fstrim --all --dry-run", "see which would be trimmed"),
        ),
        intent=True,
    )


@rule(
    id="zfs.small-blocks",
    severity="advice",
    title="A ZFS pool's blocks are smaller than its disks'",
    what="The line of zpool status about a block size that is not the disk's own.",
    why="ashift is set when a vdev is made: with 512 bytes on disks of 4,096 each small write is read, changed and "
    "written back by the disk.",
    helps_when="Synchronous and random writes: databases, zvols of virtual machines.",
    hurts_when="The pool has to be made anew, or each vdev be replaced: ashift of a vdev cannot be changed.",
    sources=(sources.ZPOOL,),
    seen_live=False,
)
def zfs_small_blocks(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for pool in facts.zfs_pools:
        if pool.small_blocks:
            yield zfs_small_blocks.found(
                title=f"Blocks of ZFS pool {pool.name} are smaller than those of its disks",
                why="The pool writes parts of the disks' blocks, which these read, change and write back.",
                evidence={"device": pool.name, "disks": pool.small_blocks},
                remedy=(
                    RunShell(f"zpool get ashift {shlex.quote(pool.name)}", "see what vdevs are made with"),
                    "make the next pool with zpool create -o ashift=12, and move the data by zfs send",
                ),
            )
