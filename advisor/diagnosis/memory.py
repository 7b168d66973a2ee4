"""Causes in memory: out of memory, swap, reclaim, dirty pages, remote nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.diagnosis.cause import (
    BINDS_FROM,
    Asker,
    BindingCause,
    asks_group,
    asks_memory,
    asks_storage,
    cause,
    limit_command,
    name_group,
    percent,
    stalled_share,
)
from advisor.diagnosis.observation import Observation
from advisor.diagnosis.storage import waited_share
from advisor.host.numbers import count_noun, count_of
from advisor.observe.cgroups import unit_of_cgroup

_VMSTAT = "proc_vmstat(5)"
_PSI = "Linux kernel documentation, accounting/psi"
_PMIE_OOM = "performancecopilot/pcp src/pmieconf/memory/oom_kill; netdata ram.conf"
_CGROUP = "Linux kernel documentation, admin-guide/cgroup-v2, memory"
PAGE_BYTES = 4096
_FAILED_FROM = 100
"""Failed attempts of a control group of version 1 to get memory, a second."""
REFAULTS_FROM = 1000
"""A second."""
SWAPPED_FROM = 20
"""Pages a second that are read back: below, what nobody uses is put aside."""


def _vm(seen: Observation, *fields: str) -> float | None:
    """How many a second of some counters together; None where none of them is counted."""
    rates = [rate for field in fields if (rate := seen.per_second("vm", "host", field)) is not None]
    return sum(rates) if rates else None


def _follow_reclaim(seen: Observation) -> tuple[str, ...]:
    """The threads of the kernel that free memory and join free pages: busy where memory binds."""
    names = {seen.word("process", name, "name") or "" for name in seen.span.names("process")}
    return tuple(f"cpu.kernel-thread {name}" for name in names if name.startswith(("kswapd", "kcompactd")))


@cause(
    id="memory.oom",
    resource="memory",
    help="hardware",
    what="Processes that the kernel killed since memory, or that of a control group, was used up; its log names them.",
    threshold="any",
    sources=(_PMIE_OOM, "mm/oom_kill.c; Linux kernel documentation, ABI/testing/dev-kmsg"),
    is_error=True,
    explains=("memory.pressure", "memory.swap", "memory.cgroup-limit"),
)
def out_of_memory(seen: Observation) -> Iterator[BindingCause]:
    killed = seen.rose("vm", "host", "oom_kill")
    named = _list_killed(seen)
    groups = {path: seen.rose("cgroup", path, "memory_oom_kill") or 0 for path in seen.span.names("cgroup")}
    # A group counts the kills below it, too: the deepest is meant.
    path = max((one for one in groups if groups[one]), key=len, default=None)
    if not killed and path is None and not named:
        return
    # Where the group has ended with its process, the kernel's log still names it.
    path = path or (named[-1].get("cgroup") if named and killed in (None, len(named)) else None)
    unit = unit_of_cgroup(path) if path else None
    victims = [f"{one['process']} ({one['pid']})" for one in named]
    count = killed or len(named) or groups[path or ""]
    limit = seen.level("cgroup", path, "memory_max_bytes") if path else None
    yield out_of_memory.bind(
        seen.stall("memory") or 0.0,
        f"The kernel killed {victims[0] if victims and count == 1 else count_noun(count, 'process')}: "
        f"memory of {unit or path or 'this host'} is used up",
        evidence={
            "killed": count,
            "processes": ", ".join(victims[-5:]) or None,
            "cgroup": path or "none",
            "limit_bytes": limit if limit is not None else "none",
            "stalled_share": seen.stall("memory") or 0.0,
        },
        advice="More memory, a larger limit of the service (MemoryMax=), or smaller caches, pools and huge pages.",
        commands=("journalctl -k --grep 'Out of memory|oom-kill'",),
        asks=Asker(unit, victims[-1] if victims else None, None) if unit or victims else None,
        help="tuning" if limit is not None else None,
    )


def _list_killed(seen: Observation) -> list[Mapping[str, str]]:
    """What the kernel's log says about kills in the span, oldest first; nothing where it was not read before."""
    first, last = seen.span.samples[0], seen.span.samples[-1]
    if "kill" in first.missing:
        return []
    before = first.words.get("kill", {})
    return [words for number, words in last.words.get("kill", {}).items() if number not in before]


