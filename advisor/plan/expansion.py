"""Targets whose id stands for others: a shell pattern for the files that it fits, a name for what this kernel has."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from advisor.host import Host, Missing
from advisor.plan.order import rank_of
from advisor.plan.records import Skipped, SkipState, Target
from advisor.tunables import tunable
from advisor.tunables.circumstances import Expanding


def expand_targets(host: Host, targets: Iterable[Target]) -> tuple[tuple[Target, ...], tuple[Skipped, ...]]:
    """The targets that are meant on this host, each under its own id; what fits nothing here, with the reason."""
    found: list[Target] = []
    skipped: list[Skipped] = []
    for target in targets:
        one = tunable(target.tunable)
        names = one.expanded(host) if isinstance(one, Expanding) else (target.tunable,)
        if isinstance(names, Missing):
            state: SkipState = "not-applicable" if names.is_absent else "unknown"
            skipped.append(Skipped(target.tunable, None, target.value, names.why, state, target.profile))
            continue
        found += [_renamed(target, name) for name in names]
    return tuple(found), tuple(skipped)


def _renamed(target: Target, name: str) -> Target:
    if name == target.tunable:
        return target
    return msgspec.structs.replace(target, tunable=name, rank=target.rank or rank_of(name))
