"""Causes at the CPUs: saturation, stolen time, quotas, heat, interrupts on one CPU, one thread."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from advisor.diagnosis.cause import (
    BINDS_FROM,
    BUSY_NEAR_FROM,
    STEAL_FROM,
    Asker,
    BindingCause,
    Help,
    asks_cpu,
    asks_group,
    cause,
    device_of,
    largest_process,
    limit_command,
    name_group,
    percent,
)
from advisor.diagnosis.observation import Observation
from advisor.diagnosis.storage import follow_up
from advisor.host.numbers import count_of, is_count
from advisor.host.patterns import lazy_regex
from advisor.observe.processes import KERNEL_THREAD

PSI = "Linux kernel documentation, accounting/psi"
_PROC_STAT = "proc_stat(5)"
_NETDATA_CPU = "netdata/netdata src/health/health.d/cpu.conf"
_PMIE_THERMAL = "performancecopilot/pcp src/pmieconf/power/thermal_throttle"
_BANDWIDTH = "Linux kernel documentation, scheduler/sched-bwc"
LINK_INTERRUPTS = 10_000
"""A second."""
FULL_FROM = 0.9
MOSTLY_FROM = 0.5
BEGUN_FROM = 100
"""A second; a build of one job begins fewer."""
SHORT_MS = 20
"""Of CPU time: a compiler or an interpreter that does some work needs more."""
ONE_CPU_FROM = 0.6
ONE_THREAD_FROM = 0.85
ONE_CPU_FROM_SHARE = 0.95
ONE_CPU_UP_TO = 1.05
_POLLS = lazy_regex(r"reactor_|spdk|nvmf_tgt|vpp|dpdk|testpmd|lcore|pmd|ovs-vswitchd|io_uring-sq|kni_")
"""Programs that ask their devices all the time instead of waiting for interrupts: busy says nothing of their work."""


@cause(
    id="cpu.saturated",
    resource="cpu",
    help="hardware",
    what="Busy time of all CPUs, and the share of time in which a task that could run waited for one.",
    threshold="busy 90 %, without the time of niced tasks, and tasks waiting 10 % of the time (systemd's default: "
    "200 ms of 2 s), or (no PSI) no CPU for a tenth of the ready tasks; netdata warns at 85 to 95 % of ten minutes",
    sources=(_NETDATA_CPU, PSI, "systemd.resource-control(5), CPUPressureThresholdSec="),
    explains=("application.single-thread",),
)
def saturated(seen: Observation) -> Iterator[BindingCause]:
    whole = seen.cpus.get("all")
    # Niced tasks take what the others leave, and make room at once: who niced them does not wait for them.
    if whole is None or whole.busy is None or whole.busy - seen.niced < FULL_FROM:
        return
    stall = seen.stall("cpu")
    ready = seen.tasks_ready
    share = stall if stall is not None else 1 - seen.cpu_count / ready if ready else 0.0
    if share < BINDS_FROM:
        return
    asks = asks_cpu(seen)
    what, commands = _look_at(asks.process if asks and (asks.share or 0.0) >= MOSTLY_FROM else None)
    yield saturated.bind(
        share,
        f"All {seen.cpu_count} CPUs are busy and tasks wait for them",
        evidence={"busy_share": whole.busy, "waiting_share": stall, "tasks_ready": ready, "cpus": seen.cpu_count},
        advice=f"See {what} before you add CPUs."
        if what
        else "More or faster CPUs, or less work: see which service uses them.",
        commands=(*commands, "systemd-cgtop --iterations=2"),
        asks=asks,
    )


_LOOKS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (
        lazy_regex(r"java\b"),
        "whether it collects garbage all the time (a heap that is too small), or which threads are busy",
        ("jstat -gcutil {pid} 1000 5", "jcmd {pid} Thread.print"),
    ),
    (
        lazy_regex(r"post(gres|master)\b"),
        "its query: one that lacks an index, or reads more rows than it needs",
        ("psql -c 'select pid, now() - query_start, wait_event, query from pg_stat_activity where pid = {pid}'",),
    ),
    (
        lazy_regex(r"(mysqld|mariadbd)\b"),
        "its queries: one that lacks an index, or reads more rows than it needs",
        ("mysql -e 'show full processlist'",),
    ),
    (lazy_regex(r"mongod\b"), "its queries: one that lacks an index", ("mongosh --eval 'db.currentOp()'",)),
    (lazy_regex(r"(redis|valkey)-server\b"), "its slow commands", ("redis-cli slowlog get 10",)),
    (lazy_regex(r"python|uwsgi|gunicorn"), "where its program is busy", ("py-spy dump --pid {pid}",)),
    (lazy_regex(r"."), "what it does", ()),
)
"""Names of processes, what to look for in one that uses CPUs, and by which commands."""


def _look_at(process: str | None) -> tuple[str, tuple[str, ...]]:
    """What to look for in ``NAME (PID)`` that uses CPUs, with the commands; nothing of none."""
    looks = ((what, commands) for name, what, commands in _LOOKS if process and name.match(process))
    what, commands = next(looks, ("", ()))
    pid = (process or "").rpartition("(")[2].strip(")")
    return what, tuple(text.format(pid=pid) for text in (*commands, "perf top -p {pid}") if what)


@cause(
    id="cpu.niced",
    resource="cpu",
    help="application",
    what="Busy time of all CPUs, and the part of it that niced tasks and those of the class SCHED_IDLE have.",
    threshold="busy 90 %, stolen time included, but less without that part, which is at least 10 %",
    sources=(_PROC_STAT, "sched(7): the nice value, SCHED_IDLE"),
)
def niced(seen: Observation) -> Iterator[BindingCause]:
    """CPUs that are full, and have room for what is not niced: it comes behind all that holds somebody up."""
    whole = seen.cpus.get("all")
    if whole is None or whole.busy is None or seen.niced < BINDS_FROM:
        return
    rest = whole.busy - seen.niced
    if whole.busy + (whole.steal or 0.0) < FULL_FROM or rest >= FULL_FROM:
        return

    def used(name: str) -> int | None:
        return seen.rose("process", name, "cpu_ms") if seen.level("process", name, "nice") else None

    most = sorted(seen.span.names("process"), key=lambda name: -(used(name) or 0))
    names = dict.fromkeys(seen.word("process", name, "name") for name in most if used(name))
    named = f" ({', '.join(map(str, list(names)[:4]))})" if names else ""
    yield niced.bind(
        seen.niced,
        f"The CPUs are full of niced work{named}; what is not niced "
        + ("has room" if rest < BUSY_NEAR_FROM else f"uses {percent(rest)} of them"),
        of="CPU time",
        evidence={"busy_share": whole.busy, "niced_share": seen.niced, "waiting_share": seen.stall("cpu")},
        advice="Who niced it does not wait for it. It still costs caches, power and the other thread of a core: for "
        "what must be fast, bound it (CPUQuota=, AllowedCPUs=) or let it run at a quiet time.",
        commands=("ps -eo ni,cls,pcpu,pid,comm --sort=-pcpu",),
        asks=largest_process(seen, used, seen.niced * seen.cpu_count * seen.span.seconds_of("process") * 1000),
    )


@cause(
    id="application.short-lived",
    resource="application",
    help="application",
    what="Processes that begin each second, and the CPU time of those that are seen at neither end of the span, of "
    "which the parents count a part.",
    threshold="100 a second with at most 20 ms of CPU time each, half of one CPU and half of the busy time together",
    sources=("proc_stat(5), processes", "proc_pid_stat(5), cutime and cstime"),
    explains=("cpu.saturated",),
)
def short_lived(seen: Observation) -> Iterator[BindingCause]:
    """Work that is done by one process after the other, each of which costs more to begin than it does."""
    whole, seconds = seen.cpus.get("all"), seen.span.seconds_of("process")
    begun = seen.per_second("scheduler", "host", "forks") or 0.0
    if whole is None or whole.busy is None or not seconds or begun < BEGUN_FROM:
        return
    tasks = whole.busy - (whole.irq or 0.0) - (whole.softirq or 0.0)
    used = [seen.rose("process", name, "cpu_ms") or 0 for name in seen.span.names("process")]
    whole_ms = tasks * seen.cpu_count * seconds * 1000
    unseen_ms = whole_ms - sum(used)
    each_ms = unseen_ms / (begun * seconds)

    def of_children(name: str) -> int | None:
        return seen.rose("process", name, "children_ms")

    if each_ms > SHORT_MS or unseen_ms < MOSTLY_FROM * max(seconds * 1000, whole_ms):
        return
    # In a container the CPUs are those of the host: what parents here have waited for is certainly of here.
    if sum(of_children(name) or 0 for name in seen.span.names("process")) < MOSTLY_FROM * unseen_ms:
        return
    yield short_lived.bind(
        unseen_ms / whole_ms,
        f"{begun:.0f} processes begin each second, and use {each_ms:.2g} ms of CPU time each",
        of="CPU time",
        evidence={"begun_per_s": begun, "cpu_ms": each_ms, "busy_share": whole.busy},
        advice="Let one process do the work of many: to begin and end costs most of it. Find who starts them: a shell "
        "in a loop, a check that runs too often, a service that fails and starts again.",
        commands=("perf trace -a -s -e execve -- sleep 5", "systemctl list-units --state=activating"),
        asks=largest_process(seen, of_children, unseen_ms),
    )


@cause(
    id="cpu.affinity",
    resource="cpu",
    help="tuning",
    what="Busy time of each CPU, and the share of time in which a task that could run waited for one.",
    threshold="tasks wait 50 % of the time (without PSI: more are ready than CPUs are busy) while some CPUs are busy "
    "95 % of it and others less than half, and not with interrupts",
    sources=(_PROC_STAT, PSI, "sched_setaffinity(2); systemd.exec(5), CPUAffinity="),
    explains=("application.single-thread",),
)
def affinity(seen: Observation) -> Iterator[BindingCause]:
    """Tasks that wait for a CPU while others idle: they may not run there."""
    whole = seen.cpus.get("all")
    singles = {name: one for name, one in seen.cpus.items() if name != "all" and one.busy is not None}
    if whole is None or whole.busy is None or whole.busy >= 0.9 or len(singles) < 2:
        return
    full = [
        name
        for name, one in singles.items()
        if (one.busy or 0.0) >= 0.95 and (one.irq or 0.0) + (one.softirq or 0.0) < 0.3
    ]
    idle = [name for name, one in singles.items() if (one.busy or 0.0) < 0.5]
    stall = seen.stall("cpu")
    ready, looks = seen.tasks_ready, len(seen.span.levels("scheduler", "host", "running"))
    waits = stall >= 0.5 if stall is not None else ready >= len(full) + 1 and looks > 4
    if not full or not idle or not waits or (whole.steal or 0.0) >= STEAL_FROM:
        return
    yield affinity.bind(
        stall if stall is not None else 0.5,
        f"Tasks wait for {'CPU' if len(full) == 1 else 'CPUs'} {', '.join(full)} while others idle",
        evidence={
            "busy_cpus": ", ".join(full),
            "idle_cpus": len(idle),
            "busy_share": whole.busy,
            "waiting_share": stall,
            "tasks_ready": ready,
        },
        advice="Let the tasks run on more CPUs: CPUAffinity=, AllowedCPUs= (cpuset), taskset or isolcpus keep them "
        "there.",
        commands=("ps -eLo psr,pcpu,pid,comm --sort=-pcpu", "cat /sys/devices/system/cpu/isolated"),
        asks=asks_cpu(seen),
    )


@cause(
    id="cpu.steal",
    resource="cpu",
    help="tenant",
    what="Time in which this virtual machine had work and the hypervisor ran something else.",
    threshold="5 % of all CPU time (netdata: 5 to 10 % of 20 minutes), as a share of the time in which there was work",
    sources=(_NETDATA_CPU, _PROC_STAT),
    explains=("cpu.saturated", "cpu.affinity", "application.single-thread"),
)
def steal(seen: Observation) -> Iterator[BindingCause]:
    whole = seen.cpus.get("all")
    if whole is None or whole.steal is None or whole.busy is None or whole.steal < STEAL_FROM:
        return
    share = whole.steal / (whole.steal + whole.busy)
    if share >= BINDS_FROM:
        yield steal.bind(
            share,
            f"The hypervisor takes {percent(whole.steal)} of the CPU time away",
            of="time in which there was work",
            evidence={"steal_share": whole.steal, "busy_share": whole.busy},
            advice="Another tenant, or used-up CPU credits: another size or kind of machine, or a host of its own.",
            commands=("advisor scan",),
        )


@cause(
    id="cpu.quota",
    resource="cpu",
    help="tuning",
    what="Periods in which a control group had used up its quota (cpu.max, cpu.cfs_quota_us).",
    threshold="10 % of the periods in which it ran",
    sources=(_BANDWIDTH, "netdata/netdata src/health/health.d/cgroups.conf"),
    explains=("cpu.affinity", "application.single-thread"),
)
def quota(seen: Observation) -> Iterator[BindingCause]:
    for path in seen.span.names("cgroup"):
        periods = seen.rose("cgroup", path, "cpu_periods")
        throttled = seen.rose("cgroup", path, "cpu_throttled_periods")
        if not periods or throttled is None or throttled / periods < BINDS_FROM:
            continue
        lost_us = seen.rose("cgroup", path, "cpu_throttled_us")
        # A quota that is reached in few of the periods of the span binds for little of its time.
        seconds = seen.span.seconds_of("cgroup")
        waited = None if lost_us is None else lost_us / (seconds * 1e6)
        if waited is not None and waited < 0.02:
            continue
        limit = seen.level("cgroup", path, "cpu_quota_cpus")
        yield quota.bind(
            throttled / periods,
            f"{name_group(path)} has used up its CPU quota in {percent(throttled / periods)} of its periods",
            of="periods",
            device=None,
            evidence={
                "cgroup": path,
                "throttled_periods": throttled,
                "periods": periods,
                "quota_cpus": limit,
                "throttled_s": lost_us / 1e6 if lost_us is not None else None,
            },
            advice="Raise or remove CPUQuota=, if it is not meant; or fewer threads at a time.",
            commands=limit_command(
                seen, path, "CPUQuotaPerSecUSec", file="cpu.max", controller="cpu", file_v1="cpu.cfs_quota_us"
            ),
            asks=asks_group(seen, path, "cpu_ms"),
        )


@cause(
    id="cpu.thermal",
    resource="cpu",
    help="repair",
    what="Time in which cores or packages were slowed down for their heat.",
    threshold="10 % of the interval, or any event where no time is counted; PCP's pmie warns at 50 %",
    sources=(_PMIE_THERMAL, "Linux arch/x86/kernel/cpu/mce/therm_throt.c"),
    is_error=True,
    explains=("cpu.saturated",),
)
def thermal(seen: Observation) -> Iterator[BindingCause]:
    worst: tuple[float, str, dict[str, float | int | str]] | None = None
    for name in seen.span.names("thermal"):
        for part in ("package", "core"):
            ms = seen.rose("thermal", name, f"{part}_throttle_total_time_ms")
            events = seen.rose("thermal", name, f"{part}_throttle_count")
            share = ms / (seen.span.seconds_of("thermal") * 1000) if ms is not None else 0.0
            is_hot = share >= BINDS_FROM if ms is not None else bool(events)
            if is_hot and (worst is None or share > worst[0]):
                worst = (
                    share,
                    name,
                    {"cpu": name, "part": part, "throttle_events": events or 0, "throttled_share": share},
                )
    if worst:
        yield thermal.bind(
            worst[0],
            "CPUs are slowed down for their heat",
            device=f"cpu{worst[1]}",
            evidence=worst[2],
            advice="Cooling and power first: fans, air flow, the power cap of the firmware. Measurements are invalid.",
            commands=("journalctl -k --grep throttl",),
        )


@cause(
    id="net.one-cpu",
    resource="net",
    help="tuning",
    what="The share of soft interrupts on each CPU, and how the received packets are spread over the CPUs.",
    threshold="one CPU, or a few, spend 60 % of their time on them and take 70 % of the packets, or 10,000 interrupts "
    "of a link a second, while all others spend less than half of that on the mean",
    sources=("Linux kernel documentation, networking/scaling", "proc_net(5), softnet_stat"),
    explains=("cpu.interrupts",),
)
def one_cpu(seen: Observation) -> Iterator[BindingCause]:
    """Packets that one CPU alone receives."""
    busiest = _busiest_with_interrupts(seen)
    if busiest is None:
        return
    name, share = busiest
    busy = _list_with_interrupts(seen)
    packets = {cpu: seen.rose("softnet", cpu, "processed") or 0 for cpu in seen.span.names("softnet")}
    total = sum(packets.values())
    is_busy = bool(total) and total / seen.span.seconds_of("softnet") >= 1000
    part = sum(packets.get(cpu, 0) for cpu in busy) / total if total else 0.0
    if not (is_busy and part >= 0.7) and not _is_of_link(seen, name):
        return
    yield one_cpu.bind(
        share,
        f"CPU {name} alone receives the packets: {percent(share)} of its time are interrupts"
        if len(busy) == 1
        else f"{len(busy)} of {seen.cpu_count} CPUs receive the packets: up to {percent(share)} of their time are "
        "interrupts",
        device=f"cpu{name}",
        evidence={
            "interrupt_share": share,
            "packets_share": part,
            "cpus": ", ".join(busy[:8]),
            "packets_per_s": total / seen.span.seconds_of("softnet"),
            "dropped": sum(seen.rose("softnet", cpu, "dropped") or 0 for cpu in packets),
            "rounds_cut_off": sum(seen.rose("softnet", cpu, "squeezed") or 0 for cpu in packets),
        },
        advice="Spread the queues of the link over the CPUs: more channels, interrupt affinity, or RPS.",
        commands=("advisor recommend", "grep . /sys/class/net/*/queues/rx-*/rps_cpus"),
        explains=_follow_interrupts(busy),
    )


def _is_of_link(seen: Observation, cpu: str) -> bool:
    """Whether the interrupt that the CPU takes most is that of a queue of a link (``eth0-rx-0``)."""
    counts = {irq: seen.rose("irq", irq, cpu) or 0 for irq in seen.span.names("irq")}
    most = max(counts, key=lambda one: counts[one], default=None)
    if most is None or counts[most] < LINK_INTERRUPTS * seen.span.seconds_of("irq"):
        return False
    words = re.split(r"[^\w.:]+", seen.word("irq", most, "called") or "")
    return any(name in words for name in seen.links if name != "lo")


def _list_with_interrupts(seen: Observation) -> list[str]:
    """The CPUs that spend most of their time on interrupts."""
    return [
        name
        for name, one in seen.cpus.items()
        if name != "all" and (one.irq or 0.0) + (one.softirq or 0.0) >= ONE_CPU_FROM
    ]


def _follow_interrupts(cpus: Iterable[str]) -> tuple[str, ...]:
    """The threads of the kernel that serve soft interrupts of these CPUs where there are too many of them."""
    return tuple(f"cpu.kernel-thread ksoftirqd/{name}" for name in cpus)


def _busiest_with_interrupts(seen: Observation) -> tuple[str, float] | None:
    """The CPU with the most interrupt time, and that share, where it is far more than that of the others."""
    shares = {
        name: (one.irq or 0.0) + (one.softirq or 0.0)
        for name, one in seen.cpus.items()
        if name != "all" and one.softirq is not None
    }
    if len(shares) < 2:
        return None
    name = max(shares, key=lambda one: shares[one])
    others = [share for cpu, share in shares.items() if cpu != name]
    if shares[name] < ONE_CPU_FROM or sum(others) / len(others) > shares[name] / 2:
        return None
    return name, shares[name]


@cause(
    id="cpu.interrupts",
    resource="cpu",
    help="tuning",
    what="The share of interrupts, hard and soft, on each CPU, and which interrupt it takes most.",
    threshold="one CPU spends 60 % of its time on them while the others spend less than half of that",
    sources=(_PROC_STAT, "proc_interrupts(5)"),
)
def interrupts(seen: Observation) -> Iterator[BindingCause]:
    """Interrupts that one CPU alone takes."""
    busiest = _busiest_with_interrupts(seen)
    if busiest is None:
        return
    name, share = busiest
    busy = _list_with_interrupts(seen)
    counts = {irq: seen.rose("irq", irq, name) or 0 for irq in seen.span.names("irq")}
    most = max(counts, key=lambda one: counts[one], default=None)
    seconds = seen.span.seconds_of("irq")
    yield interrupts.bind(
        share,
        f"Interrupts take {percent(share)} of CPU {name} alone"
        if len(busy) == 1
        else f"Interrupts take up to {percent(share)} of {len(busy)} of {seen.cpu_count} CPUs",
        device=f"cpu{name}",
        evidence={
            "interrupt_share": share,
            "interrupt": f"{most} {seen.word('irq', most, 'called') or ''}".strip() if most else None,
            "interrupts_per_s": counts[most] / seconds if most and seconds else None,
        },
        advice="Spread the interrupts of the device over the CPUs, or find out why it raises so many.",
        commands=(f"cat /proc/irq/{most}/smp_affinity_list",) if most and is_count(most) else ("cat /proc/softirqs",),
        explains=_follow_interrupts(busy),
    )


@cause(
    id="application.single-thread",
    resource="application",
    help="application",
    what="CPU time of each process over the span, while other CPUs have room.",
    threshold="a process that uses 95 to 105 % of one CPU for the whole span, most of it with one thread; or one "
    "thread of it 95 %, the next less than half of that, and all up to twice that; without niced ones",
    sources=("proc_pid_stat(5)",),
)
def single_thread(seen: Observation) -> Iterator[BindingCause]:
    """A process with one thread that is always busy: more CPUs do not help it."""
    whole, seconds = seen.cpus.get("all"), seen.span.seconds_of("process")
    found: dict[tuple[str, str | None], list[tuple[float, float, str]]] = {}
    for name, share in _list_shares(seen):
        process, unit = seen.word("process", name, "name") or "?", seen.word("process", name, "unit")
        if _POLLS.match(process) or is_kernel_thread(seen, name):
            continue
        thread = _share_of_one_thread(seen, name, share, seconds)
        if thread is not None:
            found.setdefault((process, unit), []).append((thread, share, name))
    for (process, unit), rows in found.items():
        thread, share, name = max(rows)
        one = f"{process} ({name.partition('@')[0]})"
        what, commands = _look_at(one)
        yield single_thread.bind(
            min(thread, 1.0),
            f"{len(rows)} processes {process} use one CPU wholly each, and the others have room"
            if len(rows) > 1
            else f"{one} uses one CPU wholly, and the others have room"
            if share <= ONE_CPU_UP_TO
            else f"One thread of {one} is always busy, and the others are not",
            evidence={
                "cpu_share_of_process": share,
                "cpu_share_of_thread": thread,
                "cpu_since_its_start_s": seen.span.samples[-1].counters["process"][name]["cpu_ms"] / 1000,
                "busy_share": whole.busy if whole else None,
                "cpus": seen.cpu_count,
            },
            advice=f"See {what}. More CPUs do not help one thread: less work, a second thread or a faster CPU does.",
            commands=commands,
            asks=Asker(unit, one, None),
        )


def _list_shares(seen: Observation) -> Iterator[tuple[str, float]]:
    """Processes that are not niced, with the share of one CPU that each used, where CPUs have room."""
    whole = seen.cpus.get("all")
    seconds = seen.span.seconds_of("process")
    if whole is None or whole.idle is None or seen.cpu_count < 2 or whole.busy is None:
        return
    if whole.busy - seen.niced > 0.85:
        return
    # What is more than all CPUs together spent on other tasks is niced, where that of a process is not recorded.
    not_niced = (whole.busy - seen.niced) * seen.cpu_count
    for name in seen.span.names("process"):
        used = seen.rose("process", name, "cpu_ms")
        share = used / (seconds * 1000) if used is not None and seconds else 0.0
        if (seen.level("process", name, "nice") or 0) <= 0 and not_niced >= share - 0.1:
            yield name, share


def is_kernel_thread(seen: Observation, name: str) -> bool:
    """Whether a process is a thread of the kernel's own, which no application starts."""
    return seen.word("process", name, "kind") == KERNEL_THREAD


