"""BeeGFS' own settings: workers, buffers and connections against the host's memory, ports, stripes; and the kernel's
memory settings that its guides ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from advisor.facts.clusters.beegfs import BeegfsService, StripePattern, size_bytes
from advisor.facts.settings import vendor_values
from advisor.host.numbers import count_noun, is_count
from advisor.rules import sources
from advisor.rules.clusters.beegfs import (
    LARGE_BYTES,
    is_release_8,
    node_of_targets,
    profile_applies,
    servers,
    set_pattern,
)
from advisor.rules.clusters.infoscale import is_beegfs
from advisor.rules.queries import BEEGFS_NVME, sysctl_numbers
from advisor.rules.rule import (
    DeclaredWorkload,
    Facts,
    Finding,
    Remedy,
    RunShell,
    plan_profile,
    rule,
    set_beegfs,
    set_sysctl,
)

# Arithmetic of BeeGFS: streams and stripes over targets, and the memory that workers and connections take.

MIB = 1 << 20
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "storage": {"tuneNumWorkers": "12", "connMaxInternodeNum": "12"},
    "meta": {"tuneNumWorkers": "0", "connMaxInternodeNum": "32"},
    "client": {"connMaxInternodeNum": "12"},
}
"""What holds where a configuration file does not give a key, by kind of service; `COMMON` for all kinds."""
COMMON: Mapping[str, str] = {
    "connRDMABufNum": "70",
    "connRDMABufSize": "8192",
    "tuneFileReadSize": "128k",
    "tuneFileWriteSize": "128k",
    "tuneUsePerTargetWorkers": "true",
    "tuneWorkerBufSize": "4m",
}


def streams_for_all_targets(targets: int, stripe_count: int) -> int:
    """How many files must be read or written at once before every target has work; each has ``stripe_count``."""
    return -(-targets // max(stripe_count, 1))


def stripe_counts(targets_per_zone: int) -> tuple[int, ...]:
    """Numbers of targets for a file that fill the targets of a zone evenly: the divisors, the largest first."""
    return tuple(count for count in range(targets_per_zone, 0, -1) if targets_per_zone % count == 0)


def connection_bytes(*, clients: int, connections: int, buffers: int, buffer_bytes: int) -> int:
    """Memory of a server in RDMA buffers, those to send and those to receive."""
    return clients * connections * buffers * buffer_bytes * 2


def worker_bytes(*, workers: int, buffer_bytes: int) -> int:
    """Memory in the buffers of workers, of which each has two."""
    return workers * buffer_bytes * 2


def value(service: BeegfsService, key: str) -> str:
    """What a key says, or its default; empty where BeeGFS has none that is known here."""
    return service.settings.get(key) or DEFAULTS.get(service.kind, {}).get(key) or COMMON.get(key, "")


def number(service: BeegfsService, key: str) -> int | None:
    """`value` as a whole number; None for anything else."""
    text = value(service, key)
    return int(text) if is_count(text) and len(text) < 10 else None


def size(service: BeegfsService, key: str) -> int | None:
    """`value` in bytes; None for anything else."""

    return size_bytes(value(service, key))


def workers(service: BeegfsService, threads: int | None) -> int | None:
    """Workers that a service starts: of a storage service for each target, of metadata by default two for each of
    ``threads`` CPUs. None where that is not known."""
    count = number(service, "tuneNumWorkers")
    if count == 0 and service.kind == "meta":
        return 2 * threads if threads else None
    if count is None or service.kind != "storage":
        return count
    is_each = value(service, "tuneUsePerTargetWorkers").lower() in {"true", "1", "yes"}
    return count * (len(service.targets) if is_each else 1)


def buffers_of_workers(services: Iterable[BeegfsService], threads: int | None) -> int | None:
    """Bytes in the buffers of all workers of these services; None where one is not known."""
    total = 0
    for service in services:
        count, each = workers(service, threads), size(service, "tuneWorkerBufSize")
        if count is None or each is None:
            return None
        total += worker_bytes(workers=count, buffer_bytes=each)
    return total


ORDER = 300

MEMORY_SHARE = 0.25
"""Share of the memory that BeeGFS' buffers may take before it is said (our choice, as for the plans' budgets)."""
FEW_CLIENTS = 100
WORKERS_PER_CPU = 8
_PAGE_BYTES = 4096
_PORTS: Mapping[str, tuple[tuple[str, ...], int]] = {
    "storage": (("connStoragePort", "connStoragePortTCP"), 8003),
    "meta": (("connMetaPort", "connMetaPortTCP"), 8005),
}

_MULTIPLE = "is no multiple of"
_RESTART = RunShell(
    "systemctl restart 'beegfs-storage*'", "let the services read their files", "the storage targets of this host"
)


def _client_connections(facts: Facts) -> int:
    """Connections that a client opens to each service: as a client's file on this host says, else its default."""
    clients = (one for one in (facts.beegfs.services if facts.beegfs else ()) if one.kind == "client")
    given = [count for one in clients if (count := number(one, "connMaxInternodeNum")) is not None]
    return max(given, default=int(DEFAULTS["client"]["connMaxInternodeNum"]))


