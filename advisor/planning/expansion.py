"""Targets whose id stands for others: a shell pattern for the files that it fits, a name for what this kernel has."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing
from advisor.planning.order import rank_of
from advisor.planning.records import PlanTarget, Skipped, SkipState
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import ExpandsIds
from advisor.tunables.udev import DeviceClass


def expand_targets(host: Host, targets: Iterable[PlanTarget]) -> tuple[tuple[PlanTarget, ...], tuple[Skipped, ...]]:
    """The targets that are meant on this host, each under its own id; what fits nothing here, with the reason."""
    found: list[PlanTarget] = []
    skipped: list[Skipped] = []
    for target in map(_as_rule, targets):
        one = parse_tunable(target.tunable)
        names = one.expand_ids(host) if isinstance(one, ExpandsIds) else (target.tunable,)
        if isinstance(names, Missing):
            state: SkipState = "not-applicable" if names.is_absent else "unknown"
            skipped.append(Skipped(target.tunable, None, target.value, names.why, state, target.profile))
            continue
        found += [_rename_target(target, name) for name in names]
    once, again = _drop_same_files(host, found)
    return once, (*skipped, *again, *_skip_present(host, once))


def _as_rule(target: PlanTarget) -> PlanTarget:
    """A value of a class that is wanted ``at-least``, in the words of its rule, which compares for each device. Raises
    UsageError for a sense that no rule can have."""
    if not target.tunable.startswith("udev:") or target.sense == "exactly":
        return target
    if target.sense != "at-least":
        raise UsageError(f"{target.tunable}: a udev rule sets a value, or at least that: = or >=")
    value = target.value if target.value.startswith("at-least ") else f"at-least {target.value}"
    return msgspec.structs.replace(target, value=value, sense="exactly")


def _skip_present(host: Host, targets: tuple[PlanTarget, ...]) -> Iterable[Skipped]:
    """Devices of a class that are there already and have not its value, where nothing of the plan sets it on them."""
    own = {target.tunable for target in targets}
    for target in targets:
        if not target.tunable.startswith("udev:"):
            continue
        one = parse_tunable(target.tunable)
        assert isinstance(one, DeviceClass)
        for tunable, live in one.list_present(host, target.value):
            if tunable not in own:
                why = "is there already: its own id sets it now, the udev rule with its next event or the next boot"
                yield Skipped(tunable, live, target.value, why, "not-applicable", target.profile)


def _drop_same_files(host: Host, targets: Iterable[PlanTarget]) -> tuple[tuple[PlanTarget, ...], tuple[Skipped, ...]]:
    """Each file below /sys once, whichever of its names it is given by: set twice it would be restored twice.

    Raises UsageError where two names of one file want different things of it.
    """
    kept: list[PlanTarget] = []
    skipped: list[Skipped] = []
    firsts: dict[str, PlanTarget] = {}
    for target in targets:
        real = host.real(target.tunable.removeprefix("sysfs:")) if target.tunable.startswith("sysfs:") else None
        first = firsts.setdefault(real, target) if isinstance(real, str) else target
        if first.tunable == target.tunable:
            kept.append(target)
            continue
        if (first.value, first.sense) != (target.value, target.sense):
            raise UsageError(
                (
                    f"{first.tunable} and {target.tunable} are one file: {first.profile} wants {first.value}, "
                    f"{target.profile} wants {target.value}"
                ),
                hint="ask for one of the two",
            )
        why = f"is the same file as {first.tunable}"
        skipped.append(Skipped(target.tunable, None, target.value, why, "not-applicable", target.profile))
    return tuple(kept), tuple(skipped)


def _rename_target(target: PlanTarget, name: str) -> PlanTarget:
    if name == target.tunable:
        return target
    return msgspec.structs.replace(target, tunable=name, rank=target.rank or rank_of(name))