class _ThreadWork(msgspec.Struct, frozen=True):
    """What a kernel thread of a name does, and what helps; ``{device}`` in commands is the array or the mapping."""

    name: re.Pattern[str]
    advice: str
    commands: tuple[str, ...]
    help: Help


_WORKS = (
    _ThreadWork(
        lazy_regex(r"(?P<device>md[0-9_]\w*)_raid[456]$"),
        "One thread computes the parity of this array: let several share it (group_thread_cnt), and measure.",
        ("advisor plan 'md:{device}:group_thread_cnt>=4'",),
        "tuning",
    ),
    _ThreadWork(
        lazy_regex(r"(?:.*kcryptd|dmcrypt_write)/(?P<number>[0-9]+:[0-9]+)"),
        "It encrypts: more requests at a time are spread over more CPUs, unless same_cpu_crypt is set; on flash "
        "no_read_workqueue and no_write_workqueue spare its queues.",
        ("dmsetup table --target crypt /dev/{device}", "cryptsetup benchmark"),
        "tuning",
    ),
    _ThreadWork(
        lazy_regex(r"vhost-[0-9]+"),
        "It moves the packets of one queue of a guest: more queues for the link of the guest (queues= of vhost).",
        ("ps -L -o tid,pcpu,comm -p {of_guest}",),
        "tuning",
    ),
    _ThreadWork(
        lazy_regex(r"(?P<device>loop[0-9]+)"),
        "It alone serves this loop device: use a device or a logical volume in its place, or several images.",
        ("losetup --list",),
        "application",
    ),
)
"""Source: drivers/md/raid5.c and md.c (``MD_raidN``), drivers/md/dm-crypt.c (``kcryptd/MAJOR:MINOR`` of a kworker),
drivers/vhost/vhost.c, drivers/block/loop.c."""


