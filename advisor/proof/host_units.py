"""Hosts as units: who is treated is tossed, and the change of the treated hosts is compared with that of the others.

Each host gives one figure: how far what was measured on it after the treatment lies from what was measured before.
The statistic is the mean of the treated hosts less the mean of the others (difference in differences), in blocks the
mean over the blocks by their sizes. Under "no effect on any host" every assignment that the toss could have given would
have met the same figures, so the share of assignments with a statistic at least as large is an exact p, whatever the
hosts and the load of the hours are like: nothing is assumed about distributions, drift or differences of hosts.
The interval holds every shift that this test does not reject. With a statistic that is a mean, each other assignment
changes sides at one shift alone, so both come from one sorted list.

Sources: Fisher, *The Design of Experiments* (1935); Pitman, J. Roy. Statist. Soc. Suppl. 4 (1937); Dwass, Ann. Math.
Statist. 28 (1957), for drawn assignments with the observed one among them; Imbens and Rubin, *Causal Inference* (2015),
chapters 5 and 9. Simulated by ``python -m benchmarks.host_units``; docs/how-to/prove-on-a-fleet.md holds the figures.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from statistics import NormalDist, stdev
from typing import Final

import msgspec

from advisor.proof.statistics import POWER, Interval

LEVEL: Final = 0.05
MAX_LISTED: Final = 20_000
"""Up to so many assignments all are looked at, beyond it `DRAWN` of them and the one that was tossed."""
DRAWN: Final = 9_999
_ROUNDING: Final = 1e-9

Block = tuple[str, ...]
"""Hosts among which the toss decides; alike in what may matter."""


class Design(msgspec.Struct, frozen=True):
    """Hosts in blocks. In each block half of them are treated, the smaller half where the number is odd."""

    blocks: tuple[Block, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(name for block in self.blocks for name in block)

    @property
    def treated_count(self) -> int:
        return sum(len(block) // 2 for block in self.blocks)

    @property
    def assignments(self) -> int:
        """How many the toss can give, each as likely."""
        return math.prod(math.comb(len(block), len(block) // 2) for block in self.blocks)

    @property
    def smallest_p(self) -> float:
        """The smallest two-sided p that any figures can have; above `LEVEL` nothing can be claimed."""
        return min(1.0, 2 / min(self.assignments, DRAWN + 1 if self.assignments > MAX_LISTED else self.assignments))

    @property
    def can_claim(self) -> bool:
        return self.smallest_p <= LEVEL

    def toss(self, seed: int) -> tuple[str, ...]:
        """The hosts to be treated: the same for the same seed."""
        source = random.Random(f"hosts {seed}")
        return tuple(name for block in self.blocks for name in sorted(source.sample(block, len(block) // 2)))


def make_design(kinds: Mapping[str, str]) -> Design:
    """Blocks of hosts of one kind, by host; those that are alone in theirs share one block.

    One block of all where the blocks leave too few assignments to claim anything: each host is its own comparison
    anyway, so blocks buy power and nothing else.
    """
    groups: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        groups.setdefault(kind, []).append(name)
    alone = [name for names in groups.values() if len(names) == 1 for name in names]
    blocks = [tuple(names) for names in groups.values() if len(names) > 1]
    if len(alone) == 1 and blocks:
        blocks[-1] += tuple(alone)
    elif alone:
        blocks.append(tuple(alone))
    design = Design(tuple(blocks))
    return design if design.can_claim else Design((tuple(kinds),)) if kinds else design


def fewest_hosts() -> int:
    """With fewer hosts nothing can be claimed at `LEVEL`, whatever is measured."""
    count = 2
    while not Design((tuple(map(str, range(count))),)).can_claim:
        count += 1
    return count


class UnitTest(msgspec.Struct, frozen=True):
    """``interval`` is of the effect in the unit of the figures, at 95 %; ``p_gain`` and ``p_loss`` are one-sided,
    ``p_value`` is twice the smaller one. ``equivalence`` is the 90 % interval, for the question of no difference."""

    interval: Interval
    equivalence: Interval
    p_gain: float
    p_loss: float
    assignments: int
    is_exact: bool

    @property
    def p_value(self) -> float:
        return min(1.0, 2 * min(self.p_gain, self.p_loss))


def judge_units(design: Design, treated: Sequence[str], figures: Mapping[str, float], seed: int) -> UnitTest:
    """The test of the figures, one for each host of the design. The observed assignment is among those counted."""
    chosen = frozenset(treated)
    observed = estimate_effect(design, chosen, figures)
    near = _ROUNDING * max(map(abs, figures.values()), default=0.0)
    membership = dict.fromkeys(design.hosts, 0.0) | dict.fromkeys(treated, 1.0)
    # The shift of the treated hosts at which another assignment gives as large a statistic as the observed one.
    turns: list[float] = []
    # Without a shift, as it is for p: ties by rounding count as ties.
    above = below = 1
    is_exact = design.assignments <= MAX_LISTED
    for other in _list_assignments(design, chosen) if is_exact else _draw_assignments(design, seed):
        overlap = estimate_effect(design, other, membership)
        apart = observed - estimate_effect(design, other, figures)
        above += apart <= near
        below += apart >= -near
        # Drawn again, the observed assignment is as large at every shift.
        turns.append(apart / (1 - overlap) if overlap < 1 - _ROUNDING else math.nan)
    count = len(turns) + 1
    interval, equivalence = (_unrejected_shifts(turns, observed, alpha, count) for alpha in (LEVEL, 2 * LEVEL))
    return UnitTest(interval, equivalence, above / count, below / count, count, is_exact)


def estimate_effect(design: Design, treated: Collection[str], figures: Mapping[str, float]) -> float:
    """Treated less others, the mean over the blocks by their sizes; of the hosts that have a figure. 0 without any."""
    found, total = 0.0, 0
    for block in design.blocks:
        inside = [figures[name] for name in block if name in treated and name in figures]
        outside = [figures[name] for name in block if name not in treated and name in figures]
        if inside and outside:
            found += len(block) * (math.fsum(inside) / len(inside) - math.fsum(outside) / len(outside))
            total += len(block)
    return found / total if total else 0.0


def _list_assignments(design: Design, observed: frozenset[str]) -> Iterator[frozenset[str]]:
    """Every assignment but the observed one."""
    for parts in product(*(combinations(block, len(block) // 2) for block in design.blocks)):
        other = frozenset(name for part in parts for name in part)
        if other != observed:
            yield other


def _draw_assignments(design: Design, seed: int) -> Iterator[frozenset[str]]:
    source = random.Random(f"reference {seed}")
    for _ in range(DRAWN):
        yield frozenset(name for block in design.blocks for name in source.sample(block, len(block) // 2))


def _unrejected_shifts(turns: Sequence[float], estimate: float, alpha: float, count: int) -> Interval:
    """Every shift with a two-sided p above ``alpha``; unbounded where nothing can be rejected."""
    ordered = sorted(turn for turn in turns if turn == turn)
    same = len(turns) - len(ordered)
    # A shift below the r-th turn has a p of at most r / count on that side, the observed assignment included.
    allowed = math.floor(alpha / 2 * count + _ROUNDING) - same
    if allowed < 1 or allowed > len(ordered):
        return Interval(estimate, -math.inf, math.inf, 1.0)
    return Interval(estimate, ordered[allowed - 1], ordered[-allowed], 1 - 2 * (allowed + same) / count)


class MissingBounds(msgspec.Struct, frozen=True):
    """One-sided p of the ranks where every host that gave no figure is taken for the worst that it could have been, for
    that question: a treated one the lowest and another the highest where a gain is asked for, and the reverse.
    ``p_cost`` is that of a loss with what would be worst for whoever wants none."""

    p_gain: float
    p_loss: float
    p_cost: float


def bound_missing(
    design: Design, treated: Sequence[str], figures: Mapping[str, float | None], seed: int
) -> MissingBounds:
    """What can be said however the hosts without a figure did. By ranks inside each block: whatever the missing figures
    were, the sum of the ranks of the treated hosts was no smaller (no larger) than this."""
    chosen = frozenset(treated)
    worst = {name: -1 if name in chosen else 1 for name in design.hosts}
    found = []
    for sign in (1, -1):
        ranks: dict[str, float] = {}
        for block in design.blocks:
            placed = {
                name: (sign * worst[name], 0.0) if figures[name] is None else (0, figures[name]) for name in block
            }
            order = sorted(block, key=lambda name: placed[name])
            for name in block:
                alike = [at for at, other in enumerate(order) if placed[other] == placed[name]]
                # The missing ones need no order among themselves but must not be tied: all on one side are alike in it.
                is_missing = figures[name] is None
                ranks[name] = order.index(name) if is_missing else sum(alike) / len(alike)
        found.append(judge_units(design, treated, ranks, seed))
    return MissingBounds(found[0].p_gain, found[1].p_loss, found[0].p_loss)


def detectable_effect(design: Design, spread: float, power: float = POWER) -> float | None:
    """The smallest effect, in the unit of ``spread``, that the test finds in about 80 % of cases.

    ``spread`` is the standard deviation of the hosts' own changes where nothing was done. None where nothing can be
    claimed.
    """
    if not design.can_claim:
        return None
    level = math.floor(LEVEL / 2 * design.assignments) / design.assignments * 2 if design.assignments < 1e6 else LEVEL
    total = len(design.hosts)
    variance = sum(
        (len(block) / total) ** 2 * (1 / (len(block) // 2) + 1 / (len(block) - len(block) // 2))
        for block in design.blocks
        if len(block) > 1
    )
    freedom = max(1, total - 2 * len(design.blocks)) if total > 2 * len(design.blocks) else len(design.blocks) - 1
    quantiles = _student_quantile(1 - level / 2, freedom) + _student_quantile(power, freedom)
    return spread * math.sqrt(variance) * quantiles


def _student_quantile(share: float, freedom: int) -> float:
    """Of Student's t, by the expansion of Fisher and Cornish (1960): to 1 % from 4 degrees of freedom on."""
    z = NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + first / freedom + second / freedom**2 + third / freedom**3)


def estimate_spread(changes: Sequence[float]) -> float | None:
    """The standard deviation of what changed without a treatment; None below three hosts."""
    return stdev(changes) if len(changes) > 2 else None
