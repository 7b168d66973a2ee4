"""``--workload`` with the names of the measured patterns besides those of the trade."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.proof import workloads as measured
from advisor.proof.workload_file import is_workload_path
from advisor.rules.workload import Access, DeclaredWorkload, Replication, Transport, parse_workload

# What an article's pattern ran over: transport and replication. Nothing is said where it has both forms.
_GROUPS: Mapping[str, tuple[Transport | None, Replication | None]] = {
    "infoscale": (None, "sync"),
    "iometer": ("tcp", None),
    "iris": ("local", None),
    "beegfs": ("rdma", None),
}


_ON_SERVERS = ("beegfs.dd", "beegfs.storagebench")
"""What the article runs on the storage servers themselves: nothing of it crosses the network."""


def declared(text: str) -> DeclaredWorkload:
    """The workload of a command line: a name, a workload file, values. Raises UsageError, which names what is known,
    and InvalidInputError for a file that is none."""
    first = text.partition(",")[0].strip()
    files = {first: measured.get_workload(first)} if is_workload_path(first) else {}
    return parse_workload(text, {name: _as_declared(one) for name, one in {**measured.WORKLOADS, **files}.items()})


def _as_declared(one: measured.Pattern) -> DeclaredWorkload:
    """The last of its jobs, which is the one for the data itself, not the one for a journal."""
    main = one.sections[-1]
    transport, replication = _GROUPS.get(one.name.partition(".")[0], (None, None))
    if one.name.startswith(_ON_SERVERS):
        transport = "local"
    is_random = main.pattern.startswith("rand") and (main.random_percent is None or main.random_percent >= 50)
    access: Access = "random" if is_random else "sequential"
    sends = main.pattern == "write"
    return DeclaredWorkload(
        name=one.name,
        write_share=main.write_share if main.engine != "net" else float(sends),
        block_bytes=main.block_bytes,
        access=access,
        transport="local" if main.engine == "null" else main.protocol or transport,
        replication=replication,
    )
