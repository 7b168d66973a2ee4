"""Control groups that reach a limit of their own: who is in one, and how its limit is read."""

from __future__ import annotations

import shlex

from advisor.diagnosis.askers import largest_process
from advisor.diagnosis.cause import Asker
from advisor.diagnosis.observation import Observation
from advisor.observe.cgroups import unit_of_cgroup


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
    place = f"{tree}{path}/{file_v1}" if tree else f"/sys/fs/cgroup{path}/{file}"
    return (f"cat {shlex.quote(place)}",)
