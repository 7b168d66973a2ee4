"""A plan on the links that it was made for, whatever their names are now.

A link that was renamed is followed; what cannot be identified for certain is never read or written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

import msgspec

from advisor.host import Host
from advisor.planning.records import Change, Plan
from advisor.transaction.side_effects import ItemOutcome
from advisor.tunables.link_identity import LinkMark, LostLink, link_of, place_of
from advisor.tunables.link_rename import renamed_probe, renamed_step
from advisor.tunables.preflight import SideEffect

_Item = TypeVar("_Item", Change, SideEffect)

_replace = msgspec.structs.replace


class OwnLinks(msgspec.Struct, frozen=True):
    """``plan`` has its probes and steps at the names that its links have now, and nothing of ``lost`` ones."""

    plan: Plan
    places: Mapping[str, str]
    lost: Mapping[str, LostLink]

    def note_renames(self, outcomes: Iterable[ItemOutcome]) -> list[ItemOutcome]:
        """Outcomes, each of a renamed link with its name."""
        return [_note_rename(one, self.places.get(link_of(one.what) or "")) for one in outcomes]


def on_own_links(host: Host, plan: Plan) -> OwnLinks:
    """``plan`` on the links that it was made for."""
    found = {mark.name: place_of(host, mark) for mark in plan.links}
    lost = {name: place for name, place in found.items() if isinstance(place, LostLink)}
    places = {name: place for name, place in found.items() if isinstance(place, str)}
    if not lost and all(name == place for name, place in places.items()):
        return OwnLinks(plan, places, lost)
    moved = _replace(
        plan, changes=_on_places(plan.changes, places, lost), side_effects=_on_places(plan.side_effects, places, lost)
    )
    return OwnLinks(moved, places, lost)


def on_own_link(host: Host, links: Collection[LinkMark], one: _Item) -> _Item | LostLink:
    """One item of a plan on the link that it was made for."""
    name = link_of(one.tunable)
    mark = next((mark for mark in links if mark.name == name), None)
    if mark is None:
        return one
    place = place_of(host, mark)
    return place if isinstance(place, LostLink) else _rename_item(one, mark.name, place)


def now_named(host: Host, links: Collection[LinkMark], tunable: str) -> str:
    """`` (OLD is now named NEW)`` where the link of a tunable has another name now, else nothing."""
    places = {mark.name: place_of(host, mark) for mark in links if mark.name == link_of(tunable)}
    return "".join(f" ({old} is now named {new})" for old, new in places.items() if old != new and isinstance(new, str))


def _on_places(items: Iterable[_Item], places: Mapping[str, str], lost: Mapping[str, LostLink]) -> tuple[_Item, ...]:
    kept = ((one, link_of(one.tunable) or "") for one in items)
    return tuple(_rename_item(one, name, places.get(name, name)) for one, name in kept if name not in lost)


def _rename_item(one: _Item, old: str, new: str) -> _Item:
    if old == new:
        return one
    probe, undo = renamed_probe(one.probe, old, new), tuple(renamed_step(step, old, new) for step in one.undo)
    if isinstance(one, SideEffect):
        return _replace(one, probe=probe, undo=undo)
    return _replace(one, probe=probe, undo=undo, steps=tuple(renamed_step(step, old, new) for step in one.steps))


def _note_rename(outcome: ItemOutcome, place: str | None) -> ItemOutcome:
    """An outcome that says so where its link is named ``place`` now."""
    name = link_of(outcome.what)
    if name is None or place is None or place == name:
        return outcome
    return _replace(outcome, detail=f"{outcome.detail} ({name} is now named {place})")
