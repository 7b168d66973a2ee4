"""What binds each of many hosts over a span, and which of them stand out; one host's span in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.diagnosis.diagnose import Diagnosis, diagnose
from advisor.diagnosis.observation import read_context
from advisor.errors import AdvisorError
from advisor.fleet.compare.gathering import CaptureSource, Unread, read_sources
from advisor.fleet.peers import Outlier, PeerFigure, PeerGroup, find_outliers, measure_host
from advisor.snapshot.open import open_observed

Progress = Callable[[int, int], None]


class ObservedHost(msgspec.Struct, frozen=True):
    """One host: what binds it, and what of it can be compared with others."""

    name: str
    diagnosis: Diagnosis
    figures: tuple[PeerFigure, ...]


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


def read_observed(source: CaptureSource) -> ObservedHost | Unread:
    """What one snapshot with a span says; one that cannot be read is named, and never raises."""
    path = Path(source.path)
    try:
        host, span, taken_at = open_observed(path)
        context = read_context(host)
    except AdvisorError as error:
        return Unread(source.name, error.message)
    except (OSError, MemoryError) as error:
        return Unread(source.name, f"{source.path}: {error or 'too large for this memory'}")
    found = diagnose(span, context, taken_at)
    return ObservedHost(source.name, found, measure_host(source.name, span, context))


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
    for done, one in enumerate(read_sources(sources, read_observed, processes), 1):
        if isinstance(one, Unread):
            unread[one.name] = one.message
        else:
            hosts.append((one.name, one.diagnosis))
            figures += one.figures
        progress(done, len(sources))
    outliers, groups = find_outliers(figures)
    return FleetDiagnosis(tuple(hosts), outliers, groups, unread)
