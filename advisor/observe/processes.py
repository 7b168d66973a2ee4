"""Who asks: CPU time and storage of each process, by psutil, and the service that it belongs to: kind ``process``.

psutil reads the running machine only, so the samples of a captured host have no processes unless they were recorded.
Source: psutil's documentation of Process; proc_pid_io(5); proc_pid_wchan(5); cgroups(7) on /proc/PID/cgroup.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from advisor.facts.system.services import STORAGE_UNIT
from advisor.host import Host, Missing, is_count
from advisor.observe.cgroups import unit_of_cgroup
from advisor.observe.sample import Reading

if TYPE_CHECKING:
    import psutil

KERNEL_THREAD = "kernel thread"
MAX_PROCESSES = 4000
"""Beyond, reading all of them would be the load that is looked for."""
HIDDEN_STORAGE = "process others"
"""Under this a sample says about which processes it could not read the storage."""
IDLE_CLASS = 20
"""The nice value that a sample has of a process of SCHED_IDLE which has none: sched(7), lower than nice 19."""
_LOCKED = " waiting"
"""How the title of a PostgreSQL process ends that waits for a lock (src/backend/storage/lmgr/proc.c)."""
_NAMED = 5
_MANY_FILES = 50
"""Fewer of a process that serves no storage are not held against its limit: looking at each costs time."""
_MOST_THREADS = 1000
"""Threads that a sample looks at, those of the processes that have used the most CPU time first."""
_BUSIEST_THREADS = 8
"""Of each process; these show whether one thread is busy or several share the work."""
_UNINTERRUPTIBLE = "disk-sleep"
_KTHREADD = 2
_BUSY_SECONDS = 1
"""A thread of the kernel that has used less CPU time is none that holds a span up."""


def parse_process_cgroup(text: str) -> str | None:
    """The path in /proc/PID/cgroup: the unified one, or in version 1 systemd's own; None for neither."""
    paths = {}
    for line in text.split("\n"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" or controllers == "name=systemd":
            paths[number == "0"] = path
    unified = paths.get(True)
    return unified if unified not in (None, "", "/") else paths.get(False) or unified


def parse_file_limit(text: str) -> int | None:
    """The soft limit of open files in /proc/PID/limits; None for unlimited."""
    found = re.search(r"^Max open files {1,40}([0-9]{1,18}) ", text, re.MULTILINE | re.ASCII)
    return int(found[1]) if found else None


def _count_files(host: Host, pid: int, *, least: int) -> dict[str, float]:
    """Open files of a process and its limit; nothing for one that has fewer than ``least``."""
    names = host.listdir(f"/proc/{pid}/fd")
    if isinstance(names, Missing) or len(names) < least:
        return {}
    limit = parse_file_limit(host.read_or_empty(f"/proc/{pid}/limits"))
    return {"open_files": len(names), "open_files_limit": limit} if limit else {}


def parse_thread_time(text: str) -> int | None:
    """User and system time of /proc/PID/task/TID/stat in ms; None for a text that is none. The name may hold anything,
    so fields are counted from the last bracket."""
    words = text.rpartition(")")[2].split()
    if len(words) < 13 or not (is_count(words[11]) and is_count(words[12])):
        return None
    return (int(words[11]) + int(words[12])) * 1000 // os.sysconf("SC_CLK_TCK")


_Row = tuple[str, dict[str, int], dict[str, float], dict[str, str]]
"""Name, counters, levels and words of a process."""


def _add_threads(host: Host, processes: Iterable[_Row]) -> None:
    """How many threads each process has, and the CPU time of the busiest of several."""
    room = _MOST_THREADS
    for name, counters, levels, _ in sorted(processes, key=lambda one: -one[1]["cpu_ms"]):
        pid = name.partition("@")[0]
        threads = host.listdir(f"/proc/{pid}/task")
        if isinstance(threads, Missing) or not threads:
            continue
        levels["threads"] = len(threads)
        if not 1 < len(threads) <= room:
            continue
        room -= len(threads)
        times = {one: parse_thread_time(host.read_or_empty(f"/proc/{pid}/task/{one}/stat")) for one in threads}
        known = sorted(((ms, one) for one, ms in times.items() if ms is not None), reverse=True)
        counters |= {f"thread_{one}_ms": ms for ms, one in known[:_BUSIEST_THREADS]}


def _find_wait(host: Host, process: psutil.Process, status: str) -> dict[str, str]:
    """Where in the kernel a process sleeps that no signal wakes; nothing for a thread of the kernel's own, which may
    rest so, and for one that a freezer holds."""
    if status != _UNINTERRUPTIBLE or process.pid == _KTHREADD or process.ppid() == _KTHREADD:
        return {}
    place = host.read_or_empty(f"/proc/{process.pid}/wchan")
    return {} if "refrigerator" in place else {"waits_in": place[:80] if place.strip("0") else "unknown"}


def _is_of_idle_class(pid: int) -> bool:
    try:
        return os.sched_getscheduler(pid) == os.SCHED_IDLE
    except OSError:
        return False


def read_locks(host: Host, reading: Reading) -> None:
    """Processes that wait for a lock of a file, with who has it: kind ``lock`` by PID. Source: proc_locks(5)."""
    holder = ""
    for line in host.read_or_empty("/proc/locks").split("\n"):
        words = line.split()
        waits = words[1:2] == ["->"]
        place = 5 if waits else 4
        if len(words) <= place + 1 or not is_count(words[place]):
            continue
        if waits:
            reading.add("lock", words[place], words={"holder": holder, "file": words[place + 1]})
        else:
            holder = words[place]


def read_processes(host: Host, reading: Reading) -> None:
    """Every process but the advisor's own. A name is ``PID@START``, so a number that is used again is another one."""
    reading.ask("process")
    if not host.is_live:
        reading.note_missing("process", "processes are read on the running host alone")
        return
    import psutil

    pids = psutil.pids()
    if len(pids) > MAX_PROCESSES:
        reading.note_missing("process", f"more than {MAX_PROCESSES} processes")
        return
    own = psutil.Process()
    mine = {own.pid, *(child.pid for child in own.children(recursive=True))}
    hidden: list[int] = []
    rows: list[_Row] = []
    for process in psutil.process_iter(["name", "create_time", "cpu_times", "io_counters", "status", "nice"]):
        found = process.info
        times, storage = found["cpu_times"], found["io_counters"]
        if process.pid in mine or times is None:
            continue
        counters = {"cpu_ms": round((times.user + times.system) * 1000), "io_wait_ms": round(times.iowait * 1000)}
        # Of children that have ended and that it has waited for.
        counters |= {"children_ms": round((times.children_user + times.children_system) * 1000)}
        if storage is None:
            hidden.append(process.pid)
        else:
            counters |= {"read_bytes": storage.read_bytes, "write_bytes": storage.write_bytes}
            asked = getattr(storage, "read_chars", None)
            counters |= {} if asked is None else {"read_chars": asked}
        text = host.read(f"/proc/{process.pid}/cgroup")
        cgroup = None if isinstance(text, Missing) else parse_process_cgroup(text)
        words = {"name": (found["name"] or "?")[:80], "cgroup": (cgroup or "")[:1000]}
        unit = unit_of_cgroup(cgroup or "")
        words |= {"unit": unit[:200]} if unit else {}
        with contextlib.suppress(psutil.Error):
            words |= _find_wait(host, process, found["status"])
            if unit is None and times.system >= _BUSY_SECONDS and process.ppid() == _KTHREADD:
                words["kind"] = KERNEL_THREAD
            if words["name"] == "postgres" and " ".join(process.cmdline()).rstrip().endswith(_LOCKED):
                words["locked"] = "PostgreSQL"
        levels = _count_files(host, process.pid, least=0 if unit and STORAGE_UNIT.match(unit) else _MANY_FILES)
        nice = found["nice"] or (IDLE_CLASS if _is_of_idle_class(process.pid) else 0)
        levels |= {"nice": nice} if nice else {}
        rows.append((f"{process.pid}@{found['create_time']:.2f}", counters, levels, words))
    _add_threads(host, rows)
    for row in rows:
        reading.add("process", *row)
    if hidden:
        why = "is hidden by the kernel" if host.is_root else "needs root, as they are of other users"
        named = ", ".join(map(str, hidden[:_NAMED])) + (", …" if len(hidden) > _NAMED else "")
        reading.note_missing(HIDDEN_STORAGE, f"storage of {len(hidden)} {why}: PID {named}")
