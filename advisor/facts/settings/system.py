"""Keys below kernel, fs, dev and sunrpc, and those that the kernel removed or moved."""

from __future__ import annotations

from typing import Final

from advisor.facts.settings import sources
from advisor.facts.settings.record import InUse, Least, Setting

_THREADS = InUse("/proc/loadavg", r"^\S+ \S+ \S+ [0-9]+/([0-9]+)", "threads")
_SEGMENT = r"(?m)^ *-?[0-9]+ +[0-9]+ +[0-7]+ +([0-9]+) "
_MSGS = "Programs that queue messages are refused or wait."
_SCHED = "/sys/kernel/debug/sched"


def _in_debugfs(name: str, does: str, file: str, unit: str = "nanoseconds", then: str = "") -> Setting:
    return Setting(
        f"kernel.{name}",
        does,
        unit,
        until=(5, 13),
        moved_to=f"{_SCHED}/{file}{then}: advisor plan sched:{file}=VALUE, or TuneD's plugin scheduler",
        sources=(sources.DEBUGFS,),
    )


SCANNED: Final = (
    Setting(
        "kernel.numa_balancing",
        "Whether the kernel moves memory to the node that uses it: 1, with 2 between tiers of memory.",
        "bits",
        derived_from="the machine: 1 where there are several nodes",
        is_slow=True,
        is_shown=True,
        shown_by="numa_pages_migrated, numa_hint_faults of /proc/vmstat",
        lower_hurts="Memory of services that nobody pinned stays remote.",
        higher_hurts="Pinned services pay for faults.",
    ),
    Setting(
        "kernel.pid_max",
        "The number from which ids of processes and threads begin again.",
        "ids",
        derived_from="CPUs: 32,768, or 1,024 for each where that is more; systemd sets 4,194,304",
        grows=True,
        lower_hurts="No more threads can be made: fork(2) fails with EAGAIN.",
        derives=lambda value, machine: value.first in (32_768, 4_194_304, 1024 * (machine.cpus or 0)),
        least=Least(4096, "a busy service finds no id for one more thread"),
        in_use=_THREADS,
    ),
    Setting(
        "kernel.shmmax",
        "The largest segment of System V shared memory.",
        "bytes",
        holds="unsigned",
        default="18446744073692774399",
        grows=True,
        lower_hurts="Databases that take their memory in one segment do not start, or take less.",
        least=Least(1 << 20, "no database gets its memory: its unit is bytes"),
        in_use=InUse("/proc/sysvipc/shm", _SEGMENT, "bytes of one segment"),
    ),
    Setting(
        "kernel.shmall",
        "All System V shared memory together.",
        "pages",
        holds="unsigned",
        default="18446744073692774399",
        grows=True,
        lower_hurts="Databases do not start, or take less.",
        least=Least(256, "no database gets its memory: its unit is pages"),
        in_use=InUse("/proc/sysvipc/shm", _SEGMENT, "pages of segments", "pages"),
    ),
    Setting(
        "kernel.shmmni",
        "The most segments of System V shared memory.",
        "segments",
        default="4096",
        grows=True,
        lower_hurts="Databases with many segments do not start.",
        in_use=InUse("/proc/sysvipc/shm", _SEGMENT, "segments", "count"),
    ),
    Setting(
        "kernel.panic",
        "How long the host waits after a panic before it restarts; 0 for ever.",
        "seconds",
        default="0",
        lower_hurts="A host that panics stays down until a person restarts it.",
        higher_hurts="Its last words are lost where no dump is written.",
    ),
    Setting(
        "kernel.panic_on_oops",
        "Whether the kernel panics at its own error instead of going on.",
        "switch",
        default="0; some distributions 1",
        lower_hurts="The host goes on with a state that may be damaged.",
        higher_hurts="An error of one driver stops the host.",
    ),
    Setting(
        "kernel.timer_migration",
        "Whether timers of idle CPUs are moved to busy ones.",
        "switch",
        default="1",
        lower_hurts="Idle CPUs wake up more often.",
        higher_hurts="Timers of others interrupt a CPU that is kept for one program.",
    ),
    Setting(
        "kernel.sched_autogroup_enabled",
        "Whether each terminal session has a fair share of the CPUs of its own.",
        "switch",
        default="1",
        higher_hurts="nice(1) has no effect between sessions.",
    ),
    Setting(
        "kernel.sched_rt_runtime_us",
        "How much of each sched_rt_period_us real-time tasks may run; -1 all of it.",
        "microseconds",
        default="950000",
        lower_hurts="Real-time tasks are stopped.",
        higher_hurts="A real-time task that never sleeps stops a CPU.",
    ),
    Setting(
        "kernel.sched_cfs_bandwidth_slice_us",
        "The piece in which a CPU takes run time from its group's quota.",
        "microseconds",
        default="5000",
        lower_hurts="More time is spent on sharing it out.",
        higher_hurts="Time that one CPU holds another lacks.",
    ),
    _in_debugfs(
        "sched_min_granularity_ns",
        "How long a task runs before another may take its place.",
        "min_granularity_ns",
        then=" (base_slice_ns from 6.6 on)",
    ),
    _in_debugfs(
        "sched_wakeup_granularity_ns",
        "How much a waking task must be behind to take the place of another.",
        "wakeup_granularity_ns",
        then=" (gone with 6.6)",
    ),
    _in_debugfs(
        "sched_migration_cost_ns", "For how long a task counts as warm in its CPU's caches.", "migration_cost_ns"
    ),
    _in_debugfs(
        "sched_latency_ns", "The time in which each task is to run once.", "latency_ns", then=" (gone with 6.6)"
    ),
    Setting(
        "dev.raid.speed_limit_min",
        "The speed of a resync or check of md below which it is never slowed down, for each array.",
        "KiB/s of each disk",
        default="1000",
        lower_hurts="On a busy array a rebuild takes days.",
        higher_hurts="Programs wait while an array is rebuilt.",
    ),
    Setting(
        "dev.raid.speed_limit_max",
        "The most of a resync or check of md, for each array.",
        "KiB/s of each disk",
        default="200000",
        lower_hurts="A rebuild takes longer, and redundancy is missing meanwhile.",
        higher_hurts="Programs wait while an array is rebuilt.",
    ),
    Setting(
        "fs.aio-max-nr",
        "The most requests of asynchronous I/O (io_setup(2)) of all programs together.",
        "requests",
        holds="unsigned",
        default="65536",
        grows=True,
        shown_by="fs.aio-nr",
        lower_hurts="io_setup(2) fails with EAGAIN, and databases do not start.",
        least=Least(1024, "no database gets its requests"),
        in_use=InUse("/proc/sys/fs/aio-nr", r"^([0-9]+)", "slots of asynchronous I/O"),
    ),
    Setting("fs.aio-nr", "Requests of asynchronous I/O that programs have asked for.", "requests", is_counter=True),
    Setting(
        "fs.file-max",
        "The most open files of all programs together.",
        "files",
        holds="unsigned",
        derived_from="memory: a tenth of its KiB; systemd sets the largest number",
        grows=True,
        shown_by="/proc/sys/fs/file-nr",
        lower_hurts="open(2) fails with ENFILE for every program.",
        derives=lambda value, machine: 0.75 <= 10240 * value.first / (machine.memory_bytes or 1) <= 1.25,
        least=Least(8192, "programs cannot open their files"),
        in_use=InUse("/proc/sys/fs/file-nr", r"^([0-9]+)", "open files"),
    ),
    Setting(
        "fs.nr_open",
        "The largest limit of open files that a process may be given.",
        "files",
        default="1048576",
        grows=True,
        lower_hurts="Services whose LimitNOFILE is above it do not start.",
        least=Least(1024, "logins and services fail: it is the usual soft limit of a process"),
        in_use=InUse("/proc/1/limits", r"(?m)^Max open files +[0-9]+ +([0-9]+)", "files of a service"),
        higher_hurts="One process may take more of the kernel's memory.",
    ),
    Setting(
        "sunrpc.tcp_max_slot_table_entries",
        "The most requests that an NFS client has under way on one TCP connection.",
        "requests",
        default="65536",
        takes_effect="new-sockets",
        lower_hurts="Fewer requests are under way on a long path.",
        higher_hurts="A server with few threads is flooded.",
        sources=("Linux kernel, net/sunrpc/xprtsock.c",),
    ),
)
OTHERS: Final = (
    Setting(
        "kernel.threads-max",
        "The most threads of all processes together.",
        "threads",
        derived_from="memory: an eighth of it for their stacks",
        grows=True,
        shown_by="/proc/loadavg",
        lower_hurts="fork(2) fails with EAGAIN for every program.",
        least=Least(1024, "a host with some services cannot start one more program"),
        in_use=_THREADS,
    ),
    Setting(
        "kernel.pty.max",
        "The most terminals (pty) at once.",
        "terminals",
        default="4096",
        lower_hurts="No one can log in.",
        in_use=InUse("/proc/sys/kernel/pty/nr", r"^([0-9]+)", "terminals"),
    ),
    Setting("kernel.msgmax", "The largest message of System V queues.", "bytes", grows=True, lower_hurts=_MSGS),
    Setting("kernel.msgmnb", "The most bytes in one System V queue.", "bytes", grows=True, lower_hurts=_MSGS),
    Setting("kernel.msgmni", "The most System V queues.", "queues", grows=True, lower_hurts=_MSGS),
    Setting(
        "kernel.sem",
        "System V semaphores: in one set, in all, operations at once, sets.",
        "semaphores",
        fields=("SEMMSL", "SEMMNS", "SEMOPM", "SEMMNI"),
        default="32000 1024000000 500 32000",
        grows=True,
        lower_hurts="Databases do not start: semget(2) fails with ENOSPC.",
    ),
    *(
        Setting(
            f"fs.inotify.max_{name}",
            does,
            unit,
            derived_from=derived,
            default=default,
            grows=True,
            lower_hurts="Programs that watch files fail with ENOSPC or EMFILE, or miss events.",
            least=Least(least, "programs that watch files (systemd among them) fail or miss events"),
            higher_hurts="One user may take more of the kernel's memory.",
            sources=("inotify(7)",),
        )
        for name, does, unit, default, derived, least in (
            ("user_watches", "Files that one user may watch.", "files", "", "memory: 8,192 to 1,048,576", 8192),
            ("user_instances", "Watchers that one user may have.", "watchers", "128", "", 64),
            ("queued_events", "Events that may wait for one watcher.", "events", "16384", "", 1024),
        )
    ),
    _in_debugfs("sched_nr_migrate", "Tasks that are moved at once.", "nr_migrate", "tasks"),
    _in_debugfs("sched_tunable_scaling", "How the other times follow the number of CPUs.", "tunable_scaling", "mode"),
    *(
        _in_debugfs(f"numa_balancing_{name}", does, f"numa_balancing/{name}", unit)
        for name, does, unit in (
            ("scan_delay_ms", "How long a task runs before its memory is scanned.", "milliseconds"),
            ("scan_period_min_ms", "The least time between two scans of a task's memory.", "milliseconds"),
            ("scan_period_max_ms", "The longest time between two scans of a task's memory.", "milliseconds"),
            ("scan_size_mb", "How much of a task's memory is scanned at once.", "MiB"),
        )
    ),
    *(
        Setting(key, does, until=until, moved_to=place, is_kept=is_kept)
        for key, does, until, place, is_kept in (
            ("kernel.sched_child_runs_first", "Whether a child ran first.", (6, 6), "nothing", True),
            ("vm.block_dump", "Whether each request was logged.", (5, 13), "tracepoint block_bio_queue", False),
            ("vm.nr_pdflush_threads", "Threads that wrote dirty memory.", (2, 6), "a thread for each device", True),
            ("net.ipv4.tcp_frto_response", "What followed a spurious time-out.", (3, 10), "nothing", False),
            ("net.ipv4.tcp_abc", "Counting of bytes in slow start.", (3, 9), "nothing: it is never used", False),
            ("net.ipv4.tcp_dma_copybreak", "From which size DMA copied.", (3, 18), "nothing", False),
            ("net.ipv4.tcp_thin_dupack", "Early repeats on thin streams.", (4, 15), "RACK (tcp_recovery)", False),
            ("net.ipv4.tcp_vegas_cong_avoid", "Congestion control vegas.", (2, 6), "tcp_congestion_control", False),
            ("net.ipv4.tcp_bic", "Congestion control bic.", (2, 6), "tcp_congestion_control", False),
            ("net.ipv4.rt_cache_rebuild_count", "Rebuilds of the route cache.", (3, 6), "nothing", False),
            (
                *("net.ipv4.netfilter.ip_conntrack_max", "The most tracked connections.", (4, 9)),
                *("net.netfilter.nf_conntrack_max", False),
            ),
            (
                *("net.ipv4.ip_conntrack_max", "The most tracked connections.", (2, 6)),
                *("net.netfilter.nf_conntrack_max", False),
            ),
            (
                *("net.netfilter.nf_conntrack_helper", "Whether helpers were assigned by port.", (6, 0)),
                *("rules of the firewall that assign them (CT target)", False),
            ),
        )
    ),
)
