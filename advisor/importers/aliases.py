"""Kernel parameters that say one thing in two units, of which the kernel keeps the one written last."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.importers.made import leave_out
from advisor.importers.records import ImportedSetting
from advisor.tunables.sysctl import Sysctl


def without_rivals(settings: Sequence[ImportedSetting]) -> tuple[ImportedSetting, ...]:
    """Of ``vm.dirty_ratio`` and ``vm.dirty_bytes`` and such like, the later one; the other is zeroed by it anyhow."""
    order = {one.tunable: place for place, one in enumerate(settings) if one.outcome == "tunable"}
    found = []
    for place, one in enumerate(settings):
        if one.outcome != "tunable" or one.tunable is None or not one.tunable.startswith("sysctl:"):
            twin = None
        else:
            key = Sysctl(one.tunable.removeprefix("sysctl:")).twin
            twin = None if key is None else f"sysctl:{key}"
        later = order.get(twin, -1) if twin is not None else -1
        if later > place:
            rival = settings[later]
            why = f"{rival.key} (line {rival.line}) is set after it, and the kernel then zeroes this one"
            found.append(leave_out(one, why, "overridden"))
        else:
            found.append(one)
    return tuple(found)