@cause(
    id="cpu.kernel-thread",
    resource="cpu",
    help="hardware",
    what="CPU time of each thread of the kernel over the span, while other CPUs are idle.",
    threshold="95 % of one CPU for the whole span; without niced ones",
    sources=("proc_pid_stat(5)", "drivers/md/raid5.c, drivers/md/dm-crypt.c, drivers/vhost/vhost.c"),
)
def kernel_thread(seen: Observation) -> Iterator[BindingCause]:
    """A thread of the kernel that is always busy: parity, encryption, packets of a guest."""
    for name, share in _list_shares(seen):
        process = seen.word("process", name, "name") or "?"
        if share < ONE_CPU_FROM_SHARE or not is_kernel_thread(seen, name) or _POLLS.match(process):
            continue
        works = ((work, found) for work in _WORKS if (found := work.name.match(process)))
        work, found = next(works, (None, None))
        parts = found.groupdict() if found else {}
        device = parts.get("device") or (device_of(seen, parts["number"]) if "number" in parts else None)
        fields = {"device": device or "", "of_guest": process.partition("-")[2]}
        yield kernel_thread.bind(
            min(share, 1.0),
            f"{process} ({name.partition('@')[0]}), a thread of the kernel, uses one CPU wholly",
            device=device or process,
            evidence={"cpu_share_of_thread": share, "cpus": seen.cpu_count},
            advice=work.advice if work else "See what it does; more or faster CPUs help it little.",
            commands=tuple(text.format(**fields) for text in work.commands)
            if work
            else (f"perf top --pid {name.partition('@')[0]}", f"cat /proc/{name.partition('@')[0]}/stack"),
            explains=follow_up(seen, device) if device else (),
            help=work.help if work else None,
        )


