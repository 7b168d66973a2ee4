"""BeeGFS' clients: connections, links, stripe pattern and what an fsync means, on hosts that mount it.

A host is a client where a BeeGFS file system is mounted, or where a client's file is set up and no server is: the
packages of a server may bring that file too.
"""

from __future__ import annotations

import shlex

from advisor.facts.clusters.beegfs import BeegfsService, StripePattern
from advisor.facts.network.links import Link
from advisor.rules import sources
from advisor.rules.clusters.beegfs import servers, set_pattern
from advisor.rules.clusters.beegfs_settings import MIB, connection_bytes, number, size
from advisor.rules.clusters.infoscale import has_rdma, is_beegfs, is_rdma_off
from advisor.rules.queries import is_physical, is_up
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, RunShell, Severity, rule, set_beegfs

ORDER = 310

CONNECTIONS = 24
"""What the article's clients of 40 cores have to each server, against 12 by default."""
CHUNK_BYTES = 2 << 20
STRIPE_COUNT = 3
_DEFAULT_STRIPE_COUNT = 4
_FALSE = frozenset({"false", "0", "no"})
_REMOUNT = RunShell(
    "systemctl restart beegfs-client", "mount again with the new settings", "what uses BeeGFS on this host"
)


def clients(facts: Facts) -> tuple[BeegfsService, ...]:
    """The configuration files of clients that count on this host."""
    is_mounted = any(one.kind == "beegfs" for one in facts.network_storage)
    found = tuple(one for one in (facts.beegfs.services if facts.beegfs else ()) if one.kind == "client")
    return found if is_mounted or not servers(facts) else ()


def _severity_for(workload: DeclaredWorkload | None) -> Severity:
    return "advice" if is_beegfs(workload) else "info"


def _more_memory(client: BeegfsService, connections: int) -> int | None:
    """MiB that each server process holds for one client with so many RDMA connections."""
    buffers, each = number(client, "connRDMABufNum"), size(client, "connRDMABufSize")
    if buffers is None or each is None:
        return None
    return connection_bytes(clients=1, connections=connections, buffers=buffers, buffer_bytes=each) // MIB


