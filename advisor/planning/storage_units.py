"""Storage services of a host that nobody named: what each keeps its data on, on which node, and what a unit can bind.

A service is planned by its data: the mount points, arrays and drives that hold it. Its links count only where no data
is known. What the kernel serves by itself (NFS, iSCSI targets of LIO and SCST, LLT) is listed with the reason why no
unit binds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.block.block import natural
from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import parse_list
from advisor.facts.system.roles import KernelServices
from advisor.facts.system.services import NUMA_POLICY, Service
from advisor.host.patterns import lazy_regex
from advisor.planning.placement import (
    LEAVE_UNBOUND,
    Nodes,
    choose_placement,
    node_cpus,
    nodes_seen,
    nodes_text,
    placed_on,
)
from advisor.planning.records import SkipState
from advisor.planning.selectors import Selected

_OTHERS = lazy_regex(
    r"(iscsid|iscsi\b|open-iscsi|iscsiuio|multipathd|nfs-(mountd|idmapd|blkmap)|nfsdcld|rpc|nmb|libvirt|virt|dlm|ocfs2"
    r"|gfs2|corosync|pacemaker|drbd|ctdb|linstor|beegfs-(mgmtd|mon|client|helperd)|ceph-(mgr|mds|radosgw|crash)|ssh"
    r"|systemd-|user@|getty|snapd)"
)
"""Storage software that data does not pass through, and services of the system itself."""
_IRIS = lazy_regex(r"(iris|intersystems|isc-?iris)", re.IGNORECASE)
_COORDINATORS = lazy_regex(r"(had|vcs|vxfen|vxconfigd|vxodm|vxdclid|vxesd|gab|llt|amf|CmdServer)\b")
_KERNEL_SIDE = lazy_regex(r"(nfs-server|nfs-kernel-server|nfsd|target\b|target-|rtslib|iscsi-scst|scst|nvmet)")


class StorageUnit(msgspec.Struct, frozen=True):
    """A service found here. ``places`` are what its data lies on, ``links`` what it is reached by, each with its nodes;
    ``service`` is None where systemd could not be asked. ``why_not`` says why no unit can bind it."""

    unit: str
    service: Service | None = None
    places: Mapping[str, Nodes] = {}
    links: Mapping[str, Nodes] = {}
    why_not: str | None = None

    @property
    def used(self) -> Mapping[str, Nodes]:
        """What decides where it belongs: its data, else its links."""
        return self.places if any(node is not None for each in self.places.values() for node in each) else self.links

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes of what decides."""
        return tuple(sorted({node for each in self.used.values() for node in each if node is not None}))


def storage_units(facts: Facts, services: Iterable[Service], kernel: KernelServices) -> tuple[StorageUnit, ...]:
    """The storage services of this host by unit: BeeGFS' by their targets, others by what they were seen to use."""
    found = {one.unit: one for one in _beegfs_units(facts)}
    # What the directories of InterSystems IRIS lie on.
    places = [place for one in facts.iris for place in one.places]
    names = dict.fromkeys(place.mountpoint or place.device for place in places)
    iris = {name: nodes_seen(name, facts) for name in names if name}
    for service in services:
        if iris and _IRIS.match(service.unit):
            found[service.unit] = StorageUnit(service.unit, service, iris)
        elif service.unit not in found and not _OTHERS.match(service.unit) and not _KERNEL_SIDE.match(service.unit):
            links = {link.name for link in facts.links}
            seen = {device: nodes_seen(device, facts) for device in service.devices}
            if _COORDINATORS.match(service.unit):
                found[service.unit] = StorageUnit(service.unit, service, why_not=_COORDINATES)
            else:
                found[service.unit] = StorageUnit(
                    service.unit,
                    service,
                    places={device: nodes for device, nodes in seen.items() if device not in links},
                    links={device: nodes for device, nodes in seen.items() if device in links},
                )
    if iris and not any(_IRIS.match(unit) for unit in found):
        found["iris.service"] = StorageUnit("iris.service", None, iris, why_not=_NO_IRIS_UNIT)
    for one in _kernel_side(facts, kernel):
        found.setdefault(one.unit, one)
    return tuple(sorted(found.values(), key=lambda one: (natural(one.unit), one.unit)))


def _beegfs_units(facts: Facts) -> Iterator[StorageUnit]:
    drives = {disk.name: disk.numa_node for disk in facts.disks}
    for one in facts.beegfs.servers if facts.beegfs else ():
        places: dict[str, Nodes] = {}
        for target in one.targets:
            by_node: dict[int | None, tuple[str, ...]] = {
                node: tuple(name for name in target.disks if drives.get(name) == node) for node in target.numa_nodes
            }
            places[target.mountpoint or target.path] = by_node or {None: target.disks}
        links = {name: nodes_seen(name, facts) for name in one.interfaces or ()}
        if one.unit:
            yield StorageUnit(one.unit, one.service, places, links)


_NO_IRIS_UNIT = (
    "InterSystems IRIS runs under no unit that was seen: numactl --cpunodebind=NODE --membind=NODE before iris start "
    "binds it"
)


_COORDINATES = (
    "no data passes through it: LLT, GAB, VxVM and VxFS are modules of the kernel, which no unit binds; place the "
    "interrupts of LLT's links and of the drives instead"
)
_THREADS = "is served by threads of the kernel, which no unit binds"


