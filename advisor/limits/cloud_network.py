"""The network of a cloud machine: what all its links carry together, and what one flow does."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.limits.cloud_machine import Hired
from advisor.limits.machines import FLOW_MBPS, FLOW_SOURCE, PLACED_FLOW_MBPS
from advisor.limits.records import PathCeiling, Rate
from advisor.limits.wire import mb_per_s


def network_ceiling(hired: Hired) -> PathCeiling | None:
    """What an EC2 instance carries over all its links, each way; None elsewhere. Headers are not taken off."""
    if hired.provider != "aws":
        return None
    name, machine = hired.name, hired.machine
    found = machine.network if machine else None
    if found is None:
        why = "the firmware does not report the instance type" if name is None else f"{name} is not in the tables"
        if machine is not None:
            why = f"the tables have no network bandwidth of {name}"
        return PathCeiling("instance", "EC2 network", (name,) if name else (), "unknown", why)
    value = mb_per_s(found.mbps)
    most = mb_per_s(found.most_mbps) if found.most_mbps else None
    kind = "file" if found.is_declared else "table"
    return PathCeiling(
        stage="instance",
        what="EC2 network",
        where=(name,) if name else (),
        known="declared" if found.is_declared else "table",
        why=f"{name}, baseline of all its links together; {kind} of {found.dated}",
        sustained=Rate(value, value),
        burst=Rate(most, most) if most else None,
        source=found.source,
    )


def flow_notes(hired: Hired) -> Iterator[str]:
    """What one flow carries, whatever the machine does."""
    if hired.provider == "aws":
        yield (
            f"one flow carries {FLOW_MBPS // 1000} Gbit/s ({mb_per_s(FLOW_MBPS):,.0f} MB/s) at most, or "
            f"{PLACED_FLOW_MBPS // 1000} Gbit/s to instances of the same cluster placement group ({FLOW_SOURCE})"
        )
