"""On which node a service belongs: that of its own link and disks, if they agree on one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from advisor.errors import UsageError
from advisor.facts.block.block import Array, natural
from advisor.facts.clusters.beegfs import BeegfsService
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.facts.processors.cpulist import format_list, parse_list
from advisor.facts.system.services import CPUS_OF_NODE, NUMA_POLICY, Service
from advisor.planning.records import Change
from advisor.planning.selectors import Selected
from advisor.profiles.profile import Computed, Only, Values, Wanted
from advisor.tunables.unit import binding_value, bound_cpus

__all__ = ["node_of", "select_units", "unit_names"]

# On which NUMA nodes a device lies, drive by drive: of a link, a disk, an array or a mount point by its name.

Nodes = Mapping[int | None, tuple[str, ...]]
"""Node to the links or drives on it, by node; None for those whose node is unknown, the last."""


def nodes_of(device: str, facts: Facts) -> Nodes:
    """The nodes of a link, disk, array or mount point. Raises UsageError for a name that is none of these."""
    array = _find_array(device, facts)
    if array is not None:
        nodes = {disk.name: disk.numa_node for disk in facts.disks}
        found = _by_node((name, nodes[name]) for name in sorted(array.disks, key=natural) if name in nodes)
        if {node for node in found if node is not None} == set(array.numa_nodes):
            return found or {None: ()}
        return dict.fromkeys(array.numa_nodes, ()) or {None: ()}
    for disk in facts.disks:
        if device.removeprefix("/dev/") in (disk.name, *disk.partitions) or device in disk.mountpoints:
            return {disk.numa_node: (disk.name,)}
    for link in facts.links:
        if link.name == device:
            ports = _find_ports(device, {one.name: one for one in facts.links}, frozenset())
            return _by_node((port.name, port.numa_node) for port in ports) or {None: (device,)}
    raise UsageError(f"there is no link, disk, array or mount point {device!r} on this host")


def nodes_seen(device: str, facts: Facts) -> Nodes:
    """`nodes_of` for what a service was seen to use, which may be nothing that a scan lists (a loop device)."""
    try:
        return nodes_of(device, facts)
    except UsageError:
        return {None: ()}


def node_of(device: str, facts: Facts) -> int | None:
    """The node of a link, disk, array or mount point by name; None where it is unknown or there is more than one.

    Raises UsageError for a name that is none of these.
    """
    nodes = nodes_of(device, facts)
    return next(iter(nodes)) if len(nodes) == 1 else None


def nodes_text(nodes: Nodes) -> str:
    """``node 0``, ``node unknown``, or which drives are where: ``nodes 0 (nvme0n1, nvme1n1) and 1 (nvme12n1)``."""
    if len(nodes) < 2:
        node = next(iter(nodes), None)
        return f"node {'unknown' if node is None else node}"
    parts = [
        f"{'unknown' if node is None else node}" + (f" ({', '.join(names)})" if names else "")
        for node, names in nodes.items()
    ]
    return f"nodes {', '.join(parts[:-1])} and {parts[-1]}"


def _find_array(device: str, facts: Facts) -> Array | None:
    names = (device, device.removeprefix("/dev/"), device.removeprefix("/dev/mapper/"))
    for array in facts.arrays:
        if array.manager == "controller":
            continue
        if array.name in names or array.device in names or device in array.mountpoints:
            return array
    return None


def _by_node(places: Iterable[tuple[str, int | None]]) -> Nodes:
    found: dict[int | None, list[str]] = {}
    for name, node in places:
        found.setdefault(node, []).append(name)
    ordered = sorted(found, key=lambda node: (node is None, node or 0))
    return {node: tuple(found[node]) for node in ordered}


def _find_ports(name: str, links: Mapping[str, Link], above: frozenset[str]) -> tuple[Link, ...]:
    """The ports that carry a link; none where they are not among the links."""
    link = links[name]
    if not link.lower:
        return (link,)
    below = [lower for lower in link.lower if lower in links and lower not in above]
    return tuple(
        {port.name: port for lower in below for port in _find_ports(lower, links, above | {name, lower})}.values()
    )


# BeeGFS instances of this host: their configuration files, their units, and the node that each belongs on.

NO_INSTANCES = "no BeeGFS metadata or storage service with targets is set up here"


def select_instances(wanted: Wanted, facts: Facts) -> tuple[Selected, ...]:
    """The metadata and storage services that have targets, as far as ``only`` lets them pass, by configuration file.

    A value that is placed by the node is that of the service's targets; where that is unknown, or there are several,
    the service is left out with the reason.
    """
    only = wanted.only or Only()
    by_node = isinstance(wanted.value, Computed)
    return tuple(
        _on_node(one) if by_node else Selected({"instance": one.path})
        for one in (facts.beegfs.servers if facts.beegfs else ())
        if not only.kinds or one.kind in only.kinds
    )


def _on_node(service: BeegfsService) -> Selected:
    names = {"instance": service.path}
    nodes = sorted({node for target in service.targets for node in target.numa_nodes})
    listed = ", ".join(target.path for target in service.targets)
    if len(nodes) == 1 and all(target.numa_nodes for target in service.targets):
        return Selected(names, str(nodes[0]), why=f"{listed}: on node {nodes[0]}.")
    where = f"on nodes {', '.join(map(str, nodes))}" if len(nodes) > 1 else "on an unknown node"
    return Selected(names, refusal=f"its targets ({listed}) are {where}")


def units_of(patterns: Sequence[str], facts: Facts) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Units of this host's BeeGFS servers that one of the shell patterns fits, each with its targets' mount points."""
    for one in facts.beegfs.servers if facts.beegfs else ():
        if one.unit and any(fnmatchcase(one.unit, pattern) for pattern in patterns):
            yield one.unit, tuple(dict.fromkeys(target.mountpoint or target.path for target in one.targets))


