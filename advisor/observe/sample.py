"""One moment of a host: its counters, levels and states."""

from __future__ import annotations

from collections.abc import Mapping

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
