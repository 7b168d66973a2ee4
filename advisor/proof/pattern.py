"""What a workload is made of: groups of equal fio jobs, and the named pattern that they form together."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from advisor.errors import InvalidInputError
from advisor.host.numbers import is_count
from advisor.limits.machine_file import FieldError, decoding, is_json, read_input, toml_document
from advisor.observe.load import DIRECTIONS, LoadFigures
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


# Workload files: the twin of an observed load, with what was observed and how far the twin is from it.

SCHEMA: Final = "advisor.workload/1"
_HINT = "write it with: advisor observe -o FILE"
_MAX_BYTES = 4 << 20
_MAX_BLOCK = 64 << 20
_MAX_RATE = 10_000_000
_MAX_PAUSE_US = 60_000_000
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Text = Annotated[str, msgspec.Meta(max_length=500)]


class DiskMeans(msgspec.Struct, frozen=True):
    """What the counters of a device say about a load without a trace: means alone. Sizes are in bytes, waits in ms."""

    reads_per_s: float
    writes_per_s: float
    read_size_bytes: float | None
    write_size_bytes: float | None
    read_wait_ms: float | None
    write_wait_ms: float | None
    flushes_per_s: float | None
    merged_share: float
    queue: float


class LoadObservation(msgspec.Struct, frozen=True):
    """What was observed: on which device, for which unit (all of them without one), when, and from what.

    ``source`` is ``requests`` (each was traced: ``figures``) or ``counters`` (``means`` alone). ``lost`` counts the
    events that the trace could not take, ``left_out`` the requests of others on the device.
    """

    device: Text
    began: Text
    seconds: float
    source: Literal["requests", "counters"]
    unit: Text | None = None
    hostname: Text | None = None
    lost: int = 0
    left_out: int = 0
    figures: LoadFigures | None = None
    means: DiskMeans | None = None


class TwinError(msgspec.Struct, frozen=True):
    """How far the twin's own distributions are from what was observed, before it has run. ``sizes`` is the total
    variation distance of sizes by direction, ``read_share`` and ``sequential`` differences of shares: 0 to 1."""

    sizes: Share
    read_share: Share
    sequential: Share


class WorkloadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A twin (``sections``) with its origin. ``error`` is None where counters alone were observed: then nothing is
    known of the distributions. ``notes`` say what the twin does not have."""

    schema: Literal["advisor.workload/1"] = SCHEMA
    title: Text
    sections: Annotated[tuple[JobSection, ...], msgspec.Meta(min_length=1, max_length=16)]
    observed: LoadObservation | None = None
    error: TwinError | None = None
    notes: tuple[Text, ...] = ()

    def pattern(self, name: str) -> Pattern:
        """The workload to measure, under the name of its file."""
        main = max(self.sections, key=lambda one: one.largest_bytes)
        metric: MetricName = default_metric(main.block_bytes)
        source = "observed" if self.observed is None else f"observed on {self.observed.device}, {self.observed.began}"
        return Pattern(name, self.title, self.sections, metric, source)


def is_workload_path(name: str) -> bool:
    """Whether a word that names a workload is a path: with a slash, or the ending of a document."""
    return "/" in name or name.endswith((".json", ".toml"))


@functools.lru_cache(maxsize=64)
def read_workload(path: str) -> WorkloadFile:
    """The workload of a file, read once: what is measured does not change during a session.

    Raises InvalidInputError that names file and field, PermissionDeniedError.
    """
    return parse_workload_file(read_input(Path(path), max_bytes=_MAX_BYTES), path)


def parse_workload_file(data: bytes, where: str) -> WorkloadFile:
    """As `read_workload`, from the bytes."""
    if is_json(data, b"[") and _is_whole_json(data):
        raise InvalidInputError(f"{where}: the JSON is no object", hint=_HINT)
    with decoding(where, "JSON" if is_json(data) else "TOML", _HINT):
        if is_json(data):
            found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=WorkloadFile)
        else:
            found = msgspec.convert(toml_document(data), WorkloadFile)
        names = [section.name for section in found.sections]
        for number, section in enumerate(found.sections):
            for field, problem in _find_problems(section):
                raise FieldError(f"sections[{number}].{field}", problem)
            if names.index(section.name) != number:
                raise FieldError(f"sections[{number}].name", "another section has it, too")
        return found


