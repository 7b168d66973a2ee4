"""Classes of devices of one plan: two rules that would set one value of the same device."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.planning.records import PlanTarget
from advisor.tunables import parse_tunable
from advisor.tunables.udev import DeviceClass


def class_clashes(targets: Iterable[PlanTarget]) -> dict[str, str]:
    """Class settings of which a device could have two: id → the reason."""
    ids = dict.fromkeys(one.tunable for one in targets if one.tunable.startswith("udev:"))
    classes = [one for one in map(parse_tunable, ids) if isinstance(one, DeviceClass)]
    return {
        one.id: f"a device can be of this class and of {other.id}, and has one value: ask for one"
        for one in classes
        for other in classes
        if one is not other and one.overlaps(other)
    }
