"""Inputs that grow: a piece of a text's own grammar, repeated, and the CPU time that reading it takes.

A reader is linear if twice the input takes at most `MOST` times the CPU time. Wall time is never looked at, and a time
below `NOISE_SECONDS` says nothing: at these sizes a quadratic reader needs seconds.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

SIZE: Final = 16_000
NOISE_SECONDS: Final = 0.1
MOST: Final = 3.2
REPEATS: Final = 3
CONFIRMATIONS: Final = 2

# Runs of these are what patterns with two ways to match stumble over.
_CHARACTERS: Final = tuple(
    sign.encode()
    for sign in (
        *(
            " ",
            "\t",
            "\n",
            "\r",
            "\r\n",
            "\\\n",
            "a",
            "a ",
            "1",
            "1 ",
            " 1",
            "-",
            "=",
            ":",
            ",",
            ".",
            "/",
            "\\",
            "#",
            ";",
        ),
        *('"', "'", "(", ")", "[", "{", "<", "|", "*", "$", "日", "\x1b", "\u0301"),
    )
)


class Growing(NamedTuple):
    """``before``, then ``piece`` as often as it fits, then ``after``."""

    before: bytes
    piece: bytes
    after: bytes

    def of(self, size: int) -> bytes:
        return self.before + self.piece * max(1, size // len(self.piece)) + self.after


def grown(sample: bytes, chance: random.Random) -> Growing:
    """A way in which the sample can grow: by a character, a few characters, a line or a word of its own."""
    at = chance.randrange(len(sample) + 1)
    kind = chance.random()
    if kind < 0.35:
        piece = chance.choice(_CHARACTERS)
    elif kind < 0.6:
        piece = sample[at : at + chance.choice((1, 2, 3, 5, 8, 13, 30))]
    elif kind < 0.8:
        piece = chance.choice(sample.split(b"\n")) + chance.choice((b"\n", b" ", b""))
    else:
        piece = chance.choice(sample.split() or [b"a"]) + chance.choice((b" ", b"", b"\n", b","))
    before = chance.choice((sample[:at], b"", sample[:at][-40:]))
    return Growing(before, piece or b"\n", chance.choice((b"", sample[at:])))


def seconds(read: Callable[[], object]) -> float:
    """CPU time of one reading, without the collector: a full collection costs what the whole heap holds."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.process_time()
        read()
        return time.process_time() - start
    finally:
        if was_enabled:
            gc.enable()


def too_steep(
    read: Callable[[int], object], size: int = SIZE, measure: Callable[[Callable[[], object]], float] = seconds
) -> str | None:
    """Why reading an input of ``size`` is not linear; None where it is. ``read`` takes the size, ``measure`` a reading.

    A busy neighbour slows one measurement and not the next: steep is what is steep each time that it is looked at, and
    then also at four times the size, of which a quadratic reader takes sixteen times the time.
    """
    if measure(lambda: read(size)) < NOISE_SECONDS:
        return None
    one = two = four = math.inf
    for _ in range(CONFIRMATIONS):
        one = min(one, *(measure(lambda: read(size)) for _ in range(REPEATS)))
        two = min(two, *(measure(lambda: read(2 * size)) for _ in range(REPEATS)))
        if one < NOISE_SECONDS or two < MOST * one:
            return None
        four = min(four, measure(lambda: read(4 * size)))
        if four < MOST * MOST * one:
            return None
    return f"{size} bytes take {one:.3f} s of CPU time, {2 * size} take {two:.3f} s, {4 * size} take {four:.3f} s"
