"""Where the sources contradict each other: every side with who says it, and what this tool does about it.

A rule names the contradictions that bear on its advice; its findings carry them, so that nobody takes one vendor's
number for the truth. They stand in tables/contradictions.ini; docs/contradictions.md lists them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from advisor.host.package_data import read_sections
from advisor.rules import sources

PREFIX = "contradiction."


class ContradictionSide(msgspec.Struct, frozen=True):
    """What one source says."""

    says: str
    source: str


class Contradiction(msgspec.Struct, frozen=True):
    """A question that sources answer differently. ``id`` begins with ``contradiction.``; ``topic`` says what of."""

    id: str
    topic: str
    sides: tuple[ContradictionSide, ...]
    what_we_do: str


def _make_contradiction(name: str, pairs: Sequence[tuple[str, str]]) -> Contradiction:
    texts = dict(pairs)
    sides = (text.rpartition(" | ") for field, text in pairs if field == "side")
    return Contradiction(
        PREFIX + name,
        texts["topic"],
        tuple(ContradictionSide(says, _source_words(source)) for says, _, source in sides),
        texts["what_we_do"],
    )


def _source_words(written: str) -> str:
    """The source that a constant names, and what is added to it after a comma."""
    name, comma, rest = written.partition(",")
    return f"{getattr(sources, name)}{comma}{rest}"


@cache
def all_contradictions() -> dict[str, Contradiction]:
    """Each contradiction by its id, in the order of the table."""
    made = (_make_contradiction(*row) for row in read_sections("contradictions.ini"))
    return {one.id: one for one in made}


def contradiction(identity: str) -> Contradiction | None:
    """The contradiction with this id; None where there is none."""
    return all_contradictions().get(identity)


def named(identities: Iterable[str]) -> tuple[Contradiction, ...]:
    """Those with these ids, in their order. Raises KeyError for an id that stands for nothing."""
    return tuple(all_contradictions()[identity] for identity in identities)
