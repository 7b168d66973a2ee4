"""Whom this host talks to over its links: routers, cluster nodes, storage, and those whom the user names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, get_args

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.facts.block.mounts import Mount, read_mounts
from advisor.facts.clusters.llt import Llt, LltLink, read_llt
from advisor.facts.network.links import Link, read_links
from advisor.facts.text import printable
from advisor.facts.unknown import LLTTAB, Unknowns
from advisor.host import Host, Missing, is_count
from advisor.reach.addresses import (
    MOST_NEIGHBOURS,
    Address,
    FoundAddress,
    Hop,
    Peer,
    Peers,
    Reach,
    Role,
    Unprobeable,
    gateways,
    link_groups,
    neighbours,
    parse_address,
    resolve,
    route_to,
    scope_of,
    why_not_askable,
    with_scope,
)
from advisor.reach.echo import LARGEST, ask_group
from advisor.reach.path import MAX_COUNT, measure

_ROLES: tuple[Role, ...] = get_args(Role)


class PeerFacts(Protocol):
    """What is needed of the facts; `advisor.facts.host_facts.Facts` has it, and so has `PeerFactsRead`."""

    @property
    def links(self) -> tuple[Link, ...]: ...

    @property
    def llt(self) -> Llt | None: ...


class PeerFactsRead(msgspec.Struct, frozen=True):
    """The facts that peers are found by, without the rest of a scan."""

    links: tuple[Link, ...]
    llt: Llt | None


def read_peer_facts(host: Host) -> PeerFactsRead:
    """Links, and LLT where it is there."""
    unknown = Unknowns()
    links = read_links(host, unknown)
    return PeerFactsRead(links, read_llt(host, links, unknown))


def peers_of(host: Host, facts: PeerFacts, *, links: Collection[str] | None = None, extra: Sequence[str] = ()) -> Peers:
    """Everybody whom this host has reason to talk to, and those of ``extra`` (addresses or names).

    With ``links``, only those whom a route leads to over one of them, or over a link stacked on one of them, among them
    neighbours that were spoken to lately; the rest are left out, ``extra`` ones with a word about it. Raises UsageError
    for an ``extra`` that means no host.
    """
    found, left = _find_sources(host, facts)
    if links is not None:
        found += neighbours(host)
    return _make_peers(host, facts, [*_named_addresses(extra), *found], left, links)


def group_peers(host: Host, facts: PeerFacts, links: Collection[str]) -> Peers:
    """Those who answer one echo to the broadcast addresses and all-nodes groups of some links and of what is stacked
    on them: for links over which nobody is known. Sends packets, which no router passes on."""
    by_name = {link.name: link for link in facts.links}
    found = [
        FoundAddress(address, "neighbour", "answered an echo to all", name)
        for name in sorted(_with_upper(by_name, links).intersection(by_name))
        for group in link_groups(by_name[name].addresses)
        for address in ask_group(name, group)
    ]
    return _make_peers(host, facts, found[:MOST_NEIGHBOURS], [], links)


def named_peers(host: Host, facts: PeerFacts, names: Sequence[str]) -> Peers:
    """Those whom the user names, and nobody else. Raises UsageError for one that means no host."""
    return _make_peers(host, facts, _named_addresses(names), [], None)


def _named_addresses(names: Iterable[str]) -> list[FoundAddress]:
    return [FoundAddress(str(resolve(name)), "named", _why_named(name)) for name in names]


def _why_named(name: str) -> str:
    return "named" if parse_address(name) else f"named {printable(name)}"


def _find_sources(host: Host, facts: PeerFacts) -> tuple[list[FoundAddress], list[Unprobeable]]:
    routers = [FoundAddress(str(address), "gateway", "default gateway", link) for address, link in gateways(host)]
    nodes, left = llt_peers(host, facts.llt)
    mounts = read_mounts(host)
    servers = [] if isinstance(mounts, Missing) else nfs_servers(mounts)
    return [*routers, *nodes, *iscsi_portals(host), *servers, *nvme_targets(host)], left


def _make_peers(
    host: Host,
    facts: PeerFacts,
    found: Iterable[FoundAddress],
    left: Iterable[Unprobeable],
    links: Collection[str] | None,
) -> Peers:
    by_name = {link.name: link for link in facts.links}
    wanted = None if links is None else _with_upper(by_name, links)
    asked: list[Peer] = []
    unprobeable = [one for one in left if wanted is None or one.link is None or one.link in wanted]
    for one in dict.fromkeys(found):
        made = _make_peer(host, by_name, one)
        outside = wanted is not None and made.link not in wanted
        if isinstance(made, Peer) and outside and one.role == "named":
            over = f"reached over {made.link}" if made.link else "no route leads there"
            unprobeable.append(Unprobeable(made.address, "named", made.link, f"{over}: none of the links meant"))
        elif isinstance(made, Peer) and not outside:
            asked.append(made)
        elif isinstance(made, Unprobeable) and (not outside or made.link is None):
            unprobeable.append(made)
    # One for each address and link, with every reason to ask it; by role, then by address.
    groups: dict[tuple[str, str | None], list[Peer]] = {}
    for peer in sorted(asked, key=lambda peer: _ROLES.index(peer.role)):
        groups.setdefault((peer.address, peer.link), []).append(peer)
    merged = [_merge_group(group) for group in groups.values()]
    return Peers(tuple(sorted(merged, key=_peer_order)), tuple(dict.fromkeys(unprobeable)))


def _with_upper(by_name: Mapping[str, Link], links: Iterable[str]) -> frozenset[str]:
    """The links and all that is stacked on them."""
    found: set[str] = set()
    pending = list(links)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(by_name[name].upper if name in by_name else ())
    return frozenset(found)


def _make_peer(host: Host, by_name: Mapping[str, Link], one: FoundAddress) -> Peer | Unprobeable:
    address = parse_address(one.address)
    if address is None:
        return Unprobeable(printable(one.address[:80]), one.role, one.link, f"{one.why}: not an IP address")
    address = with_scope(address, one.link)
    why_not = why_not_askable(address)
    if why_not is not None:
        return Unprobeable(str(address), one.role, one.link, f"{one.why}: {why_not}")
    source = _source_address(one.source, address)
    # The link that the service is bound to where it is to one; else what the route says.
    hop: Hop | None
    if one.link is not None and one.role in ("gateway", "llt", "nvme"):
        hop = Hop(one.link)
    else:
        hop = route_to(host, address, source)
    link = hop.link if hop else None
    if one.role != "named" and (address.packed in _own_addresses(by_name) or (hop and hop.is_local)):
        return Unprobeable(str(address), one.role, link, f"{one.why}: an address of this host itself")
    return Peer(
        address=str(address),
        role=one.role,
        link=link,
        why=printable(one.why),
        source=str(source) if source else None,
        mtu=by_name[link].mtu if link is not None and link in by_name else None,
    )


def _own_addresses(by_name: Mapping[str, Link]) -> frozenset[bytes]:
    own = (parse_address(text.partition("/")[0]) for link in by_name.values() for text in link.addresses)
    return frozenset(address.packed for address in own if address)


def _source_address(text: str | None, address: Address) -> Address | None:
    source = parse_address(text) if text else None
    if source is None or source.version != address.version or source.is_unspecified:
        return None
    return with_scope(source, scope_of(address))


def _merge_group(group: Sequence[Peer]) -> Peer:
    reasons: Iterator[str] = iter(dict.fromkeys(peer.why for peer in group))
    source = next((peer.source for peer in group if peer.source), None)
    return msgspec.structs.replace(group[0], why="; ".join(reasons), source=source)


def _peer_order(peer: Peer) -> tuple[int, int, int, str]:
    address = parse_address(peer.address)
    assert address is not None
    return _ROLES.index(peer.role), address.version, int(address), peer.link or ""


# The other nodes of a Veritas cluster, over those LLT links that run over IP: llttab(4), lltstat(1M).


class NodeAddress(msgspec.Struct, frozen=True):
    """A ``set-addr`` line: the address of a node on the link with this tag."""

    node: str
    tag: str
    address: str


def parse_set_addr(text: str) -> tuple[NodeAddress, ...]:
    """The ``set-addr NODE TAG ADDRESS`` lines of /etc/llttab; a word that begins with # begins a comment."""
    found = []
    for line in text.replace("\0", "").splitlines():
        words = line.split()
        comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        match words[:comment]:
            case ["set-addr", node, tag, address]:
                found.append(NodeAddress(node, tag, address))
    return tuple(found)


