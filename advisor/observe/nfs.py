"""NFS on both sides: the threads of the kernel's server (kind ``nfsd``), and mounts of a client (kind ``nfs``).

Source: Linux Documentation/filesystems/nfs/knfsd-stats.rst; net/sunrpc/svc_xprt.c; fs/nfs/super.c
(nfs_show_stats), include/linux/nfs_iostat.h, net/sunrpc/stats.c and xprtsock.c: times in ms, queues as sums over all
requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex
from advisor.observe.sample import Reading, parse_counts

POOL_STATS = "/proc/fs/nfsd/pool_stats"
_POOL = ("packets", "queued", "woken", "timed_out")
_DEVICE = lazy_regex(r"device (\S{1,300}) mounted on (.{1,300}) with fstype nfs4?(?: statvers=\S+)?$")
_BYTES = lazy_regex(r"\s+bytes:\s+([0-9 ]{10,200})$")
_OPERATION = lazy_regex(r"\s+([A-Z][A-Z0-9_]{1,40}): ([0-9 ]{10,300})$")
_WAITED_FOR = frozenset(
    {
        *("GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "OPEN", "OPEN_NOATTR", "CREATE", "MKDIR", "SYMLINK"),
        *("MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "STATFS"),
    }
)
"""Operations on names and attributes: a call of a program waits for each. What is read ahead or written back, and what
keeps a lease, nobody waits for."""
_MAX_MOUNTS = 256


class NfsMount(msgspec.Struct, frozen=True):
    """Of a mount: sums over all operations and connections, the slots of its connections, and how many these are.

    ``queue_ms`` is the time in which requests waited on this host before they were sent, ``rtt_ms`` that of network
    and server, ``execute_ms`` the whole. ``names`` are the requests for names and attributes, with the first two of
    theirs; ``direct_bytes`` are those that programs asked for past the page cache (O_DIRECT), of all ``server_bytes``.
    """

    source: str
    requests: int = 0
    timeouts: int = 0
    queue_ms: int = 0
    rtt_ms: int = 0
    execute_ms: int = 0
    slots: int = 0
    connections: int = 0
    names: int = 0
    names_ms: int = 0
    names_queue_ms: int = 0
    direct_bytes: int = 0
    server_bytes: int = 0


def parse_pool_stats(text: str) -> dict[str, dict[str, int]]:
    """Counters of each pool of nfsd threads: packets that arrived, transports that were queued, threads woken."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        counts = parse_counts(words[: 1 + len(_POOL)]) if len(words) > len(_POOL) else None
        if counts:
            found[words[0]] = dict(zip(_POOL, counts[1:], strict=True))
    return found


def parse_mountstats(text: str) -> dict[str, NfsMount]:
    """The NFS mounts of /proc/self/mountstats by mount point; a line that is no mount, connection or operation of
    one is left out."""
    found: dict[str, NfsMount] = {}
    sums: dict[str, int] = {}
    target = ""

    def close() -> None:
        if target and target in found:
            found[target] = msgspec.structs.replace(found[target], **sums)

    for line in text.split("\n"):
        if line.startswith("device "):
            close()
            head = _DEVICE.match(line)
            target, sums = "", {}
            if head and len(found) < _MAX_MOUNTS:
                target = head[2]
                found[target] = NfsMount(head[1])
        elif target and line.lstrip().startswith("xprt:"):
            words = line.split()
            counts = parse_counts(words[2:]) if len(words) > 12 and words[1] in ("tcp", "rdma") else None
            if counts:
                # port binds connects connect-time idle sends receives bad-xids requests backlog slots …
                sums["connections"] = sums.get("connections", 0) + 1
                sums["slots"] = max(sums.get("slots", 0), counts[10] if words[1] == "tcp" else 0)
        elif target and (moved := _BYTES.match(line)):
            # By programs: read, written, both directly; by the server: read, written; then pages.
            counts = parse_counts(moved[1].split())
            if counts and len(counts) >= 6:
                sums["direct_bytes"], sums["server_bytes"] = counts[2] + counts[3], counts[4] + counts[5]
        elif target and (operation := _OPERATION.match(line)):
            counts = parse_counts(operation[2].split())
            if counts and len(counts) >= 8:
                names = ("requests", None, "timeouts", None, None, "queue_ms", "rtt_ms", "execute_ms")
                for name, count in zip(names, counts, strict=False):
                    if name:
                        sums[name] = sums.get(name, 0) + count
                if operation[1] in _WAITED_FOR:
                    sums["names"] = sums.get("names", 0) + counts[0]
                    sums["names_queue_ms"] = sums.get("names_queue_ms", 0) + counts[5]
                    sums["names_ms"] = sums.get("names_ms", 0) + counts[6]
    close()
    return found


def read_nfs_server(host: Host, reading: Reading) -> None:
    """Pools of a server that runs; nothing where none does."""
    reading.ask("nfsd")
    text = host.read(POOL_STATS)
    threads = host.read_int("/proc/fs/nfsd/threads")
    if isinstance(text, Missing):
        if not text.is_absent:
            reading.note_missing("nfsd", text)
        return
    levels: Mapping[str, float] = {} if isinstance(threads, Missing) else {"threads": threads}
    for name, counters in parse_pool_stats(text).items():
        reading.add("nfsd", name, counters, levels)


def read_nfs_mounts(host: Host, reading: Reading) -> None:
    """Mounts that this process sees; a host without any has a short table."""
    reading.ask("nfs")
    text = host.read("/proc/self/mountstats")
    for target, mount in parse_mountstats("" if isinstance(text, Missing) else text).items():
        counters = {name: getattr(mount, name) for name in _COUNTED}
        levels = {"slots": mount.slots, "connections": mount.connections}
        reading.add("nfs", re.sub(r"\s", "?", target), counters, levels, {"source": mount.source})


_COUNTED = (
    *("requests", "timeouts", "queue_ms", "rtt_ms", "execute_ms", "names", "names_ms", "names_queue_ms"),
    *("direct_bytes", "server_bytes"),
)
