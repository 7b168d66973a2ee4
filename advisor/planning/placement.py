"""On which node a service belongs: that of its own link and disks, if they agree on one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.facts.links import Link
from advisor.facts.services import Service
from advisor.facts.whole import Facts
from advisor.planning.beegfs import units_of
from advisor.planning.selection import Selected
from advisor.profiles import Values
from advisor.tunables.unit_numa import bound

UNIT_RANK = 200


def unit_names(values: Values, facts: Facts) -> tuple[str, ...]:
    """The units of ``--set units=NAME[=DEVICE+DEVICE…],…`` without their devices; ``.service`` may be left out. A shell
    pattern stands for the BeeGFS services of this host that it fits."""
    return (*(unit for unit, _ in _named(values)), *_fitting(values, facts))


def _named(values: Values) -> Iterable[tuple[str, tuple[str, ...]]]:
    units = values.get("units") or ()
    assert isinstance(units, tuple)
    for text in units:
        if _is_pattern(text):
            continue
        # '=' cannot be part of a unit's name (systemd.unit(5)), so what follows it names devices.
        unit, _, devices = text.partition("=")
        unit = unit if unit.endswith(".service") else unit + ".service"
        yield unit, tuple(device for device in devices.split("+") if device)


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[") and "=" not in text


def _fitting(values: Values, facts: Facts) -> dict[str, tuple[str, ...]]:
    """Units that patterns select and nobody names, with the mount points of their targets."""
    units = values.get("units") or ()
    assert isinstance(units, tuple)
    named = {unit for unit, _ in _named(values)}
    found = units_of(tuple(filter(_is_pattern, units)), facts)
    return {unit: mounts for unit, mounts in found if unit not in named}


def _selected_by_pattern(
    unit: str, mounts: tuple[str, ...], service: Service | None, facts: Facts, *, policy: str
) -> Selected:
    """What a pattern has found is left out with the reason where it has no one node: nobody asked for it by name."""
    known = msgspec.structs.replace(service, devices=mounts) if service else None
    one = _selected(unit, (), known, facts, policy=policy)
    return msgspec.structs.replace(one, state="not-applicable") if one.refusal else one


def select_units(values: Values, facts: Facts, services: Sequence[Service]) -> tuple[Selected, ...]:
    """Each named unit with its placement. Raises UsageError for a device that this host does not have."""
    known = {service.unit: service for service in services}
    policy = str(values.get("policy") or "bind")
    by_name = (_selected(unit, devices, known.get(unit), facts, policy=policy) for unit, devices in _named(values))
    by_pattern = (
        _selected_by_pattern(unit, mounts, known.get(unit), facts, policy=policy)
        for unit, mounts in _fitting(values, facts).items()
    )
    return (*by_name, *by_pattern)


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
