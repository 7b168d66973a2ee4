"""iSCSI paths: which links carry them, whether those are equal and apart, and in which order to tune the whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.network.links import Link
from advisor.facts.remote.iscsi import IscsiSession, networks_of
from advisor.rules import sources
from advisor.rules.queries import ISCSI, NUMA_PINNING, by_name, has_several_nodes, is_physical, links_below, nodes_below
from advisor.rules.rule import Decide, DeclaredWorkload, Facts, Finding, plan_profile, rule

ORDER = 140

Paths = tuple[IscsiSession, ...]


def sessions_of(facts: Facts) -> Paths:
    """The sessions of this host as an initiator."""
    return facts.iscsi.sessions if facts.iscsi else ()


def session_links(sessions: Iterable[IscsiSession]) -> tuple[str, ...]:
    """The links that are known to carry these sessions, each once."""
    return tuple(dict.fromkeys(name for session in sessions for name in session.links))


def path_groups(facts: Facts) -> tuple[tuple[str, Paths], ...]:
    """Sessions that are paths to one thing, with its name: those below one multipath map, and those to one target."""
    found: dict[frozenset[str], tuple[str, Paths]] = {}
    for array in facts.arrays:
        if array.manager == "dm-multipath":
            members = set(array.members)
            paths = tuple(one for one in sessions_of(facts) if members.intersection(one.disks))
            found.setdefault(frozenset(one.name for one in paths), (array.name, paths))
    for target in dict.fromkeys(one.target for one in sessions_of(facts) if one.target):
        paths = tuple(one for one in sessions_of(facts) if one.target == target)
        found.setdefault(frozenset(one.name for one in paths), (target, paths))
    return tuple(group for group in found.values() if len(group[1]) > 1)


def _ports_below(names: Iterable[str], links: Mapping[str, Link]) -> frozenset[str]:
    """The physical links below; none where one of the links rests on none."""
    found: set[str] = set()
    for name in names:
        ports = {link.name for link in links_below(name, links) if is_physical(link)}
        if not ports:
            return frozenset()
        found |= ports
    return frozenset(found)


def _are_known(paths: Paths) -> bool:
    return all(one.link is not None for path in paths for one in path.connections) and all(path.links for path in paths)


@rule(
    id="iscsi.paths-share-link",
    severity="advice",
    title="All iSCSI paths of a target go through one link",
    what="The physical links below the connections of the sessions to one target, or below one multipath map.",
    why="The throughput of several paths is that of the links below them.",
    helps_when="The host has more links that reach the target.",
    hurts_when="Several sessions over one fast link were made on purpose, for more queues.",
    sources=(sources.OPENFILER, sources.ISCSID_CONF),
)
def shared_link(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    links = by_name(facts)
    for name, paths in path_groups(facts):
        if _are_known(paths) and len(ports := _ports_below(session_links(paths), links)) == 1:
            port = next(iter(ports))
            yield shared_link.found(
                title=f"All iSCSI paths of {name} go through {port}",
                why=f"They carry no more than {port} does, and all are lost with it: the paths are several in name "
                "only.",
                evidence={
                    "links": session_links(paths),
                    "port": port,
                    "detail": tuple(
                        f"{path.name} by {one.link or 'a link that is unknown'} to "
                        f"{one.address or one.persistent_address or '?'}"
                        for path in paths
                        for one in path.connections
                    ),
                },
                remedy=_give_links(paths),
            )


def _give_links(paths: Paths) -> Decide:
    portals = ", ".join(dict.fromkeys(one.address or "?" for path in paths for one in path.connections))
    return Decide(
        f"give each path ({portals}) a link of its own: iscsiadm -m iface -I NAME -o new, then iscsiadm -m iface -I "
        "NAME "
        "-o update -n iface.net_ifacename -v LINK, discover and log in through each"
    )


def _shared_networks(links: Iterable[Link]) -> dict[str, tuple[str, ...]]:
    """Networks in which two of the links and more have an address."""
    found: dict[str, tuple[str, ...]] = {}
    for link in links:
        for network in dict.fromkeys(map(str, networks_of(link))):
            found[network] = (*found.get(network, ()), link.name)
    return {network: names for network, names in sorted(found.items()) if len(names) > 1}


@rule(
    id="iscsi.paths-share-subnet",
    severity="advice",
    title="iSCSI paths of one target are in one subnet",
    what="The subnets of the links that carry the sessions to one target.",
    why="One subnet for each path makes the routing table say which link a path takes. The article has four VLANs with "
    "four address ranges for four links.",
    helps_when="Two links and more are to be used at once, or one is to outlive the other.",
    hurts_when="The storage has one portal address only, or its maker asks for one subnet: then bind each session to "
    "its link and set arp_ignore, arp_announce and rp_filter to suit.",
    sources=(sources.OPENFILER, sources.IP_SYSCTL),
)
def shared_subnet(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    links = by_name(facts)
    found: dict[tuple[str, ...], Finding] = {}
    for name, paths in path_groups(facts):
        names = tuple(one for one in session_links(paths) if one in links)
        doubled = _shared_networks([links[one] for one in names])
        if doubled:
            found.setdefault(
                names,
                shared_subnet.found(
                    title=f"iSCSI paths of {name} are in one subnet",
                    why="Routing chooses one link for a subnet, and either link may answer ARP for the other's "
                    "address: traffic of both paths can end up on one link, and one failure can take both.",
                    evidence={
                        "links": names,
                        "detail": tuple(f"{net}: {', '.join(those)}" for net, those in doubled.items()),
                    },
                    remedy="give each path a subnet (and a VLAN) of its own, on this host, the switch and the storage",
                ),
            )
    return tuple(found.values())


def _mtu_differs(name: str, links: Iterable[Link]) -> Finding:
    names = tuple(link.name for link in links)
    return mtu_differs.found(
        title=f"iSCSI links to {name} have different MTUs",
        why="The article's first pitfall: jumbo frames that are not the same from end to end. The paths carry "
        "unequally, and what one end sends in full size can be lost on the way. The switch and the storage have to "
        "carry it too: advisor probe PORTAL asks, with don't-fragment packets, both ways.",
        evidence={"links": names, "detail": tuple(f"{link.name}: {link.mtu}" for link in links)},
        remedy=plan_profile(ISCSI, links=names),
    )


@rule(
    id="iscsi.mtu-differs",
    severity="warning",
    title="Links of one target's paths have different MTUs",
    what="The MTU of the links that carry the sessions to one target. What switches and storage carry is asked by "
    "advisor probe.",
    why="Jumbo frames count from end to end; TCP goes on over a mismatch with smaller segments and says nothing.",
    helps_when="Always: paths of one target should be equal.",
    hurts_when="The smaller one is right because its switch carries no more: then lower the other.",
    sources=(sources.OPENFILER, sources.MEASURED_MTU),
)
def mtu_differs(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    links = by_name(facts)
    found: dict[tuple[str, ...], Finding] = {}
    for name, paths in path_groups(facts):
        own = [links[one] for one in session_links(paths) if one in links]
        if len({link.mtu for link in own if link.mtu is not None}) > 1:
            found.setdefault(tuple(link.name for link in own), _mtu_differs(name, own))
    return tuple(found.values())


def _nodes_below(names: Iterable[str], facts: Facts) -> frozenset[int]:
    """The nodes of the physical links below; none where one of them is not known."""
    links = by_name(facts)
    found = [nodes_below(links[name], links) if name in links else frozenset[int]() for name in names]
    return frozenset(node for nodes in found for node in nodes) if all(found) else frozenset()


def _far_targets(facts: Facts) -> Iterator[Finding]:
    """What this host exports from the disks of one node through the links of another."""
    node_of = {disk.name: disk.numa_node for disk in facts.disks}
    below_arrays = {array.device: array.disks for array in facts.arrays}
    for target in facts.iscsi.targets if facts.iscsi else ():
        portals = tuple(dict.fromkeys(portal.link for portal in target.portals))
        disks = [name for device in target.disks for name in below_arrays.get(device) or (device,)]
        disk_nodes = {node_of.get(name) for name in disks}
        link_nodes = _nodes_below((name for name in portals if name), facts) if None not in portals else frozenset()
        near, disk_sockets = facts.numa.sockets_of(link_nodes), facts.numa.sockets_of(disk_nodes)
        if near and disk_nodes and None not in disk_nodes and not near & disk_sockets:
            yield far_node.found(
                title=f"Disks of {target.name} are on another node than its links",
                why="Every block crosses between the nodes on its way from the disks to the portals' links.",
                evidence={
                    "links": tuple(name for name in portals if name),
                    "disks": tuple(dict.fromkeys(disks)),
                    "link_nodes": tuple(map(str, sorted(link_nodes))),
                    "disk_nodes": tuple(sorted(str(node) for node in disk_nodes)),
                },
                remedy="add a portal on a link of the disks' node, or move the card to a slot of that node",
            )


def _one_sided_sessions(facts: Facts) -> Iterator[Finding]:
    sessions = sessions_of(facts)
    if not sessions or not _are_known(sessions):
        return
    names = session_links(sessions)
    nodes = _nodes_below(names, facts)
    if len(nodes) == 1:
        node = next(iter(nodes))
        yield far_node.found(
            severity="info",
            title=f"All iSCSI sessions go through links of node {node}",
            why="What uses these disks from another node sends and receives all of it over the interconnect.",
            evidence={"links": names, "link_nodes": (str(node),)},
            remedy=f"run what uses them on node {node}: advisor plan {NUMA_PINNING} --set "
            f"units=NAME.service={'+'.join(names)}",
            intent=True,
        )


@rule(
    id="iscsi.far-node",
    severity="advice",
    title="iSCSI goes through the links of another NUMA node",
    what="The nodes of the links that carry sessions, and of portals against the disks behind their target.",
    why="iSCSI copies every block between link and memory: the link's node is the near one.",
    helps_when="10 Gbit/s and more, with the service or the disks on one node.",
    hurts_when="The service needs more CPUs or memory than the node has.",
    sources=(sources.DELL_BEEGFS, sources.PCI_SYSFS),
)
def far_node(facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
    if not has_several_nodes(facts) or facts.iscsi is None:
        return ()
    return (*_far_targets(facts), *_one_sided_sessions(facts))


TRANSPORT_STEP = (
    "advisor bench --target DIR --workload iometer.maxtp-r100 --workload iometer.rnd8k-r70 --save before (its file of "
    "512 MiB fits into the storage's memory, so the links are measured and not the disks)"
)
STOP_RULE = (
    "STOP here until it is near the ceiling (the article: 394.5 of about 440 MB/s, 90 %): tuned disks cannot show "
    "through links that hold them back"
)
DISK_STEP = (
    "only then the disks, with a file of twice the storage's memory: fio --name=disks --directory=DIR --size={size} "
    "--rw=randrw --rwmixread=65 --bs=8k --iodepth=64 --ioengine=libaio --direct=1 --runtime=60 --time_based"
)


def disk_test_bytes(memory_bytes: int) -> int:
    """The size of a test file that measures disks and not the storage's memory: twice that memory (the article)."""
    return 2 * memory_bytes