def _bytes_of_client(service: BeegfsService, connections: int) -> int | None:
    buffers, each = number(service, "connRDMABufNum"), size(service, "connRDMABufSize")
    if buffers is None or each is None:
        return None
    return connection_bytes(clients=1, connections=connections, buffers=buffers, buffer_bytes=each)


@rule(
    id="beegfs.buffer-memory",
    severity="advice",
    title="BeeGFS' buffers may take much of the memory",
    what="Workers × tuneWorkerBufSize × 2 of all services, and connections × connRDMABufNum × connRDMABufSize × 2 for "
    f"each client, against a quarter of the memory; said about clients from fewer than {FEW_CLIENTS} of them on.",
    why="Each worker has two buffers, and each RDMA connection buffers to send and to receive.",
    helps_when="Many clients, many services on one host, or buffers that were raised.",
    hurts_when="Fewer connections and workers serve fewer requests at once.",
    sources=(sources.BEEGFS_STORAGE_CONF, sources.BEEGFS_CLIENT),
)
def buffer_memory(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    memory = facts.memory.total_bytes
    if not memory or not servers(facts):
        return None
    by_workers = buffers_of_workers(servers(facts), facts.cpu.threads)
    connections = _client_connections(facts)
    each = sum(_bytes_of_client(one, connections) or 0 for one in servers(facts))
    clients = int(MEMORY_SHARE * memory / each) if each else None
    is_much = by_workers is not None and by_workers > MEMORY_SHARE * memory
    if not is_much and (clients is None or clients >= FEW_CLIENTS):
        return None
    return buffer_memory.found(
        why="Buffers are allocated whether they are used or not, and take from the page cache that serves reads.",
        evidence={
            "memory_mib": memory // MIB,
            "worker_buffers_mib": None if by_workers is None else by_workers // MIB,
            "connection_mib_for_each_client": each // MIB,
            "clients_that_take_a_quarter": clients,
        },
        remedy="lower tuneNumWorkers or connMaxInternodeNum; tuneWorkerBufSize not below what reads and writes ask for",
    )


@rule(
    id="beegfs.workers",
    severity="info",
    title="BeeGFS starts many workers for the host's CPUs",
    what=f"Workers of all metadata and storage services together, against {WORKERS_PER_CPU} for each CPU.",
    why="tuneNumWorkers is for each service, of storage for each target: on a host of many services they add up.",
    helps_when="The CPUs are busy with switching between threads.",
    hurts_when="The drives are slow and most workers wait for them.",
    sources=(sources.BEEGFS_STORAGE_CONF, sources.BEEGFS_META_CONF),
    contradictions=("contradiction.beegfs-meta-workers",),
)
def many_workers(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    threads = facts.cpu.threads
    counts = [workers(one, threads) for one in servers(facts)]
    known = [count for count in counts if count is not None]
    if not threads or not known or None in counts or sum(known) <= WORKERS_PER_CPU * threads:
        return None
    return many_workers.found(
        why="More workers than that wait for CPUs and no longer for drives.",
        evidence={"workers": sum(known), "cpus": threads, "services": len(known)},
        remedy=(
            *(
                set_beegfs(one.path, "tuneNumWorkers", str(WORKERS_PER_CPU * threads // len(known)), "at-most")
                for one in servers(facts)
            ),
            RunShell(
                "beegfs stats server" if is_release_8(facts) else "beegfs-ctl --serverstats --nodetype=storage",
                "see first whether the queue of requests grows; then leave it",
            ),
        ),
    )


def _why_small(service: BeegfsService) -> str:
    buffer, read, write = (size(service, f"tune{key}") for key in ("WorkerBufSize", "FileReadSize", "FileWriteSize"))
    if buffer is None or read is None or write is None or buffer >= max(read, write) + MIB:
        return ""
    given = ", ".join(f"{key} {value(service, key)}" for key in ("tuneFileReadSize", "tuneFileWriteSize"))
    return f"{service.label}: tuneWorkerBufSize {value(service, 'tuneWorkerBufSize')} for {given}"


@rule(
    id="beegfs.worker-buffer",
    severity="advice",
    title="tuneWorkerBufSize is too small for the requests",
    what="tuneWorkerBufSize against the larger of tuneFileReadSize and tuneFileWriteSize, and 1 MiB.",
    why="BeeGFS' configuration file asks for that much.",
    helps_when="tuneFileReadSize or tuneFileWriteSize was raised.",
    hurts_when="The buffer is allocated twice for each worker of each target.",
    sources=(sources.BEEGFS_STORAGE_CONF,),
)
def small_worker_buffer(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple((one, why) for one in servers(facts) if one.kind == "storage" and (why := _why_small(one)))
    if not found:
        return None
    return small_worker_buffer.found(
        why="A worker reads or writes a chunk through its buffer, which must hold one of either and the message.",
        evidence={"detail": tuple(why for _, why in found)},
        remedy=(*(set_beegfs(one.path, "tuneWorkerBufSize", _worker_buffer(one)) for one, _ in found), _RESTART),
    )


def _worker_buffer(service: BeegfsService) -> str:
    """The larger of reads and writes and one MiB more, in whole MiB."""
    largest = max(size(service, key) or 0 for key in ("tuneFileReadSize", "tuneFileWriteSize"))
    return f"{-(-largest // MIB) + 1}m"


def _why_rdma(service: BeegfsService, largest: tuple[StripePattern, int] | None) -> str:
    each, count = size(service, "connRDMABufSize"), number(service, "connRDMABufNum")
    if each is None or count is None or service.kind not in ("storage", "client"):
        return ""
    if each % _PAGE_BYTES:
        return f"{service.label}: connRDMABufSize {each} {_MULTIPLE} {_PAGE_BYTES}"
    if largest is None or each * count >= largest[1] + 4 * each:
        return ""
    return (
        f"{service.label}: {count_noun(count, 'buffer')} of {each} bytes hold {each * count:,} bytes, a chunk of "
        f"{largest[0].mountpoint} and four buffers {largest[1] + 4 * each:,}"
    )


@rule(
    id="beegfs.rdma-buffers",
    severity="advice",
    title="RDMA buffers of BeeGFS do not hold a chunk",
    what="connRDMABufSize × connRDMABufNum against the chunk size of mounted file systems and four buffers more; and "
    "whether connRDMABufSize is a multiple of 4 KiB.",
    why="The default of 70 × 8192 bytes fits the default chunk of 512 KiB; the article's chunks are 2 MiB.",
    helps_when="Large chunks over InfiniBand or RoCE.",
    hurts_when="Each connection of each client takes twice that much memory on every server.",
    sources=(sources.BEEGFS_STORAGE_CONF, sources.BEEGFS_CLIENT, sources.DELL_BEEGFS),
)
def small_rdma_buffers(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    patterns = facts.beegfs.patterns if facts.beegfs else ()
    chunks = [(one, one.entry.chunk_bytes) for one in patterns if one.entry.chunk_bytes]
    largest = max(chunks, key=lambda pair: pair[1], default=None)
    services = facts.beegfs.services if facts.beegfs else ()
    found = tuple((one, why) for one in services if (why := _why_rdma(one, largest)))
    if not found:
        return None
    return small_rdma_buffers.found(
        severity="advice" if any(_MULTIPLE in why for _, why in found) else "info",
        why="A chunk that does not fit into a connection's buffers is sent in parts that wait for each other. The "
        "article reached its figures with chunks of 2 MiB and does not mention these buffers.",
        evidence={"detail": tuple(why for _, why in found)},
        remedy=(
            *(one for service, _ in found for one in _larger_buffers(service, largest)),
            _RESTART,
            "set it alike on clients and servers; each connection of each client takes twice their product on every "
            "server",
        ),
    )


def _larger_buffers(service: BeegfsService, largest: tuple[StripePattern, int] | None) -> Iterator[Remedy]:
    each, count = size(service, "connRDMABufSize") or 0, number(service, "connRDMABufNum") or 0
    whole = -(-each // _PAGE_BYTES) * _PAGE_BYTES
    if whole != each:
        yield set_beegfs(service.path, "connRDMABufSize", str(whole))
    if largest is not None and whole and whole * count < largest[1] + 4 * whole:
        yield set_beegfs(service.path, "connRDMABufNum", str(-(-largest[1] // whole) + 4), "at-least")


def _service_port(service: BeegfsService) -> int | None:
    keys, default = _PORTS[service.kind]
    text = next((service.settings[key] for key in keys if service.settings.get(key)), str(default))
    shift = service.settings.get("connPortShift") or "0"
    return int(text) + int(shift) if all(is_count(one) and len(one) < 6 for one in (text, shift)) else None


@rule(
    id="beegfs.same-port",
    severity="warning",
    title="BeeGFS instances on this host share a port",
    what="Ports of metadata and storage services, of which not all run.",
    why="Several instances on one host read a configuration of their own, in which the port is left as it was.",
    helps_when="An instance is added.",
    hurts_when="Only one of them is meant to run here at a time, as in a cluster with failover.",
    sources=(sources.BEEGFS_UNITS, sources.BEEGFS_STORAGE_CONF),
)
def same_port(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    ports = {one.label: _service_port(one) for one in servers(facts)}
    twice = {port for port, count in Counter(ports.values()).items() if count > 1 and port is not None}
    if not twice or all(
        one.service and one.service.main_pid
        for one in servers(facts)
        if one.label in {label for label, port in ports.items() if port in twice}
    ):
        return None
    return same_port.found(
        why="The second one to start finds its port taken and ends.",
        evidence={"detail": tuple(f"{label}: port {port}" for label, port in ports.items() if port in twice)},
        remedy="give each instance a port of its own in connStoragePort or connMetaPort (with TCP and UDP at the "
        "end before BeeGFS 7.3)",
    )


def _describe_reached(threads: int, count: int, total: int) -> str:
    """How many targets of this host the declared threads can reach, each with a file of its own."""
    streams = "the declared thread" if threads == 1 else f"the declared {threads:,} threads, a file each"
    return f" With {streams}, at most {min(threads * count, total)} of {total} work."


@rule(
    id="beegfs.stripes",
    severity="info",
    title="BeeGFS stripe count against targets of a zone",
    what="The stripe count of mounted file systems, or the declared workload beegfs, and "
    "the storage targets of each node of this host. Other servers are not seen.",
    why="The article has three targets in each zone and stripes over three in chunks of 2 MiB, where four in chunks of "
    "512 KiB are the default; its 33 targets then need eleven streams.",
    helps_when="Large files, read and written in order by many clients.",
    hurts_when="Small files: more targets mean more servers to ask. Chosen at random, a file's targets may lie in "
    "several zones and servers all the same.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STRIPING),
)
def stripes(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found: Counter[int] = Counter()
    for service in servers(facts):
        if service.kind == "storage" and (node := node_of_targets(service)) is not None:
            found[node] += len(service.targets)
    zones = dict(sorted(found.items()))
    patterns = facts.beegfs.patterns if facts.beegfs else ()
    counts = {one.mountpoint: one.entry.targets for one in patterns if one.entry.targets}
    if not zones or not (counts or is_beegfs(workload)):
        return None
    least = min(zones.values())
    uneven = {place: count for place, count in counts.items() if count not in stripe_counts(least)}
    if counts and not uneven:
        return None
    total = sum(zones.values())
    threads = workload.threads if workload else None
    return stripes.found(
        why=f"A zone here has {least} targets: files over {least} of them use a zone's drives alike, and "
        f"{streams_for_all_targets(total, least)} such files at once give every target of this host work."
        + (_describe_reached(threads, least, total) if threads else ""),
        evidence={
            "targets": total,
            "stripe_counts": tuple(
                f"{place}: {count_noun(count, 'target')} for each file" for place, count in counts.items()
            ),
            "detail": tuple(f"node {node}: {count_noun(count, 'storage target')}" for node, count in zones.items()),
        },
        remedy=set_pattern(facts, least),
        intent=True,
    )


def _other_values(facts: Facts) -> Iterator[tuple[str, tuple[int, str]]]:
    """Keys with another value than the guides': the live value and theirs."""
    # What the article and BeeGFS' own guide agree on; where they do not, nothing is asked for.
    for key, text in vendor_values("beegfs").items():
        wanted, now = int(text.removeprefix(">=")), sysctl_numbers(facts, key)
        # A ratio of 0 means that the limit is given in bytes, which is better where memory is large.
        is_bytes = now == (0,) and key.endswith("_ratio")
        if now and not is_bytes and (now[0] < wanted if text.startswith(">") else now[0] != wanted):
            yield key, (now[0], text)


@rule(
    id="beegfs.memory-settings",
    severity="advice",
    title="Memory settings differ from the BeeGFS guides",
    what="vm.dirty_background_ratio, vm.dirty_ratio, vm.min_free_kbytes and vm.vfs_cache_pressure of a recognised "
    "server of 32 GB and more; advice with the declared workload beegfs, a matter of intent without one.",
    why="The article and BeeGFS' guide name the same values for these four. For transparent huge pages and "
    "vm.zone_reclaim_mode they contradict each other: those are left.",
    helps_when="A server for BeeGFS alone, with large memory.",
    hurts_when="Clients run on the same host, or memory is small.",
    sources=(sources.DELL_BEEGFS, sources.BEEGFS_STORAGE, sources.VM),
    contradictions=(
        *("contradiction.dirty-ratios", "contradiction.zone-reclaim-mode", "contradiction.transparent-huge-pages"),
    ),
)
def memory_settings(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    is_declared = is_beegfs(workload)
    is_other = workload is not None and not is_declared
    if is_other or not servers(facts) or (facts.memory.total_bytes or 0) < LARGE_BYTES:
        return None
    other = dict(_other_values(facts))
    if not other:
        return None
    applies = profile_applies(facts)
    return memory_settings.found(
        severity="advice" if is_declared else "info",
        intent=not is_declared,
        why="Less dirty memory before it is written keeps the drives busy without long pauses; inodes kept longer, and "
        "memory kept free, serve many files and requests that come at once.",
        evidence={"detail": tuple(f"{key} {now}, the guides say {wanted}" for key, (now, wanted) in other.items())},
        remedy=plan_profile(BEEGFS_NVME)
        if applies
        else tuple(
            set_sysctl(key, wanted.removeprefix(">="), "at-least" if wanted.startswith(">=") else "exactly")
            for key, (_, wanted) in other.items()
        ),
    )
