"""What is nearly used up or unevenly there: file handles, AIO contexts, memory of nodes; and memory that errs."""

from __future__ import annotations

import re

from advisor.rules import sources
from advisor.rules.queries import is_virtual_machine, sysctl_number
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, rule, set_sysctl

ORDER = 117

_NEARLY = 0.8
_UNEVEN = 0.08
_LEAST_AIO = 1_048_576


@rule(
    id="limits.aio-contexts",
    severity="warning",
    title="Asynchronous I/O contexts are nearly used up",
    what="fs.aio-nr against fs.aio-max-nr: from 80 % on.",
    why="io_setup fails with EAGAIN once aio-nr would exceed aio-max-nr: a database does not start, or falls back to "
    "slow I/O.",
    helps_when="Databases with a context for each thread and disk share the host.",
    hurts_when="The contexts are a leak of one program: a higher limit only hides it.",
    sources=(sources.SYSCTL_FS, sources.SCYLLA_AIO),
)
def aio_contexts(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    used, most = (sysctl_number(facts, f"fs.aio-{name}") for name in ("nr", "max-nr"))
    if not used or not most or used < _NEARLY * most:
        return None
    return aio_contexts.found(
        why=f"{used:,} of {most:,} are in use: the next program that asks for its own may fail.",
        evidence={"fs.aio-nr": used, "fs.aio-max-nr": most},
        remedy=set_sysctl("fs.aio-max-nr", max(_LEAST_AIO, 2 * most), "at-least"),
    )


@rule(
    id="limits.file-handles",
    severity="warning",
    title="The file handles of the host are nearly used up",
    what="The first number of fs.file-nr against fs.file-max: from 80 % on.",
    why="At the limit open() fails with ENFILE for every process but root's.",
    helps_when="Many connections and files are open at once.",
    hurts_when="One program leaks handles: find it first (lsof), or the higher limit is reached as well.",
    sources=(sources.SYSCTL_FS, sources.PCP_FILES),
)
def file_handles(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    used, most = facts.counters.file_handles, sysctl_number(facts, "fs.file-max")
    # More handles than the limit allows but to root: not believed.
    if not used or not most or not _NEARLY * most <= used <= 2 * most:
        return None
    return file_handles.found(
        why=f"{used:,} of {most:,} are in use.",
        evidence={"file_handles": used, "fs.file-max": most},
        remedy=set_sysctl("fs.file-max", 2 * most, "at-least"),
    )


@rule(
    id="numa.memory-uneven",
    severity="advice",
    title="NUMA nodes have unequal memory",
    what="MemTotal of the nodes that have CPUs and memory: more than 8 % apart. Not of virtual machines, and not "
    "where a tier of memory has a node without CPUs.",
    why="Channels of the smaller node are empty, or a module has failed: its bandwidth is lower, and what does not fit "
    "there is on the other node.",
    helps_when="Memory was meant to be the same, as on nearly every server.",
    hurts_when="One node was given more on purpose, or huge pages and firmware took their share of one node.",
    sources=(sources.WEKA_NODES,),
    seen_live=False,
)
def memory_uneven(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    sizes = {node.id: node.memory_bytes for node in facts.numa.nodes if node.cpus and node.memory_bytes}
    is_tiered = any(node.cpus == "" and node.memory_bytes for node in facts.numa.nodes)
    if len(sizes) < 2 or is_tiered or is_virtual_machine(facts):
        return None
    if max(sizes.values()) - min(sizes.values()) <= _UNEVEN * max(sizes.values()):
        return None
    return memory_uneven.found(
        why="The nodes are not alike, so neither are services that are bound to them.",
        evidence={"detail": tuple(f"node {node}: {size / (1 << 30):.1f} GiB" for node, size in sorted(sizes.items()))},
        remedy=(
            RunShell("dmidecode --type memory", "see which slots hold modules, and at which speed they run"),
            "populate the channels of all sockets alike; look for a module that the firmware has disabled",
        ),
    )


@rule(
    id="memory.corrected-errors",
    severity="info",
    title="ECC has corrected errors of memory",
    what="ce_count of all memory controllers (EDAC) since the driver was loaded.",
    why="A single corrected error is harmless. Many, or more with each scan, come from a module that is failing.",
    helps_when="The count grows: compare with an earlier scan (advisor scan --since).",
    hurts_when="The host has run for years: one error a month is within what modules have.",
    sources=(sources.EDAC, sources.NETDATA_MEMORY),
    seen_live=False,
)
def corrected_errors(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    count = facts.memory.corrected_errors
    if not count:
        return None
    return corrected_errors.found(
        why="Nothing was lost. Whether the count grows is what matters.",
        evidence={"corrected_errors": count},
        remedy=RunShell("grep . /sys/devices/system/edac/mc/mc*/ce_count", "see which memory controller counts"),
    )


@rule(
    id="memory.pages-lost",
    severity="warning",
    title="Memory pages were retired after hardware errors",
    what="HardwareCorrupted of /proc/meminfo.",
    why="The kernel no longer uses a page whose content was lost, and has killed who needed it.",
    helps_when="Always: the module has lost data once, and will again.",
    hurts_when="Pages were poisoned on purpose, as tests of the kernel do (hwpoison).",
    sources=(sources.NETDATA_MEMORY,),
    seen_live=False,
)
def pages_lost(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    size = facts.memory.poisoned_bytes
    # More than all of the memory cannot be.
    if not size or (facts.memory.total_bytes is not None and size > facts.memory.total_bytes):
        return None
    return pages_lost.found(
        why=f"{size >> 10:,} KiB are out of use.",
        evidence={"poisoned_bytes": size},
        remedy=(
            RunShell("journalctl -k --grep 'hardware memory error|Memory failure'", "see when, and which module"),
            "replace that module",
        ),
    )


@rule(
    id="memory.modules-slow",
    severity="advice",
    title="Memory modules run below their speed",
    what="Configured against rated speed of each module (dmidecode, as root; not of virtual machines).",
    why="Bandwidth follows the speed of the slowest module of a channel: two modules on one channel, a mix, or the "
    "firmware.",
    helps_when="Hosts that move much data through memory: software RAID, RDMA, analytics.",
    hurts_when="The processor takes no more, or two modules for each channel were chosen for their size.",
    sources=(sources.PERFSPECT_MEMORY, sources.DMI),
    seen_live=False,
)
def modules_slow(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    slow = {
        one.slot: f"{one.slot}: {one.configured_mt_s} of {one.rated_mt_s} MT/s"
        for one in facts.memory_modules
        if one.size_bytes and one.rated_mt_s and one.configured_mt_s and one.configured_mt_s < one.rated_mt_s
    }
    if not slow:
        return None
    return modules_slow.found(
        why="The processor's own limit is in its data sheet.",
        evidence={"slots": tuple(slow), "detail": tuple(slow.values())[:8]},
        remedy="look into the firmware's memory settings, and into its rules for two modules on a channel",
    )


@rule(
    id="memory.channels-uneven",
    severity="advice",
    title="Memory channels are populated unevenly",
    what="Modules of each socket by size (dmidecode, as root; not of virtual machines).",
    why="Addresses are interleaved over channels that are alike: one more or a larger module is a region of its own, "
    "slower.",
    helps_when="Servers of several sockets or channels: the same modules on each.",
    hurts_when="The vendor's manual names this population as a balanced one.",
    sources=(sources.PERFSPECT_MEMORY, sources.DMI),
    seen_live=False,
)
def channels_uneven(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    used = [one for one in facts.memory_modules if one.size_bytes]
    sockets: dict[str, list[int]] = {}
    for one in used:
        # CPU1_DIMM_A1, P0_Node1_Channel2, A1 and B1: the first number or letter names the socket.
        named = re.search(r"(?:CPU|P|PROC|NODE|SOCKET)[ _]?([0-9]{1,2})", f"{one.slot} {one.bank}", re.IGNORECASE)
        sockets.setdefault(named[1] if named else "", []).append(one.size_bytes)
    sizes = {size for each in sockets.values() for size in each}
    counts = {len(each) for each in sockets.values()}
    if not used or (len(sizes) < 2 and len(counts) < 2):
        return None
    return channels_uneven.found(
        why="Where modules differ, so does the bandwidth of addresses.",
        evidence={
            "detail": tuple(
                f"socket {name or 'unknown'}: {len(each)} modules, {sum(each) / (1 << 30):.0f} GiB"
                for name, each in sorted(sockets.items())
            ),
            "sizes": tuple(f"{size / (1 << 30):.0f} GiB" for size in sorted(sizes)),
        },
        remedy=(
            RunShell("dmidecode --type 17", "see each slot"),
            "populate all channels of all sockets with the same modules, in the order of the board's manual",
        ),
    )
