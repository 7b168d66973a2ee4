"""What a host is for, as its owner declares it: ``--workload NAME``, ``--workload K=V,…`` or a name with exceptions.

The names are words of the trade, and the systems of the articles that the profiles come from: ``single-node``,
``shared-disk`` and ``fss-…`` are the five configurations of the InfoScale white paper, ``iris`` the database on EBS,
``iscsi-vm`` virtual machines on Openfiler, ``beegfs`` the parallel file system on NVMe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, cast, get_args

import msgspec

from advisor.errors import UsageError, near_names

Access = Literal["sequential", "random"]
Transport = Literal["tcp", "udp", "rdma", "local"]
Replication = Literal["none", "sync", "async"]

_LARGE_BLOCK_BYTES = 64 * 1024
_BLOCK_BYTES = range(512, (1 << 30) + 1)
_RTT_SECONDS_MAX = 10.0
_THREADS_MAX = 65_536
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TIME = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


class DeclaredWorkload(msgspec.Struct, frozen=True):
    """A declared workload; None in a field means that nothing was said about it.

    ``write_share`` runs from 0 to 1. ``transport`` is what carries the data between hosts, ``local`` where nothing
    does. ``rtt_seconds`` is the round-trip time to the peers that wait for each other.
    """

    name: str | None = None
    write_share: float | None = None
    block_bytes: int | None = None
    access: Access | None = None
    transport: Transport | None = None
    rtt_seconds: float | None = None
    replication: Replication | None = None
    threads: int | None = None
    """How many files are read or written at once."""

    @property
    def is_write_heavy(self) -> bool:
        return self.write_share is not None and self.write_share >= 0.5

    @property
    def is_sequential(self) -> bool:
        return self.access == "sequential"

    @property
    def is_replicated(self) -> bool:
        return self.replication in ("sync", "async")

    @property
    def mirrors_writes(self) -> bool:
        """Whether something of it may be shipped to a mirror: a read is served by the local copy."""
        return self.is_replicated and self.write_share != 0

    @property
    def has_large_blocks(self) -> bool:
        return self.block_bytes is not None and self.block_bytes >= _LARGE_BLOCK_BYTES

    @property
    def uses_network(self) -> bool:
        return self.mirrors_writes if self.is_replicated else self.transport in ("tcp", "udp", "rdma")

    @property
    def subject(self) -> str:
        """What a sentence about it begins with."""
        return "The declared workload"


class RecognisedWorkload(DeclaredWorkload, frozen=True):
    """What follows from a recognised configuration; nothing of it was declared."""

    @property
    def subject(self) -> str:
        return "The recognised configuration, not a declared workload,"


_NAMED = {
    str(named.name): named
    for named in (
        DeclaredWorkload("oltp", 0.3, 8 << 10, "random"),
        DeclaredWorkload("replicated-writes", 1.0, 64 << 10, "sequential", "udp", None, "sync"),
        DeclaredWorkload("batch", 0.5, 64 << 10, "sequential"),
        DeclaredWorkload("backup", 1.0, 1 << 20, "sequential"),
        DeclaredWorkload("streaming-read", 0.0, 1 << 20, "sequential"),
        DeclaredWorkload("streaming-write", 1.0, 1 << 20, "sequential"),
        DeclaredWorkload("small-files", 0.5, 4 << 10, "random"),
        DeclaredWorkload("single-node", 0.5, 4 << 10, "random", "local", None, "none"),
        DeclaredWorkload("shared-disk", 0.5, 4 << 10, "random", "local", None, "none"),
        DeclaredWorkload("fss-tcp", 0.5, 4 << 10, "sequential", "tcp", None, "sync"),
        DeclaredWorkload("fss-udp", 0.5, 64 << 10, "sequential", "udp", None, "sync"),
        DeclaredWorkload("fss-cross-zone", 0.5, 4 << 10, "sequential", "udp", 1.16e-3, "sync"),
        DeclaredWorkload("iris", 0.3, 8 << 10, "random", "local"),
        DeclaredWorkload("iscsi-vm", 0.35, 8 << 10, "random", "tcp"),
        DeclaredWorkload("beegfs", 0.5, 1 << 20, "sequential", "rdma"),
        # Services by the names of their profiles: of each, what is the same wherever it runs.
        DeclaredWorkload("postgresql", block_bytes=8 << 10, access="random"),
        DeclaredWorkload("mysql", block_bytes=16 << 10, access="random"),
        DeclaredWorkload("kafka", access="sequential", transport="tcp"),
        DeclaredWorkload("minio", block_bytes=1 << 20, access="sequential", transport="tcp"),
        *(
            DeclaredWorkload(name, transport="tcp")
            for name in ("ceph-osd", "iscsi", "nfs-client", "nfs-server", "redis", "web-server")
        ),
        *(DeclaredWorkload(name) for name in ("cloud-guest", "kvm-host", "virtual-guest")),
    )
}

WORKLOADS = _NAMED | {
    profile: _NAMED[name]
    for profile, name in (
        *((f"infoscale-{name}", name) for name in ("single-node", "shared-disk", "fss-tcp", "fss-udp")),
        *(("infoscale-fss-zones", "fss-cross-zone"), ("beegfs-nvme", "beegfs")),
        *(("iris-write-daemons", "iris"), ("iscsi-multipath", "iscsi")),
    )
}
"""By name, and by each profile of a service: a profile of an article's system stands for that system."""