def _share_of_one_thread(seen: Observation, name: str, share: float, seconds: float) -> float | None:
    """The share of a CPU that the busiest thread of a process uses, where that is nearly a whole one and no other
    comes near it. Where threads are not recorded, that of a process that uses one CPU."""
    threads = seen.level("process", name, "threads")
    is_one_cpu = ONE_CPU_FROM_SHARE <= share <= ONE_CPU_UP_TO
    if threads is None or threads <= 1:
        return share if is_one_cpu else None
    fields = [field for field in seen.span.fields("process", name) if field.startswith("thread_")]
    rises = sorted((seen.rose("process", name, field) or 0 for field in fields), reverse=True)
    if not rises:
        return None
    first, second = (rise / (seconds * 1000) for rise in (*rises, 0)[:2])
    if is_one_cpu:
        return share if first >= ONE_THREAD_FROM else None
    return first if first >= ONE_CPU_FROM_SHARE and second < first / 2 and share <= 2 * first else None


@cause(
    id="application.file-limit",
    resource="application",
    help="tuning",
    what="Open files of each process of a storage service, and of any other with 50 or more, against its own limit "
    "(LimitNOFILE=); those of all processes against fs.file-max.",
    threshold="90 % at the end of the span; of the host at its beginning",
    sources=("performancecopilot/pcp src/pmieconf/filesys/vfs_files", "proc_pid_limits(5), getrlimit(2)"),
)
def file_limit(seen: Observation) -> Iterator[BindingCause]:
    handles, most = seen.facts.counters.file_handles, count_of(seen.facts.sysctl.get("fs.file-max"))
    # More than the limit allows but to root is not believed.
    if handles and most and 0.9 * most <= handles <= 2 * most:
        yield file_limit.bind(
            handles / most,
            f"{handles:,} of the {most:,} files are open that all processes of this host may have open",
            of="limit",
            evidence={"file_handles": handles, "limit": most},
            advice="Find who has them open, which may be a leak, and raise fs.file-max: beyond it open() fails.",
            commands=(f"advisor plan 'sysctl:fs.file-max>={2 * most}'", "lsof -n | awk '{print $1}' | sort | uniq -c"),
        )
    for name in seen.span.names("process"):
        used, limit = (seen.level("process", name, field) for field in ("open_files", "open_files_limit"))
        if used is None or not limit or used < 0.9 * limit:
            continue
        process, unit = seen.word("process", name, "name"), seen.word("process", name, "unit")
        yield file_limit.bind(
            used / limit,
            f"{unit or process} has opened {used:.0f} files of the {limit:.0f} that it may",
            of="limit",
            evidence={"open_files": used, "limit": limit, "process": f"{process} ({name.partition('@')[0]})"},
            advice="Raise LimitNOFILE= of the service with a drop-in, unless it leaks files; its next start takes it.",
            commands=(
                f"systemctl edit {unit}" if unit else f"prlimit --nofile --pid {name.partition('@')[0]}",
                f"ls /proc/{name.partition('@')[0]}/fd",
            ),
            asks=Asker(unit, f"{process} ({name.partition('@')[0]})", None),
        )
