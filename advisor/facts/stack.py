"""What lies on what: from an array down to the devices that carry it, and to the disks at the bottom."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from advisor.facts.block import natural

MAX_DEPTH: Final = 64
"""Layers that are followed. Hosts have fewer than ten; without a bound, the time for a made-up capture grows
with the square of its depth. What lies deeper is not known."""


class Stack:
    """``lower`` maps a device to those directly below it, ``parent`` a partition to its whole device."""

    def __init__(self, lower: Mapping[str, tuple[str, ...]], parent: Mapping[str, str]) -> None:
        self._lower = lower
        self._parent = parent

    def below(self, device: str) -> tuple[str, ...]:
        """The devices directly below; for a partition, the one that it is a part of."""
        parent = self._parent.get(device)
        return (parent,) if parent else self._lower.get(device, ())

    def disks(self, device: str) -> tuple[str, ...]:
        """The devices at the bottom; the device itself where nothing is below it."""
        everything = {device, *self._walk_down(device, None)}
        return tuple(sorted((name for name in everything if not self.below(name)), key=natural))

    def through(self, device: str, hidden: Set[str]) -> tuple[str, ...]:
        """The devices below, hidden ones replaced by what is below them."""
        return tuple(sorted(self._walk_down(device, hidden) - hidden, key=natural))

    def _walk_down(self, device: str, hidden: Set[str] | None) -> set[str]:
        """Everything below; with ``hidden``, no further down than the first device that is not hidden."""
        seen: set[str] = set()
        layer = [device]
        for _ in range(MAX_DEPTH):
            if not layer:
                break
            followed = [name for name in layer if name == device or hidden is None or name in hidden]
            new = {below for name in followed for below in self.below(name)} - seen - {device}
            seen |= new
            layer = list(new)
        return seen
