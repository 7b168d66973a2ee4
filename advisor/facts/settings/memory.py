"""Keys below vm: reclaim, dirty pages, huge pages, what may be promised."""

from __future__ import annotations

from typing import Final

from advisor.facts.settings import sources
from advisor.facts.settings.record import Caution, InUse, Least, Machine, MemoryShare, Setting

_RESERVE_SHARE: Final = 0.03
# For huge pages the kernel itself keeps up to a twentieth of the memory free, and no more than this in KiB: 22,528 for
# each of twelve zones (mm/khugepaged.c, set_recommended_min_free_kbytes).
_OWN_RESERVE: Final = 0.05
_OWN_RESERVE_KB: Final = 270_336


def _largest_reserve(machine: Machine) -> int:
    """The most that may be kept free, in KiB: 3 % of the memory, and what the kernel keeps by itself."""
    kib = (machine.memory_bytes or 0) // 1024
    return max(int(kib * _RESERVE_SHARE), min(int(kib * _OWN_RESERVE), _OWN_RESERVE_KB))


_SWAPPINESS_ZERO = Caution(
    id="advice.swappiness-zero",
    title="vm.swappiness is 0",
    when="0",
    why="Nothing is swapped until free memory and page cache together are below a zone's high mark, and then the "
    "out-of-memory killer may be first.",
    instead="1 to 10 keeps programs in memory without that risk",
    better="10",
    helps_when="There is swap, and the host now and then needs more memory than it has.",
    hurts_when="A program must never wait for swap and would rather be killed.",
    sources=(sources.VM,),
    is_bad=lambda value, _: value.first == 0,
)
_CACHE_PRESSURE_ZERO = Caution(
    id="advice.cache-pressure-zero",
    title="vm.vfs_cache_pressure is 0",
    when="0",
    why="The kernel then never frees dentries and inodes, which can end in a lack of memory.",
    instead="50 already favours metadata",
    better="50",
    helps_when="Always.",
    hurts_when="Never: 50 already favours metadata.",
    sources=(sources.VM, sources.DELL_BEEGFS),
    severity="warning",
    is_bad=lambda value, _: value.first == 0,
)
_MIN_FREE_LARGE = Caution(
    id="advice.min-free-large",
    title="Over 3 % of the memory is kept free",
    when="above 3 % of the memory of the host, or what the kernel keeps free for huge pages by itself",
    why="What is kept free can be used by nobody else; the kernel's documentation warns that too much of it makes the "
    "machine run out of memory at once.",
    instead="keep 3 % of the memory at most",
    better=lambda _, machine: f"<={_largest_reserve(machine)}",
    helps_when="The number was copied from a larger host.",
    hurts_when="Allocations in interrupts fail in bursts (allocstall in /proc/vmstat): then it may be needed.",
    sources=(sources.VM,),
    severity="warning",
    is_bad=lambda value, machine: machine.memory_bytes is not None and value.first > _largest_reserve(machine),
)
_DIRTY_RATIO_HIGH = Caution(
    id="advice.dirty-ratio-high",
    title="vm.dirty_ratio is 75 or more",
    when="75 and more",
    why="When it is written at last it takes minutes, during which writers are blocked; a power cut loses it all. "
    "Vendors disagree: NetApp sets 75 with a background ratio of 1, TuneD's mssql 80, BeeGFS and Dell 20.",
    instead="20 is the kernel's own; in bytes (vm.dirty_bytes) it can be what the disks write in seconds",
    better="<=20",
    helps_when="Memory is large against the speed of the disks.",
    hurts_when="Writes come in bursts that fit into memory, and a power cut may lose them.",
    sources=(sources.VM, sources.TUNED_MSSQL, sources.NETAPP_BEEGFS, sources.BEEGFS_STORAGE),
    contradictions=("contradiction.dirty-ratios",),
    is_bad=lambda value, _: value.first >= 75,
)
_ZONE_RECLAIM = Caution(
    id="advice.zone-reclaim",
    title="vm.zone_reclaim_mode is switched on",
    when="anything but 0, unless every storage service is bound to a node",
    why="A node then drops its own page cache before it uses free memory of another. The kernel's documentation says "
    "to leave it off on file servers; BeeGFS and NetApp set 1, Dell 2.",
    instead="0, unless every service is bound to one node",
    better="0",
    helps_when="The page cache matters more than its place.",
    hurts_when="Services are bound to their node, one for each, as on Dell's servers: then remote memory may cost "
    "more.",
    sources=(sources.VM, sources.BEEGFS_STORAGE, sources.DELL_BEEGFS, sources.NETAPP_BEEGFS),
    contradictions=("contradiction.zone-reclaim-mode",),
    is_bad=lambda value, machine: value.first != 0 and not machine.binds_services,
)