@cause(
    id="memory.swap",
    resource="memory",
    help="hardware",
    what="Pages that are read back from swap, and the time in which tasks waited for memory.",
    threshold="20 pages a second, with tasks that wait 10 % of the time for memory, or for storage of which a "
    "quarter of the reads is swap",
    sources=(_VMSTAT, _PSI),
    # Who faults pages in uses its CPU for that, and takes them from wherever there is room.
    explains=("memory.pressure", "memory.remote-node", "application.serial", "application.single-thread"),
)
def swap(seen: Observation) -> Iterator[BindingCause]:
    back, out = _vm(seen, "pswpin"), _vm(seen, "pswpout")
    if back is None or back < SWAPPED_FROM:
        return
    read = sum(one.read_bytes_per_s or 0.0 for name, one in seen.disks.items() if name in seen.loads)
    # Where most of what is read is no swap, tasks wait for that.
    waits = (seen.stall("memory"), seen.stall("io") if 4 * back * PAGE_BYTES >= read else None)
    stalls = [one for one in waits if one is not None]
    devices = [name for name, one in seen.stack.devices.items() if one.swap]
    # Without PSI the time in which the device of the swap was busy; of a file, or where it did nothing, a guess.
    busy_shares = (seen.loads[name].utilisation for name in devices if name in seen.loads)
    guess = max(busy_shares, default=0.5) if 4 * back * PAGE_BYTES >= read else 0.0
    share = max(stalls, default=guess if seen.stall("io") is None else 0.0)
    if share < BINDS_FROM:
        return
    swapped = (back + (out or 0.0)) * PAGE_BYTES
    busy = [name for name in devices if name in seen.loads and seen.loads[name].bytes_per_s <= 2 * swapped]
    yield swap.bind(
        share,
        f"{back:.0f} pages a second are read back from swap: memory is too small for what runs",
        evidence={
            "pages_in_per_s": back,
            "pages_out_per_s": out,
            "stalled_share": share,
            "swap_devices": ", ".join(devices) or "a file",
        },
        advice="More memory or fewer programs; limit the one that grew (MemoryHigh=).",
        commands=("systemd-cgtop --iterations=1 --order=memory",),
        asks=asks_memory(seen),
        explains=(
            *(f"{cause} {name}" for name in busy for cause in ("disk.saturated", "disk.slow")),
            *_follow_reclaim(seen),
        ),
    )


@cause(
    id="memory.cgroup-limit",
    resource="memory",
    help="tuning",
    what="How often a control group reached memory.high or memory.max, and how long its tasks waited for it.",
    threshold="its tasks wait 10 % of the time, or (version 1) 100 failed attempts a second",
    sources=(_CGROUP,),
    explains=("memory.pressure", "memory.swap"),
)
def cgroup_limit(seen: Observation) -> Iterator[BindingCause]:
    """A service that reaches the limit of its own memory."""
    seconds = seen.span.seconds_of("cgroup")
    for path in seen.span.names("cgroup"):
        reached = sum(seen.rose("cgroup", path, field) or 0 for field in ("memory_high", "memory_max"))
        stalled = seen.rose("cgroup", path, "memory_some_us")
        limit = _memory_limit(seen, path)
        if not reached or not seconds or limit is None:
            continue
        if stalled is not None:
            share: float | None = stalled / (seconds * 1e6)
        elif reached / seconds >= _FAILED_FROM:
            # Version 1 does not count how long a group waits: no longer than some task of the host, where that is.
            share = seen.stall("memory")
        else:
            continue
        if share is not None and share < BINDS_FROM:
            continue
        yield cgroup_limit.bind(
            share or 0.0,
            f"{name_group(path)} has reached the memory limit of its control group",
            evidence={
                "cgroup": path,
                "limit_bytes": limit,
                "times_reached": reached,
                "stalled_share": None if stalled is None else share,
            },
            advice="Raise MemoryHigh= or MemoryMax= of the service, or give it smaller caches.",
            commands=_memory_limit_command(seen, path),
            asks=asks_group(seen, path, "cpu_ms"),
        )


def _memory_limit(seen: Observation, path: str) -> float | None:
    """Bytes of a group's memory from which it is held up: the smaller of memory.high and memory.max."""
    limits = (seen.level("cgroup", path, f"memory_{name}_bytes") for name in ("high", "max"))
    return min((one for one in limits if one is not None), default=None)


