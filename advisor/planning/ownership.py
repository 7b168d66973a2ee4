"""What the transactions in force hold of this host, as far as a plan has to know it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from advisor.planning.records import Change


class Holding(msgspec.Struct, frozen=True):
    """A value that transactions in force hold.

    ``value`` is what the last of them set, ``underneath`` what would be there without those that the plan takes the
    place of. ``by`` names the last, ``profiles`` are those by which the staying ones hold it.
    """

    value: str
    underneath: str
    by: str
    profiles: Collection[str]


class Held(msgspec.Struct, frozen=True):
    """Values by tunable, and the files that transactions in force wrote."""

    values: Mapping[str, Holding] = {}
    files: Collection[str] = frozenset()

    def is_claim(self, tunable: str, live: str | None, profile: str) -> bool:
        """Whether a value that is as wanted is so because of another profile's transaction, which could go."""
        holding = self.values.get(tunable)
        return holding is not None and holding.value == live and profile not in holding.profiles

    def underneath(self, tunable: str, live: str) -> str:
        """The value that a plan builds on: the live one, or what will be there without those that it replaces."""
        holding = self.values.get(tunable)
        return holding.underneath if holding is not None and holding.value == live else live


NOTHING_HELD = Held()


def claim_notes(claims: Iterable[Change], held: Held) -> tuple[str, ...]:
    """A line for each transaction that holds already what the plan wants."""
    by: dict[str, list[str]] = {}
    for claim in claims:
        by.setdefault(held.values[claim.tunable].by, []).append(claim.tunable)
    return tuple(
        f"{len(names)} value{' is' if len(names) == 1 else 's are'} held already by {one}: kept as a layer, and there "
        f"to stay when that one is taken out ({', '.join(names)})"
        for one, names in by.items()
    )