def llt_peers(host: Host, llt: Llt | None) -> tuple[list[FoundAddress], list[Unprobeable]]:
    """The addresses that /etc/llttab and the running LLT name, and the links that have none."""
    if llt is None:
        return [], []
    known = list(parse_set_addr(host.read_or_empty(LLTTAB)))
    known += _from_nodes(llt)
    by_tag = {link.tag: link for link in llt.links if _is_over_ip(link)}
    found = [_found_address(one, by_tag.get(one.tag)) for one in dict.fromkeys(known)]
    tags = {one.tag for one in known}
    return found, [_unprobeable_link(link) for link in llt.links if not _is_over_ip(link) or link.tag not in tags]


def _from_nodes(llt: Llt) -> Iterator[NodeAddress]:
    """The IP addresses in what lltstat -nvv shows of links over IP; hardware addresses are of no use here."""
    tags = {link.tag for link in llt.links if _is_over_ip(link)}
    for node in llt.nodes:
        for link in node.links:
            if not node.is_self and link.tag in tags and link.address and parse_address(link.address):
                yield NodeAddress(str(node.id), link.tag, link.address)


def _is_over_ip(link: LltLink) -> bool:
    return link.type in {"udp", "udp6", "rdma"}


def _found_address(one: NodeAddress, link: LltLink | None) -> FoundAddress:
    why = f"LLT node {one.node} over {one.tag}"
    return FoundAddress(one.address, "llt", why, link.link if link else None, link.address if link else None)


