"""Control groups that reach a limit of their own: who is in one, and how its limit is read."""

from __future__ import annotations

import shlex

from advisor.diagnosis.askers import largest_process
from advisor.diagnosis.cause import Asker
from advisor.diagnosis.observation import Observation
from advisor.observe.cgroups import unit_of_cgroup


def name_group(path: str) -> str:
    """The service or scope of a group; of a group of neither its path. The top one has limits in a container alone."""
    return unit_of_cgroup(path) or (path if path != "/" else "This container")


def is_below(path: str, top: str) -> bool:
    """Whether a group lies below another one, which counts what it does, too."""
    return path != top and f"{path}/".startswith(f"{top.rstrip('/')}/")


def stalled_share(seen: Observation, path: str) -> float | None:
    """The share of the time in which tasks of a group waited for storage; None where that is not counted."""
    stalled, seconds = seen.rose("cgroup", path, "io_some_us"), seen.span.seconds_of("cgroup")
    return None if stalled is None or not seconds else min(1.0, stalled / (seconds * 1e6))


def device_of(seen: Observation, number: str) -> str:
    """The name of a device; its number where that is not known."""
    return seen.stack.named(number) or number


def asks_group(seen: Observation, path: str, *fields: str) -> Asker | None:
    """The service or scope of a group; for a group of neither its process with the most of ``fields``, None if unknown.

    Under version 1 the path of a process is that of systemd's own tree, so that a group made by hand is not found.
    """
    unit = unit_of_cgroup(path)
    if unit:
        return Asker(unit, None, None)

    def measure(name: str) -> int | None:
        group = seen.word("process", name, "cgroup") or ""
        if not f"{group}/".startswith(f"{path}/"):
            return None
        return sum(seen.rose("process", name, field) or 0 for field in fields)

    return largest_process(seen, measure, None)


def limit_command(
    seen: Observation, path: str, properties: str, *, file: str, controller: str, file_v1: str
) -> tuple[str, ...]:
    """Prints the limit of a group: ``properties`` of its unit; without one ``file`` of version 2, or ``file_v1`` of a
    controller of version 1."""
    unit = unit_of_cgroup(path)
    if unit:
        return (f"systemctl show {unit} --property={properties}",)
    tree = seen.word("cgroups", "trees", controller)
    below = path.rstrip("/")
    place = f"{tree}{below}/{file_v1}" if tree else f"/sys/fs/cgroup{below}/{file}"
    return (f"cat {shlex.quote(place)}",)