def _memory_limit_command(seen: Observation, path: str) -> tuple[str, ...]:
    """Shows that limit."""
    is_high = seen.level("cgroup", path, "memory_high_bytes") == _memory_limit(seen, path)
    return limit_command(
        seen,
        path,
        "MemoryHigh,MemoryMax",
        file="memory.high" if is_high else "memory.max",
        controller="memory",
        file_v1="memory.limit_in_bytes",
    )


@cause(
    id="memory.pressure",
    resource="memory",
    help="hardware",
    what="The time in which tasks waited for memory; without PSI how often they had to free it themselves.",
    threshold="10 % of the time; without PSI 100 direct reclaims a second, or 1,000 pages that are read again, which "
    "are half of what is read, with tasks that wait 10 % of the time for storage",
    sources=(_PSI, _VMSTAT),
)
def pressure(seen: Observation) -> Iterator[BindingCause]:
    stall = seen.stall("memory")
    reclaims = _vm(seen, "allocstall") or 0.0
    total, available = (seen.level("memory", "host", name) for name in ("MemTotal", "MemAvailable"))
    refaults = _vm(seen, "workingset_refault_file", "workingset_refault_anon", "workingset_refault") or 0.0
    read = sum(one.bytes_per_s for one in seen.loads.values() if not seen.stack.members(one.name))
    thrashes = refaults * PAGE_BYTES >= read / 2 and refaults > SWAPPED_FROM
    # Without PSI: kswapd may free it all, and who waits then waits for the pages that are read again.
    reads_again = thrashes and refaults >= REFAULTS_FROM and waited_share(seen) >= BINDS_FROM
    if (stall is not None and stall < BINDS_FROM) or (stall is None and reclaims < 100 and not reads_again):
        return
    yield pressure.bind(
        stall if stall is not None else 0.5 if reclaims >= 100 else waited_share(seen),
        "Tasks wait for free memory",
        evidence={
            "stalled_share": stall,
            "direct_reclaims_per_s": reclaims,
            "refaults_per_s": refaults,
            "available_bytes": available,
            "total_bytes": total,
        },
        advice="More memory, or a limit for the program that grew; files that are read again and again no longer fit.",
        commands=("systemd-cgtop --iterations=1 --order=memory", "advisor scan"),
        asks=asks_memory(seen),
        explains=(
            *_follow_reclaim(seen),
            *(
                (
                    "application.serial",
                    *(f"{cause} {name}" for name in seen.loads for cause in ("disk.saturated", "disk.slow")),
                )
                if thrashes
                else ()
            ),
        ),
    )


COMPACTIONS_FROM = 100
"""A second, as direct reclaims."""
FAILING_FROM = 500
"""A second, where nobody counts how long tasks wait."""


@cause(
    id="memory.compaction",
    resource="memory",
    help="tuning",
    what="How often tasks had to join free pages by themselves for an allocation in one piece, such as a huge page, "
    "while memory is free.",
    threshold="100 a second, more than direct reclaims, with a tenth of the memory available, and tasks waiting 10 % "
    "of the time for memory; without PSI 500 a second that fail, and 10 % of the CPU time in the kernel",
    sources=("Linux kernel documentation, admin-guide/mm/transhuge (defrag, compact_stall)", _PSI, _VMSTAT),
    explains=("memory.pressure",),
)
def compaction(seen: Observation) -> Iterator[BindingCause]:
    """Memory that is free in pieces too small for what is asked for."""
    stalls, failed = _vm(seen, "compact_stall") or 0.0, _vm(seen, "compact_fail") or 0.0
    reclaims = _vm(seen, "allocstall") or 0.0
    total, available = (seen.level("memory", "host", name) for name in ("MemTotal", "MemAvailable"))
    if stalls < COMPACTIONS_FROM or stalls <= reclaims or (total and available is not None and available < total / 10):
        return
    whole, waits = seen.cpus.get("all"), seen.stall("memory")
    in_kernel = (whole.system or 0.0) if whole is not None and failed >= FAILING_FROM else 0.0
    share = in_kernel if waits is None else waits
    if share < BINDS_FROM:
        return
    defrag = seen.facts.memory.thp_defrag
    yield compaction.bind(
        share,
        f"Tasks join free pages {stalls:.0f} times a second before they go on: memory is free in small pieces alone",
        of="time" if waits is not None else "CPU time",
        evidence={
            "compactions_per_s": stalls,
            "failed_per_s": failed,
            "direct_reclaims_per_s": reclaims,
            "huge_pages_without_per_s": _vm(seen, "thp_fault_fallback"),
            "stalled_share": waits,
            "thp_defrag": defrag or None,
            "available_bytes": available,
        },
        advice="Huge pages without waiting for them (transparent_hugepage/defrag: defer+madvise or madvise); more free "
        "memory in reserve (vm.min_free_kbytes) for other allocations in one piece.",
        commands=(
            *(("advisor plan thp:defrag=madvise",) if defrag not in ("madvise", "never", "defer+madvise") else ()),
            "cat /proc/buddyinfo",
        ),
        asks=asks_memory(seen),
        explains=_follow_reclaim(seen),
    )


