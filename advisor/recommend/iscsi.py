"""The iSCSI profiles: in which cases the article helps, what it measured, and its order of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from advisor.facts.whole import Facts
from advisor.recommend.records import Case, Figure, Reason
from advisor.rules import sources
from advisor.rules.iscsi import order, sessions_of
from advisor.rules.lookup import ISCSI, ISCSI_MULTIPATH
from advisor.rules.workload import Workload

PROFILES: Final = frozenset({ISCSI, ISCSI_MULTIPATH})

_TUNED: Final = Figure(
    "128.0 MB/s before and 394.5 after the links were tuned (+208 %), of about 440 that four 1 GbE links carry; "
    "4,096 and 12,625 IOPS.",
    "iometer.maxtp-r100: 32 KiB sequential reads, 64 outstanding, a file below the storage's memory",
    sources.OPENFILER,
)
_MIXED: Final = Figure(
    "1.1 MB/s before and 1.42 after; 141 and 182 IOPS.",
    "iometer.reallife: 8 KiB, 60 % random, 65 % reads, 64 outstanding",
    sources.OPENFILER,
)
_SWITCH: Final = Figure(
    "While the path changed after 1,000 requests only, four links gave 128.0 MB/s: little more than one.",
    "iometer.maxtp-r100 over four 1 GbE paths",
    sources.OPENFILER,
)

FIGURES: Final = {ISCSI: (_TUNED, _MIXED), ISCSI_MULTIPATH: (_SWITCH, _TUNED)}


def cases(facts: Facts, workload: Workload) -> tuple[Case, ...]:
    """Storage over iSCSI, by several paths, and work that the links can bind."""
    sessions, paths = sessions_of(facts), facts.iscsi.multipath_disks if facts.iscsi else ()
    return (
        Case("storage is reached over iSCSI", bool(sessions)),
        Case("two paths and more below multipath", len(paths) > 1 if sessions else None),
        Case("sequential access", None if workload.access is None else workload.is_sequential),
        Case("blocks of 64 KiB and more", None if workload.block_bytes is None else workload.has_large_blocks),
    )


def contrary(workload: Workload) -> str | None:
    """Why the declared workload cannot gain; None where it may."""
    if workload.transport == "local":
        return "Nothing of the declared workload crosses the network."
    return None


def reasons(profile: str, facts: Facts) -> Iterator[Reason]:
    """The article's order, where there is iSCSI storage."""
    if profile in PROFILES:
        for one in order(facts, None):
            yield Reason("host", f"{one.title}. {one.why} {one.advice}", one.id, one.evidence)
