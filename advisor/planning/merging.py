"""One target of several that want the same tunable: of *at least* the most, of *at most* the least, of a pool the sum.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from advisor.errors import UsageError
from advisor.host.numbers import is_count
from advisor.planning.comparison import Ownership, combine_values
from advisor.planning.records import PlanTarget
from advisor.tunables import parse_tunable
from advisor.tunables.kind import NUMBERS
from advisor.tunables.sysctl import Sysctl

Merged = tuple[tuple[PlanTarget, ...], tuple[str, ...]]


def merge_targets(
    targets: Iterable[PlanTarget], held: Ownership | None = None, *, of_values: Collection[str] = ()
) -> Merged:
    """One target for each tunable, and notes on those in which several wishes became one.

    ``held``: a pool that another profile's transaction holds gets what is asked for now in addition. ``of_values``:
    profiles made of values that a person named, whose numbers are totals. Raises UsageError where two profiles want
    what cannot both be had.
    """
    kept: dict[str, PlanTarget] = {}
    notes: list[str] = []
    for target in targets:
        other = kept.get(target.tunable)
        if other is None or (_wanted_of(other) == _wanted_of(target) and not _is_share(target, of_values)):
            kept.setdefault(target.tunable, target)
            continue
        merged = _merge_two(other, target, of_values)
        if merged is None:
            raise UsageError(
                f"{target.tunable}: {other.profile} wants {other.value}, {target.profile} wants {target.value}",
                hint="apply one of the two, or bring them together with --set",
            )
        kept[target.tunable] = merged
        if merged.value != other.value or merged.value != target.value:
            notes.append(_merge_note(other, target, merged))
    for name, target in kept.items():
        more = _with_held(target, held, of_values) if held is not None else None
        if more is not None:
            kept[name], note = more
            notes.append(note)
    return tuple(kept.values()), tuple(notes)


def drop_wider_twins(targets: Iterable[PlanTarget], memory_bytes: int | None) -> Merged:
    """Of two bounds of one limit in two units (``vm.dirty_bytes``, ``vm.dirty_ratio``), of which the kernel keeps one,
    the narrower: it serves both. ``memory_bytes`` is all memory; without it both stay."""
    made = tuple(targets)
    bounds = {one.tunable: one for one in made if one.sense == "at-most" and is_count(one.value)}
    dropped: dict[str, str] = {}
    for name, one in bounds.items():
        ratio = bounds.get(name.removesuffix("_bytes") + "_ratio") if name.endswith("_bytes") else None
        if ratio is None or memory_bytes is None:
            continue
        is_wider = int(one.value) > memory_bytes * int(ratio.value) // 100
        kept, left = (ratio, one) if is_wider else (one, ratio)
        dropped[left.tunable] = (
            f"{left.tunable}: {left.profile} wants {left.value} at most, which {kept.tunable}={kept.value} of "
            f"{kept.profile} keeps as well"
        )
    return tuple(one for one in made if one.tunable not in dropped), tuple(dropped.values())


def _wanted_of(target: PlanTarget) -> tuple[object, ...]:
    return target.value, target.sense, target.multiply, target.default


def _is_share(target: PlanTarget, of_values: Collection[str]) -> bool:
    """Whether the number is what one profile needs of a pool, in addition to others."""
    one = parse_tunable(target.tunable)
    is_pool = isinstance(one, Sysctl) and one.is_pool
    return is_pool and target.profile not in of_values and target.sense == "at-least" and is_count(target.value)


def _merge_two(one: PlanTarget, other: PlanTarget, of_values: Collection[str]) -> PlanTarget | None:
    """A target that meets both; None where there is none, or it is not known."""
    if one.multiply is not None or other.multiply is not None or one.default != other.default:
        return one if _wanted_of(one) == _wanted_of(other) else None
    if _is_share(one, of_values) and _is_share(other, of_values):
        return msgspec.structs.replace(one, value=str(int(one.value) + int(other.value)), why=_both(one.why, other.why))
    if not (NUMBERS.fullmatch(one.value) and NUMBERS.fullmatch(other.value)):
        return None
    if len(one.value.split()) != len(other.value.split()):
        return None
    if one.sense == other.sense:
        if "exactly" in (one.sense if isinstance(one.sense, tuple) else (one.sense,)) or one.sense == "keep":
            return None
        value = combine_values(one.value, other.value, one.sense)
        stricter = other if value == other.value else one
        return msgspec.structs.replace(stricter, value=value)
    # Of an exact value and a bound that it keeps, the exact one says both.
    for exact, bound in ((one, other), (other, one)):
        if exact.sense == "exactly" and combine_values(exact.value, bound.value, bound.sense) == exact.value:
            return exact
    return None


def _both(one: str, other: str) -> str:
    return one if one == other else f"{one} {other}"


def _merge_note(one: PlanTarget, other: PlanTarget, merged: PlanTarget) -> str:
    asked = (one.profile, one.value, other.profile, other.value)
    if merged.value not in (one.value, other.value) and is_count(merged.value):
        return f"{merged.tunable}: {asked[1]} for {asked[0]} and {asked[3]} for {asked[2]}, {merged.value} together"
    return f"{merged.tunable}: {asked[0]} wants {asked[1]}, {asked[2]} {asked[3]}: {merged.value} serves both"


def _with_held(target: PlanTarget, held: Ownership, of_values: Collection[str]) -> tuple[PlanTarget, str] | None:
    """The target with what another profile's transaction holds of the pool; None where nothing is to be added."""
    holding = held.values.get(target.tunable)
    if holding is None or target.profile in holding.all_profiles or not _is_share(target, of_values):
        return None
    there = int(holding.underneath) if is_count(holding.underneath) else 0
    if not there:
        return None
    total = str(there + int(target.value))
    note = (
        f"{target.tunable}: {there} are held by {holding.by} for {', '.join(sorted(holding.all_profiles))}, "
        f"{target.value} more are for {target.profile}: {total} together"
    )
    return msgspec.structs.replace(target, value=total), note
