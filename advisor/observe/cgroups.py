"""Limits, stalls and throttling of services: kinds ``cgroup`` (by path), ``cgroup-io`` (by path and device number) and
``io-cost`` (by device number: how io.cost shares it out).

Both versions of control groups, under one set of names. Source: Linux Documentation/admin-guide/cgroup-v2.rst,
cgroup-v1/blkio-controller.rst, memory.rst and pids.rst; scheduler/sched-bwc.rst; block/blk-cgroup.c, blk-iocost.c,
blk-iolatency.c and bfq-cgroup.c. Version 1 is the default of RHEL 7
and 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.observe.memory import parse_pressure
from advisor.observe.sample import Reading, parse_counts, parse_named_counts

MAX_CGROUPS = 2000
_TOP = "/sys/fs/cgroup"
_ATTRIBUTE = lazy_regex(r"(?:cgroup|cpu|cpuset|cpuacct|io|blkio|memory|pids|hugetlb|rdma|misc|irq|dmem)\..*")
_V1_FILES = frozenset({"tasks", "notify_on_release", "release_agent"})
_DEVICE = lazy_regex(r"[0-9]{1,10}:[0-9]{1,10}")
_CPU = {
    **{"usage_usec": "cpu_usage_us", "nr_periods": "cpu_periods", "nr_throttled": "cpu_throttled_periods"},
    "throttled_usec": "cpu_throttled_us",
}
_MEMORY = {**{"high": "memory_high", "max": "memory_max", "oom": "memory_oom", "oom_kill": "memory_oom_kill"}}
_MEMORY_LEVELS = {
    **{"file": "memory_file_bytes", "file_dirty": "memory_dirty_bytes", "file_writeback": "memory_writeback_bytes"}
}
"""Of groups with a limit of their memory: what their writers are held by."""
_IO = {
    **{"rbytes": "read_bytes", "wbytes": "write_bytes", "rios": "reads", "wios": "writes"},
    **{f"cost.{name}": f"cost_{name}_us" for name in ("usage", "wait", "indebt", "indelay")},
}
_IO_LEVELS = {"delay_nsec": "delay_ns", "depth": "depth", "avg_lat": "latency_us"}
"""What holds a group back for the latency of another one."""
_DEBUG = "/sys/module/blk_cgroup/parameters/blkcg_debug_stats"
_MAX_LINE = 300
_IO_MAX = {"rbps": "read_bytes_max", "wbps": "write_bytes_max", "riops": "reads_max", "wiops": "writes_max"}
_V1_IO = {
    "blkio.throttle.io_service_bytes": {"Read": "read_bytes", "Write": "write_bytes"},
    "blkio.throttle.io_serviced": {"Read": "reads", "Write": "writes"},
}
V1_IO_LIMITS = {
    **{"read_bytes_max": "blkio.throttle.read_bps_device", "write_bytes_max": "blkio.throttle.write_bps_device"},
    **{"reads_max": "blkio.throttle.read_iops_device", "writes_max": "blkio.throttle.write_iops_device"},
}
"""Field of a limit → the file of version 1 that holds it."""
_V1_UNLIMITED = 1 << 62


def parse_io_pairs(text: str, names: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """``io.stat`` and ``io.max`` by device number: ``8:0 rbytes=1 wbytes=2``; ``max`` and unknown keys are left out."""
    found = {}
    for line in text.split("\n"):
        device, *pairs = line.split() or [""]
        values = {}
        for pair in pairs:
            key, _, value = pair.partition("=")
            count = parse_counts([value]) if key in names else None
            if count:
                values[names[key]] = count[0]
        if values and _DEVICE.fullmatch(device):
            found[device] = values
    return found


def parse_io_lines(text: str) -> dict[str, str]:
    """``io.cost.qos`` and ``io.cost.model`` by device number: the rest of each line."""
    rows = (line.partition(" ") for line in text.split("\n"))
    return {device: rest.strip()[:_MAX_LINE] for device, _, rest in rows if _DEVICE.fullmatch(device)}


def parse_io_levels(text: str) -> dict[str, dict[str, int]]:
    """What ``io.stat`` shows about a group that is held back: 0 is no delay, and no limit of the depth (``max``). The
    kernel prints a delay only where there is one, and nothing of it all unless it shows details."""
    found = {}
    for device, levels in parse_io_pairs(text.replace("depth=max", "depth=0"), _IO_LEVELS).items():
        found[device] = {"delay_ns": 0, **levels}
    return found


def parse_weights(text: str) -> tuple[int | None, dict[str, int]]:
    """``io.weight`` and ``io.bfq.weight``: the default one (``default 100``), and those of devices (``8:0 50``)."""
    rows = [line.split() for line in text.split("\n")]
    counted = {row[0]: counts[0] for row in rows if len(row) == 2 and (counts := parse_counts(row[1:]))}
    return counted.get("default"), {device: weight for device, weight in counted.items() if _DEVICE.fullmatch(device)}


def parse_vrates(text: str) -> dict[str, float]:
    """``cost.vrate`` of the root's ``io.stat`` by device number: at how many percent of its model a device runs."""
    rows = re.findall(r"^([0-9]{1,10}:[0-9]{1,10}) .*\bcost\.vrate=([0-9]{1,6}(?:\.[0-9]{1,2})?)\b", text, re.MULTILINE)
    return {device: float(rate) for device, rate in rows}