_MM: Final = "kernel/sysctl.c"
_DOC: Final = "admin-guide/sysctl/vm"
_VM: Final = "Documentation/admin-guide/sysctl/vm.rst"
_HIGHER_DIRTY = "More dirty memory means longer stalls when it is written out, and more lost at a crash."
_LOWER_DIRTY = "Writers wait earlier, and the disk gets smaller pieces."
_DIRTY: Final = MemoryShare(1, 0.5, 0.8, "may be dirty before anything is written", _DOC)


def _dirty(name: str, twin: str, does: str, *cautions: Caution, default: str, low: int = 0, **vendors: str) -> Setting:
    is_bytes = name.endswith("_bytes")
    return Setting(
        f"vm.{name}",
        does,
        "bytes" if is_bytes else "percent of the memory that is free or page cache",
        holds="unsigned" if is_bytes else "integers",
        low=low,
        high=None if is_bytes else 100,
        bounds_source=f"{_VM}: two pages" if low else _VM,
        default=default,
        twin=f"vm.{twin}",
        is_slow=True,
        is_shown=True,
        shown_by="nr_dirty, nr_dirty_threshold of /proc/vmstat",
        lower_hurts=_LOWER_DIRTY,
        higher_hurts=_HIGHER_DIRTY,
        share=_DIRTY if is_bytes else None,
        not_above=f"vm.{name.replace('background_', '')}" if "background" in name else "",
        is_below=True,
        otherwise="the kernel takes half of the writers' limit in its place (mm/page-writeback.c)",
        vendors=vendors,
        cautions=cautions,
    )


_WRITERS = "How much may be dirty before a program that writes has to write it out itself."
_BACKGROUND = "How much may be dirty before the kernel writes it out in the background."