def _is_whole_json(data: bytes) -> bool:
    """Of what may be a table of TOML as well."""
    try:
        msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def encode_workload(found: WorkloadFile) -> bytes:
    """The bytes of a workload file."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _find_problems(section: JobSection) -> Iterator[tuple[str, str]]:
    """Fields that fio would not take, or that would ask for what a twin never does."""
    if not (section.name.isascii() and section.name.replace("-", "").isalnum() and len(section.name) <= 40):
        yield "name", "expected up to 40 letters, digits and hyphens"
    if section.engine not in ("libaio", "psync"):
        yield "engine", "expected libaio or psync"
    if section.engine == "psync" and section.depth != 1:
        yield "depth", "psync has one request at a time: 1"
    bounds: Mapping[str, tuple[float, float, float]] = {
        "block_bytes": (512, _MAX_BLOCK, section.block_bytes),
        "depth": (1, 1024, section.depth),
        "jobs": (1, 1024, section.jobs),
        "read_percent": (0, 100, section.read_percent),
        "random_percent": (0, 100, 0 if section.random_percent is None else section.random_percent),
        "flush_every": (0, 1_000_000, section.flush_every),
        "arrival.rate": (0, _MAX_RATE, section.arrival.rate),
        "arrival.think_us": (0, _MAX_PAUSE_US, section.arrival.think_us),
        "arrival.think_blocks": (1, 1_000_000, section.arrival.think_blocks),
    }
    for field, (low, high, value) in bounds.items():
        if not low <= value <= high:
            yield field, f"expected {low:g} to {high:,.0f}, found {value:g}"
    if section.arrival.kind in ("steady", "poisson") and section.arrival.rate < 1:
        yield ("arrival.rate", f"{section.arrival.kind}: expected 1 or more, found {section.arrival.rate:g}")
    if divides_by_zero(section):
        yield "flush_every", "fio ends with a fault on flushes between requests at independent times (poisson)"
    if section.block_bytes % 512:
        yield "block_bytes", "expected a multiple of 512"
    start, length = section.region
    if not (0 <= start < 100 and 0 < length <= 100 - start):
        yield "region", "expected a start from 0 and a length in percent, within 100 together"
    if section.protocol is not None:
        yield "protocol", "a workload file has no network"
    yield from _find_distribution_problems(section)


def divides_by_zero(section: JobSection) -> bool:
    """Whether fio 3.33 ends with SIGFPE on it, as seen: the rate of a flush is not there (axboe/fio, change 2028)."""
    return bool(section.flush_every) and section.arrival.kind == "poisson"


def _find_distribution_problems(section: JobSection) -> Iterator[tuple[str, str]]:
    needed = {"read": ("read", "randread"), "write": ("write", "randwrite")}
    for name, found in section.sizes.items():
        if name not in DIRECTIONS:
            yield f"sizes.{name}", "expected read or write"
        elif any(not (is_count(size) and len(size) < 10) for size in found):
            yield f"sizes.{name}", "expected sizes in bytes"
        elif any(not 512 <= int(size) <= _MAX_BLOCK or int(size) % 512 for size in found):
            yield f"sizes.{name}", f"expected multiples of 512 up to {_MAX_BLOCK:,}"
        elif len(found) > 64 or any(part < 1 for part in found.values()) or sum(found.values()) != 100:
            yield f"sizes.{name}", "expected at most 64 sizes, with percents from 1 that add up to 100"
    for name, alone in needed.items():
        mixed = section.pattern in ("rw", "randrw")
        if section.sizes and (mixed or section.pattern in alone) and name not in section.sizes:
            yield "sizes", f"the pattern {section.pattern} needs those of {name}"
    if section.random_percents and (
        len(section.random_percents) != 2 or not all(0 <= one <= 100 for one in section.random_percents)
    ):
        yield "random_percents", "expected two percents, of reads and of writes"
    if section.zones and (not 2 <= len(section.zones) <= 50 or min(section.zones) < 0 or sum(section.zones) != 100):
        yield "zones", "expected 2 to 50 percents that add up to 100"