@rule(
    id="beegfs.client-connections",
    severity="advice",
    title="A BeeGFS client opens few connections per server",
    what=f"connMaxInternodeNum of clients (12 where the file says nothing), against {CONNECTIONS} or the number of "
    "CPUs, whichever is less.",
    why="Each request in flight takes a connection for itself until it is answered.",
    helps_when="Many threads on one client read and write at once, on large servers.",
    hurts_when="Each connection takes buffers on every server: 32 clients with 24 take 840 MiB of each service. More "
    "than the client has CPUs gain nothing.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_CLIENT),
)
def few_connections(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    wanted = min(CONNECTIONS, facts.cpu.threads or CONNECTIONS)
    counts = [(one, count) for one in clients(facts) if (count := number(one, "connMaxInternodeNum")) is not None]
    low = [(one, count) for one, count in counts if count < wanted]
    if not low:
        return None
    return few_connections.found(
        severity=_severity_for(workload),
        why=f"Requests of many threads wait for a connection; the article's clients have {CONNECTIONS} to each server.",
        evidence={
            "detail": tuple(f"{one.label}: connMaxInternodeNum {count}" for one, count in low),
            "cpus": facts.cpu.threads,
            "server_memory_mib_for_each_client": _more_memory(low[0][0], wanted),
        },
        remedy=(*(set_beegfs(one.path, "connMaxInternodeNum", str(wanted), "at-least") for one, _ in low), _REMOUNT),
        intent=not is_beegfs(workload),
    )


def _rank_link(link: Link) -> tuple[bool, int]:
    return has_rdma(link), link.speed_mbps or 0


def _why_interfaces(client: BeegfsService, links: dict[str, Link]) -> str:
    ranks = {_rank_link(link) for link in links.values()}
    if len(ranks) < 2:
        return ""
    if not client.settings.get("connInterfacesFile"):
        return f"{client.label}: no connInterfacesFile"
    first = next((name for name in client.interfaces or () if name in links), None)
    if first is None or _rank_link(links[first]) == max(ranks):
        return ""
    return f"{client.label}: {first} comes first, {max(links.values(), key=_rank_link).name} is faster"


@rule(
    id="beegfs.client-interfaces",
    severity="advice",
    title="A BeeGFS client may use a slower link than it has",
    what="connInterfacesFile of clients with links of several kinds or speeds that are up and have an address.",
    why="The article's clients have one InfiniBand link for data, and Ethernet for the private network.",
    helps_when="A slow link leads to the servers as well.",
    hurts_when="A link that is not in the file is never used, also when the other one fails.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_CLIENT),
)
def client_interfaces(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    links = {
        link.name: link
        for link in tuple(link for link in facts.links if is_physical(link) and is_up(link) and link.addresses)
    }
    found = tuple(why for one in clients(facts) if (why := _why_interfaces(one, links)))
    if not found or len(links) < 2:
        return None
    best = max(links.values(), key=_rank_link).name
    wrong = any("comes first" in why for why in found)
    return client_interfaces.found(
        severity="advice" if wrong else _severity_for(workload),
        why="The client may use any of its links in an order of its own, the slower one too.",
        evidence={
            "detail": found,
            "links": tuple(f"{one.name}: {one.speed_mbps or '?'} Mbit/s" for one in links.values()),
        },
        remedy=(
            RunShell(f"echo {shlex.quote(best)} > /etc/beegfs/client-interfaces.conf", "name the data link in a file"),
            "name that file by connInterfacesFile in the client's configuration",
            _REMOUNT,
        ),
        intent=not wrong and not is_beegfs(workload),
    )


def _is_default(one: StripePattern) -> bool:
    chunk, count = one.entry.chunk_bytes, one.entry.targets
    return (chunk is not None and chunk < CHUNK_BYTES) or count == _DEFAULT_STRIPE_COUNT


def _describe_mount(one: StripePattern) -> str:
    chunk = f"{one.entry.chunk_bytes // 1024:,} KiB" if one.entry.chunk_bytes else "an unknown chunk"
    return f"{one.mountpoint}: {one.entry.targets or '?'} targets for each file, {chunk}"


@rule(
    id="beegfs.client-stripes",
    severity="advice",
    title="A BeeGFS mount is striped unlike the article",
    what="Stripe count and chunk size of mounted file systems (beegfs-ctl or beegfs tells it), on hosts without BeeGFS "
    "servers: chunks below 2 MiB, or four targets for each file.",
    why="The pattern decides how many servers a file's requests go to, and how large they are there.",
    helps_when="Large files, read and written in order, on servers with three targets in each zone.",
    hurts_when="Small files; or zones of another number of targets: then that number, or a divisor of it.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STRIPING),
)
def client_stripes(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if servers(facts):
        return None
    patterns = facts.beegfs.patterns if facts.beegfs else ()
    found = tuple(one for one in patterns if _is_default(one))
    if not found:
        return None
    is_meant = is_beegfs(workload) and workload is not None and workload.is_sequential
    return client_stripes.found(
        severity="advice" if is_meant else "info",
        why="A request larger than a chunk goes to several servers, and a count of targets that the zones do not have "
        "loads them unequally. The article stripes over three targets, as many as each of its zones has, in chunks of "
        "2 MiB.",
        evidence={"detail": tuple(map(_describe_mount, found))},
        remedy=set_pattern(facts, STRIPE_COUNT),
        intent=not is_meant,
    )


@rule(
    id="beegfs.client-fsync",
    severity="advice",
    title="A BeeGFS client does not pass fsync to servers",
    what="tuneRemoteFSync of clients.",
    why="It is true by default: an fsync then makes the servers write their caches out as well.",
    helps_when="Data must last through a crash of a server.",
    hurts_when="Programs with very many fsyncs on scratch data wait for the servers' drives.",
    sources=(sources.BEEGFS_CLIENT,),
)
def remote_fsync(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(one for one in clients(facts) if one.settings.get("tuneRemoteFSync", "").lower() in _FALSE)
    if not found:
        return None
    return remote_fsync.found(
        why="An fsync returns when the data has left the client: what a server holds in memory is lost with it, and a "
        "benchmark that ends with fsync measures memory.",
        evidence={"detail": tuple(f"{one.label}: tuneRemoteFSync = false" for one in found)},
        remedy=(
            *(set_beegfs(one.path, "tuneRemoteFSync", "true") for one in found),
            _REMOUNT,
            "false is for scratch data alone",
        ),
    )


@rule(
    id="beegfs.rdma-off",
    severity="advice",
    title="BeeGFS does not use the RDMA of its links",
    what="connUseRDMA = false in a file of a service or client, on a host with an InfiniBand or RoCE link that is up.",
    why="RDMA moves data between the memory of two hosts without their sockets.",
    helps_when="Client and servers have RDMA links on one fabric.",
    hurts_when="It was switched off for a fault of driver or firmware: then find that first.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_CLIENT, sources.BEEGFS_STORAGE_CONF),
)
def rdma_off(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    ports = tuple(link.name for link in facts.links if is_up(link) and has_rdma(link))
    kinds = ("meta", "storage")
    used = {id(one) for one in (*servers(facts), *clients(facts))}
    found = tuple(
        one for one in (facts.beegfs.services if facts.beegfs else ()) if id(one) in used and is_rdma_off(one)
    )
    if not ports or not found:
        return None
    return rdma_off.found(
        why="Data goes through TCP over IPoIB, which costs both sides CPU time and copies; the article's figures are "
        "those of RDMA.",
        evidence={"links": ports, "detail": tuple(f"{one.label}: connUseRDMA = false" for one in found)},
        remedy=(
            *(set_beegfs(one.path, "connUseRDMA", "true") for one in found),
            "set it alike on clients and servers; restart the services one after the other"
            if any(one.kind in kinds for one in found)
            else _REMOUNT,
        ),
    )