_DATABASES = "oltp or postgresql or mysql or iris"


def _parse_share(text: str) -> float | None:
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)(%?)", text, re.ASCII)
    share = float(found[1]) / (100 if found[2] else 1) if found else 2.0
    return share if share <= 1 else None


def _parse_block(text: str) -> int | None:
    found = re.fullmatch(r"(\d{1,10})([kmg]?)(?:i?b)?", text.lower(), re.ASCII)
    size = int(found[1]) * _BINARY[found[2]] if found else 0
    return size if size in _BLOCK_BYTES else None


def _parse_rtt(text: str) -> float | None:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)(us|ms|s)", text, re.ASCII)
    seconds = float(found[1]) * _TIME[found[2]] if found else 0.0
    return seconds if 0 < seconds <= _RTT_SECONDS_MAX else None


def _parse_threads(text: str) -> int | None:
    count = int(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else 0
    return count if 0 < count <= _THREADS_MAX else None


def _word_parser(kind: object) -> Callable[[str], str | None]:
    words = cast("tuple[str, ...]", get_args(kind))
    return lambda text: text if text in words else None


# key → field, how its text is read, what to write there
_KEYS: Mapping[str, tuple[str, Callable[[str], object | None], str]] = {
    "write": ("write_share", _parse_share, "a share of writes, as 70% or 0.7"),
    "read": (
        "write_share",
        lambda text: None if (share := _parse_share(text)) is None else 1 - share,
        "a share of reads, as 30% or 0.3",
    ),
    "block": ("block_bytes", _parse_block, "a size from 512 to 1g, as 8k or 1m"),
    "access": ("access", _word_parser(Access), "sequential or random"),
    "transport": ("transport", _word_parser(Transport), "tcp, udp, rdma or local"),
    "rtt": ("rtt_seconds", _parse_rtt, "a time with its unit, as 1.16ms or 300us"),
    "replication": ("replication", _word_parser(Replication), "none, sync or async"),
    "threads": ("threads", _parse_threads, "a number of threads from 1 to 65,536, as 256"),
}


def _list_names(others: Mapping[str, DeclaredWorkload]) -> str:
    groups = dict.fromkeys(f"{name.partition('.')[0]}.…" for name in others)
    patterns = f"; patterns of advisor bench: {', '.join(groups)}" if groups else ""
    keys = ", ".join(f"{key} ({form})" for key, (_, _, form) in _KEYS.items())
    return f"names: {', '.join(_NAMED)}{patterns}; keys: {keys}"


def _named_workload(name: str, others: Mapping[str, DeclaredWorkload]) -> DeclaredWorkload:
    known = WORKLOADS.get(name) or others.get(name)
    if known is None:
        like = others if "." in name else (*WORKLOADS, *others, "database")
        near = " or ".join(near_names(name, like)).replace("database", _DATABASES)
        raise UsageError(
            f"--workload: no workload is named {name!r}", hint=f"did you mean {near}?" if near else _list_names(others)
        )
    return known


def _parse_setting(text: str, others: Mapping[str, DeclaredWorkload]) -> tuple[str, object]:
    key, _, value = (part.strip() for part in text.partition("="))
    if key not in _KEYS:
        raise UsageError(f"--workload: unknown key {key!r}", hint=_list_names(others))
    field, read, form = _KEYS[key]
    parsed = read(value)
    if parsed is None:
        raise UsageError(f"--workload: {key}={value}: expected {form}")
    return field, parsed


def _second_name(part: str, named: DeclaredWorkload) -> str:
    why = f"{named.name!r} is one already" if named.name else f"write {part},KEY=VALUE"
    return f"--workload: {part!r} is a name: one NAME comes first, and only one is taken ({why})"


def parse_workload(text: str, others: Mapping[str, DeclaredWorkload] = {}) -> DeclaredWorkload:
    """A workload from ``NAME``, ``K=V,…`` or ``NAME,K=V,…``; a later key wins over the name.

    ``others`` are further names that may be given. Raises UsageError, which names the known workloads and keys.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError("--workload: says nothing", hint=_list_names(others))
    named = DeclaredWorkload() if "=" in parts[0] else _named_workload(parts.pop(0), others)
    fields: dict[str, object] = {}
    said: dict[str, str] = {}
    for part in parts:
        if part in WORKLOADS or part in others:
            raise UsageError(_second_name(part, named), hint=_list_names(others))
        field, value = _parse_setting(part, others)
        if field in fields:
            key = part.partition("=")[0].strip()
            if said[field].partition("=")[0].strip() != key:
                raise UsageError(
                    f"--workload: {said[field]} and {part}: only one of both is taken",
                    hint="what is not read is written: read=70% is write=30%",
                )
            raise UsageError(f"--workload: {key} is given twice")
        fields[field], said[field] = value, part
    return msgspec.structs.replace(named, **fields)
