"""BeeGFS instances of this host: their configuration files, their units, and the node that each belongs on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from advisor.facts.beegfs import BeegfsService
from advisor.facts.host_facts import Facts
from advisor.planning.selection import Selected
from advisor.profiles.profile import Computed, Only, Wanted

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
