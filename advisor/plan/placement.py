"""On which node a service belongs: that of its own link and disks, if they agree on one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor.errors import UsageError
from advisor.facts.links import Link
from advisor.facts.services import Service
from advisor.facts.whole import Facts
from advisor.plan.selection import Selected
from advisor.profiles import Values
from advisor.tunables.unit_numa import bound

UNIT_RANK = 200


def unit_names(values: Values) -> tuple[str, ...]:
    """The units of ``--set units=NAME[=DEVICE+DEVICE…],…`` without their devices; ``.service`` may be left out."""
    return tuple(unit for unit, _ in _named(values))


def _named(values: Values) -> Iterable[tuple[str, tuple[str, ...]]]:
    units = values.get("units") or ()
    assert isinstance(units, tuple)
    for text in units:
        # '=' cannot be part of a unit's name (systemd.unit(5)), so what follows it names devices.
        unit, _, devices = text.partition("=")
        unit = unit if unit.endswith(".service") else unit + ".service"
        yield unit, tuple(device for device in devices.split("+") if device)


def select_units(values: Values, facts: Facts, services: Sequence[Service]) -> tuple[Selected, ...]:
    """Each named unit with its placement. Raises UsageError for a device that this host does not have."""
    known = {service.unit: service for service in services}
    policy = str(values.get("policy") or "bind")
    return tuple(_selected(unit, devices, known.get(unit), facts, policy=policy) for unit, devices in _named(values))


def _selected(unit: str, devices: tuple[str, ...], service: Service | None, facts: Facts, *, policy: str) -> Selected:
    names = {"unit": unit}
    if service is None:
        return Selected(
            names, refusal="systemd knows no such unit, or could not be asked about it here", state="blocked"
        )
    used = devices or service.devices
    nodes = {device: _node_seen(device, facts) if device not in devices else node_of(device, facts) for device in used}
    found = sorted({node for node in nodes.values() if node is not None})
    listed = ", ".join(f"{device} on node {'unknown' if node is None else node}" for device, node in nodes.items())
    if not found or (devices and None in nodes.values()):
        reason = f"the node of its devices is unknown ({listed or 'none found'})"
        hint = f"name its link or disk: --set units={unit}=eth1"
        return Selected(names, refusal=f"{reason}: {hint}", state="blocked")
    if len(found) > 1:
        return Selected(
            names,
            refusal=f"its devices are on several nodes ({listed}): name those that count, --set units={unit}=DEVICE",
            state="blocked",
        )
    if not _has_cpus(found[0], facts):
        return Selected(names, refusal=f"node {found[0]} has no CPUs to run on", state="blocked")
    return Selected(names, bound(found[0], policy=policy), why=f"It uses {listed}.", rank=UNIT_RANK)


def _node_seen(device: str, facts: Facts) -> int | None:
    """`node_of` for what a service was seen to use, which may be nothing that a scan lists (a loop device)."""
    try:
        return node_of(device, facts)
    except UsageError:
        return None


def _has_cpus(node: int, facts: Facts) -> bool:
    return any(one.id == node and one.cpus for one in facts.numa.nodes)


def node_of(device: str, facts: Facts) -> int | None:
    """The node of a link, disk, array or mount point by name; None where it is unknown or there is more than one.

    Raises UsageError for a name that is none of these.
    """
    nodes: set[int | None] | None = None
    for link in facts.links:
        if link.name == device:
            nodes = _link_nodes(device, {one.name: one for one in facts.links}, frozenset())
    for disk in facts.disks:
        names = (disk.name, *disk.partitions)
        if device in (*names, *(f"/dev/{name}" for name in names), *disk.mountpoints):
            nodes = {disk.numa_node}
    for array in facts.arrays:
        if device in (array.name, array.device, f"/dev/{array.device}", *array.mountpoints):
            nodes = set(array.numa_nodes) or {None}
    if nodes is None:
        raise UsageError(f"there is no link, disk, array or mount point {device!r} on this host")
    return nodes.pop() if len(nodes) == 1 else None


def _link_nodes(name: str, links: Mapping[str, Link], above: frozenset[str]) -> set[int | None]:
    """The nodes of the ports that carry a link."""
    link = links[name]
    if not link.lower:
        return {link.numa_node}
    below = [lower for lower in link.lower if lower in links and lower not in above]
    return {node for lower in below for node in _link_nodes(lower, links, above | {name, lower})} or {None}