SCANNED: Final = (
    _dirty("dirty_ratio", "dirty_bytes", _WRITERS, _DIRTY_RATIO_HIGH, default="20", iris="<=10", beegfs="20"),
    _dirty("dirty_background_ratio", "dirty_background_bytes", _BACKGROUND, default="10", iris="<=5", beegfs="5"),
    _dirty("dirty_bytes", "dirty_ratio", _WRITERS, default="0: the ratio counts", low=8192),
    _dirty("dirty_background_bytes", "dirty_background_ratio", _BACKGROUND, default="0: the ratio counts"),
    *(
        Setting(
            f"vm.dirty_{name}_centisecs",
            does,
            "hundredths of a second",
            low=0 if name == "expire" else None,
            bounds_source="mm/page-writeback.c",
            default=default,
            is_slow=True,
            lower_hurts="What is written earlier may be written several times.",
            higher_hurts="What is written later is lost at a crash.",
        )
        for name, does, default in (
            ("expire", "The age from which dirty memory is written out.", "3000"),
            ("writeback", "How often the kernel looks for dirty memory that is old enough.", "500"),
        )
    ),
    Setting(
        "vm.min_free_kbytes",
        "Memory that is kept free, for those that cannot wait for it to be reclaimed.",
        "KiB",
        low=0,
        bounds_source=_MM,
        derived_from="memory: 4 × the square root of its KiB, and more for huge pages",
        grows=True,
        is_slow=True,
        is_shown=True,
        shown_by="allocstall, pgsteal_direct of /proc/vmstat",
        lower_hurts="Allocations in interrupts fail, and tasks reclaim memory themselves.",
        higher_hurts="Nobody can use what is kept free; far too much ends in a lack of memory at once.",
        share=MemoryShare(
            *(1024, 0.02, 0.05, "would be kept free of every program"),
            f"{_DOC}; Red Hat: 5 to 10 % end programs at once",
        ),
        derives=lambda value, machine: not _MIN_FREE_LARGE.is_bad(value, machine),
        vendors={"beegfs": ">=262144"},
        least=Least(1024, f"the kernel breaks down under load ({_DOC})"),
        cautions=(_MIN_FREE_LARGE,),
    ),
    Setting(
        "vm.watermark_scale_factor",
        "The distance between the marks at which reclaim begins and ends.",
        "ten-thousandths of the memory",
        low=1,
        high=3000,
        bounds_source=_VM,
        default="10",
        is_slow=True,
        shown_by="allocstall of /proc/vmstat",
        lower_hurts="Reclaim begins late, and tasks wait for it.",
        higher_hurts="More memory stays free and serves nobody.",
    ),
    Setting(
        "vm.vfs_cache_pressure",
        "How readily names and inodes are dropped, against pages of files.",
        "percent",
        default="100",
        is_slow=True,
        is_shown=True,
        shown_by="dentry and inode caches of /proc/slabinfo",
        lower_hurts="Pages of files are dropped first, and read again.",
        higher_hurts="Names and inodes are read again and again.",
        vendors={"beegfs": "50"},
        cautions=(_CACHE_PRESSURE_ZERO,),
    ),
    Setting(
        "vm.swappiness",
        "How readily programs' memory is swapped out, against dropping pages of files.",
        "weight",
        low=0,
        high=200,
        bounds_source=_VM,
        default="60",
        is_slow=True,
        is_shown=True,
        shown_by="pswpin, pswpout of /proc/vmstat",
        lower_hurts="File pages that are read again and again are dropped.",
        higher_hurts="Programs that wait are swapped out.",
        vendors={"iris": "<=10"},
        cautions=(_SWAPPINESS_ZERO,),
    ),
    Setting(
        "vm.zone_reclaim_mode",
        "Whether a node reclaims its own memory before it takes another's: 1, with 2 dirty and 4 mapped pages too.",
        "bits",
        default="0",
        is_slow=True,
        is_shown=True,
        shown_by="zone_reclaim_success of /proc/vmstat",
        higher_hurts="A node drops its page cache while another has free memory.",
        cautions=(_ZONE_RECLAIM,),
    ),
    Setting(
        "vm.nr_hugepages",
        "Huge pages of the default size that are set aside.",
        "pages of Hugepagesize",
        holds="unsigned",
        default="0",
        grows=True,
        is_pool=True,
        is_slow=True,
        is_shown=True,
        shown_by="HugePages_Free of /proc/meminfo",
        lower_hurts="Databases that lack their pages take ordinary ones, or do not start.",
        higher_hurts="What is set aside serves neither other programs nor the page cache.",
        sources=(sources.HUGETLB,),
    ),
    Setting(
        "vm.nr_overcommit_hugepages",
        "Huge pages that may be made beyond those set aside, when they are asked for.",
        "pages of Hugepagesize",
        holds="unsigned",
        default="0",
        grows=True,
        is_slow=True,
        lower_hurts="Programs that ask for more than is set aside are refused.",
        higher_hurts="Huge pages that programs ask for may leave nothing to others.",
        share=MemoryShare(-1, 0.5, 1.0, "may become huge pages", "admin-guide/mm/hugetlbpage"),
        sources=(sources.HUGETLB,),
    ),
    Setting(
        "vm.overcommit_memory",
        "Whether more memory may be promised than there is: 0 a guess, 1 always, 2 never.",
        "mode",
        low=0,
        high=2,
        bounds_source=_VM,
        default="0",
        shown_by="Committed_AS, CommitLimit of /proc/meminfo",
        lower_hurts="A program that forks with much memory (Redis) may be refused.",
        higher_hurts="1: programs are killed where they would have been refused. 2: programs are refused while memory "
        "is free.",
    ),
    Setting(
        "vm.overcommit_ratio",
        "With overcommit_memory 2, the part of the memory that may be promised beside swap.",
        "percent",
        default="50",
        twin="vm.overcommit_kbytes",
        shown_by="CommitLimit of /proc/meminfo",
        lower_hurts="Programs are refused while memory is free.",
        higher_hurts="More is promised than there is.",
    ),
    Setting(
        "vm.max_map_count",
        "The most mappings that one process may have.",
        "mappings",
        low=0,
        bounds_source=_MM,
        default="65530",
        grows=True,
        shown_by="lines of /proc/PID/maps",
        lower_hurts="Databases and Java programs fail when they map one more file.",
        least=Least(8192, "programs with many libraries or threads end when they map one more file"),
        in_use=InUse("/proc/*/maps", r"(?m)^([0-9a-f]+)-", "mappings of one process", "count"),
        higher_hurts="A program that leaks mappings takes more of the kernel's memory.",
    ),
    Setting(
        "vm.stat_interval",
        "How often each CPU adds its counters of memory to the host's.",
        "seconds",
        default="1",
        lower_hurts="Each CPU is interrupted more often.",
        higher_hurts="Counters of /proc/vmstat are late.",
    ),
)
OTHERS: Final = (
    Setting(
        "vm.overcommit_kbytes",
        "With overcommit_memory 2, the memory that may be promised beside swap.",
        "KiB",
        holds="unsigned",
        default="0: the ratio counts",
        twin="vm.overcommit_ratio",
        shown_by="CommitLimit of /proc/meminfo",
        lower_hurts="Programs are refused while memory is free.",
        higher_hurts="More is promised than there is.",
    ),
    Setting(
        "vm.panic_on_oom",
        "Whether the host panics when memory is used up: 1 unless a policy limits it, 2 always.",
        "mode",
        low=0,
        high=2,
        bounds_source=_VM,
        default="0",
        higher_hurts="One program that takes too much stops the host.",
    ),
    Setting(
        "vm.compaction_proactiveness",
        "How much memory is brought into one piece before huge pages are asked for.",
        "percent",
        low=0,
        high=100,
        bounds_source=_VM,
        since=(5, 9),
        default="20",
        is_slow=True,
        shown_by="compact_daemon_wake of /proc/vmstat",
        lower_hurts="Huge pages are found late, or not at all.",
        higher_hurts="CPU time is spent on moving pages, and programs wait for them.",
    ),
    Setting(
        "vm.compact_unevictable_allowed",
        "Whether locked pages may be moved.",
        "switch",
        default="1",
        is_slow=True,
        higher_hurts="Programs with locked memory meet short page faults.",
    ),
    Setting(
        "vm.watermark_boost_factor",
        "How much more is reclaimed after memory fell into pieces.",
        "ten-thousandths of the high mark",
        default="15000",
        is_slow=True,
        higher_hurts="Page cache is dropped after each mixed allocation.",
    ),
    Setting(
        "vm.nr_hugepages_mempolicy",
        "As nr_hugepages, on the nodes of the writer's memory policy.",
        "pages of Hugepagesize",
        holds="unsigned",
        default="0",
        is_pool=True,
        is_slow=True,
        sources=(sources.HUGETLB,),
    ),
    *(
        Setting(
            f"vm.{who}_reserve_kbytes",
            does,
            "KiB",
            holds="unsigned",
            derived_from="memory: a thirtieth of what is free",
            share=share,
        )
        for who, does, share in (
            (
                "admin",
                "Memory that strict accounting keeps for administrators.",
                MemoryShare(1024, 0.05, 0.25, "would be kept for administrators", _DOC),
            ),
            (
                "user",
                "Memory that strict accounting keeps from a single process.",
                MemoryShare(1024, 0.1, 0.5, "would be kept from each program", _DOC),
            ),
        )
    ),
)
