"""Spans as bytes and back: what ``advisor snapshot --seconds`` puts into an archive.

Numbers of an archive are anybody's: each is within what a kernel can print, times rise, and texts are short.
"""

from __future__ import annotations

import math
from itertools import chain

import msgspec

from advisor.observe.sample import LARGEST, Sample
from advisor.observe.span import CounterSpan

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
