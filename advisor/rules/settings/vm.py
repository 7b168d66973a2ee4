"""Memory management: reclaim, dirty pages, huge pages and swapping, by what the kernel has counted since boot."""

from __future__ import annotations

from advisor.facts.system.memory import HugePagePool
from advisor.host.numbers import count_noun
from advisor.rules import sources
from advisor.rules.queries import sysctl_number
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, RunShell, SetTunable, rule, set_sysctl

ORDER = 50

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_AT_LIMIT = 0.95
_LARGE_DIRTY_BYTES = 4 * _GIB
_DIRECT_SHARE = 0.05
_DIRECT_PAGES = 10_000
_STALL_SHARE = 0.01
_STALLS = 100
_RESERVE_SHARE = 0.03
_RESERVE_KB = 262_144
_UNUSED_SHARE = 0.05
_LOW_SWAPPINESS = 10
_SWAPPED_BYTES = 64 * _MIB


@rule(
    id="vm.dirty-at-limit",
    severity="advice",
    title="Writers wait because as much is dirty as may be",
    what="nr_dirty and nr_writeback of /proc/vmstat against nr_dirty_threshold, at the moment of the scan.",
    why="At the limit a program that writes is put to sleep until the disks have caught up.",
    helps_when="Writes come in bursts and the disks idle between them: an earlier start uses that time.",
    hurts_when="The disks are busy all the time: then no setting helps, and a higher limit only makes the wait longer.",
    sources=(sources.VM, sources.BEEGFS_STORAGE),
    contradictions=("contradiction.dirty-ratios",),
)
def dirty_at_limit(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    dirty, limit = facts.counters.dirty_pages, facts.counters.dirty_limit_pages
    if dirty is None or not limit or dirty < _AT_LIMIT * limit:
        return None
    page = facts.memory.page_bytes
    return dirty_at_limit.found(
        why=f"{dirty * page // _MIB:,} MiB wait to be written, and {limit * page // _MIB:,} MiB may: the kernel holds "
        "writers back to the speed of the disks at this moment.",
        evidence={"dirty_bytes": dirty * page, "dirty_limit_bytes": limit * page},
        remedy=(
            RunShell("iostat -x 5 3", "see which disk is behind"),
            "if the disks idle between the bursts, a lower vm.dirty_background_bytes starts writing earlier",
        ),
    )


@rule(
    id="vm.dirty-large",
    severity="advice",
    title="More may be dirty than disks write in time",
    what="What vm.dirty_ratio means in bytes on this host, for a declared workload that writes; above 4 GiB.",
    why="A share of a large memory is a long queue: when it is full it is written in one go, writers are blocked and a "
    "power cut loses it.",
    helps_when="Much memory, and disks that write less than about 1 GB/s.",
    hurts_when="Bursts that would have fit into memory now wait for the disks. Writing the bytes sets the ratios to 0: "
    "to go back, write the ratios.",
    sources=(sources.VM, sources.BEEGFS_STORAGE, sources.INTERSYSTEMS_LINUX, sources.NETAPP_BEEGFS),
    contradictions=("contradiction.dirty-ratios",),
)
def dirty_large(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    # How much may be dirty: the kernel's own figure, or the ratio of what is available.
    limit: int | None
    if facts.counters.dirty_limit_pages:
        limit = facts.counters.dirty_limit_pages * facts.memory.page_bytes
    else:
        ratio, available = sysctl_number(facts, "vm.dirty_ratio"), facts.memory.available_bytes
        limit = None if not ratio or available is None else available * ratio // 100
    # Hosts with IRIS or BeeGFS have rules of their own, with their vendors' values.
    by_ratio = bool(sysctl_number(facts, "vm.dirty_ratio")) and not facts.iris and facts.beegfs is None
    if workload is None or not workload.is_write_heavy or limit is None or limit <= _LARGE_DIRTY_BYTES or not by_ratio:
        return None
    return dirty_large.found(
        why=f"The ratios let {limit / _GIB:.1f} GiB wait in memory before a writer is slowed down; the declared "
        "workload writes at least half of the time and will fill it.",
        evidence={
            "dirty_limit_bytes": limit,
            "vm.dirty_ratio": sysctl_number(facts, "vm.dirty_ratio"),
            "vm.dirty_background_ratio": sysctl_number(facts, "vm.dirty_background_ratio"),
            "memory_bytes": facts.memory.total_bytes,
        },
        remedy=(set_sysctl("vm.dirty_background_bytes", _GIB), set_sysctl("vm.dirty_bytes", _LARGE_DIRTY_BYTES)),
    )


@rule(
    id="vm.reclaim-stalls",
    severity="advice",
    title="Allocations wait for memory to be reclaimed",
    what="pgsteal_direct against pgsteal_kswapd of /proc/vmstat: 5 % and more, and 10,000 pages at least.",
    why="kswapd frees memory in advance up to marks that follow vm.min_free_kbytes; where it is too late, the task "
    "that allocates does its work.",
    helps_when="Network and storage take memory in bursts.",
    hurts_when="What is kept free nobody else can use, and far too much of it ends in a lack of memory at once: never "
    "more than 3 % of the memory is advised.",
    sources=(sources.VM, sources.ENA, sources.DELL_BEEGFS),
)
def reclaim_stalls(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    direct, background = facts.counters.reclaimed_directly_pages, facts.counters.reclaimed_by_kswapd_pages
    if direct is None or background is None or direct < _DIRECT_PAGES:
        return None
    share = direct / (direct + background)
    if share < _DIRECT_SHARE:
        return None
    reserve, memory = sysctl_number(facts, "vm.min_free_kbytes"), facts.memory.total_bytes
    most = None if memory is None else min(_RESERVE_KB, int(memory * _RESERVE_SHARE) // _KIB)
    may_grow = reserve is not None and most is not None and most > reserve
    return reclaim_stalls.found(
        severity="advice" if may_grow else "info",
        why=f"Since boot, {100 * share:.0f} % of the pages that were reclaimed ({direct:,}) were reclaimed by the "
        "tasks that needed them, while they waited."
        + ("" if may_grow else " The reserve is not small: memory itself is short, or used up in bursts."),
        evidence={
            "reclaimed_directly_pages": direct,
            "share_percent": round(100 * share, 1),
            "vm.min_free_kbytes": reserve,
        },
        remedy=set_sysctl("vm.min_free_kbytes", most, "at-least")
        if may_grow
        else (
            RunShell("grep -E 'pgsteal|allocstall' /proc/vmstat", "read the counters again under load"),
            "give the host's services less memory",
        ),
    )


@rule(
    id="vm.huge-pages-always",
    severity="advice",
    title="Transparent huge pages make page faults wait",
    what="enabled and defrag of transparent huge pages, both always, where compact_stall of /proc/vmstat has counted "
    "waits: 100, and 1 % of the faults that could take a huge page.",
    why="With defrag=always a page fault reclaims and compacts memory directly if no huge page is free: latency for "
    "everybody in exchange for fewer misses of address translation.",
    helps_when="Services that wait: databases, storage servers under a full page cache.",
    hurts_when="Long computations that fault once and run for hours gain from it.",
    sources=(sources.TRANSHUGE, sources.BEEGFS_STORAGE, sources.DELL_BEEGFS, sources.TUNED_ORACLE),
    contradictions=("contradiction.transparent-huge-pages",),
)
def pages_always(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if facts.memory.thp_enabled != "always" or facts.memory.thp_defrag != "always":
        return None
    stalls, faults = facts.counters.compaction_stalls, facts.counters.huge_page_faults
    if not stalls or not faults or stalls < max(_STALLS, _STALL_SHARE * faults):
        return None
    return pages_always.found(
        why=f"Every fault that could take a huge page may stop to put one together. It has done so "
        f"{count_noun(stalls, 'time')} in {faults:,} such faults.",
        evidence={"enabled": "always", "defrag": "always", "compaction_stalls": stalls, "huge_page_faults": faults},
        remedy=(SetTunable("thp:defrag", "madvise"), "ask the vendor of the service about thp:enabled"),
    )


@rule(
    id="vm.swapping",
    severity="advice",
    title="The host writes memory to swap",
    what="pswpout of /proc/vmstat since boot, 64 MiB and more, where vm.swappiness is above 10.",
    why="swappiness weighs giving up anonymous memory against giving up page cache; storage servers and databases want "
    "their own memory kept.",
    helps_when="The page cache is large and pushes out memory that programs use.",
    hurts_when="What was swapped out is never used again: then swap is doing its work. 0 invites the out-of-memory "
    "killer.",
    sources=(sources.VM, sources.INTERSYSTEMS_LINUX),
)
def swapping(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    pages, swappiness = facts.counters.swapped_out_pages, sysctl_number(facts, "vm.swappiness")
    swapped = (pages or 0) * facts.memory.page_bytes
    if pages is None or swapped < _SWAPPED_BYTES or swappiness is None or swappiness <= _LOW_SWAPPINESS:
        return None
    is_database = workload is not None and workload.access == "random"
    return swapping.found(
        severity="advice" if is_database else "info",
        title=f"{swapped // _MIB:,} MiB were written to swap since boot",
        why="What a program needs again is read back page by page while it waits."
        + (" The declared workload reads at random, and so touches any page." if is_database else ""),
        evidence={"swapped_out_pages": pages, "vm.swappiness": swappiness},
        remedy=(
            set_sysctl("vm.swappiness", _LOW_SWAPPINESS, "at-most"),
            RunShell("vmstat 5 3", "see whether the host still swaps (column so)"),
        ),
    )


def _unused_bytes(pool: HugePagePool) -> int:
    return pool.total * pool.size_bytes if pool.total and pool.free == pool.total else 0


def _empty_pool(facts: Facts, pool: HugePagePool) -> SetTunable:
    if pool.size_bytes == facts.memory.default_hugepage_bytes:
        return set_sysctl("vm.nr_hugepages", 0)
    return SetTunable(f"sysfs:/sys/kernel/mm/hugepages/hugepages-{pool.size_bytes // _KIB}kB/nr_hugepages", "0")


@rule(
    id="vm.huge-pages-unused",
    severity="advice",
    title="Huge pages are set aside and unused",
    what="Pools of huge pages of which every page is free, against 5 % of the memory.",
    why="A database that does not find its pages where it wants them (too few, the wrong size, no right to lock "
    "memory) silently takes ordinary ones: the memory is then spent twice.",
    helps_when="The database runs, and its memory is not in the pool.",
    hurts_when="The database is only stopped for now: it may not get its pages back once memory is in pieces.",
    sources=(sources.HUGETLB, sources.IRIS_GP3),
)
def huge_pages_unused(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    pools = tuple(pool for pool in facts.memory.hugepages if _unused_bytes(pool))
    size, memory = sum(map(_unused_bytes, pools)), facts.memory.total_bytes
    # Where IRIS is installed, the owner of the pages is known: a rule about IRIS reports them.
    if not memory or size < _UNUSED_SHARE * memory or facts.iris:
        return None
    return huge_pages_unused.found(
        title=f"{size / _GIB:.1f} GiB are set aside as huge pages and unused",
        why=f"They are {100 * size / memory:.0f} % of the memory and serve nothing else, neither programs nor the "
        "page cache.",
        evidence={
            "detail": tuple(
                f"{count_noun(pool.total, 'page')} of {pool.size_bytes // _KIB:,} KiB, all free" for pool in pools
            ),
            "bytes": size,
            "memory_bytes": memory,
        },
        remedy=(
            Decide("start the database that is to use them; if there is none, free them", is_prerequisite=True),
            *(_empty_pool(facts, pool) for pool in pools),
            RunShell("grep -rs hugepages /etc/sysctl.d /etc/sysctl.conf /proc/cmdline", "find what sets them aside"),
        ),
    )


@rule(
    id="vm.cache-pressure",
    severity="info",
    title="Names and inodes give way as readily as data",
    what="vm.vfs_cache_pressure of 100 and more, for the declared workload small-files.",
    why="Below 100 the kernel keeps dentries and inodes longer than pages of files; a lookup that misses is a read.",
    helps_when="Metadata servers, mail, source trees.",
    hurts_when="Data is read again and again and needs the page cache; 0 can end in a lack of memory.",
    sources=(sources.VM, sources.BEEGFS_STORAGE, sources.DELL_BEEGFS),
)
def cache_pressure(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    pressure = sysctl_number(facts, "vm.vfs_cache_pressure")
    if workload is None or workload.name != "small-files" or pressure is None or pressure < 100:
        return None
    return cache_pressure.found(
        why="The declared workload of small files looks up names and inodes more than it reads data.",
        evidence={"vm.vfs_cache_pressure": pressure},
        remedy=set_sysctl("vm.vfs_cache_pressure", 50),
        intent=True,
    )
