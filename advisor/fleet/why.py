"""What binds each of many hosts over a span, and which of them stand out; one host's span in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import read_context
from advisor.fleet.compare.gathering import Progress, read_sources
from advisor.fleet.compare.summary import CaptureSource
from advisor.fleet.peers import Outlier, PeerFigure, PeerGroup, find_outliers, measure_host
from advisor.snapshot.open import open_observed


class FleetDiagnosis(msgspec.Struct, frozen=True):
    """``hosts`` with what binds each of them, in the order in which they were given; ``outliers`` stand out from their
    peers, the farthest first; ``groups`` were compared. ``failed`` could not be read, with the reason."""

    hosts: tuple[tuple[str, Diagnosis], ...]
    outliers: tuple[Outlier, ...]
    groups: tuple[PeerGroup, ...]
    failed: Mapping[str, str]

    @property
    def is_bound(self) -> bool:
        """Whether anything stands out, or binds a host."""
        return bool(self.outliers) or any(found.binds for _, found in self.hosts)


def read_observed(source: CaptureSource) -> tuple[Diagnosis, tuple[PeerFigure, ...]]:
    """What binds the host of a snapshot with a span, and what of it can be compared with others."""
    host, span, taken_at = open_observed(Path(source.path))
    context = read_context(host)
    return diagnose(span, context, taken_at), measure_host(source.name, span, context)


def diagnose_fleet(
    sources: Sequence[CaptureSource],
    failed: Mapping[str, str],
    *,
    processes: int | None = None,
    progress: Progress = lambda done, total: None,
) -> FleetDiagnosis:
    """What the spans of many hosts say together; ``failed`` are hosts that are known to have none."""
    unread = dict(failed)
    hosts = []
    figures: list[PeerFigure] = []
    for name, (diagnosis, own) in read_sources(sources, read_observed, unread, progress, processes):
        hosts.append((name, diagnosis))
        figures += own
    outliers, groups = find_outliers(figures)
    return FleetDiagnosis(tuple(hosts), outliers, groups, unread)