def _unprobeable_link(link: LltLink) -> Unprobeable:
    if _is_over_ip(link):
        why = "LLT finds its peers by broadcast, and neither set-addr lines nor lltstat -nvv name any"
    else:
        why = "Ethernet without IP: not to be asked from here, but lltping(1M) can: -s there, -c NODE -m SIZE here"
    return Unprobeable(f"LLT link {link.tag}", "llt", link.link, why)


# The storage that this host uses over the network: NFS servers, iSCSI portals, NVMe targets.

_NVME_OVER_IP = {"tcp": "NVMe/TCP", "rdma": "NVMe/RDMA"}
_MOST_NAMED = 3


def nfs_servers(mounts: Iterable[Mount]) -> list[FoundAddress]:
    """The ``addr=`` of each NFS mount: the server's address as the kernel uses it (nfs(5))."""
    targets: dict[str, list[str]] = {}
    for mount in mounts:
        address = _find_option(mount.options.split(","), "addr") if mount.kind in {"nfs", "nfs4"} else None
        if address:
            targets.setdefault(address, []).append(mount.target)
    return [FoundAddress(address, "nfs", f"NFS server of {_join_names(those)}") for address, those in targets.items()]


def _find_option(options: Iterable[str], name: str) -> str | None:
    return next((option.partition("=")[2] for option in options if option.startswith(f"{name}=")), None) or None


