"""The iSCSI profiles: in which cases the article helps, what it measured, its order of steps and its stop rule."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.facts.host_facts import Facts
from advisor.recommend.records import Case, Figure, Reason
from advisor.rules import sources
from advisor.rules.queries import ISCSI, ISCSI_MULTIPATH, JUMBO_FRAMES, by_name, carriers, crosses_iscsi, links_below
from advisor.rules.remote.iscsi import order, sessions_of
from advisor.rules.workload import DeclaredWorkload

PROFILES = frozenset({ISCSI, ISCSI_MULTIPATH})

# A basic header segment goes before the data of a request (RFC 7143, 11.2.1), TCP and IP with their headers around it.
_HEADER_BYTES = 48 + 20 + 20

_SEQUENTIAL = Figure(
    "128.0 MB/s before and 394.5 after the links were tuned (+208 %), of about 440 that four 1 GbE links carry; "
    "4,096 and 12,625 IOPS.",
    "iometer.maxtp-r100: 32 KiB sequential reads, 64 outstanding, a file below the storage's memory",
    sources.OPENFILER,
)
_HALF = Figure(
    "4,302 IOPS before and 7,031 after the links were tuned (+63 %).",
    "iometer.maxtp-rw50: 32 KiB sequential, half reads, 64 outstanding",
    sources.OPENFILER,
)
_REAL_LIFE = Figure(
    "141 IOPS before and 182 after the links were tuned (+28 %); 1.1 and 1.42 MB/s.",
    "iometer.reallife: 8 KiB, 60 % random, 65 % reads, 64 outstanding",
    sources.OPENFILER,
)
_RANDOM = Figure(
    "108 IOPS before and 150 after the links were tuned (+40 %); 0.8 and 1.17 MB/s.",
    "iometer.rnd8k-r70: 8 KiB random, 70 % reads, 64 outstanding",
    sources.OPENFILER,
)
_SWITCH = Figure(
    "While the path changed after 1,000 requests only, four links gave 128.0 MB/s: little more than one.",
    "iometer.maxtp-r100 over four 1 GbE paths",
    sources.OPENFILER,
)
_STEP = (_SEQUENTIAL, _HALF, _REAL_LIFE, _RANDOM)

FIGURES = {ISCSI: _STEP, ISCSI_MULTIPATH: (_SWITCH, *_STEP)}


def cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    """Storage over iSCSI, by several paths, and requests that the links cut into several frames."""
    sessions, paths = sessions_of(facts), facts.iscsi.multipath_disks if facts.iscsi else ()
    return (
        Case("storage is reached over iSCSI", bool(sessions)),
        Case("two paths and more below multipath", len(paths) > 1 if sessions else None),
        *frame_cases(facts, workload),
    )


def frame_cases(facts: Facts, workload: DeclaredWorkload) -> tuple[Case, ...]:
    """Whether a request is larger than a frame of the links that carry iSCSI."""
    mtu, block = storage_mtu(facts), workload.block_bytes
    larger = None if mtu is None or block is None else block + _HEADER_BYTES > mtu
    size = f" ({block:,} against {mtu:,} bytes)" if mtu is not None and block is not None else ""
    return (Case(f"requests larger than a frame of today{size}", larger),)


def storage_mtu(facts: Facts) -> int | None:
    """The smallest MTU in bytes of the links that are known to carry iSCSI, and of those below; None where none is."""
    links = by_name(facts)
    found = (one.mtu for name in carriers(facts) for one in links_below(name, links))
    return min((mtu for mtu in found if mtu is not None), default=None)


def against_frames(facts: Facts, workload: DeclaredWorkload) -> str | None:
    """Why larger frames cannot help requests over iSCSI: arithmetic alone. None where they may."""
    mtu, block = storage_mtu(facts), workload.block_bytes
    if mtu is None or block is None or block + _HEADER_BYTES > mtu or mtu > 1500:
        return None
    return f"Requests of {block:,} bytes and their headers fit into a frame of today ({mtu:,} bytes)."


def contrary(workload: DeclaredWorkload) -> str | None:
    """Why the declared workload cannot gain; None where it may."""
    return "Nothing of the declared workload crosses the network." if workload.transport == "local" else None


def reasons(profile: str, facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Reason]:
    """The article's order and stop rule, where there is iSCSI storage; and which profile has this one whole."""
    is_part = profile == JUMBO_FRAMES and crosses_iscsi(facts, workload)
    if profile not in PROFILES and not is_part:
        return
    for one in order(facts, None):
        yield Reason("host", f"{one.title}. {one.why} {one.fix}", one.id, one.evidence)
    # The profile that has all of the transport step on this host; None where no session is seen.
    if not sessions_of(facts):
        whole = None
    else:
        whole = ISCSI_MULTIPATH if facts.iscsi and len(facts.iscsi.multipath_disks) > 1 else ISCSI
    if whole not in (None, profile):
        yield Reason("host", f"{whole} has it along with what else belongs to iSCSI here: plan one of them.")
