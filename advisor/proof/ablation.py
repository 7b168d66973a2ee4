"""Which value of a profile did it: what is switched as one, and which combinations each block measures. Pure.

The design is a fraction of all combinations in which no value shares a column with another one or with a pair
(resolution IV; V for five values; all combinations of two or three). Pairs may share a column with other pairs. In each
block a coin decides for every value whether its on and off change places. So pairs that share a column do so with
another sign in another block, which is a fold-over by coin; and where a value does nothing, the sign of its contrast is
fair whatever the others do, so that the signed-rank test of the blocks' contrasts is exact (Box, Hunter & Hunter,
Statistics for Experimenters, 2005, chapters 6 and 8).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from advisor.errors import RefusedError, UsageError
from advisor.facts.settings import SETTINGS
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change
from advisor.proof.records import NONE, UnswitchedTunable
from advisor.proof.relevance import class_of
from advisor.tunables.sysctl_group import can_move

MAX_UNITS = 16
LINKS = "links"
"""The unit of all that interrupts a link: it is switched at once, so that a block interrupts as rarely as it can."""
_OF_DEVICE = lazy_regex(r"(block|md|link|irq|mount|nfs|iscsi|multipath):[^:]+:([^:]+)")
_RESET_BY_SCHEDULER = lazy_regex(r"block:[^:]+:(?!read_ahead_kb$|scheduler$)[^:]+")
_DIRTY = frozenset(f"sysctl:{one.key}" for one in SETTINGS.values() if one.twin and one.is_slow)


def design_words(count: int) -> tuple[int, ...]:
    """The column of each of ``count`` values, as bits over the base columns. Raises UsageError for too many."""
    if count > MAX_UNITS:
        raise UsageError(
            f"{count} values; expected at most {MAX_UNITS}",
            hint="a profile file of your own with some of them, or values by name",
        )
    if count <= 3:
        return tuple(1 << bit for bit in range(count))
    base = 3 if count == 4 else 4 if count <= 8 else 5
    singles = [1 << bit for bit in range(base)]
    if count == 5:
        return (*singles, 0b1111)
    # Words of an odd number of letters: the product of two is even, so that no pair shares a column with a value.
    others = sorted(
        (word for word in range(1 << base) if word.bit_count() % 2 and word not in singles), key=int.bit_count
    )
    return (*singles, *others)[:count]


def run_count(words: Sequence[int]) -> int:
    """How many combinations a block has."""
    return 1 << max(words).bit_length()


def draw_combinations(names: Sequence[str], words: Sequence[int], coin: random.Random) -> list[tuple[str, ...]]:
    """The values that are active in each run of a block, in the order of the runs."""
    flips = [coin.getrandbits(1) for _ in names]
    runs = [
        tuple(
            name for name, word, flip in zip(names, words, flips, strict=True) if ((row & word).bit_count() + flip) % 2
        )
        for row in range(run_count(words))
    ]
    return coin.sample(runs, len(runs))


def combination_digits(names: Sequence[str], active: Collection[str]) -> str:
    """``none``, or a digit for each value: ``0110``."""
    return "".join("01"[name in active] for name in names) if active else NONE


# -- what is switched as one -------------------------------------------------------------------------------------------


def group_changes(
    changes: Sequence[Change], hidden: Mapping[str, str] = {}
) -> tuple[dict[str, tuple[str, ...]], tuple[UnswitchedTunable, ...]]:
    """The tunables that are switched as one value, by its name, and what cannot be switched, with the reason.

    One setting of several devices is one value; so is what the kernel changes together, what has to be in an order,
    and all that interrupts a link. ``hidden`` are tunables whose effect cannot show, with the reason. Raises
    RefusedError where fewer than two are left.
    """
    rebooting = {one.tunable: "it needs a reboot or a rebuild" for one in changes if class_of(one) == "T3"}
    reasons = {**hidden, **rebooting}
    left_out = [UnswitchedTunable(one.tunable, reasons[one.tunable]) for one in changes if one.tunable in reasons]
    live = [one for one in changes if one.tunable not in reasons]
    units: dict[str, list[str]] = {}
    schedulers = {one.tunable.split(":")[1] for one in live if one.tunable.endswith(":scheduler")}
    for one in live:
        units.setdefault(_unit_key(one, schedulers), []).append(one.tunable)
    _join_coupled(units)
    if len(units) < 2:
        names = ", ".join(units) or ", ".join(one.tunable for one in left_out)
        raise RefusedError(
            f"expected two values or more that can be switched singly, found {names}",
            hint="advisor prove PROFILE judges the whole",
        )
    # One that is a tunable alone has its name.
    named = {tunables[0] if len(tunables) == 1 else name: tuple(tunables) for name, tunables in units.items()}
    return named, tuple(left_out)


def _unit_key(change: Change, schedulers: Iterable[str]) -> str:
    tunable = change.tunable
    if class_of(change) == "T2":
        return LINKS
    device = _OF_DEVICE.fullmatch(tunable)
    if device is None:
        return tunable
    # A new scheduler resets nr_requests and what else is its own.
    if _RESET_BY_SCHEDULER.fullmatch(tunable) and tunable.split(":")[1] in schedulers:
        return "block:*:scheduler"
    return f"{device[1]}:*:{device[2]}"


def _join_coupled(units: dict[str, list[str]]) -> None:
    """Join units of which setting one can change the other, or which have to be in an order."""
    for one, other in combinations(list(units), 2):
        if one in units and other in units and _are_coupled(units[one], units[other]):
            units[other] = [*units.pop(one), *units[other]]


def _are_coupled(first: Iterable[str], second: Iterable[str]) -> bool:
    return any(
        can_move(one, other) or can_move(other, one) or {one, other} <= _DIRTY for one in first for other in second
    )
