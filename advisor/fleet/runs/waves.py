"""In which order hosts are changed: a canary, then growing batches, and never two nodes of one failover group at once.

Pure: the same candidates give the same waves. Hosts with nothing to change are in no wave. A host is in a later wave
than each host that has to go before it (`Before`), and than each host of its failover groups that is in an earlier one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec

from advisor.errors import UsageError
from advisor.host.numbers import group_pairs

GROWTH_PERCENT = (10, 50, 100)
"""Of all hosts to be changed, the waves after the canary take at most these shares.

One host shows a mistake that every host has. A tenth shows what only some of them have. Half leaves as many hosts
untouched as are being changed, so that the service can still run on those. Then the rest.
"""


class FailoverGroup(msgspec.Struct, frozen=True, order=True):
    """Hosts that stand in for one another. ``why`` says where that was learnt."""

    name: str
    why: str


class Candidate(msgspec.Struct, frozen=True):
    """A host that is to be changed, with the failover groups that it is a node of."""

    name: str
    groups: tuple[FailoverGroup, ...] = ()


class Before(msgspec.Struct, frozen=True):
    """``first`` is changed, and has passed its gate, before ``then`` is touched."""

    first: str
    then: str
    why: str


class Batch(msgspec.Struct, frozen=True):
    """At most ``count`` hosts in a wave, or ``percent`` of all that are to be changed; neither: growing."""

    count: int | None = None
    percent: int | None = None

    def limit(self, number: int, total: int) -> int:
        """How many hosts the wave may hold; ``number`` counts the waves after the canary from 0."""
        if self.count is not None:
            return self.count
        percent = self.percent or GROWTH_PERCENT[min(number, len(GROWTH_PERCENT) - 1)]
        return max(1, -(-total * percent // 100))


class Canary(msgspec.Struct, frozen=True):
    """Who is changed first: hosts by name, or a number of them. Zero: there is no canary."""

    names: tuple[str, ...] = ()
    count: int = 1


class WaveShape(msgspec.Struct, frozen=True):
    """How a fleet is to be walked: ``failover`` names a group of the inventory, or ``var=NAME`` a variable of it."""

    canary: Canary = Canary()
    batch: Batch = Batch()
    failover: str | None = None


class Wave(msgspec.Struct, frozen=True):
    """Hosts that are changed at the same time. ``number`` counts from 1."""

    number: int
    hosts: tuple[str, ...]
    is_canary: bool = False


class Waves(msgspec.Struct, frozen=True):
    """The waves, and in sentences what had to give way to what."""

    waves: tuple[Wave, ...]
    notes: tuple[str, ...] = ()

    def numbers(self) -> dict[str, int]:
        """The wave of every host that is in one."""
        return {host: wave.number for wave in self.waves for host in wave.hosts}


ONE_CANARY = Canary()
GROWING_BATCH = Batch()


def batch_of(text: str | None) -> Batch:
    """``4``, ``25%``; None for growing batches. Raises UsageError."""
    if text is None:
        return Batch()
    found = re.fullmatch(r"([0-9]{1,6})(%?)", text.strip(), re.ASCII)
    amount = int(found[1]) if found else 0
    if found is None or amount < 1 or (found[2] and amount > 100):
        raise UsageError(f"--batch {text}: neither a number of hosts nor a share such as 25%")
    return Batch(percent=amount) if found[2] else Batch(count=amount)


def canary_of(words: Sequence[str], known: Iterable[str]) -> Canary:
    """``--canary`` as given: one number, or hosts of the inventory. Raises UsageError."""
    if not words:
        return Canary()
    names = set(known)
    named = [part for word in words for part in word.split(",") if part]
    if len(named) == 1 and named[0] not in names and re.fullmatch(r"[0-9]{1,6}", named[0], re.ASCII):
        return Canary(count=int(named[0]))
    for name in named:
        if name not in names:
            raise UsageError(f"--canary {name}: neither a number nor a host that is asked", hint="see --limit")
    return Canary(tuple(dict.fromkeys(named)), len(named))


def make_waves(
    candidates: Sequence[Candidate],
    *,
    order: Iterable[Before] = (),
    canary: Canary = ONE_CANARY,
    batch: Batch = GROWING_BATCH,
) -> Waves:
    """Every candidate in exactly one wave.

    An order that goes round in a circle binds nobody who is on the circle; a canary that is named goes first whatever
    the order says. Both are among the notes.
    """
    names = tuple(one.name for one in candidates)
    notes: list[str] = []
    waits_for = _without_circles(_edges(order, names), notes)
    left = _Left(candidates, waits_for)
    waves: list[Wave] = []
    for chosen in _canary_waves(canary, left, notes):
        waves.append(Wave(len(waves) + 1, chosen, is_canary=True))
    number = 0
    while left.names:
        chosen = left.take(batch.limit(number, len(names)))
        waves.append(Wave(len(waves) + 1, chosen))
        number += 1
    return Waves(tuple(waves), tuple(notes))


def _canary_waves(canary: Canary, left: _Left, notes: list[str]) -> list[tuple[str, ...]]:
    """One wave of canaries, or several where those that were named are nodes of one failover group."""
    if not canary.names:
        return [left.take(canary.count)] if canary.count and left.names else []
    waves = []
    named = [name for name in canary.names if name in left.names]
    for name in canary.names:
        if name not in named:
            notes.append(f"{name} was named as a canary and has nothing to change")
    while named:
        for name in named:
            if early := left.waited_for(name):
                notes.append(
                    f"{name} was named as a canary, so it goes before {', '.join(early)}, which should go first"
                )
        chosen = left.take(len(named), among=named, in_any_order=True)
        named = [name for name in named if name not in chosen]
        if named:
            notes.append(f"{', '.join(named)}: in a later wave than the other canary of the same failover group")
        waves.append(chosen)
    return waves


def _edges(order: Iterable[Before], names: Iterable[str]) -> dict[str, set[str]]:
    """Whom each host waits for; hosts that are not changed keep nobody waiting."""
    waits_for: dict[str, set[str]] = {name: set() for name in names}
    for one in order:
        if one.first in waits_for and one.then in waits_for and one.first != one.then:
            waits_for[one.then].add(one.first)
    return waits_for


def _without_circles(waits_for: dict[str, set[str]], notes: list[str]) -> dict[str, set[str]]:
    found = []
    while True:
        try:
            TopologicalSorter(waits_for).prepare()
        except CycleError as error:
            # The whole of what goes round: all that wait for a host and that it waits for.
            first = error.args[1][0]
            circle = {name for name in _waited_for(waits_for, first) if first in _waited_for(waits_for, name)}
            for name in circle:
                waits_for[name] -= circle
            found.append(f"{', '.join(sorted(circle))} would each have to go before the other: they go in any order")
        else:
            notes += sorted(found)
            return waits_for


def _waited_for(waits_for: Mapping[str, set[str]], name: str) -> set[str]:
    """All that a host waits for, over others as well."""
    found: set[str] = set()
    pending = [name]
    while pending:
        new = waits_for[pending.pop()] - found
        found |= new
        pending += new
    return found


class _Left:
    """The hosts that are in no wave yet."""

    def __init__(self, candidates: Sequence[Candidate], waits_for: Mapping[str, set[str]]) -> None:
        self._place = {one.name: place for place, one in enumerate(candidates)}
        self._groups = {one.name: {group.name for group in one.groups} for one in candidates}
        self._waits_for = waits_for
        self.names: set[str] = set(self._place)

    def waited_for(self, name: str) -> list[str]:
        """Those that the host should wait for and that are in no wave yet."""
        return sorted(self._waits_for[name] & self.names, key=self._place.__getitem__)

    def take(self, limit: int, *, among: Iterable[str] | None = None, in_any_order: bool = False) -> tuple[str, ...]:
        """At least one host, at most ``limit``, out of those whose turn it may be; no two of one failover group."""
        pool = self.names if among is None else self.names & set(among)
        ready = [name for name in pool if in_any_order or not self._waits_for[name] & self.names]
        # How many waves must follow, one after the other, from each host on: who has most behind it goes first.
        waits = {name: self._waits_for[name] & self.names for name in self.names}
        behind = group_pairs((other, name) for name, others in waits.items() for other in others)
        lengths: dict[str, int] = {}
        for name in reversed([*TopologicalSorter(waits).static_order()]):
            lengths[name] = 1 + max((lengths[other] for other in behind.get(name, ())), default=0)
        chains, crowds = lengths, self._waves_needed()
        ready.sort(key=lambda name: (-max(chains[name], crowds[name]), self._place[name]))
        taken: list[str] = []
        used: set[str] = set()
        for name in ready:
            if len(taken) < limit and not self._groups[name] & used:
                taken.append(name)
                used |= self._groups[name]
        self.names -= set(taken)
        return tuple(sorted(taken, key=self._place.__getitem__))

    def _waves_needed(self) -> dict[str, int]:
        """How many waves the largest failover group of each host still needs."""
        sizes = Counter(group for name in self.names for group in self._groups[name])
        return {name: max((sizes[group] for group in self._groups[name]), default=1) for name in self.names}