@rule(
    id="iscsi.order",
    severity="info",
    title="iSCSI: tune the links first, then the disks",
    what="Whether this host has iSCSI sessions, or exports targets.",
    why="Baseline with a file below the storage's memory; links, path selection and cache until near the ceiling; "
    "production settings and disks with a file of twice the memory. Stop rule: whoever goes on to the disks before the "
    "links are near their ceiling gets less from there on.",
    helps_when="New storage, or storage that is slower than its disks are locally.",
    hurts_when="A write cache without a battery is right for step 2 on a test bed only: it has to be restored before "
    "step 3.",
    sources=(sources.OPENFILER,),
)
def order(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    sessions = sessions_of(facts)
    exported = tuple(target.name for target in (facts.iscsi.targets if facts.iscsi else ()) if target.enabled)
    if not sessions and not exported:
        return None
    memory = None if sessions else facts.memory.total_bytes
    size = f"{disk_test_bytes(memory) >> 20}m" if memory else "TWICE-ITS-MEMORY"
    is_initiator = bool(sessions)
    where = "" if is_initiator else " (steps 1 and 2 from the initiator, 3 on this host)"
    links = (
        f"2. advisor limits --bench before: the share of what the links carry; advisor prove {ISCSI} --target DIR "
        "--allow-link-flap --reconnect COMMAND (one that logs the sessions out and in: a connection keeps its segment "
        f"size). {STOP_RULE}"
    )
    return order.found(
        why="What the links lose hides what the disks could do, and a test that touches the disks hides what the links "
        "lose. The article measured and tuned the links first, from 128.0 to 394.5 MB/s, and then only the disks.",
        evidence={
            "links": session_links(sessions),
            "targets": tuple(dict.fromkeys((*(one.target or one.name for one in sessions), *exported))),
        },
        remedy=(Decide(f"1. {TRANSPORT_STEP}"), Decide(links), Decide(f"3. {DISK_STEP.format(size=size)}{where}")),
        intent=True,
    )
