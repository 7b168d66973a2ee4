"""What the active transactions hold of this host, as far as a plan needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from advisor.planning.records import Change


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
