"""What lies on which drives: the arrays right above each drive, and those above arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from advisor.facts.array import Array
from advisor.report.format import natural
from advisor.report.picture.places import PictureFacts, known_nodes


class Stacking(msgspec.Struct, frozen=True):
    """``direct`` maps a drive to the arrays that it is a member of, lowest first; ``upper`` are arrays of arrays."""

    direct: dict[str, tuple[Array, ...]]
    upper: tuple[Array, ...]
    diskless: tuple[Array, ...]
    """Arrays of which no drive is known."""
    across: tuple[Array, ...]
    """Arrays whose drives are on several nodes."""

    def across_on(self, drives: Iterable[str]) -> tuple[Array, ...]:
        """Those of them that have any of some drives."""
        wanted = frozenset(drives)
        return tuple(array for array in self.across if wanted.intersection(array.disks))


def stack_arrays(around: PictureFacts) -> Stacking:
    """How the arrays of a host lie on its drives and on each other."""
    disks = around.disks.keys()
    arrays = sorted(around.facts.arrays, key=lambda array: (natural(array.name), array.name))
    on_disks = [array for array in arrays if disks & set(array.disks)]
    holding: dict[str, list[Array]] = {}
    for array in on_disks:
        for name in disks & set(array.disks):
            holding.setdefault(name, []).append(array)
    direct = {name: lowest_arrays(found) for name, found in holding.items()}
    near = {array.device for found in direct.values() for array in found}
    return Stacking(
        direct=direct,
        upper=tuple(array for array in on_disks if array.device not in near),
        diskless=tuple(array for array in arrays if not disks & set(array.disks)),
        across=tuple(array for array in on_disks if len(known_nodes(around.disk_places(array.disks))) > 1),
    )


def lowest_arrays(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Those that rest on none of the others."""
    return tuple(one for one in arrays if not any(rests_on(one, other) for other in arrays if other is not one))


def rests_on(upper: Array, lower: Array) -> bool:
    """Whether ``lower`` is a member of ``upper``, whole or by a partition of it.

    LVM on a whole md array names that array as its member; where layers lie in between (encryption), the drives decide:
    an array on all drives of a smaller one, and on more, is above it.
    """
    if any(member == lower.device or member.startswith(f"{lower.device}p") for member in upper.members):
        return True
    return frozenset(upper.disks) > frozenset(lower.disks) and not frozenset(lower.members) & frozenset(upper.members)
