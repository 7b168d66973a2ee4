"""The stack of each tunable that more than one active transaction holds, as text and as a document."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.planning.records import Change
from advisor.report.format import fold_alike
from advisor.report.layout import Page, Span
from advisor.transaction.journal import Record
from advisor.transaction.layers import layers_by_tunable

Stack = tuple[tuple[str, Change], ...]


def layer_stacks(records: Iterable[Record]) -> dict[str, Stack]:
    """Tunables that more than one transaction holds, by name."""
    return {name: layers for name, layers in sorted(layers_by_tunable(records).items()) if len(layers) > 1}


def add_layers(page: Page, records: Iterable[Record]) -> None:
    """A line for each such tunable: its value before all of them, then that of each, the last of which is active."""
    listed = tuple(records)
    # A switch that is not at its end: it waits, or was interrupted before the old transaction was rolled back.
    in_force = {record.id: record for record in listed if record.is_active}
    for record in in_force.values():
        for identity in record.plan.instead_of:
            if identity in in_force and record.state == "applied":
                page.blank()
                page.add(f"{record.id} replaces {identity}, which is not rolled back yet. To complete that:")
                page.command("advisor rollback")
            elif identity in in_force and record.state == "awaiting-confirmation":
                page.blank()
                page.add(f"{record.id} replaces {identity} once it is confirmed.")
    found = layer_stacks(listed)
    if not found:
        return
    page.blank()
    page.add("Layers, the last one active:")
    for one in fold_alike(found, lambda name: name, same=lambda name: _layer_words(found[name])):
        page.add(Span(one.title, "bold"), f": {_layer_words(found[one.items[0]])}", indent=2, hang=4)


def _layer_words(layers: Stack) -> str:
    values = (f"{change.after} ({identity} {change.profile})" for identity, change in layers)
    return " → ".join((layers[0][1].before, *values))


def layers_document(records: Iterable[Record]) -> list[dict[str, object]]:
    """Each such tunable with its value before all of them (``before``) and its layers, the last one active."""
    return [
        {
            "tunable": name,
            "before": layers[0][1].before,
            "layers": [{"id": one, "profile": change.profile, "after": change.after} for one, change in layers],
        }
        for name, layers in layer_stacks(records).items()
    ]
