"""InterSystems IRIS: its shared memory against huge pages, kernel limits and the memory of the host."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.clusters.iris import Iris, globals_bytes, pages_for, refuses_large_pages, shared_bytes
from advisor.facts.system.memory import HugePagePool
from advisor.rules import sources
from advisor.rules.queries import sysctl_number, sysctl_numbers
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, SetTunable, Severity, plan_profile, rule, set_sysctl

ORDER = 240

PROFILE = "iris"
GIB = 1 << 30
_SMALL_HOST_BYTES = 64 * GIB
_TABLE_ENTRY_BYTES = 8
_IDLE_SHARE = 0.10
_FULL_SHARE = 0.85
_ABOVE, _BELOW = 0.10, 0.25


def label(one: Iris) -> str:
    """What an instance is called, or where it lies."""
    return one.name or one.directory


def default_pool(facts: Facts) -> HugePagePool | None:
    """The pool that vm.nr_hugepages counts; None where it is not known which one that is."""
    size = facts.memory.default_hugepage_bytes
    pools = facts.memory.hugepages
    if size is None:
        return pools[0] if len(pools) == 1 else None
    return next((pool for pool in pools if pool.size_bytes == size), None)


def _asking_instances(facts: Facts) -> tuple[tuple[Iris, int], ...]:
    """The instances that take huge pages, and the bytes that each of them asks for at least."""
    sizes = ((one, shared_bytes(one.settings)) for one in facts.iris if one.settings is not None)
    return tuple(
        (one, size)
        for one, size in sizes
        if size is not None and one.settings is not None and not refuses_large_pages(one.settings)
    )


@rule(
    id="iris.huge-pages-short",
    severity="advice",
    title="IRIS has too few huge pages for shared memory",
    what="globals, routines and gmheap of each cpf against the pool that vm.nr_hugepages counts.",
    why="Huge pages need a five-hundredth of the page tables and are never swapped out; what IRIS reserves must fit "
    "whole.",
    helps_when="The database cache is a large part of the memory: 589,824 MB are 294,912 pages of 2 MiB.",
    hurts_when="Reserved memory is lost to all other programs and to the page cache, also while IRIS is stopped.",
    sources=(sources.HUGETLB, sources.IRIS_CPF, sources.INTERSYSTEMS_LINUX, sources.IRIS_GP3),
)
def short_pool(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    pool, asking = default_pool(facts), _asking_instances(facts)
    if pool is None or not asking:
        return None
    needed = pages_for(sum(size for _, size in asking), pool.size_bytes)
    if pool.total >= needed:
        return None
    tables = sum(size for _, size in asking) // facts.memory.page_bytes * _TABLE_ENTRY_BYTES
    # What to do where the pages are not free now: an instance that runs holds the memory that it will take again.
    missing = (needed - pool.total) * pool.size_bytes
    available, running = facts.memory.available_bytes, [label(one) for one, _ in asking if one.running]
    if available is None or missing <= available:
        not_free = ""
    else:
        stop = f" Stop {', '.join(running)} first, which holds that memory in small pages." if running else ""
        not_free = f" {missing >> 20:,} MiB are needed and {available >> 20:,} are available now.{stop}"
    return short_pool.found(
        title="There are no huge pages for IRIS' shared memory"
        if pool.total == 0
        else "IRIS has too few huge pages for shared memory",
        why="IRIS takes all of its shared memory from huge pages or none of it. With pages of "
        f"{facts.memory.page_bytes:,} bytes it can be swapped out, and every process that touches all of it has up to "
        f"{tables >> 20:,} MiB of page tables of its own. Pages that are there are taken when IRIS starts next; where "
        "memory is too fragmented for so many, hugepages= on the kernel command line reserves them at boot." + not_free,
        evidence={
            "instances": tuple(label(one) for one, _ in asking),
            "huge_pages": pool.total,
            "needed_at_least": needed,
            "huge_page_bytes": pool.size_bytes,
            "detail": tuple(f"{label(one)}: {size >> 20:,} MiB by its cpf" for one, size in asking),
        },
        remedy=plan_profile(PROFILE),
    )


def _idle_finding(
    facts: Facts, pool: HugePagePool, why: str, pages: int, severity: Severity, in_use: int | None
) -> Finding:
    """``in_use``: the pages to leave; None where IRIS should have them all."""
    return idle_pool.found(
        severity=severity,
        title=f"{pages * pool.size_bytes / GIB:,.1f} GiB of huge pages serve nobody",
        why=f"{why} What is reserved in huge pages no other program can have.",
        evidence={
            "instances": tuple(label(one) for one in facts.iris),
            "huge_pages": pool.total,
            "free": pool.free,
            "huge_page_bytes": pool.size_bytes,
        },
        remedy=(
            "see messages.log for how IRIS allocated its shared memory; either make the pool large enough for all "
            "of it, or leave what is in use",
            *([] if in_use is None else [set_sysctl("vm.nr_hugepages", in_use, "at-most")]),
        ),
    )


@rule(
    id="iris.huge-pages-idle",
    severity="advice",
    title="Huge pages serve nobody",
    what="Free huge pages while every instance runs, and pools that memlock forbids.",
    why="A pool that is a little too small is worse than none: IRIS leaves it alone and takes its memory elsewhere.",
    helps_when="Memory is short.",
    hurts_when="Another program (a Java virtual machine, a second instance) is to take them later.",
    sources=(sources.HUGETLB, sources.IRIS_CPF),
)
def idle_pool(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    pool = default_pool(facts)
    if pool is None or not pool.total or not facts.iris:
        return None
    refusing = tuple(one for one in facts.iris if one.settings is not None and refuses_large_pages(one.settings))
    if len(refusing) == len(facts.iris):
        return _idle_finding(facts, pool, "memlock forbids huge pages to every instance.", pool.total, "advice", 0)
    if pool.free is None or not all(one.running for one in facts.iris):
        return None
    if pool.free == pool.total:
        return _idle_finding(
            facts, pool, "IRIS runs, and not one of the huge pages is in use.", pool.free, "advice", None
        )
    if pool.free > _IDLE_SHARE * pool.total and pool.free * pool.size_bytes > GIB:
        why = "IRIS runs, and the rest of the pool is in nobody's use."
        return _idle_finding(facts, pool, why, pool.free, "info", pool.total - pool.free)
    return None


def _over_limits(facts: Facts, asked: list[tuple[Iris, int]]) -> Iterator[str]:
    most, all_pages = sysctl_numbers(facts, "kernel.shmmax"), sysctl_numbers(facts, "kernel.shmall")
    for one, size in asked:
        if most and size > most[0]:
            yield f"{label(one)} asks for {size:,} bytes, kernel.shmmax is {most[0]:,}"
    total = sum(size for _, size in asked)
    if all_pages and total > all_pages[0] * facts.memory.page_bytes:
        yield f"all ask for {total:,} bytes, kernel.shmall allows {all_pages[0] * facts.memory.page_bytes:,}"


@rule(
    id="iris.shmmax",
    severity="warning",
    title="kernel.shmmax is below the shared memory of IRIS",
    what="kernel.shmmax and kernel.shmall against what each cpf asks for.",
    why="Guides of the time when the limits were 32 MB set them by hand; a value that was right then is too small now.",
    helps_when="Always: IRIS runs with less cache than its cpf says.",
    hurts_when="The limit is there so that IRIS cannot take more.",
    sources=(sources.SYSCTL_KERNEL, sources.IRIS_CPF, sources.INTERSYSTEMS_LINUX),
)
def kernel_limit(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    asked = [(one, size) for one in facts.iris if one.settings and (size := shared_bytes(one.settings))]
    found = tuple(_over_limits(facts, asked))
    if not found:
        return None
    pages = -(-sum(size for _, size in asked) // facts.memory.page_bytes)
    needed = {"kernel.shmmax": max(size for _, size in asked), "kernel.shmall": pages}
    raised = [set_sysctl(key, n, "at-least") for key, n in needed.items() if n > (sysctl_number(facts, key) or n)]
    return kernel_limit.found(
        why="The kernel refuses the segment, and IRIS starts with an eighth less, again and again, until it fits.",
        evidence={"instances": tuple(label(one) for one, _ in asked), "detail": found},
        remedy=(
            *raised,
            "remove the line that lowers kernel.shmmax or kernel.shmall: the kernel's own limits are without end",
        ),
    )


@rule(
    id="iris.transparent-huge-pages",
    severity="info",
    title="Transparent huge pages are always on with IRIS",
    what="transparent_hugepage/enabled on a host with an instance.",
    why="A database with huge pages of its own has no need of transparent ones.",
    helps_when="Processes stall while the kernel compacts memory (compact_stall in /proc/vmstat).",
    hurts_when="Other programs on the host gain by them; with madvise those that ask keep them.",
    sources=(sources.TRANSHUGE, sources.TUNED_ORACLE),
    contradictions=("contradiction.transparent-huge-pages",),
)
def transparent(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if not facts.iris or facts.memory.thp_enabled != "always":
        return None
    return transparent.found(
        why="Transparent huge pages do not reach its shared memory, only heap and stack of its processes, where the "
        "kernel may stop one to put small pages together.",
        evidence={
            "instances": tuple(label(one) for one in facts.iris),
            "enabled": facts.memory.thp_enabled,
            "defrag": facts.memory.thp_defrag,
        },
        remedy=plan_profile(PROFILE),
        intent=True,
    )


def _by_guideline(facts: Facts, total: int) -> Finding | None:
    (one,) = facts.iris
    cache = globals_bytes(one.settings) if one.settings else None
    if cache is None:
        return None
    guideline = 0.5 if total < _SMALL_HOST_BYTES else 0.7
    share = cache / total
    if guideline - _BELOW <= share <= guideline + _ABOVE:
        return None
    return cache_share.found(
        severity="info",
        title=f"The database cache is {share:.0%} of the memory",
        why=f"For one instance that has a host of this size to itself, {guideline:.0%} is InterSystems' figure.",
        evidence={
            "instances": (label(one),),
            "globals_bytes": cache,
            "memory_bytes": total,
            "share_percent": round(100 * share, 1),
            "guideline_percent": round(100 * guideline),
        },
        remedy=SetTunable(f"file:{one.cpf}:config/globals", f"0,0,{int(guideline * total) >> 20},0,0,0"),
        intent=True,
    )


@rule(
    id="iris.cache-share",
    severity="warning",
    title="The database cache against the memory",
    what="globals (and for what is too much, routines and gmheap too) of each cpf against the memory of the host.",
    why="The cache saves reads; processes need memory as well. The article's instance gives 589,824 MB of 768 GiB: 75 "
    "%.",
    helps_when="Reads bind: each block that is in the cache is no I/O on the volume.",
    hurts_when="Other programs run on the host, or very many processes: then the share is theirs to reckon with.",
    sources=(sources.INTERSYSTEMS_LINUX, sources.IRIS_CPF, sources.IRIS_GP3),
)
def cache_share(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    total = facts.memory.total_bytes
    known = [one for one in facts.iris if one.settings is not None]
    if not total or not known or len(known) < len(facts.iris):
        return None
    automatic = tuple(
        label(one) for one in known if one.settings and one.settings.globals_mb and globals_bytes(one.settings) is None
    )
    sizes = [shared_bytes(one.settings) for one in known if one.settings]
    shared = sum(size for size in sizes if size is not None)
    if shared > _FULL_SHARE * total:
        return cache_share.found(
            severity="warning" if shared > total else "advice",
            title="IRIS' shared memory is larger than the memory"
            if shared > total
            else "IRIS' shared memory leaves little to other uses",
            why="Its processes, the kernel and the page cache need the rest; where that is too little, the kernel ends "
            "processes, and the largest are those of the database.",
            evidence={
                "instances": tuple(label(one) for one in facts.iris),
                "shared_bytes": shared,
                "memory_bytes": total,
                "share_percent": round(100 * shared / total, 1),
            },
            remedy="lower globals in the cpf, with vm.nr_hugepages after it, or give the host more memory",
        )
    if automatic:
        return cache_share.found(
            severity="info",
            title="Database cache size is not set: IRIS chooses it",
            why="IRIS then takes a quarter of the memory, which its own documentation calls not fit for production.",
            evidence={"instances": automatic},
            remedy="set globals in the cpf: half of the memory below 64 GB, 70 % from there on, for one instance "
            "that has the host to itself",
            intent=True,
        )
    return _by_guideline(facts, total) if len(known) == 1 and None not in sizes else None
