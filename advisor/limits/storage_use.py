"""How the storage of a host is used, and so which of its links carry that traffic.

A server's storage goes out over the links of its service: BeeGFS (connInterfacesFile), iSCSI targets (portals), NFS
exports. A client's comes in over the links to its servers. An application on the host itself uses no link, unless
LLT mirrors its writes (FSS). Where nothing says which of these a host is, all physical links that are up count, and
that is stated as an assumption.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import msgspec

from advisor.errors import InvalidInputError
from advisor.facts.block.mounts import Mount, read_mounts
from advisor.facts.clusters.beegfs import BeegfsService
from advisor.facts.host_facts import Facts
from advisor.facts.network.links import Link
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex
from advisor.limits.links import physical_below, portal_links
from advisor.limits.records import Direction, HostCeiling, MeasuredShare, Role
from advisor.reach.peers import nfs_servers
from advisor.rules.queries import by_name, is_physical, is_up, llt_links

# ``--measured``: a throughput that was measured, against the ceiling of a host or cluster.

UNITS = {
    **{"B/s": 1e-6, "kB/s": 1e-3, "MB/s": 1.0, "GB/s": 1e3, "TB/s": 1e6},
    **{"KiB/s": 1024 / 1e6, "MiB/s": 1024**2 / 1e6, "GiB/s": 1024**3 / 1e6, "TiB/s": 1024**4 / 1e6},
    **{"Mbit/s": 0.125, "Gbit/s": 125.0, "Tbit/s": 125_000.0},
}
"""MB/s in each."""
_FORM = lazy_regex(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s?([A-Za-z]{1,4}/s)", re.ASCII)
_HINT = "as 132GB/s, or read=132GB/s,write=121GB/s"


class MeasuredThroughput(msgspec.Struct, frozen=True):
    """MB/s of reads or of writes; ``direction`` None where the figure does not say: it is set against both."""

    direction: Direction | None
    mb_s: float


def parse_throughput(text: str) -> float | None:
    """``132GB/s`` as MB/s; None for what is none."""
    found = _FORM.fullmatch(text.strip())
    factor = _unit_factor(found[2]) if found else None
    return None if found is None or factor is None else float(found[1]) * factor


def _unit_factor(unit: str) -> float | None:
    exact = UNITS.get(unit)
    return exact if exact is not None else {name.lower(): value for name, value in UNITS.items()}.get(unit.lower())


def parse_measured(text: str) -> tuple[MeasuredThroughput, ...]:
    """``132GB/s`` or ``read=132GB/s,write=121GB/s``. Raises InvalidInputError that names the part."""
    found: list[MeasuredThroughput] = []
    for part in text.split(","):
        name, is_named, figure = part.strip().rpartition("=")
        if is_named and name.strip() not in ("read", "write"):
            raise InvalidInputError(f"--measured: field {name.strip()}: not one of read, write", hint=_HINT)
        value = parse_throughput(figure)
        if value is None or not 0 < value < 1e12:
            units = ", ".join(UNITS)
            raise InvalidInputError(
                (
                    f"--measured: field {name or 'figure'}: {figure or 'nothing'}: expected a number above 0 and "
                    f"one of {units}"
                ),
                hint=_HINT,
            )
        direction: Direction | None = None if not is_named else "read" if name.strip() == "read" else "write"
        if any(one.direction == direction for one in found) or (found and None in (direction, found[0].direction)):
            raise InvalidInputError(f"--measured: field {name or 'figure'}: it is given twice", hint=_HINT)
        found.append(MeasuredThroughput(direction, value))
    return tuple(found)


def with_measured(ceiling: HostCeiling, measured: Sequence[MeasuredThroughput]) -> HostCeiling:
    """The ceiling with each figure as a fraction of it."""
    shares = []
    for one in measured:
        directions: tuple[Direction, ...] = (one.direction,) if one.direction else ("read", "write")
        for direction in directions:
            limit = ceiling.read_mb_s if direction == "read" else ceiling.write_mb_s
            part = one.mb_s / limit if limit and math.isfinite(limit) else None
            shares.append(MeasuredShare(direction, one.mb_s, limit, part))
    return msgspec.structs.replace(ceiling, measured=tuple(shares))


EXPORTS = "/etc/exports"


class RemoteFilesystem(msgspec.Struct, frozen=True):
    """A file system of other hosts, and the links to them; empty where these are not known."""

    mountpoint: str
    kind: str
    links: tuple[str, ...]


class Front(msgspec.Struct, frozen=True):
    """``links`` carry what is served; ``why`` says from what that is known, and ``is_assumed`` that it is not.

    ``places`` are the mount points and devices that hold what is served, ``metadata`` those of metadata services;
    empty where every path may. ``mirror`` are the links that take a copy of each write to other nodes.
    """

    role: Role
    why: str
    links: tuple[str, ...] = ()
    is_assumed: bool = False
    places: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    remote: tuple[RemoteFilesystem, ...] = ()
    mirror: tuple[str, ...] = ()


def read_front(host: Host, facts: Facts) -> Front:
    """Of a host, with its facts. What cannot be read is not there."""
    mounts = read_mounts(host)
    exports = host.read(EXPORTS)
    return front_of(
        facts, () if isinstance(mounts, Missing) else mounts, "" if isinstance(exports, Missing) else exports
    )


def front_of(facts: Facts, mounts: Sequence[Mount] = (), exports: str = "") -> Front:
    """The same from what was read. The first of server, client and local application that is seen counts."""
    exported = parse_exports(exports)
    return (
        _beegfs_server(facts)
        or _iscsi_server(facts)
        or (_nfs_server(facts, exported) if exported else None)
        or _client_front(facts, mounts)
        or _local_front(facts)
        or Front(
            "assumed",
            "nothing here says how the storage is used: assumed is that it is served over all physical links that "
            "are up",
            up_links(facts),
            is_assumed=True,
        )
    )


def parse_exports(text: str) -> tuple[str, ...]:
    """The directories of /etc/exports (exports(5))."""
    lines = (line.partition("#")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    found = (re.match(r'"([^"]+)"|(\S+)', line) for line in lines if line)
    return tuple(dict.fromkeys(one[1] or one[2] for one in found if one and (one[1] or one[2]).startswith("/")))


def up_links(facts: Facts) -> tuple[str, ...]:
    """All physical links that are up, and bonds in place of their members."""
    links = by_name(facts)
    tops = [link for link in facts.links if is_up(link) and (link.kind in ("bond", "team") or is_physical(link))]
    inside = {name for link in tops for name in link.lower}
    return tuple(link.name for link in tops if link.name not in inside and physical_below(link.name, links))


def _beegfs_server(facts: Facts) -> Front | None:
    servers = facts.beegfs.servers if facts.beegfs else ()
    storage = [one for one in servers if one.kind == "storage"]
    metadata = [one for one in servers if one.kind == "meta"]
    serving = storage or metadata
    if not serving:
        return None
    links, is_assumed = _beegfs_links(serving, facts)
    what = "BeeGFS storage" if storage else "BeeGFS metadata"
    why = f"{what} services serve over {_join_names(links)}"
    why += " (no connInterfacesFile names links: those that BeeGFS prefers)" if is_assumed else " (connInterfacesFile)"
    return Front(
        "server",
        why,
        links,
        is_assumed,
        places=_target_names(serving),
        metadata=_target_names(metadata) if storage else (),
    )


def _target_names(services: Iterable[BeegfsService]) -> tuple[str, ...]:
    found = (name for one in services for target in one.targets for name in (target.device, target.mountpoint))
    return tuple(dict.fromkeys(name for name in found if name))


def _beegfs_links(services: Iterable[BeegfsService], facts: Facts) -> tuple[tuple[str, ...], bool]:
    """The links that these services use: of each the first that it is allowed and that is up, as BeeGFS takes them in
    their order; where one is allowed all, InfiniBand before Ethernet."""
    links, named = by_name(facts), []
    for one in services:
        if not one.interfaces:
            return _preferred_links(facts), True
        first = (name for name in one.interfaces if name not in links or is_up(links[name]))
        named.append(next(first, one.interfaces[0]))
    return tuple(dict.fromkeys(named)), False


def _preferred_links(facts: Facts) -> tuple[str, ...]:
    links = by_name(facts)
    up = up_links(facts)
    fast = tuple(name for name in up if any(one.kind == "infiniband" for one in physical_below(name, links)))
    return fast or up


def _iscsi_server(facts: Facts) -> Front | None:
    targets = [one for one in (facts.iscsi.targets if facts.iscsi else ()) if one.enabled is not False and one.portals]
    if not targets:
        return None
    portals = [portal for one in targets for portal in one.portals]
    disks = tuple(dict.fromkeys(name for one in targets for name in one.disks))
    named = tuple(dict.fromkeys(portal.link for portal in portals if portal.link))
    if named and all(portal.link for portal in portals):
        why = f"iSCSI targets are served over {_join_names(named)} (portals)"
        return Front("server", why, named, places=disks)
    links = up_links(facts)
    why = f"iSCSI targets listen on every address: assumed are all physical links that are up, {_join_names(links)}"
    return Front("server", why, links, is_assumed=True, places=disks)


def _nfs_server(facts: Facts, exported: tuple[str, ...]) -> Front:
    """No file says which address the clients of an NFS server use."""
    links = up_links(facts)
    why = f"NFS exports {_join_names(exported)}: assumed is that clients come over all physical links that are up"
    # The mount points that these directories are on.
    places = sorted({place for one in facts.filesystems for place in one.mountpoints}, key=len, reverse=True)
    found = []
    for directory in exported:
        where = next((p for p in places if directory == p or directory.startswith(f"{p.rstrip('/')}/")), None)
        found += [where] if where else []
    return Front("server", why, links, is_assumed=True, places=tuple(dict.fromkeys(found)))


def _client_front(facts: Facts, mounts: Sequence[Mount]) -> Front | None:
    remote = tuple(_remote_filesystems(facts, mounts))
    has_sessions = any(one.disks for one in (facts.iscsi.sessions if facts.iscsi else ()))
    if not remote and not has_sessions:
        return None
    whats = [f"{one.kind} {one.mountpoint}" for one in remote] + (["iSCSI sessions"] if has_sessions else [])
    why = f"it uses storage of other hosts: {_join_names(whats)}"
    return Front("client", why, remote=remote, is_assumed=any(not one.links for one in remote))


def _remote_filesystems(facts: Facts, mounts: Sequence[Mount]) -> Iterable[RemoteFilesystem]:
    nfs = {one.address: one for one in nfs_servers(mounts)}
    clients = [one for one in (facts.beegfs.services if facts.beegfs else ()) if one.kind == "client"]
    seen: set[str] = set()
    for mount in mounts:
        if mount.kind not in {"beegfs", "nfs", "nfs4"} or mount.target in seen:
            continue
        seen.add(mount.target)
        if mount.kind == "beegfs":
            links = _beegfs_links(clients, facts)[0] if clients else _preferred_links(facts)
        else:
            address = re.search(r"(?:^|,)addr=([^,]+)", mount.options)
            found = [nfs[address[1]]] if address and address[1] in nfs else []
            links = tuple(name for name in portal_links(found, facts.links) if name)
        yield RemoteFilesystem(mount.target, mount.kind, links)


def _local_front(facts: Facts) -> Front | None:
    """An application on this host reads and writes the disks itself."""
    signs = facts.infoscale.signs if facts.infoscale else None
    if signs is not None and signs.mirrors and facts.llt:
        low = {one.link for one in facts.llt.links if one.low_priority}
        mirror = tuple(name for name in llt_links(facts) if name not in low)
        why = (
            f"applications on this host use the disks; LLT sends a copy of each write over {_join_names(mirror)} (FSS)"
        )
        return Front("local", why, mirror=mirror)
    if signs is not None:
        why = "applications on this host use the disks (InfoScale): no link is on the way"
        if signs.mirrors is None and facts.llt:
            why = "applications on this host use the disks (InfoScale); whether LLT mirrors their writes is not known"
        return Front("local", why)
    if facts.iris:
        return Front("local", "InterSystems IRIS on this host uses the disks: no link is on the way")
    if facts.host.cloud is not None:
        why = (
            "a cloud instance whose volumes are reached apart from its links, and no service here is seen to serve them"
        )
        return Front("local", why)
    return None


def _join_names(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}" if names else "no link"


def physical(names: Iterable[str], facts: Facts) -> tuple[Link, ...]:
    """The physical links below these, each once."""
    links = by_name(facts)
    return tuple({link.name: link for name in names for link in physical_below(name, links)}.values())
