"""What a workload is made of: groups of equal fio jobs, and the named pattern that they form together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.proof.metrics import METRICS, MetricName

KIB = 1024

AccessPattern = Literal["read", "write", "rw", "randread", "randwrite", "randrw"]
Protocol = Literal["tcp", "udp"]
ArrivalKind = Literal["closed", "steady", "poisson", "think", "bursts"]


class Arrival(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a job asks. ``closed``: as soon as one of ``depth`` requests ends. ``steady`` and ``poisson``: ``rate``
    requests a second for each job, at equal or at independent times, if ``depth`` has room. ``think``: after each
    request a pause of ``think_us``; ``bursts``: after ``think_blocks`` requests."""

    kind: ArrivalKind = "closed"
    rate: float = 0.0
    think_us: int = 0
    think_blocks: int = 1


class JobSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One group of equal fio jobs. ``read_percent`` belongs to mixed patterns, ``random_percent`` is fio's
    ``percentage_random``; ``region`` is the part of the scratch file in percent (start, length). With the engine
    ``net`` a ``protocol`` is named, and ``write`` means that this host sends, ``read`` that it receives."""

    name: str
    pattern: AccessPattern
    block_bytes: int
    depth: int = 1
    jobs: int = 1
    engine: Literal["libaio", "psync", "null", "net"] = "libaio"
    protocol: Protocol | None = None
    read_percent: int = 50
    random_percent: int | None = None
    region: tuple[int, int] = (0, 100)
    own_regions: bool = False
    end_fsync: bool = False
    buffered: bool = False
    """Through the page cache, which fio empties of the file first (``invalidate``, its default)."""
    sizes: Mapping[str, Mapping[str, int]] = {}
    """Several block sizes in place of ``block_bytes``: percents that add up to 100 by ``read`` or ``write`` and size in
    bytes."""
    random_percents: tuple[int, ...] = ()
    """``random_percent`` of reads and of writes, where they differ."""
    arrival: Arrival = Arrival()
    flush_every: int = 0
    """A flush (fdatasync) after so many writes; 0 for none."""
    durable: bool = False
    """Each write is on the medium before it ends (O_DSYNC)."""
    zones: tuple[int, ...] = ()
    """Percents of the random accesses that go to each of as many equal parts of the region."""

    @property
    def largest_bytes(self) -> int:
        """The largest block."""
        return max((int(size) for found in self.sizes.values() for size in found), default=self.block_bytes)

    @property
    def needs_scratch(self) -> bool:
        """Whether it touches storage."""
        return self.engine not in ("null", "net")

    @property
    def write_share(self) -> float:
        """Share of the transferred bytes that is written to storage, 0 to 1."""
        if not self.needs_scratch or self.pattern in ("read", "randread"):
            return 0.0
        return 1.0 if self.pattern in ("write", "randwrite") else 1 - self.read_percent / 100


class Pattern(msgspec.Struct, frozen=True):
    """A named pattern: its fio jobs, the metric that a claim uses unless it names another, and its origin."""

    name: str
    title: str
    sections: tuple[JobSection, ...]
    metric: MetricName
    source: str

    @property
    def unit(self) -> str:
        """Unit of the default metric."""
        return METRICS[self.metric].unit

    @property
    def is_writing(self) -> bool:
        """Whether a run of it writes to the scratch file."""
        return any(section.write_share > 0 for section in self.sections)

    @property
    def needs_scratch(self) -> bool:
        """Whether it touches storage at all."""
        return any(section.needs_scratch for section in self.sections)

    @property
    def is_network(self) -> bool:
        """Whether it runs between this host and a peer."""
        return any(section.engine == "net" for section in self.sections)


def default_metric(block_bytes: int) -> MetricName:
    """Total IOPS for blocks up to 16 KiB, bandwidth above."""
    return "iops" if block_bytes <= 16 * KIB else "bandwidth"
