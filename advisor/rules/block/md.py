"""Arrays of md: what their members' caches, threads, rebuilds and chunks do to the declared workload."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator

from advisor.facts.block.block import LEVELS, PARITY_DISKS, STRIPED, Array
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import leading_count
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, SetTunable, rule

ORDER = 170

_KIB, _MIB = 1 << 10, 1 << 20
_REDUNDANT = {*PARITY_DISKS, "raid1", "raid10"}
_CACHE_ENTRIES = (4096, 2048, 1024, 512)
_CACHE_SHARE = 0.02
_THREADS = 4
_NEAR_LIMIT = 0.9
_WORTH_A_BITMAP_BYTES = 100 * 10**9
_STREAM_CHUNK_BYTES = 128 * _KIB
_RANDOM_WRITES = 0.3


# Kinds of work that restore redundancy or change the array, by md's words and those of /proc/mdstat.
_WORK = {"recover": "rebuild", "recovery": "rebuild", "resync": "resync", "reshape": "reshape"}
_WORK_OF_STATE = {"recovering": "rebuild", "resyncing": "resync", "reshaping": "reshape"}
_UNTIL_DONE = {
    "rebuild": "until it is done, the loss of another member may lose data",
    "resync": "until it is done, copies or parity may not fit the data",
    "reshape": "until it is done, the array is slow",
}


def _of_md(facts: Facts, levels: Container[str | None]) -> Iterator[Array]:
    return (array for array in facts.arrays if array.manager == "md" and array.level in levels)


def _work(array: Array) -> str:
    """The work that goes on: rebuild, resync or reshape; empty for none, and for a check."""
    return _WORK_OF_STATE.get(array.state or "") or _WORK.get(array.detail.get("sync_action", ""), "")


def _array_attribute(array: Array, name: str) -> int | None:
    return leading_count(array.detail.get(name))


def _cache_bytes(facts: Facts, array: Array, entries: int) -> int:
    # An entry holds a page of each member (kernel: admin-guide/md, stripe_cache_size).
    disks = _array_attribute(array, "raid_disks") or len(array.members)
    return entries * facts.memory.page_bytes * disks


def _cache_that_fits(facts: Facts, array: Array) -> int | None:
    """The longest cache that takes no more than a small share of the memory; None where even the shortest does."""
    available = facts.memory.available_bytes
    room = None if available is None else available * _CACHE_SHARE
    return next((n for n in _CACHE_ENTRIES if room is not None and _cache_bytes(facts, array, n) <= room), None)


@rule(
    id="md.stripe-cache-small",
    severity="advice",
    title="Stripe cache of a parity array is small",
    what="stripe_cache_size of md arrays of level 4 to 6, for a declared workload of sequential writes.",
    why="The cache is where md gathers the chunks of a stripe before it computes the parity.",
    helps_when="Streams of writes; several of them at once.",
    hurts_when="It takes a page for each entry and member, which nobody else can use. Small random writes gain "
    "nothing.",
    sources=(sources.MD,),
)
def small_cache(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    if workload is None or not workload.is_sequential or not workload.is_write_heavy:
        return
    for array, entries in ((array, _cache_that_fits(facts, array)) for array in _of_md(facts, PARITY_DISKS)):
        if entries is not None and (now := _array_attribute(array, "stripe_cache_size")) is not None and now < entries:
            cost = _cache_bytes(facts, array, entries)
            yield small_cache.found(
                title=f"{array.name} has a stripe cache of {now} entries",
                why="Streams of writes fill whole stripes only if enough of them fit into the cache until they are "
                "whole; the rest is read back for the parity.",
                evidence={
                    "arrays": (array.name,),
                    "level": array.level,
                    "stripe_cache_size": now,
                    "wanted": entries,
                    "memory_cost_bytes": cost,
                },
                remedy=SetTunable(f"md:{array.device}:stripe_cache_size", str(entries), "at-least"),
            )


@rule(
    id="md.one-parity-thread",
    severity="advice",
    title="One thread computes the parity of NVMe drives",
    what="group_thread_cnt 0 of md arrays of level 4 to 6 whose members are all NVMe, on hosts of eight cores and "
    "more.",
    why="group_thread_cnt is how many threads of each node share the work of stripes. The kernel's md document does "
    "not mention it: the figure is practice, so measure it with advisor prove or fio.",
    helps_when="Writes to several NVMe drives at once.",
    hurts_when="The threads take CPUs from the service; few writes gain nothing.",
    sources=(sources.MD, sources.PRACTICE),
)
def one_thread(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        array
        for array in _of_md(facts, PARITY_DISKS)
        if _array_attribute(array, "group_thread_cnt") == 0
        and array.disks
        and all(disk.startswith("nvme") for disk in array.disks)
    )
    if not found or (facts.cpu.cores or 0) < 2 * _THREADS:
        return None
    declared = workload is not None and workload.is_write_heavy
    return one_thread.found(
        severity="advice" if declared else "info",
        why="One thread of the kernel computes the parity of all writes; NVMe drives take more than it gives.",
        evidence={"arrays": tuple(array.name for array in found), "group_thread_cnt": 0},
        remedy=(
            *(SetTunable(f"md:{array.device}:group_thread_cnt", str(_THREADS), "at-least") for array in found),
            "it helps where top shows the array's thread (md0_raid5 and the like) near 100 % of a CPU",
        ),
        intent=not declared,
    )


@rule(
    id="md.rebuild-limited",
    severity="advice",
    title="A rebuild runs at the limit that md sets",
    what="sync_speed against sync_speed_max of arrays that rebuild a member, resync or reshape.",
    why="dev.raid.speed_limit_max, 200,000 KiB/s by default, is from the days of hard disks.",
    helps_when="Drives that are much faster than the limit.",
    hurts_when="The service needs the bandwidth more than the array needs its redundancy.",
    sources=(sources.MD,),
)
def rebuild_limited(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    return tuple(
        rebuild_limited.found(
            title=f"The {work} of {array.name} runs at its limit",
            why=f"It runs at {speed // _KIB:,} MiB/s, and md lets it have {most // _KIB:,} MiB/s; {_UNTIL_DONE[work]}.",
            evidence={"arrays": (array.name,), "sync_speed_kib": speed, "sync_speed_max_kib": most},
            remedy=(
                SetTunable(f"md:{array.device}:sync_speed_max", str(4 * most), "at-least"),
                f"roll it back when the {work} is done",
            ),
        )
        for array in _of_md(facts, _REDUNDANT)
        if (work := _work(array))
        and (speed := _array_attribute(array, "sync_speed")) is not None
        and (most := _array_attribute(array, "sync_speed_max"))
        and speed >= _NEAR_LIMIT * most
    )


@rule(
    id="md.no-bitmap",
    severity="info",
    title="An array has no write-intent bitmap",
    what="consistency_policy resync of redundant md arrays of 100 GB and more.",
    why="A bitmap remembers which regions were being written, so that only those are looked at after a crash; mdadm "
    "makes one by itself for arrays of this size.",
    helps_when="Hosts that must be fast soon after a power cut.",
    hurts_when="Each region's first write waits for the bitmap: many small random writes lose some speed.",
    sources=(sources.MD, sources.MDADM),
)
def no_bitmap(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(
        array
        for array in _of_md(facts, _REDUNDANT)
        if array.detail.get("consistency_policy") == "resync" and (array.size_bytes or 0) >= _WORTH_A_BITMAP_BYTES
    )
    if not found:
        return None
    return no_bitmap.found(
        why="After a crash, all of the array is compared or computed again, for hours, at the service's expense.",
        evidence={"arrays": tuple(array.name for array in found), "consistency_policy": "resync"},
        remedy=tuple(
            RunShell(
                f"mdadm --grow --bitmap=internal {shlex.quote(f'/dev/{array.name}')}", f"give {array.name} a bitmap"
            )
            for array in found
        ),
        intent=True,
    )


@rule(
    id="md.mismatches",
    severity="warning",
    title="The members of an array do not agree",
    what="mismatch_cnt of redundant md arrays and of LVM's (dmsetup status), from the last check or repair.",
    why="A check reads all members and counts where they contradict each other.",
    helps_when="Always: no setting is worth more than right data.",
    hurts_when="A repair makes them agree, but md cannot know which one is right.",
    sources=(sources.MD,),
)
def mismatches(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for array in facts.arrays:
        sectors = _array_attribute(array, "mismatch_cnt")
        if sectors and array.level in _REDUNDANT:
            name = shlex.quote(array.name)
            check = f"echo check > /sys/block/{shlex.quote(array.device)}/md/sync_action"
            by_parity = array.level in PARITY_DISKS
            yield mismatches.found(
                severity="warning" if by_parity else "info",
                title=f"{array.name}: the last check found "
                f"{count_noun(sectors, 'sector', 'that does', 'that do')} not agree",
                why="The parity does not fit the data: after the loss of a member, wrong data would be computed."
                if by_parity
                else "The copies differ. On mirrors this is harmless where memory was changed while it was written, as "
                "swap is; elsewhere it is not.",
                evidence={"arrays": (array.name,), "level": array.level, "mismatch_cnt": sectors},
                remedy=(
                    *(
                        RunShell(f"smartctl -a {shlex.quote(f'/dev/{disk}')}", f"look for errors of {disk}")
                        for disk in array.disks
                    ),
                    "read the kernel's log, and compare the data with a backup",
                    RunShell(
                        check if array.manager == "md" else f"lvchange --syncaction check {name}",
                        "count again",
                        f"the service on {array.name}: a check takes bandwidth for hours",
                    ),
                ),
            )


@rule(
    id="arrays.parity-random-writes",
    severity="advice",
    title="Small random writes go to a parity array",
    what="RAID 4 to 6 of md and LVM, for a declared workload of random access with 30 % of writes and more.",
    why="RAID 10 writes each block twice; RAID 5 reads two blocks and writes two, RAID 6 three and three.",
    helps_when="Databases, metadata, virtual machines.",
    hurts_when="RAID 10 holds half of what its drives hold. Behind a protected write cache the penalty is paid later "
    "and may not be felt.",
    sources=(sources.AWS_EBS_RAID, sources.BEEGFS_METADATA, sources.DELL_BEEGFS),
    contradictions=("contradiction.raid10-writes",),
)
def parity_random(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if workload is None or workload.access != "random" or (workload.write_share or 0) < _RANDOM_WRITES:
        return None
    found = tuple(array for array in facts.arrays if array.manager in ("md", "lvm") and array.level in PARITY_DISKS)
    if not found:
        return None
    return parity_random.found(
        why="A write smaller than a stripe reads and writes data and parity: "
        + "; ".join(f"{LEVELS[array.level or ''].small_write} operations for each on {array.name}" for array in found)
        + ", against 2 on RAID 10.",
        evidence={
            "arrays": tuple(array.name for array in found),
            "level": tuple(str(array.level) for array in found),
            "write_share": workload.write_share,
        },
        remedy=(
            "use RAID 10 for this data when the array is next made",
            RunShell("advisor limits", "see both figures"),
        ),
    )


@rule(
    id="arrays.chunk-below-block",
    severity="advice",
    title="Chunks of an array are smaller than its requests",
    what="Chunk or stripe size of striped arrays against the declared block size, at random; against 128 KiB for "
    "streams.",
    why="A random request should touch one member only, so that the others serve others; a stream should give each "
    "member pieces worth a request.",
    helps_when="Many requests at once.",
    hurts_when="One request at a time is faster if several members share it. On parity arrays a larger chunk is a "
    "larger stripe, which fewer writes fill.",
    sources=(sources.MD, sources.MDADM),
)
def small_chunk(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    if workload is None or not workload.block_bytes:
        return
    least: int | None
    if workload.access == "random":
        least = workload.block_bytes
    else:
        least = _STREAM_CHUNK_BYTES if workload.is_sequential and workload.has_large_blocks else None
    for array in facts.arrays:
        if array.level in STRIPED and array.chunk_bytes and least is not None and array.chunk_bytes < least:
            is_random = workload.access == "random"
            yield small_chunk.found(
                severity="advice" if is_random else "info",
                title=f"{array.name} has chunks of {array.chunk_bytes // _KIB} KiB",
                why=f"Each request of {least // _KIB} KiB at random keeps several members busy where one would do."
                if is_random
                else "A stream in large blocks is cut into many small requests to each member.",
                evidence={
                    "arrays": (array.name,),
                    "chunk_bytes": array.chunk_bytes,
                    "block_bytes": workload.block_bytes,
                },
                remedy=f"use chunks of {max(least, _STREAM_CHUNK_BYTES) // _KIB} KiB or more when the array is next "
                "made",
                intent=not is_random,
            )
