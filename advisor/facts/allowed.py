"""CPUs and memory nodes that a process may use: its affinity (status in proc(5)) and its cpuset (cpuset(7))."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from advisor.facts.cpulist import parse_list, parse_mask, read_list
from advisor.host import Host, Missing

Resource = Literal["cpus", "mems"]
_UNRESTRICTED = Missing("absent", "no affinity and no cpuset is shown")


def read_allowed(host: Host, resource: Resource) -> tuple[int, ...] | Missing:
    """Ids that the calling process may use; absent where neither its status nor a cpuset says anything.

    The status counts first, as it holds affinity and cpuset in one. Captured hosts of old kernels have a cpuset only.
    """
    own = read_process_allowed(host, "self", resource)
    if not isinstance(own, Missing):
        return own
    limit = _read_cpuset(host, resource)
    return own if isinstance(limit, Missing) and limit.is_absent and not own.is_absent else limit


def read_process_allowed(host: Host, pid: int | str, resource: Resource) -> tuple[int, ...] | Missing:
    """Ids of ``Cpus_allowed`` or ``Mems_allowed`` in /proc/PID/status."""
    text = host.read(f"/proc/{pid}/status")
    return text if isinstance(text, Missing) else parse_allowed(text, resource)


def parse_allowed(status: str, resource: Resource) -> tuple[int, ...] | Missing:
    """Ids in the text of a status file: from the list, or from the mask of kernels that print no list."""
    word = {"cpus": "Cpus_allowed", "mems": "Mems_allowed"}[resource]
    for suffix, parse in (("_list", parse_list), ("", parse_mask)):
        _, is_there, rest = f"\n{status}".partition(f"\n{word}{suffix}:")
        if is_there:
            words = rest.partition("\n")[0].split()
            try:
                return parse(words[0] if words else "")
            except ValueError as error:
                return Missing("unreadable", str(error))
    return Missing("absent", f"no {word} in the status")


def _read_cpuset(host: Host, resource: Resource) -> tuple[int, ...] | Missing:
    # The process' cpuset as a path below the mount point, "" for the root.
    text = host.read("/proc/self/cpuset")
    cpuset_name = _cpuset_of_cgroup(host) if isinstance(text, Missing) else text
    name = cpuset_name.rstrip("/") if cpuset_name is not None and cpuset_name.startswith("/") else None
    if name is None:
        return _UNRESTRICTED
    for place in _cpuset_mounts(host):
        for group in _and_parents(name):
            for file in (
                f"cpuset.{resource}.effective",
                f"cpuset.effective_{resource}",
                f"cpuset.{resource}",
                resource,
            ):
                found = read_list(host, f"{place}{group}/{file}")
                # In version 2 a file that is empty, or not there, means "as the parent has it".
                if not isinstance(found, Missing) and found:
                    return found
    return _UNRESTRICTED


def _and_parents(group: str) -> Iterator[str]:
    while group:
        yield group
        group = group.rpartition("/")[0]
    yield ""


def _cpuset_of_cgroup(host: Host) -> str | None:
    text = host.read("/proc/self/cgroup")
    if isinstance(text, Missing):
        return None
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    named = [path for _, controllers, path in lines if "cpuset" in controllers.split(",")]
    unified = [path for number, controllers, path in lines if number == "0" and not controllers]
    return next(iter(named + unified), None)


def _cpuset_mounts(host: Host) -> Iterator[str]:
    mounts = host.read("/proc/self/mounts")
    if isinstance(mounts, Missing):
        mounts = host.read_or_empty("/proc/mounts")
    for line in mounts.splitlines():
        _, place, kind, options = (line.split() + [""] * 4)[:4]
        if kind == "cpuset" or kind == "cgroup2" or (kind == "cgroup" and "cpuset" in options.split(",")):
            yield place
    yield from ("/dev/cpuset", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup")