COMMITTED_FROM = 0.95


@cause(
    id="memory.commit-limit",
    resource="memory",
    help="tuning",
    what="Memory that programs were promised (Committed_AS) against the most (CommitLimit), where vm.overcommit_memory "
    "is 2.",
    threshold="95 % at the end of the span",
    sources=("Linux kernel documentation, mm/overcommit-accounting", "proc_meminfo(5)"),
)
def commit_limit(seen: Observation) -> Iterator[BindingCause]:
    """Allocations and fork() fail although memory is free: the kernel promises no more than it has."""
    promised, most = (seen.level("memory", "host", name) for name in ("Committed_AS", "CommitLimit"))
    if seen.facts.sysctl.get("vm.overcommit_memory") != "2" or not promised or not most:
        return
    if promised < COMMITTED_FROM * most:
        return
    yield commit_limit.bind(
        promised / most,
        f"{percent(promised / most)} of the memory that the kernel promises to programs is promised: allocations fail",
        of="limit",
        evidence={
            "committed_bytes": promised,
            "limit_bytes": most,
            "available_bytes": seen.level("memory", "host", "MemAvailable"),
        },
        advice="More swap or a larger vm.overcommit_ratio raises the limit; programs may reserve less.",
        commands=("sysctl vm.overcommit_memory vm.overcommit_ratio vm.overcommit_kbytes",),
    )


@cause(
    id="memory.dirty-limit",
    resource="memory",
    help="tuning",
    what="Dirty pages and pages under writeback, of the host and of control groups, against vm.dirty_ratio and "
    "vm.dirty_background_ratio.",
    threshold="at or above the middle of both limits, where the kernel makes writers wait, in half of the samples, "
    "with tasks that wait 10 % of the time for storage; of a control group with a limit of its memory the same "
    "shares of what it may hold, at the end of the span",
    sources=("Linux mm/page-writeback.c, balance_dirty_pages", "Linux kernel documentation, admin-guide/sysctl/vm"),
    explains=("application.serial",),
)
def dirty_limit(seen: Observation) -> Iterator[BindingCause]:
    yield from _at_limits_of_groups(seen)
    names = ("nr_dirty", "nr_writeback", "nr_dirty_threshold", "nr_dirty_background_threshold")
    columns = [seen.span.levels("vm", "host", name) for name in names]
    if not all(columns) or len({len(column) for column in columns}) > 1:
        return
    rows = list(zip(*columns, strict=True))
    # Writers run freely up to here (dirty_freerun_ceiling).
    held = [dirty + written >= (most + background) / 2 for dirty, written, most, background in rows]
    stall = seen.stall("io")
    share = sum(held) / len(held)
    if share < 0.5 or not rows[-1][2] or (stall is not None and stall < BINDS_FROM):
        return
    dirty, written, most, background = rows[-1]
    yield dirty_limit.bind(
        min(share, stall if stall is not None else share),
        "Writers wait: as many pages are dirty as vm.dirty_ratio or vm.dirty_bytes admits",
        evidence={
            "dirty_bytes": dirty * PAGE_BYTES,
            "writeback_bytes": written * PAGE_BYTES,
            "limit_bytes": most * PAGE_BYTES,
            "background_bytes": background * PAGE_BYTES,
            "held_share": share,
        },
        advice="Where the limit is small, raise it; where the device is slow, a larger limit only delays the wait.",
        commands=("sysctl vm.dirty_ratio vm.dirty_bytes vm.dirty_background_ratio vm.dirty_background_bytes",),
        asks=asks_storage(seen),
    )


