"""BeeGFS on NVMe: services, targets and NUMA zones that should belong together, and the levels of its arrays.

A zone is what the article calls a NUMA node with its drives and its link. What a service is bound to is taken from its
process where it runs, else from what its unit and its configuration file say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from advisor.facts.block.block import PARITY_DISKS, family_of
from advisor.facts.network.links import Link
from advisor.host.numbers import is_count
from advisor.rules import sources
from advisor.rules.processors.locality import data_links, tells_data_links
from advisor.rules.queries import BEEGFS_NVME, NUMA_PINNING, by_name, has_several_nodes, split_ids
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, plan_profile, rule, set_beegfs

if TYPE_CHECKING:
    from advisor.facts.clusters.beegfs import BeegfsService, BeegfsTarget

ORDER = 280

LARGE_BYTES = 32_000_000_000
"""Memory from which on the article's figures are meant: 262,144 KiB kept free is much of a small host's."""
_NO_COPY = ("raid0", "striped", "linear")
_MIRRORS = frozenset({"raid1", "raid10", "mirror"})


def servers(facts: Facts) -> tuple[BeegfsService, ...]:
    """Metadata and storage services of this host that have targets."""
    return facts.beegfs.servers if facts.beegfs else ()


def is_release_8(facts: Facts) -> bool:
    """Whether the host has BeeGFS' new tool, and not beegfs-ctl."""
    return facts.beegfs is not None and facts.beegfs.tool == "beegfs"


def set_pattern(facts: Facts, targets: int) -> str:
    """How the files of a directory get that many targets and the article's chunks."""
    command = (
        f"beegfs entry set --num-targets={targets} --chunk-size=2m DIRECTORY"
        if is_release_8(facts)
        else f"beegfs-ctl --setpattern --numtargets={targets} --chunksize=2m DIRECTORY"
    )
    return f"for new files in a directory: {command}"


def node_of_targets(service: BeegfsService) -> int | None:
    """The one node on which all its targets lie; None where that is unknown, or there are several."""
    nodes = {target.numa_nodes for target in service.targets}
    only = nodes.pop() if len(nodes) == 1 else ()
    return only[0] if len(only) == 1 else None


def placed(facts: Facts) -> Iterator[tuple[BeegfsService, int, frozenset[int]]]:
    """Services whose targets lie on one node, that node and its CPUs; none on a host of one node."""
    cpus = {node.id: split_ids(node.cpus) for node in facts.numa.nodes}
    for service in servers(facts) if has_several_nodes(facts) else ():
        node = node_of_targets(service)
        if node is not None and cpus.get(node):
            yield service, node, cpus[node]


def _numa_zone(service: BeegfsService) -> int | None:
    text = service.settings.get("tuneBindToNumaZone", "")
    return int(text) if is_count(text) and len(text) < 6 else None


def _is_unbound(service: BeegfsService, near: frozenset[int]) -> bool:
    """Whether it may run on CPUs of its targets' node and of others too; False where that is not known."""
    process = service.service
    allowed = split_ids(process.cpus_allowed) if process else frozenset()
    if allowed:
        return bool(allowed & near) and not allowed <= near
    if process is None or process.main_pid is not None or _numa_zone(service) is not None:
        return False
    return not process.cpu_affinity and process.numa_policy in (None, "default")


def profile_applies(facts: Facts) -> bool:
    """Whether the profile has a plan for this host: its own conditions, in short."""
    return bool(servers(facts)) and has_several_nodes(facts) and (facts.memory.total_bytes or 0) >= LARGE_BYTES


def _binding_profile(facts: Facts) -> tuple[str, Mapping[str, tuple[str, ...]]]:
    """The profile that binds services here, and its settings: on a small host only the one that it takes over."""
    if profile_applies(facts):
        return BEEGFS_NVME, {}
    return NUMA_PINNING, {"units": ("beegfs-meta*", "beegfs-storage*")}


def _describe_place(service: BeegfsService) -> str:
    process = service.service
    return f"runs on CPUs {process.cpus_allowed}" if process and process.cpus_allowed else "bound to nothing"


