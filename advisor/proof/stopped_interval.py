"""The interval of a session that could end early, exact at the pair at which it ended. Pure.

An interval with the level of the latest look is wider than it has to be: what ends early has used up only a part of the
level. So for each hypothesised effect the pairs are drawn again: less that effect, the coin of each pair makes the sign
of its difference fair, so that vectors of fair signs (and each with all signs turned, and the observed one) say what
else could have been seen. On each of them the session's own rule decides after how many pairs it would have ended. What
ends earlier with a gain is more than what ends later, among those of one look the signed-rank sum of the differences
less the effect decides, and losses are the mirror image (Armitage, *Sequential Medical Trials* (1975); Tsiatis, Rosner
and Mehta, Biometrics 40 (1984)). The interval holds the effects under which as much or more, and as little or less,
have a share above 2.5 % each. Under "no effect" this is the test itself, so that 0 is outside where a difference is
called.

All vectors are counted at once. The signs of one pair in all vectors are the bits of one integer, and a sum is one
integer for each of its binary digits. The rank sum of the positive differences is the number of means of two of them
(each with itself, too) that are above 0 (Tukey); whether one is follows from two bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from advisor.proof.anytime import reference_signs
from advisor.proof.statistics import Interval, doubled_midranks, level_ties

STOPPED_CONFIDENCE: Final = 0.95
_SIDE_LEVEL: Final = (1 - STOPPED_CONFIDENCE) / 2
_HALVINGS: Final = 14
"""Of the distance between the estimate and what is surely outside, until an end is near enough."""


class Look(NamedTuple):
    """A look after so many pairs. It ends a session where the signed sum of doubled ranks reaches ``gain``, or that of
    the differences turned reaches ``loss``; None where it could not, whatever the differences were."""

    pairs: int
    gain: int | None
    loss: int | None


class _Sums:
    """One sum for each vector: the k-th binary digits of all are the bits of one integer."""

    def __init__(self) -> None:
        self._digits: list[int] = []

    def add(self, bits: int, times: int = 1) -> None:
        """Add ``times`` to the sum of each vector whose bit is set."""
        digits = self._digits
        for place in range(times.bit_length()):
            carry = bits if times >> place & 1 else 0
            at = place
            while carry:
                while at >= len(digits):
                    digits.append(0)
                digits[at], carry = digits[at] ^ carry, digits[at] & carry
                at += 1

    def reach(self, least: int, every: int) -> int:
        """Those of ``every`` whose sum is at least so large."""
        if least <= 0:
            return every
        if least.bit_length() > len(self._digits):
            return 0
        above, equal = 0, every
        for place in reversed(range(len(self._digits))):
            digit = self._digits[place]
            if least >> place & 1:
                equal &= digit
            else:
                above |= equal & digit
                equal &= ~digit
        return above | equal


@lru_cache(maxsize=4)
def _columns(seed: int, most: int) -> tuple[int, ...]:
    """For each pair its signs in all reference vectors, and in these turned, as bits; two more bits are free above."""
    vectors = reference_signs(seed, most)
    every = (1 << len(vectors)) - 1
    found = []
    for signs in zip(*vectors, strict=True):
        bits = int("".join("1" if sign > 0 else "0" for sign in signs), 2)
        found.append(bits | (bits ^ every) << len(vectors))
    return tuple(found)


class Shares(NamedTuple):
    """Of the vectors, under one effect: those in which at least as much comes out as was seen, and at most as much."""

    more: float
    less: float


def stopped_interval(
    effects: Sequence[float], looks: Sequence[Look], wide: Interval, *, ended_by: int, seed: int, most: int
) -> Interval:
    """``looks`` are all up to the pair at which the session ended, the last of which is at that pair. ``ended_by`` is
    +1 where a gain ended it there, -1 for a loss, and 0 where it was the last pair anyway; ``most`` is how many there
    could have been. ``wide`` is the interval at the level of the look: it gives the estimate, and where the search
    starts. The ends are within one part in 10,000 of the distance between the two, on the outer side."""
    if ended_by < 0:
        turned = Interval(-wide.estimate, -wide.high, -wide.low, wide.confidence)
        mirrored = [Look(look.pairs, look.loss, look.gain) for look in looks]
        found = stopped_interval([-value for value in effects], mirrored, turned, ended_by=1, seed=seed, most=most)
        return Interval(wide.estimate, -found.high, -found.low, STOPPED_CONFIDENCE)

    def shares(shift: float) -> Shares:
        return redraw(effects, looks, shift, is_ended=ended_by > 0, seed=seed, most=most)

    low = _search(lambda shift: shares(shift).more > _SIDE_LEVEL, wide.estimate, (wide.low, min(effects)))
    high = _search(lambda shift: shares(shift).less > _SIDE_LEVEL, wide.estimate, (wide.high, max(effects)))
    return Interval(wide.estimate, low, high, STOPPED_CONFIDENCE)


def _search(is_in: Callable[[float], bool], inside: float, ends: Sequence[float]) -> float:
    """The end of the interval between ``inside`` and the first of ``ends`` that is outside; else the last of them."""
    outside = next((end for end in ends if not is_in(end)), None)
    if outside is None:
        return ends[-1]
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if is_in(middle):
            inside = middle
        else:
            outside = middle
    return outside


def redraw(
    effects: Sequence[float], looks: Sequence[Look], shift: float, *, is_ended: bool, seed: int, most: int
) -> Shares:
    """Draw the signs of the differences less ``shift`` again, in every vector."""
    rest = level_ties([value - shift for value in effects])
    sizes = [abs(value) for value in rest]
    # the observed vector, and that turned
    free = 2 * len(reference_signs(seed, most))
    columns = [bits | (1 if value > 0 else 2) << free for bits, value in zip(_columns(seed, most), rest, strict=False)]
    every = (4 << free) - 1
    alive, gained, lost, gains_now = every, 0, 0, 0
    above, certain, done = _Sums(), 0, 0
    for look in looks:
        for new in range(done, look.pairs):
            for old in range(new + 1):
                bits = _bits_above(columns[old], columns[new], sizes[old], sizes[new], shift, every)
                if bits == every:
                    certain += 1
                else:
                    above.add(bits)
        done = look.pairs
        # The signed sum of doubled ranks is four times the number of means above 0, less twice that of all.
        full = look.pairs * (look.pairs + 1)
        gains_now = 0 if look.gain is None else above.reach(-(-(full + look.gain) // 4) - certain, alive)
        losses_now = 0 if look.loss is None else alive & ~above.reach((full - look.loss) // 4 + 1 - certain, alive)
        if look is not looks[-1]:
            gained |= gains_now
            lost |= losses_now
            alive &= ~(gains_now | losses_now)
    ranks = [rank if size else 0 for rank, size in zip(doubled_midranks(sizes), sizes, strict=True)]
    sums = _Sums()
    for rank, bits in zip(ranks, columns, strict=True):
        sums.add(bits, rank)
    seen = sum(rank for rank, value in zip(ranks, rest, strict=True) if value > 0)
    left, total = gains_now if is_ended else alive, every.bit_count()
    as_much, more = sums.reach(seen, left), sums.reach(seen + 1, left)
    at_least = gained.bit_count() + as_much.bit_count()
    at_most = (
        total - gained.bit_count() - more.bit_count() if is_ended else lost.bit_count() + (alive & ~more).bit_count()
    )
    return Shares(at_least / total, at_most / total)


def _bits_above(first: int, second: int, size: float, other: float, shift: float, every: int) -> int:
    """The vectors in which the mean of two differences of these sizes, each on its side of ``shift``, is above 0."""
    if first == second and size == other:
        return every if shift > size else first if shift > -size else 0
    twice = 2 * shift
    if twice > size + other:
        return every
    if twice <= -size - other:
        return 0
    by_first, by_second = twice > other - size, twice > size - other
    if by_first:
        return first | second if by_second else first
    return second if by_second else first & second