UNIT_RANK = 200


def unit_names(values: Values, facts: Facts) -> tuple[str, ...]:
    """The units of ``--set units=NAME[=DEVICE+DEVICE…],…`` without their devices; ``.service`` may be left out. A shell
    pattern stands for the BeeGFS services of this host that it fits."""
    return (*(unit for unit, _ in _named_units(values)), *_fitting_units(values, facts))


def _named_units(values: Values) -> Iterable[tuple[str, tuple[str, ...]]]:
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


def _fitting_units(values: Values, facts: Facts) -> dict[str, tuple[str, ...]]:
    """Units that patterns select and nobody names, with the mount points of their targets."""
    units = values.get("units") or ()
    assert isinstance(units, tuple)
    named = {unit for unit, _ in _named_units(values)}
    found = units_of(tuple(filter(_is_pattern, units)), facts)
    return {unit: mounts for unit, mounts in found if unit not in named}


def _selected_by_pattern(
    unit: str, mounts: tuple[str, ...], service: Service | None, facts: Facts, *, policy: str
) -> Selected:
    """What a pattern has found is left out with the reason where it has no one node: nobody asked for it by name."""
    known = msgspec.structs.replace(service, devices=mounts) if service else None
    one = _select_unit(unit, (), known, facts, policy=policy)
    return msgspec.structs.replace(one, state="not-applicable") if one.refusal else one


def select_units(values: Values, facts: Facts, services: Sequence[Service]) -> tuple[Selected, ...]:
    """Each named unit with its placement. Raises UsageError for a device that this host does not have."""
    known = {service.unit: service for service in services}
    policy = str(values.get("policy") or "bind")
    by_name = (
        _select_unit(unit, devices, known.get(unit), facts, policy=policy) for unit, devices in _named_units(values)
    )
    by_pattern = (
        _selected_by_pattern(unit, mounts, known.get(unit), facts, policy=policy)
        for unit, mounts in _fitting_units(values, facts).items()
    )
    return (*by_name, *by_pattern)