def _join_names(names: Iterable[str]) -> str:
    those = list(dict.fromkeys(names))
    more = len(those) - _MOST_NAMED
    return ", ".join(those[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def iscsi_portals(host: Host) -> list[FoundAddress]:
    """Portals of the iSCSI connections that exist, and the address of this host that each uses (scsi_transport_iscsi).

    ``address`` is where the connection leads now, ``persistent_address`` what it was made with.
    """
    found = []
    base = "/sys/class/iscsi_connection"
    for name in host.names(base):
        address = _read_attribute(host, f"{base}/{name}/address") or _read_attribute(
            host, f"{base}/{name}/persistent_address"
        )
        port = _read_attribute(host, f"{base}/{name}/port") or _read_attribute(host, f"{base}/{name}/persistent_port")
        if address:
            why = f"iSCSI portal, port {port}" if port else "iSCSI portal"
            found.append(FoundAddress(address.strip("[]"), "iscsi", why, source=_iscsi_source(host, f"{base}/{name}")))
    return list(dict.fromkeys(found))


def _iscsi_source(host: Host, connection: str) -> str | None:
    """The address of the SCSI host that the connection hangs below: ``…/host3/session1/connection1:0/…``."""
    place = host.real(connection)
    parts = [] if isinstance(place, Missing) else place.split("/")
    scsi_host = next((part for part in parts if part.startswith("host") and is_count(part[4:])), None)
    return _read_attribute(host, f"/sys/class/iscsi_host/{scsi_host}/ipaddress") if scsi_host else None


def _read_attribute(host: Host, path: str) -> str | None:
    text = host.read(path)
    # The kernel prints a string that was never set in its own way.
    return None if isinstance(text, Missing) or text in ("", "(null)", "<NULL>") else text


def nvme_targets(host: Host) -> list[FoundAddress]:
    """Targets of the NVMe controllers over TCP and RDMA (nvme-fabrics): ``traddr=…,trsvcid=…,host_traddr=…``."""
    found = []
    base = "/sys/class/nvme"
    for name in host.names(base):
        kind = _NVME_OVER_IP.get(_read_attribute(host, f"{base}/{name}/transport") or "")
        options = (_read_attribute(host, f"{base}/{name}/address") or "").split(",")
        address = _find_option(options, "traddr")
        if kind and address:
            source = _find_option(options, "host_traddr") or _find_option(options, "src_addr")
            why = f"{kind} target {name}"
            found.append(FoundAddress(address, "nvme", why, _find_option(options, "host_iface"), source))
    return found


# All peers of a host, or those whom the user names, measured: what `advisor probe` is.

LEAST_MTU = 68
"""The least that IPv4 allows a link to carry (RFC 791)."""


class Survey(msgspec.Struct, frozen=True):
    """The paths to all peers. ``mtu`` is the size in bytes that they are wanted to carry, None where none is."""

    reaches: tuple[Reach, ...]
    unprobeable: tuple[Unprobeable, ...]
    mtu: int | None

    def carries(self, reach: Reach) -> bool | None:
        """Whether the path carries packets of the wanted size; None where no size is wanted."""
        return None if self.mtu is None else reach.path_mtu is not None and reach.path_mtu >= self.mtu

    @property
    def is_carried(self) -> bool:
        """No peer fails to carry the wanted size; true where none is wanted."""
        return not any(self.carries(reach) is False for reach in self.reaches)


def survey(host: Host, names: Sequence[str], *, mtu: int | None, count: int, progress: Callable[[str], None]) -> Survey:
    """Measure the path to each peer: those who are named, else all that the host talks to.

    Raises UsageError for a name or number that makes no sense, RefusedError where there is nobody to ask, and
    PermissionDeniedError where this process may not send echoes.
    """
    if mtu is not None and not LEAST_MTU <= mtu <= LARGEST:
        raise UsageError(f"--mtu {mtu}: expected {LEAST_MTU} to {LARGEST} bytes", hint="--mtu 9000")
    if not 1 <= count <= MAX_COUNT:
        raise UsageError(f"--count {count}: expected 1 to {MAX_COUNT}", hint="--count 10")
    facts = read_peer_facts(host)
    peers = named_peers(host, facts, names) if names else peers_of(host, facts)
    if not peers.asked:
        raise RefusedError(_describe_nobody(peers), hint="name somebody: advisor probe ADDRESS")
    if len(peers.asked) > 1:
        progress(f"asking {len(peers.asked)} peers ...")
    else:
        progress(f"asking {peers.asked[0].address} ...")
    return Survey(measure(peers.asked, count=count), peers.unprobeable, mtu)


def _describe_nobody(peers: Peers) -> str:
    message = "there is nobody to ask: no default gateway, no LLT node over IP, no NFS, iSCSI or NVMe over IP in use"
    left = "; ".join(f"{one.what}: {one.why}" for one in peers.unprobeable)
    return f"{message} ({left})" if left else message