def parse_io_table(text: str, names: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The files of version 1 by device number: ``8:0 Read 4096``."""
    found: dict[str, dict[str, int]] = {}
    for line in text.split("\n"):
        words = line.split()
        count = parse_counts(words[2:]) if len(words) == 3 and words[1] in names else None
        if count and _DEVICE.fullmatch(words[0]):
            found.setdefault(words[0], {})[names[words[1]]] = count[0]
    return found


def parse_io_limits(text: str) -> dict[str, int]:
    """Limits of version 1 by device number: ``8:0 1048576``."""
    rows = [line.split() for line in text.split("\n")]
    counted = ((row[0], parse_counts(row[1:])) for row in rows if len(row) == 2 and _DEVICE.fullmatch(row[0]))
    return {device: count[0] for device, count in counted if count}


def parse_cpu_max(text: str) -> float | None:
    """``cpu.max`` as a number of CPUs (``50000 100000`` is half a one); None for ``max`` and for what is no quota."""
    counts = parse_counts(text.split())
    return counts[0] / counts[1] if counts and len(counts) == 2 and counts[1] else None


def read_cgroups(host: Host, reading: Reading) -> None:
    reading.ask("cgroup", "cgroup-io", "io-cost")
    if not host.is_dir(_TOP):
        reading.note_missing("cgroup", "no control groups are mounted below /sys/fs/cgroup")
        return
    groups = _V2Groups(host, reading) if host.exists(f"{_TOP}/cgroup.controllers") else _V1Groups(host, reading)
    groups.read_all()


class _Groups:
    """The groups of one host, each read by ``read_all`` of a version."""

    def __init__(self, host: Host, reading: Reading) -> None:
        self._host = host
        self._reading = reading

    def _text(self, path: str) -> str:
        return self._host.read_or_empty(path)

    def _level(self, path: str) -> int | None:
        count = parse_counts([self._text(path)])
        return count[0] if count else None

    def _read_tasks(self, place: str) -> tuple[dict[str, int], dict[str, float]]:
        """How often a task was refused (pids.events), and of a group that refused any its tasks and their limit."""
        refused = parse_named_counts(self._text(f"{place}/pids.events")).get("max")
        if refused is None:
            return {}, {}
        names = {"tasks": "pids.current", "tasks_max": "pids.max"} if refused else {}
        levels = {field: self._level(f"{place}/{file}") for field, file in names.items()}
        return {"tasks_refused": refused}, {field: level for field, level in levels.items() if level is not None}

    def _walk(self, top: str) -> Iterator[tuple[str, frozenset[str]]]:
        """Every group below ``top``, its path within it and what its directory holds; parents first."""
        pending = [""]
        for number, path in enumerate(pending):
            if number == MAX_CGROUPS:
                self._reading.note_missing("cgroup others", f"more than {MAX_CGROUPS} control groups: not all are read")
                return
            names = self._host.names(f"{top}{path}")
            yield path or "/", frozenset(names)
            inner = (name for name in names if not _ATTRIBUTE.fullmatch(name) and name not in _V1_FILES)
            pending += [f"{path}/{name}" for name in inner if self._host.is_dir(f"{top}{path}/{name}")]


class _V2Groups(_Groups):
    _has_cost = False
    """Whether io.cost shares a device out: otherwise nobody's io.weight counts."""
    _is_shared = False
    _has_details = False

    def read_all(self) -> None:
        self._read_cost()
        for path, files in self._walk(_TOP):
            place = _TOP if path == "/" else f"{_TOP}{path}"
            self._read_one(path, place, files)
        if self._is_shared and not self._has_details:
            why = f"the kernel shows it in io.stat once root has written 1 to {_DEBUG}"
            self._reading.note_missing("io-cost", why)

    def _read_cost(self) -> None:
        """What the root alone has: how io.cost shares each device out, and at which rate."""
        qos, models = (parse_io_lines(self._text(f"{_TOP}/io.cost.{name}")) for name in ("qos", "model"))
        rates = parse_vrates(self._text(f"{_TOP}/io.stat")) if qos else {}
        for device, line in qos.items():
            enabled = "enable=1" in line.split()
            self._has_cost |= enabled
            levels: dict[str, float] = {"enabled": int(enabled)}
            levels |= {"vrate_percent": rates[device]} if device in rates else {}
            words = {"qos": line} | ({"model": models[device]} if device in models else {})
            self._reading.add("io-cost", device, None, levels, words)
        self._is_shared |= self._has_cost

    def _read_one(self, path: str, place: str, files: frozenset[str]) -> None:
        counters: dict[str, int] = {}
        for name, fields in (("cpu.stat", _CPU), ("memory.events", _MEMORY)):
            found = parse_named_counts(self._text(f"{place}/{name}")) if name in files else {}
            counters |= {fields[key]: value for key, value in found.items() if key in fields}
        for what in ("io", "cpu", "memory"):
            if f"{what}.pressure" in files:
                stalls = parse_pressure(self._text(f"{place}/{what}.pressure"))
                counters |= {f"{what}_{field}": value for field, value in stalls.items()}
        refused, levels = self._read_tasks(place) if "pids.events" in files else ({}, {})
        counters |= refused
        for name in ("current", "high", "max"):
            level = self._level(f"{place}/memory.{name}") if f"memory.{name}" in files else None
            levels |= {} if level is None else {f"memory_{name}_bytes": level}
        reached = any(counters.get(field) for field in ("memory_high", "memory_max"))
        # The kernel adds this file up whenever it is read: of groups that never reached a limit it is not asked.
        if reached and {"memory_high_bytes", "memory_max_bytes"} & levels.keys() and "memory.stat" in files:
            stat = parse_named_counts(self._text(f"{place}/memory.stat"))
            levels |= {field: stat[name] for name, field in _MEMORY_LEVELS.items() if name in stat}
        quota = parse_cpu_max(self._text(f"{place}/cpu.max")) if "cpu.max" in files else None
        self._reading.add("cgroup", path, counters, levels | ({} if quota is None else {"cpu_quota_cpus": quota}))
        self._read_devices(path, place, files)

    def _read_devices(self, path: str, place: str, files: frozenset[str]) -> None:
        found: dict[str, dict[str, float]] = {}
        text = self._text(f"{place}/io.stat") if "io.stat" in files else ""
        moved = parse_io_pairs(text, _IO)
        latency = self._text(f"{place}/io.latency") if "io.latency" in files else ""
        targets = parse_io_pairs(latency, {"target": "latency_target_us"})
        limits = parse_io_pairs(self._text(f"{place}/io.max"), _IO_MAX) if "io.max" in files else {}
        # Nearly no group has them, and this runs each second for each.
        held = parse_io_levels(text) if any(f"{name}=" in text for name in _IO_LEVELS) else {}
        for levels in (held, targets, limits):
            for device, values in levels.items():
                found.setdefault(device, {}).update(values)
        for file, field in (("io.weight", "weight"), ("io.bfq.weight", "bfq_weight")):
            if file not in files or (file == "io.weight" and not self._has_cost):
                continue
            default, own = parse_weights(self._text(f"{place}/{file}"))
            for device in moved:
                weight = own.get(device, default)
                found.setdefault(device, {}).update({} if weight is None else {field: weight})
        self._is_shared |= bool(targets)
        self._has_details |= "cost.wait=" in text or "depth=" in text
        for device in moved | found:
            self._reading.add("cgroup-io", f"{path} {device}", moved.get(device), found.get(device))


class _V1Groups(_Groups):
    """Each controller has a tree of its own; a path has the counters of all of them."""

    def read_all(self) -> None:
        counters: dict[str, dict[str, int]] = {}
        levels: dict[str, dict[str, float]] = {}
        # Controllers that are mounted together have a directory of all their names; links for each may be missing.
        together = {one: name for name in self._host.names(_TOP) for one in name.split(",")}
        trees: dict[str, str] = {}
        for name in ("cpu", "memory", "pids", "blkio"):
            top = f"{_TOP}/{name}"
            if not self._host.is_dir(top):
                top = f"{_TOP}/{together.get(name, name)}"
            if not self._host.is_dir(top):
                continue
            trees[name] = top
            for path, files in self._walk(top):
                place = top if path == "/" else f"{top}{path}"
                if name == "blkio":
                    self._read_blkio(path, place, files)
                    continue
                read = {"cpu": self._read_cpu, "memory": self._read_memory, "pids": self._read_tasks}[name]
                found, level = read(place)
                counters.setdefault(path, {}).update(found)
                levels.setdefault(path, {}).update(level)
        for path, values in counters.items():
            self._reading.add("cgroup", path, values, levels[path])
        self._reading.add("cgroups", "trees", words=trees)

    def _read_cpu(self, place: str) -> tuple[dict[str, int], dict[str, float]]:
        found = parse_named_counts(self._text(f"{place}/cpu.stat"))
        counters = {_CPU[key]: value for key, value in found.items() if key in _CPU}
        if "throttled_time" in found:
            counters["cpu_throttled_us"] = found["throttled_time"] // 1000
        # -1 is no quota.
        quota = parse_cpu_max(" ".join(self._text(f"{place}/cpu.cfs_{name}_us") for name in ("quota", "period")))
        return counters, {} if quota is None else {"cpu_quota_cpus": quota}

    def _read_memory(self, place: str) -> tuple[dict[str, int], dict[str, float]]:
        counters: dict[str, int] = {}
        failed = self._level(f"{place}/memory.failcnt")
        if failed is not None:
            counters["memory_max"] = failed
        killed = parse_named_counts(self._text(f"{place}/memory.oom_control")).get("oom_kill")
        if killed is not None:
            counters["memory_oom_kill"] = killed
        levels: dict[str, float] = {}
        for file, field in (("usage", "memory_current_bytes"), ("limit", "memory_max_bytes")):
            level = self._level(f"{place}/memory.{file}_in_bytes")
            if level is not None and level < _V1_UNLIMITED:
                levels[field] = level
        return counters, levels

    def _read_blkio(self, path: str, place: str, files: frozenset[str]) -> None:
        moved: dict[str, dict[str, int]] = {}
        for file, names in _V1_IO.items():
            # With the groups below it, where the kernel counts these together.
            own = f"{file}_recursive" if f"{file}_recursive" in files else file
            for device, values in parse_io_table(self._text(f"{place}/{own}"), names).items():
                moved.setdefault(device, {}).update(values)
        limits: dict[str, dict[str, float]] = {}
        for field, file in V1_IO_LIMITS.items():
            for device, limit in parse_io_limits(self._text(f"{place}/{file}")).items():
                limits.setdefault(device, {})[field] = limit
        for device in {**moved, **limits}:
            self._reading.add("cgroup-io", f"{path} {device}", moved.get(device), limits.get(device))


def unit_of_cgroup(path: str) -> str | None:
    """The service or scope that a path names (``/system.slice/db.service/worker`` → ``db.service``); None for none."""
    return next((name for name in reversed(path.split("/")) if re.search(r"\.(?:service|scope)$", name)), None)