def _kernel_side(facts: Facts, kernel: KernelServices) -> Iterator[StorageUnit]:
    if kernel.nfsd:
        places = {path: _nodes_below(path, facts) for path in kernel.nfs_exports}
        why = f"NFS {_THREADS}: sunrpc's pool_mode=pernode gives each node threads of its own"
        yield StorageUnit("nfs-server.service", places=places, why_not=why)
    disks = dict.fromkeys(disk for one in (facts.iscsi.targets if facts.iscsi else ()) for disk in one.disks)
    if facts.iscsi and facts.iscsi.targets:
        places = {disk: nodes_seen(disk, facts) for disk in disks}
        why = f"iSCSI by LIO {_THREADS}: /sys/kernel/config/target/iscsi/cpus_allowed_list does (Linux 5.18 and later)"
        yield StorageUnit("target.service", places=places, why_not=why)
    if kernel.scst:
        yield StorageUnit("iscsi-scstd.service", why_not=f"iSCSI by SCST {_THREADS}: SCST's own cpu_mask does")
    if facts.llt is not None and facts.llt.running:
        links = {one.link: nodes_seen(one.link, facts) for one in facts.llt.links if one.link}
        yield StorageUnit("llt.service", links=links, why_not=_COORDINATES)


def _nodes_below(path: str, facts: Facts) -> Nodes:
    """The nodes of the mount point that a path lies on."""
    while path:
        nodes = nodes_seen(path, facts)
        if any(node is not None for node in nodes):
            return nodes
        path = path.rpartition("/")[0]
    return nodes_seen("/", facts)


def placeable_units(found: Iterable[StorageUnit], facts: Facts) -> tuple[str, ...]:
    """The units that belong on one node, whether they are bound to it already or not."""
    return tuple(one.unit for one in found if _node_to_bind(one, facts) is not None)


def _node_to_bind(one: StorageUnit, facts: Facts) -> int | None:
    """The one node on which a unit can be bound."""
    if one.why_not or len(one.nodes) != 1 or not node_cpus(one.nodes[0], facts):
        return None
    return one.nodes[0]


def select_found(found: Sequence[StorageUnit], facts: Facts, *, policy: str) -> tuple[Selected, ...]:
    """Each with its placement, or with the reason why it has none: nobody named it, so none of them blocks a plan."""
    return tuple(_select_unit(one, facts, policy) for one in found)


def _select_unit(one: StorageUnit, facts: Facts, policy: str) -> Selected:
    names, node, used = {"unit": one.unit}, _node_to_bind(one, facts), _list_places(one)
    if one.why_not:
        where = f" ({_list_places(one)})" if one.used else ""
        return Selected(names, refusal=f"{one.why_not}{where}")
    if node is None:
        names, listed = {"unit": one.unit}, _list_places(one)
        state: SkipState = "not-applicable"
        if len(one.nodes) > 1:
            is_array = any(len(each) > 1 for each in one.used.values())
            hint = LEAVE_UNBOUND if is_array else f"name what counts: --set units={one.unit}=DEVICE"
            return Selected(names, refusal=f"it uses {listed}: {hint}", state=state)
        if one.nodes:
            return Selected(names, refusal=f"it uses {listed}, which has no CPUs to run on", state=state)
        reason = f"the node of what it uses is unknown ({listed or 'nothing was seen'})"
        return Selected(names, refusal=f"{reason}: name it, --set units={one.unit}=DEVICE", state="unknown")
    if one.service is None:
        refusal = f"it uses {used}; systemd could not be asked about it here"
        return Selected(names, refusal=refusal, state="unknown")
    # Whether it runs on CPUs of the node alone and its memory is bound as far as systemd can bind it.
    service = one.service
    near = frozenset(parse_list(node_cpus(node, facts)))
    by_unit = service.numa_policy in ("bind", "preferred") and service.numa_mask == str(node)
    if service.cpus_allowed is not None:
        on_node = frozenset(parse_list(service.cpus_allowed)) <= near
    elif service.cpu_affinity == "numa":
        on_node = by_unit
    else:
        on_node = bool(service.cpu_affinity) and frozenset(parse_list(service.cpu_affinity or "")) <= near
    version = facts.systemd.version if facts.systemd else None
    cannot = "NUMAPolicy" in service.lacks and (version is None or version < NUMA_POLICY)
    by_process = (service.memory_policy or "").startswith(("bind", "prefer")) and (
        service.memory_policy or ""
    ).endswith(f":{node}")
    if on_node and (by_unit or by_process or cannot or service.mems_allowed == str(node)):
        value, _ = choose_placement(node, one.service, facts, policy=policy)
        refusal = f"is bound to node {node} already; it uses {used}"
        return Selected(
            names,
            value,
            refusal=refusal,
            state="in-place",
            before=f"CPUs {one.service.cpus_allowed or one.service.cpu_affinity}",
        )
    return placed_on(one.unit, node, used, one.service, facts, policy=policy)


def _list_places(one: StorageUnit) -> str:
    parts = [f"{device} on {nodes_text(nodes)}" for device, nodes in one.used.items()]
    elsewhere = (
        f"{device} on {nodes_text(nodes)}" for device, nodes in one.links.items() if set(nodes) - {*one.nodes, None}
    )
    return ", ".join((*parts, *elsewhere)) if one.used is one.places else ", ".join(parts)


FOUND_HERE = "storage services found here"


def found_note(found: Iterable[StorageUnit], facts: Facts) -> tuple[str, ...]:
    """One line that lists the storage services by node, as a plan shows what it found."""
    by_node: dict[int, list[str]] = {}
    for one in found:
        node = _node_to_bind(one, facts)
        if node is not None:
            by_node.setdefault(node, []).append(one.unit.removesuffix(".service"))
    if not by_node:
        return ()
    parts = (f"node {node}: {', '.join(units)}" for node, units in sorted(by_node.items()))
    return (f"{FOUND_HERE}: {'; '.join(parts)}",)