def _select_unit(
    unit: str, devices: tuple[str, ...], service: Service | None, facts: Facts, *, policy: str
) -> Selected:
    names = {"unit": unit}
    if service is None:
        return Selected(
            names, refusal="systemd knows no such unit, or could not be asked about it here", state="blocked"
        )
    used = devices or service.devices
    nodes = {device: nodes_of(device, facts) if device in devices else nodes_seen(device, facts) for device in used}
    found = sorted({node for each in nodes.values() for node in each if node is not None})
    listed = ", ".join(f"{device} on {nodes_text(each)}" for device, each in nodes.items())
    if not found or (devices and any(None in each for each in nodes.values())):
        reason = f"the node of its devices is unknown ({listed or 'none found'})"
        hint = f"name its link or disk: --set units={unit}=eth1"
        return Selected(names, refusal=f"{reason}: {hint}", state="blocked")
    if len(found) > 1:
        if any(len(each) > 1 for each in nodes.values()):
            refusal = f"its devices are on several nodes ({listed}): {LEAVE_UNBOUND}"
        else:
            refusal = f"its devices are on several nodes ({listed}): name those that count, --set units={unit}=DEVICE"
        return Selected(names, refusal=refusal, state="blocked")
    if not node_cpus(found[0], facts):
        return Selected(names, refusal=f"node {found[0]} has no CPUs that are not isolated", state="blocked")
    return placed_on(unit, found[0], listed, service, facts, policy=policy)


LEAVE_UNBOUND = (
    "leave it unbound, or spread its memory with NUMAPolicy=interleave in its unit; an array of drives of one node "
    "could be bound"
)


def placed_on(unit: str, node: int, used: str, service: Service, facts: Facts, *, policy: str) -> Selected:
    """The service on one node, with the directives that this systemd has."""
    value, how = choose_placement(node, service, facts, policy=policy)
    return Selected({"unit": unit}, value, why=f"It uses {used}.{how}", rank=UNIT_RANK)


def choose_placement(node: int, service: Service, facts: Facts, *, policy: str) -> tuple[str, str]:
    """The value that binds a service to a node, and what has to be said about it.

    systemd 243 brought NUMAPolicy=, 244 CPUAffinity=numa; a distribution may have them earlier (RHEL 8's 239). What
    ``systemctl show`` prints is there; what it does not print is there only if the version says so.
    """
    version = facts.systemd.version if facts.systemd else None
    cpus = node_cpus(node, facts)
    if "NUMAPolicy" in service.lacks and (version is None or version < NUMA_POLICY):
        return bound_cpus(cpus), f" Its CPUs are bound by number; its memory cannot be bound: {_no_policy(version)}."
    isolated = _listed_cpus(node, facts) - frozenset(parse_list(cpus))
    if isolated:
        # CPUAffinity= overrides isolcpus=: the whole node would bring the service onto isolated CPUs.
        how = f" CPUs {format_list(isolated)} of the node are isolated, so its CPUs are given by number."
        return binding_value(node, policy=policy, cpus=cpus), how
    if "CPUAffinityFromNUMA" in service.lacks and version is not None and version < CPUS_OF_NODE:
        how = f" systemd {version} does not take CPUAffinity=numa, so the CPUs are given by number."
        return binding_value(node, policy=policy, cpus=cpus), how
    return binding_value(node, policy=policy), ""


def _no_policy(version: int | None) -> str:
    if version is None:
        return "systemctl show prints no NUMAPolicy here (the version of systemd is unknown)"
    return f"systemd {version} has no NUMAPolicy= ({NUMA_POLICY} and later have)"


NO_MEMORY = (
    "memory cannot be bound by a unit here: it comes from the node of the CPU that touches it first, and from another "
    "when that node is full; numactl --membind in ExecStart= binds it"
)


def memory_notes(changes: Iterable[Change], facts: Facts) -> tuple[str, ...]:
    """What a plan has to say once, where it binds CPUs and cannot bind memory."""
    count = sum(one.tunable.startswith("unit:") and one.after.startswith("CPUAffinity=") for one in changes)
    if not count:
        return ()
    version = facts.systemd.version if facts.systemd else None
    bound_services = "the CPUs of 1 service are" if count == 1 else f"the CPUs of {count} services are"
    return (f"{_no_policy(version)}: {bound_services} bound by number; {NO_MEMORY}",)


def node_cpus(node: int, facts: Facts) -> str:
    """The housekeeping CPUs of a node as a list such as ``0-23,48-71``; empty where it has none."""
    free = frozenset(parse_list(facts.cpu.sets.housekeeping))
    cpus = _listed_cpus(node, facts)
    return format_list(cpus & free if free else cpus)


def _listed_cpus(node: int, facts: Facts) -> frozenset[int]:
    return frozenset(parse_list(next((one.cpus or "" for one in facts.numa.nodes if one.id == node), "")))
