"""One moment of a host: its counters, levels and states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import msgspec

from advisor.host import Host, Missing

LARGEST = (1 << 64) - 1

Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
Levels = Mapping[str, Mapping[str, Mapping[str, float]]]
Words = Mapping[str, Mapping[str, Mapping[str, str]]]


class Sample(msgspec.Struct, frozen=True):
    """What was read at ``at_seconds`` of a monotonic clock, by kind (``disk``), name (``sda``) and field (``reads``).

    ``counters`` only ever rise (a span gives their rates), ``gauges`` are levels, ``words`` states. ``missing`` says
    why a kind, or ``KIND NAME`` alone, could not be read. A kind without an entry in ``counters`` was not asked for at
    this moment; one with an empty entry was, and nothing was there.
    """

    at_seconds: float
    counters: Counts = {}
    gauges: Levels = {}
    words: Words = {}
    missing: Mapping[str, str] = {}


class Reading:
    """A sample while it is being read: each reader adds what it finds."""

    def __init__(self, at_seconds: float) -> None:
        self.at_seconds = at_seconds
        self.counters: dict[str, dict[str, Mapping[str, int]]] = {}
        self.gauges: dict[str, dict[str, Mapping[str, float]]] = {}
        self.words: dict[str, dict[str, Mapping[str, str]]] = {}
        self.missing: dict[str, str] = {}

    def ask(self, *kinds: str) -> None:
        """Note that these kinds are read now: what they do not list is not there."""
        for kind in kinds:
            self.counters.setdefault(kind, {})

    def add(
        self,
        kind: str,
        name: str,
        counters: Mapping[str, int] | None = None,
        gauges: Mapping[str, float] | None = None,
        words: Mapping[str, str] | None = None,
    ) -> None:
        """Add what was read of one thing; empty mappings leave no trace."""
        if counters:
            self.counters.setdefault(kind, {})[name] = counters
        if gauges:
            self.gauges.setdefault(kind, {})[name] = gauges
        if words:
            self.words.setdefault(kind, {})[name] = words

    def note_missing(self, kind: str, why: str | Missing) -> None:
        """Say why a kind could not be read, or ``KIND NAME``."""
        self.missing[kind] = why if isinstance(why, str) else why.why

    def read_file(self, host: Host, path: str, kind: str) -> str:
        """The text that a kind is read from; nothing, with a note of why, where it cannot be read."""
        text = host.read(path)
        if isinstance(text, Missing):
            self.note_missing(kind, text)
            return ""
        return text

    def make_sample(self) -> Sample:
        return Sample(self.at_seconds, self.counters, self.gauges, self.words, self.missing)


def parse_counts(words: list[str]) -> list[int] | None:
    """Counts that the kernel can have printed: ASCII digits, at most 64 bits each; None if any is none."""
    joined = "".join(words)
    if not joined.isdigit() or not joined.isascii() or len(joined) > 20 * len(words):
        return None
    try:
        found = list(map(int, words))
    except ValueError:  # An empty word among digits.
        return None
    return found if max(found) <= LARGEST else None


def parse_named_counts(text: str) -> dict[str, int]:
    """Lines of a name and a count (/proc/vmstat, cpu.stat, memory.events); other lines are left out."""
    found = {}
    for line in text.split("\n"):
        name, _, value = line.partition(" ")
        if name and value.isdigit() and value.isascii() and len(value) <= 20 and (number := int(value)) <= LARGEST:
            found[name] = number
    return found


# Two samples or more of one host, and what rose between them.

MAY_GO_BACK: Mapping[str, frozenset[str]] = {"cpu": frozenset({"idle_ticks", "iowait_ticks"})}
"""Counters that go back by a little while nothing began again (proc_stat(5) on iowait): unknown then, alone."""

LEFT_OUT_AT_ZERO = frozenset({"irq"})
"""Kinds of which a sample holds no counter that is 0: an interrupt has one for each of hundreds of CPUs."""


class _Track(NamedTuple):
    """Of one thing: its counters in the first and last sample that read its kind, and the seconds between these."""

    first: Mapping[str, int]
    last: Mapping[str, int]
    seconds: float
    went_back: Mapping[str, str]


class CounterSpan:
    """What happened between the first and the last of some samples, oldest first.

    Raises ValueError for fewer than two samples or for times that do not rise.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = tuple(samples)
        times = [one.at_seconds for one in self.samples]
        if len(times) < 2 or not all(before < after for before, after in pairwise(times)):
            raise ValueError("a span needs two samples or more, of rising times")
        self._tracks: dict[tuple[str, str], _Track | Missing] = {}
        self._reads: dict[str, tuple[Sample, ...]] = {}

    @property
    def seconds(self) -> float:
        return self.samples[-1].at_seconds - self.samples[0].at_seconds

    def steps(self) -> Iterator[CounterSpan]:
        """The spans between each two neighbouring samples."""
        for pair in pairwise(self.samples):
            yield CounterSpan(pair)

    def names(self, kind: str) -> tuple[str, ...]:
        """Every thing of a kind that any sample has, in the order in which the kernel lists them."""
        found: dict[str, None] = {}
        for sample in self.samples:
            tables: tuple[Counts | Levels | Words, ...] = (sample.counters, sample.gauges, sample.words)
            for table in tables:
                found |= dict.fromkeys(table.get(kind, ()))
        return tuple(found)

    def fields(self, kind: str, name: str) -> tuple[str, ...]:
        """The counters of a thing in the last sample that read it."""
        reads = self._reads_of(kind)
        return tuple(reads[-1].counters[kind].get(name, ())) if reads else ()

    def delta(self, kind: str, name: str, field: str) -> int | Missing:
        """By how much a counter rose."""
        track = self._track_of(kind, name)
        if isinstance(track, Missing):
            return track
        before, after = track.first.get(field), track.last.get(field)
        if kind in LEFT_OUT_AT_ZERO:
            before, after = before or 0, after or 0
        if before is None or after is None:
            return Missing("absent", f"{kind} {name}: {field} is not counted here")
        why = track.went_back.get(field)
        return after - before if why is None else Missing("unreadable", why)

    def rate(self, kind: str, name: str, field: str) -> float | Missing:
        """By how much a counter rose in a second."""
        rose = self.delta(kind, name, field)
        return rose if isinstance(rose, Missing) else rose / self.seconds_of(kind)

    def seconds_of(self, kind: str) -> float:
        """Seconds between the first and the last sample that read the kind; 0 where only one did."""
        reads = self._reads_of(kind)
        return reads[-1].at_seconds - reads[0].at_seconds if reads else 0.0

    def level(self, kind: str, name: str, field: str) -> float | Missing:
        """A gauge in the last sample that has it."""
        levels = self.levels(kind, name, field)
        return levels[-1] if levels else self._why_missing(kind, name)

    def levels(self, kind: str, name: str, field: str) -> tuple[float, ...]:
        """A gauge in every sample that has it."""
        found = (sample.gauges.get(kind, {}).get(name, {}).get(field) for sample in self.samples)
        return tuple(value for value in found if value is not None)

    def word(self, kind: str, name: str, field: str) -> str | Missing:
        """A state in the last sample that has it."""
        for sample in reversed(self.samples):
            found = sample.words.get(kind, {}).get(name, {}).get(field)
            if found is not None:
                return found
        return self._why_missing(kind, name)

    def why_unknown(self, kind: str, name: str) -> str | None:
        """Why the counters of a thing say nothing over the span; None where they do."""
        track = self._track_of(kind, name)
        return track.why if isinstance(track, Missing) else None

    def _reads_of(self, kind: str) -> tuple[Sample, ...]:
        if kind not in self._reads:
            self._reads[kind] = tuple(one for one in self.samples if kind in one.counters)
        return self._reads[kind]

    def _why_missing(self, kind: str, name: str) -> Missing:
        for sample in reversed(self.samples):
            why = sample.missing.get(f"{kind} {name}") or sample.missing.get(kind)
            if why is not None:
                return Missing("unreadable", f"{kind} {name}: {why}")
        return Missing("absent", f"{kind} {name}: not read")

    def _track_of(self, kind: str, name: str) -> _Track | Missing:
        key = kind, name
        if key not in self._tracks:
            self._tracks[key] = self._find_track(kind, name)
        return self._tracks[key]

    def _find_track(self, kind: str, name: str) -> _Track | Missing:
        reads = self._reads_of(kind)
        rows = [sample.counters[kind].get(name) for sample in reads]
        known = [row for row in rows if row is not None]
        if not known:
            return self._why_missing(kind, name)
        if len(known) < len(rows):
            at_fault = reads[rows.index(None)].missing
            if (why := at_fault.get(f"{kind} {name}") or at_fault.get(kind)) is not None:
                return Missing("unreadable", f"{kind} {name}: {why}")
            when = "appeared" if rows[0] is None else "vanished" if rows[-1] is None else "was away"
            return Missing("absent", f"{kind} {name}: {when} during the span")
        if len(rows) < 2:
            return Missing("unreadable", f"{kind} {name}: read once")
        went_back: dict[str, str] = {}
        for before, after in pairwise(known):
            for field, count in before.items():
                now = after.get(field, 0 if kind in LEFT_OUT_AT_ZERO else None)
                if now is None:
                    went_back[field] = f"{kind} {name}: {field} is not counted all the time"
                elif now < count:
                    why = f"{kind} {name}: {field} went back from {count} to {now}: wrapped or began again"
                    if field not in MAY_GO_BACK.get(kind, ()):
                        return Missing("unreadable", why)
                    went_back[field] = why
        return _Track(known[0], known[-1], self.seconds_of(kind), went_back)


