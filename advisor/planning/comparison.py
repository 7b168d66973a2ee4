"""What *at least*, *at most*, *within* and *exactly* make of a live value and a wanted one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from advisor.facts.processors.cpulist import parse_list
from advisor.planning.records import Change
from advisor.tunables.kind import Sense


def combine_values(live: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> str:
    """The value to set: per field where ``sense`` is a tuple (a triple such as tcp_rmem), else for the whole.

    A field that is not a number is replaced whatever the sense: there is no order to compare it by.
    """
    live_fields, wanted_fields = live.split(), wanted.split()
    # Folded as every probe folds what it reads, so that it can be read back.
    wanted = " ".join(wanted_fields)
    if sense == "keep":
        return live
    if sense == "within":
        try:
            is_within = bool(live) and set(parse_list(live)) <= set(parse_list(wanted))
        except ValueError:
            is_within = False
        return live if is_within else wanted
    if not isinstance(sense, tuple):
        sense = (sense,) * len(wanted_fields)
    if len(live_fields) != len(wanted_fields) or len(sense) != len(wanted_fields):
        return wanted
    return " ".join(_combine_field(*three) for three in zip(live_fields, wanted_fields, sense, strict=True))


def is_comparable(live: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> bool:
    """Whether there is a field for each field, which every sense needs that goes by fields."""
    return sense in ("exactly", "within", "keep") or len(live.split()) == len(wanted.split())


def would_lower(live: str, wanted: str, combined: str) -> bool:
    """Whether writing ``wanted`` as it stands would have lowered a number that ``combined`` keeps."""
    return combined != wanted and any(
        _is_number(old) and _is_number(new) and int(old) > int(new) and kept == old
        for old, new, kept in zip(live.split(), wanted.split(), combined.split(), strict=False)
    )


def _combine_field(live: str, wanted: str, sense: Sense) -> str:
    if sense == "keep":
        return live
    if sense == "exactly" or not (_is_number(live) and _is_number(wanted)):
        return wanted
    better = max if sense == "at-least" else min
    return str(better(int(live), int(wanted)))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]{1,20}", text))


# What the active transactions hold of this host, as far as a plan needs it.


class OwnedValue(msgspec.Struct, frozen=True):
    """A value that active transactions hold.

    ``value`` is what the uppermost of them set, ``underneath`` what would be there without those that the plan
    replaces. ``by`` names the uppermost, ``profiles`` are those of the layers that stay.
    """

    value: str
    underneath: str
    by: str
    profiles: Collection[str]
    all_profiles: Collection[str] = frozenset()
    """Those of every layer that stays, whatever value it set."""


class Ownership(msgspec.Struct, frozen=True):
    """Values by tunable, and the files that active transactions wrote."""

    values: Mapping[str, OwnedValue] = {}
    files: Collection[str] = frozenset()

    def is_claim(self, tunable: str, live: str | None, profile: str) -> bool:
        """Whether a value is as wanted because of another profile's transaction, which could be rolled back."""
        holding = self.values.get(tunable)
        return holding is not None and holding.value == live and profile not in holding.profiles

    def value_underneath(self, tunable: str, live: str) -> str:
        """The value that a plan builds on: the live one, or what will be there without those that it replaces."""
        holding = self.values.get(tunable)
        return holding.underneath if holding is not None and holding.value == live else live


NOTHING_OWNED = Ownership()


def claim_notes(claims: Iterable[Change], held: Ownership) -> tuple[str, ...]:
    """A line for each transaction that already holds what the plan wants."""
    by: dict[str, list[str]] = {}
    for claim in claims:
        by.setdefault(held.values[claim.tunable].by, []).append(claim.tunable)
    return tuple(
        f"{len(names)} value{' is' if len(names) == 1 else 's are'} held already by {one}: added as a layer that stays "
        f"when {one} is rolled back ({', '.join(names)})"
        for one, names in by.items()
    )