@rule(
    id="beegfs.not-bound",
    severity="advice",
    title="BeeGFS services are not bound to a NUMA node",
    what="The CPUs that each metadata and storage service may use (/proc/PID/status), or what its unit and "
    "tuneBindToNumaZone say where it does not run, against the node of its targets' drives.",
    why="Access across nodes costs 10 per cent and more. The article runs one service for each target, each bound to "
    "the node of its drives.",
    helps_when="Two nodes with drives and a link each, at throughputs near what drives or link carry.",
    hurts_when="The node's memory is small against the service's buffers and page cache; with automatic balancing off, "
    "programs that nobody binds lose by it.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STORAGE_CONF, sources.SYSTEMD_EXEC),
    contradictions=("contradiction.numa-balancing",),
)
def not_bound(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple((one, node) for one, node, near in placed(facts) if _is_unbound(one, near))
    if not found:
        return None
    profile, units = _binding_profile(facts)
    return not_bound.found(
        why="Their threads run on any node, so that requests and buffers cross between nodes although drives and link "
        "are on one.",
        evidence={
            "units": tuple(one.label for one, _ in found),
            "detail": tuple(f"{one.label}: targets on node {node}, {_describe_place(one)}" for one, node in found),
        },
        remedy=plan_profile(profile, **units),
    )


def _why_wrong(service: BeegfsService, node: int, near: frozenset[int]) -> str:
    process, zone = service.service, _numa_zone(service)
    allowed = split_ids(process.cpus_allowed) if process else frozenset()
    if allowed and not allowed & near:
        return _describe_place(service)
    return f"tuneBindToNumaZone = {zone}" if zone is not None and zone != node else ""


@rule(
    id="beegfs.wrong-node",
    severity="warning",
    title="BeeGFS services are bound to the wrong NUMA node",
    what="The CPUs of each running service, and tuneBindToNumaZone of its configuration file, against the node of its "
    "targets' drives.",
    why="Node numbers change with firmware settings and cards move between slots, while the files stay.",
    helps_when="Always where the drives' node is known.",
    hurts_when="The service was put near its link on purpose, as the drives are slow against it.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_BINDING),
)
def bound_to_wrong_node(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    wrong = tuple((one, node, why) for one, node, near in placed(facts) if (why := _why_wrong(one, node, near)))
    if not wrong:
        return None
    files = [(one, node) for one, node, _ in wrong if _numa_zone(one) not in (None, node)]
    units = tuple(one.label for one, node, _ in wrong if (one, node) not in files)
    return bound_to_wrong_node.found(
        why="Every request of these services crosses between nodes: worse than bound to nothing.",
        evidence={
            "units": tuple(one.label for one, _, _ in wrong),
            "detail": tuple(f"{one.label}: targets on node {node}, {why}" for one, node, why in wrong),
        },
        # These alone: the others are where they belong.
        remedy=(
            *(set_beegfs(one.path, "tuneBindToNumaZone", node) for one, node in files),
            *((plan_profile(NUMA_PINNING, units=units),) if units else ()),
            "restart these services, one after the other",
        ),
    )


_BY_UNIT = (
    "The profile gives the units a policy and a node; after a restart, /proc/PID/numa_maps shows whether it is so."
)
_NOT_BY_UNIT = "This systemd has no NUMAPolicy= (243 and later have it), so no unit can bind memory here."
_BY_NUMACTL = (
    "numactl --membind=NODE before the program in ExecStart= of a drop-in, with the node of the targets; "
    "/proc/PID/numa_maps shows whether it is so"
)


def _has_free_memory(service: BeegfsService, node: int, near: frozenset[int]) -> bool:
    """Whether it runs on its node's CPUs and takes memory from anywhere: by its unit, by the nodes that it may use, and
    by the policy of its process, which numactl sets."""
    process = service.service
    allowed = split_ids(process.cpus_allowed) if process else frozenset()
    if process is None or not allowed or not allowed <= near or process.numa_policy not in (None, "default"):
        return False
    nodes = split_ids(process.mems_allowed)
    return process.memory_policy in (None, "default", "local") and not (nodes and nodes <= {node})


@rule(
    id="beegfs.memory-not-bound",
    severity="info",
    title="BeeGFS services are bound to CPUs, not to memory",
    what="NUMAPolicy of the units of services that run on one node's CPUs, and the policy of their processes "
    "(/proc/PID/numa_maps, as root), which a numactl around the program sets.",
    why="tuneBindToNumaZone sets the CPUs only. The wrapper of NetApp's roles asks for numactl --membind, but tests "
    "variables that are never set, so it never runs it.",
    helps_when="The page cache fills a node and what is allocated next comes from the other.",
    hurts_when="Strictly bound memory can run out on one node while another has plenty: --set policy=preferred.",
    sources=(sources.BEEGFS_BINDING, sources.NETAPP_BEEGFS_PIN, sources.SYSTEMD_EXEC),
)
def memory_not_bound(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(one for one, node, near in placed(facts) if _has_free_memory(one, node, near))
    if not found:
        return None
    profile, units = _binding_profile(facts)
    by_unit = any(one.service and "NUMAPolicy" not in one.service.lacks for one in found)
    first = "Their threads are bound, and no unit says where their memory comes from: pages come from the node of "
    first += "whoever touches them first, and from another when that one is full of page cache. "
    return memory_not_bound.found(
        why=first + (_BY_UNIT if by_unit else _NOT_BY_UNIT),
        evidence={"units": tuple(one.label for one in found)},
        remedy=plan_profile(profile, **units) if by_unit else _BY_NUMACTL,
    )


@rule(
    id="beegfs.service-spans-nodes",
    severity="advice",
    title="One BeeGFS service has targets on several nodes",
    what="The node of each target of a service.",
    why="The article gives each target a service of its own, so that each can be bound to its zone.",
    helps_when="The drives are fast enough for the way between the sockets to count.",
    hurts_when="More services take more memory, ports and connections; moving a target to another service means that "
    "its numeric id must stay as it was.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_UNITS),
)
def spans_zones(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = []
    for service in servers(facts):
        nodes = {target.path: target.numa_nodes[0] for target in service.targets if len(target.numa_nodes) == 1}
        if len(set(nodes.values())) > 1:
            found.append((service, nodes))
    if not found:
        return None
    return spans_zones.found(
        why="Wherever such a service is bound, part of its targets is on another node.",
        evidence={
            "units": tuple(one.label for one, _ in found),
            "detail": tuple(
                f"{one.label}: {', '.join(f'{path} on node {node}' for path, node in nodes.items())}"
                for one, nodes in found
            ),
        },
        remedy="run one instance for each zone, or for each target: a configuration in /etc/beegfs/INSTANCE.d with "
        "ports, a store directory and an interfaces file of its own, started by systemctl enable --now "
        "beegfs-storage@INSTANCE",
    )


def _placed_links(facts: Facts) -> tuple[Link, ...]:
    """The data links; none where they, or their nodes, are unknown: then only drives count."""
    links = by_name(facts)
    found = data_links(facts, links) if tells_data_links(facts, links) else ()
    return () if any(link.numa_node is None for link in found) else found


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@rule(
    id="beegfs.uneven-zones",
    severity="advice",
    title="NUMA zones of BeeGFS have unlike drives or links",
    what="Drives below BeeGFS targets, and data links, counted for each node that has CPUs.",
    why="The article's servers reach their figures in a balanced layout: each CPU has twelve drives and one link.",
    helps_when="Drives and links are to be used to their limits.",
    hurts_when="The slots are wired to one socket, as in many servers: then bind everything to that one.",
    sources=(sources.DELL_BEEGFS,),
)
def uneven_zones(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    # The slots of a split socket are wired to one of its nodes or another: sockets are compared.
    zones = sorted(facts.numa.sockets_of(node.id for node in facts.numa.nodes if node.cpus))
    if not servers(facts) or len(zones) < 2:
        return None
    nodes = {disk.name: disk.numa_node for disk in facts.disks}
    used = {nodes.get(name) for one in servers(facts) for target in one.targets for name in target.disks}
    links = _placed_links(facts)
    names = {name for one in servers(facts) for target in one.targets for name in target.disks}
    if not names or None in used:
        return None
    drives = Counter(facts.numa.socket_of(node) for name in names if (node := nodes[name]) is not None)
    by_link = Counter(facts.numa.socket_of(link.numa_node) for link in links if link.numa_node is not None)
    has_even = len({drives[zone] for zone in zones}) == 1 and (not links or len({by_link[zone] for zone in zones}) == 1)
    if has_even:
        return None
    return uneven_zones.found(
        why="One socket does most of the work while another waits, and what goes between its drives and a link of the "
        "other crosses over.",
        evidence={
            "detail": tuple(
                f"node {zone}: {_count_noun(drives[zone], 'drive')}"
                + (f", {_count_noun(by_link[zone], 'link')}" if links else "")
                for zone in zones
            )
        },
        remedy="distribute drives and links alike over the sockets' slots, twelve and one in the article, and give "
        "each zone its own services",
    )


def _service_targets(facts: Facts, kind: str) -> Iterator[tuple[BeegfsService, BeegfsTarget]]:
    for service in servers(facts):
        if service.kind == kind:
            yield from ((service, target) for target in service.targets)


def _why_no_mirror(target: BeegfsTarget, kinds: Mapping[str, str]) -> str:
    level = target.level or ""
    if family_of(level) in PARITY_DISKS:
        return f"{target.array} is {level}: each small write reads and writes parity"
    if level in _NO_COPY:
        return f"{target.array} is {level}, without a copy"
    drives = {kinds.get(name) for name in target.disks}
    return f"one NVMe drive, {target.disks[0]}, without a copy" if not target.array and drives == {"nvme"} else ""


@rule(
    id="beegfs.metadata-not-mirrored",
    severity="advice",
    title="BeeGFS metadata does not lie on a mirror",
    what="The level of the array, or the single NVMe drive, below each metadata target. What a RAID controller hides "
    "is not seen.",
    why="A small write costs two operations on a mirror, four on RAID 5 and six on RAID 6.",
    helps_when="Many files are made and removed; and always for keeping them.",
    hurts_when="Metadata is mirrored by BeeGFS to another server (buddy groups): then a second copy here costs drives.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_METADATA),
)
def metadata_not_mirrored(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    kinds = {disk.name: disk.kind for disk in facts.disks}
    bad = tuple(
        (target, why) for _, target in _service_targets(facts, "meta") if (why := _why_no_mirror(target, kinds))
    )
    if not bad:
        return None
    return metadata_not_mirrored.found(
        why="Metadata is many small writes, and the loss of one metadata target loses the names of all its files.",
        evidence={"detail": tuple(f"{target.path}: {why}" for target, why in bad)},
        remedy="use RAID 1 pairs or RAID 10 below metadata targets; the level of what exists changes with a new "
        "file system only",
    )


@rule(
    id="beegfs.storage-on-parity",
    severity="info",
    title="BeeGFS storage targets on NVMe lie on parity RAID",
    what="Storage targets on RAID 4, 5 or 6 of NVMe drives.",
    why="Four drives wrote 5.1 GB/s as RAID 0 and 3.4 GB/s as RAID 10 in the article; parity was not tried there.",
    helps_when="Scratch space: results that can be computed again.",
    hurts_when="The loss of any drive of a RAID 0 loses the whole target, and a part of every large file.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STORAGE),
    contradictions=("contradiction.raid10-writes",),
)
def storage_on_parity(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    kinds = {disk.name: disk.kind for disk in facts.disks}
    found = tuple(
        target
        for _, target in _service_targets(facts, "storage")
        if family_of(target.level) in PARITY_DISKS and {kinds.get(name) for name in target.disks} == {"nvme"}
    )
    if not found:
        return None
    return storage_on_parity.found(
        why="On NVMe drives the CPU that computes parity is the limit, and a part of a stripe costs reads.",
        evidence={"detail": tuple(f"{target.path}: {target.array} is {target.level}" for target in found)},
        remedy="for scratch data that can be made again: RAID 0 of four drives for each target, as the article; for "
        "data that must last, leave it",
        intent=True,
    )


@rule(
    id="beegfs.storage-on-mirror",
    severity="info",
    title="BeeGFS storage targets lie on mirrored NVMe",
    what="Storage targets on RAID 10, RAID 1 or mirrored volumes of NVMe drives.",
    why="The article chose RAID 0: a third less is written to RAID 10, at twice the drives for each terabyte. What it "
    "calls an increase of 50 per cent is a decrease.",
    helps_when="Scratch space: results that can be computed again, written faster than they are read.",
    hurts_when="The loss of any drive of a RAID 0 loses the whole target, and a part of every large file. BeeGFS' own "
    "buddy mirroring keeps a copy on another server instead.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STORAGE),
    contradictions=("contradiction.raid10-writes",),
)
def storage_on_mirror(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    kinds = {disk.name: disk.kind for disk in facts.disks}
    found = tuple(
        target
        for _, target in _service_targets(facts, "storage")
        if (target.level or "") in _MIRRORS and {kinds.get(name) for name in target.disks} == {"nvme"}
    )
    if not found:
        return None
    return storage_on_mirror.found(
        why="Every block is written twice: in the article four drives as RAID 10 wrote 3.4 GB/s with dd and with "
        "StorageBench, as RAID 0 5.1 and 5.5 GB/s, and half of the capacity is the copy.",
        evidence={
            "detail": tuple(
                f"{target.path}: {target.array} is {target.level} of {len(target.disks)} drives" for target in found
            )
        },
        remedy="for data that must last, leave it: with RAID 0 the loss of one drive loses the target. For scratch "
        "data that can be made again: RAID 0 of four drives for each target, with a new file system",
        intent=True,
    )


def all_bound(facts: Facts) -> bool:
    """Whether there are BeeGFS servers here and each of them runs on one node alone: that one is on the wrong node is
    another finding."""
    found = {one.path: one for one, _, _ in placed(facts)}
    if not found or len(found) != len(servers(facts)):
        return False
    nodes = [split_ids(node.cpus) for node in facts.numa.nodes if node.cpus]
    return all(any(_is_within(one, cpus) for cpus in nodes) for one in found.values())


def _is_within(service: BeegfsService, near: frozenset[int]) -> bool:
    process = service.service
    if process is None:
        return False
    if process.cpus_allowed:
        return split_ids(process.cpus_allowed) <= near
    return process.cpu_affinity == "numa" or (bool(process.cpu_affinity) and split_ids(process.cpu_affinity) <= near)