# Spans as bytes and back: what ``advisor snapshot --seconds`` puts into an archive.

SCHEMA = "advisor.span/1"
MAX_SAMPLES = 4000
MAX_TEXT = 4096


class RecordedSpan(msgspec.Struct, frozen=True):
    """``taken_at`` is when the last sample was taken, in seconds since the epoch."""

    schema: str
    taken_at: float
    samples: tuple[Sample, ...]


def encode_span(span: CounterSpan, taken_at: float) -> bytes:
    """The span as JSON. ``taken_at`` in seconds since the epoch."""
    return msgspec.json.encode(RecordedSpan(SCHEMA, taken_at, span.samples))


def decode_span(data: bytes) -> tuple[CounterSpan, float]:
    """A recorded span and when it was taken. Raises ValueError for what is none."""
    found = msgspec.json.decode(data, type=RecordedSpan)
    if found.schema != SCHEMA:
        raise ValueError(f"schema is {found.schema[:80]!r}, this version reads {SCHEMA}")
    if len(found.samples) > MAX_SAMPLES:
        raise ValueError(f"more than {MAX_SAMPLES} samples")
    for sample in found.samples:
        _check_sample(sample)
    if not math.isfinite(found.taken_at) or not 0 <= found.taken_at < 1 << 40:
        raise ValueError("taken_at is no time")
    return CounterSpan(found.samples), found.taken_at


def _check_sample(sample: Sample) -> None:
    if not math.isfinite(sample.at_seconds):
        raise ValueError("at_seconds is no time")
    counters = (count for things in sample.counters.values() for fields in things.values() for count in fields.values())
    if not all(0 <= count <= LARGEST for count in counters):
        raise ValueError("a counter is below 0 or above what 64 bits hold")
    gauges = (level for things in sample.gauges.values() for fields in things.values() for level in fields.values())
    if not all(math.isfinite(level) and abs(level) <= LARGEST for level in gauges):
        raise ValueError("a level is no number that a kernel prints")
    words = (word for things in sample.words.values() for fields in things.values() for word in fields.values())
    if any(len(text) > MAX_TEXT for text in chain(words, sample.missing.values())):
        raise ValueError(f"a text is longer than {MAX_TEXT} characters")