def _at_limits_of_groups(seen: Observation) -> Iterator[BindingCause]:
    """Groups whose writers wait for as many dirty pages as vm.dirty_ratio is of what the group may hold: its files and
    the room below its limit (mdtc_calc_avail, domain_dirty_limits)."""
    ratios = [count_of(seen.facts.sysctl.get(f"vm.dirty_{name}")) for name in ("ratio", "background_ratio")]
    limit_share, background_share = ratios[0] or 0, ratios[1] or 0
    for path in seen.span.names("cgroup"):
        files, dirty, written, used = (
            seen.level("cgroup", path, f"memory_{name}_bytes") for name in ("file", "dirty", "writeback", "current")
        )
        most = _memory_limit(seen, path)
        stall = stalled_share(seen, path)
        if not limit_share or files is None or dirty is None or most is None or stall is None or stall < BINDS_FROM:
            continue
        under_way, room = dirty + (written or 0), files + max(0.0, most - (used or 0))
        if not under_way or under_way < room * (limit_share + background_share) / 200:
            continue
        yield dirty_limit.bind(
            stall,
            f"{name_group(path)} waits: as many of its pages are dirty as the limit of its memory admits",
            evidence={
                "cgroup": path,
                "dirty_bytes": dirty,
                "writeback_bytes": written,
                "files_and_room_bytes": room,
                "limit_bytes": most,
                "stalled_share": stall,
            },
            advice="Raise MemoryHigh= or MemoryMax= of the service: vm.dirty_ratio counts of what it may hold. Or "
            "write past the page cache.",
            commands=_memory_limit_command(seen, path),
            asks=asks_group(seen, path, "write_bytes"),
        )


@cause(
    id="memory.remote-node",
    resource="memory",
    help="tuning",
    what="Pages that were allocated on another NUMA node than was wanted; without those that a policy spreads.",
    threshold="10 % of all allocations, and 1,000 a second",
    sources=("Linux kernel documentation, admin-guide/numastat",),
)
def remote_node(seen: Observation) -> Iterator[BindingCause]:
    nodes = seen.span.names("node")
    if len(nodes) < 2:
        return
    totals = {
        field: sum(seen.rose("node", node, field) or 0 for node in nodes)
        for field in ("numa_hit", "numa_miss", "local_node", "other_node", "interleave_hit")
    }
    # What a policy spreads over the nodes (numactl --interleave) is on another one by intent.
    elsewhere = max(totals["numa_miss"], totals["other_node"] - totals["interleave_hit"])
    every = totals["numa_hit"] + totals["numa_miss"]
    if every and elsewhere / every >= BINDS_FROM and elsewhere / seen.span.seconds_of("node") >= 1000:
        yield remote_node.bind(
            elsewhere / every,
            f"{percent(elsewhere / every)} of the pages come from another NUMA node",
            of="allocations",
            evidence=totals,
            advice="Bind the services to the node of their devices, or spread memory evenly.",
            commands=("advisor plan numa-pinning", "numastat"),
        )


@cause(
    id="memory.arc-throttled",
    resource="memory",
    help="tuning",
    what="How often ZFS made writers wait since memory for its cache (ARC) was short: memory_throttle_count.",
    threshold="once a second",
    sources=("netdata/netdata src/health/health.d/zfs.conf", "OpenZFS module/zfs/arc.c, arc_memory_throttle"),
)
def arc_throttled(seen: Observation) -> Iterator[BindingCause]:
    often = seen.per_second("arc", "host", "memory_throttle_count")
    if often is None or often < 1:
        return
    stall = seen.stall("io")
    yield arc_throttled.bind(
        max(BINDS_FROM, stall if stall is not None else 0.5),
        f"ZFS holds writers up {often:.0f} times a second: memory for its cache is short",
        evidence={
            "throttles_per_s": often,
            **{f"arc_{name}_bytes": seen.level("arc", "host", name) for name in ("size", "c_max")},
            "available_bytes": seen.level("memory", "host", "MemAvailable"),
        },
        advice="Bound the cache (zfs_arc_max) so that programs and it fit into memory, or add memory.",
        commands=("cat /sys/module/zfs/parameters/zfs_arc_max", "cat /proc/spl/kstat/zfs/arcstats"),
        asks=asks_storage(seen),
        explains=("application.serial",),
    )
