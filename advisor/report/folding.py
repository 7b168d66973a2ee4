"""Long lists of alike items as one line each: 200 interrupts that the kernel manages are one thing to say, not 200."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from advisor.facts.cpulist import format_list
from advisor.host.patterns import lazy_regex

FOLD_FROM = 4
MAX_SPANS = 5

# Longer runs of digits (serial numbers, hostile text) are no counters, and int() refuses them beyond 4,300 digits.
_NUMBER = lazy_regex(r"(\d{1,9})", re.ASCII)

T = TypeVar("T")


class Folded(NamedTuple, Generic[T]):
    """Items that differ in numbers only. ``name`` and ``detail`` are those of all of them: ``irq:24-223:affinity``."""

    name: str
    detail: str
    items: tuple[T, ...]

    @property
    def title(self) -> str:
        """The name, and of how many it is."""
        return self.name + (f" ({len(self.items)})" if len(self.items) > 1 else "")


def fold_alike(
    items: Iterable[T],
    name: Callable[[T], str],
    detail: Callable[[T], str] = lambda _: "",
    *,
    same: Callable[[T], Hashable] = lambda _: None,
) -> list[Folded[T]]:
    """Items whose name and detail have one shape, four or more, folded; the others as they are, all in their order.

    ``same`` is what must be equal besides, such as values, of which a range would say what none of them is.
    """
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault((text_shape(name(item)), text_shape(detail(item)), same(item)), []).append(item)
    found: list[Folded[T]] = []
    for group in groups.values():
        if len(group) < FOLD_FROM:
            found += [Folded(name(item), detail(item), (item,)) for item in group]
        else:
            names = [name(item) for item in group]
            found.append(Folded(_name_range(names), merge_texts([detail(item) for item in group]), tuple(group)))
    return found


def text_shape(text: str) -> str:
    """The text with each number as ``#``: what texts that differ in numbers only have in common."""
    return _NUMBER.sub("#", text)


def _name_range(names: Sequence[str]) -> str:
    """One name with a range in it; the first and the last where more than one number differs."""
    rows = [_NUMBER.split(name) for name in names]
    differing = [column for column in zip(*rows, strict=True) if len(set(column)) > 1]
    return f"{names[0]} … {names[-1]}" if len(differing) > 1 else merge_texts(names)


def merge_texts(texts: Sequence[str]) -> str:
    """Texts of one shape as one: each number that differs as a range."""
    rows = [_NUMBER.split(text) for text in texts]
    return "".join(column[0] if len(set(column)) == 1 else _number_range(column) for column in zip(*rows, strict=True))


def _number_range(numbers: Sequence[str]) -> str:
    found = {int(number) for number in numbers}
    spans = format_list(found)
    return spans if spans.count(",") < MAX_SPANS else f"{min(found)}…{max(found)}"
