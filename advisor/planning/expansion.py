"""Targets whose id stands for others: a shell pattern for the files that it fits, a name for what this kernel has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, Missing, PutFile, SetMtu, Step, WriteFile
from advisor.host.would_be import after_steps
from advisor.planning.observations import observe_targets, rank_of
from advisor.planning.records import Foreseen, Plan, PlanTarget, Skipped, SkipState
from advisor.rules.judged import EarlierScan, compare_findings, judge
from advisor.rules.rule import SEVERITIES, Finding, finding_devices
from advisor.tunables import all_kinds, parse_tunable
from advisor.tunables.preflight import ExpandsIds
from advisor.tunables.sysctl import Sysctl, sysctl_path
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


# Values of the kernel that imported profiles set as a rule: read for a snapshot, so that it can answer for them.


def read_kernel_values(host: Host) -> None:
    """Read what plans for these values read."""
    captures = (kind.capture for kind in all_kinds() if kind.capture is not None)
    values = (item for capture in captures for item in capture.values.items())
    targets = tuple(PlanTarget(name, value, "exactly", "", "", (), "advisor") for name, value in values)
    observe_targets(host, expand_targets(host, targets)[0], {})


# What the rules would newly say of a host after a plan: they judge the facts with the plan's values in them.

_ON_TOP = ("vlan", "macvlan", "macvtap", "ipvlan", "ipvtap")


def foresee(host: Host, facts: Facts, plan: Plan) -> tuple[Foreseen, ...]:
    """Return the findings that ``host``, of which ``facts`` were read, would newly have after ``plan``, or have in a
    higher severity, for further devices or for further keys; gravest first, then by id. Changes nothing."""
    if not (plan.changes or plan.files):
        return ()
    steps = tuple(list_steps(plan, facts))
    before, after = judge(facts), judge(scan(after_steps(host, steps)))
    difference = compare_findings(EarlierScan("", None, None, before), after)
    keys = [one.tunable.removeprefix("sysctl:") for one in plan.changes if one.tunable.startswith("sysctl:")]
    # A port that gets less than its fellows: the list of their sizes in an earlier finding has another one for it.
    keys += [f"'{step.link}: {step.mtu}'" for step in steps if isinstance(step, SetMtu) and _is_lowered(step, facts)]
    named = _named_keys(before, keys)
    further = (one for one in after if _named_keys((one,), keys) - named)
    found = {
        Foreseen(one.id, one.severity, one.title, one.why, finding_devices(one)): None
        for one in (*difference.new, *difference.worse, *further)
    }
    return tuple(sorted(found, key=lambda one: (-SEVERITIES.index(one.severity), one.id, one.devices)))


def _is_lowered(step: SetMtu, facts: Facts) -> bool:
    return any(link.name == step.link and (link.mtu or 0) > step.mtu for link in facts.links)


def _named_keys(findings: Iterable[Finding], keys: Sequence[str]) -> set[tuple[str, str]]:
    """Return id and key for each of the keys that a finding is about."""
    texts = [(one.id, f"{one.title} {one.evidence}") for one in findings]
    return {(identity, key) for identity, text in texts for key in keys if key in text}


def list_steps(plan: Plan, facts: Facts) -> Iterator[Step]:
    """Return the steps of a plan, and what the kernel does along with them: writing one of two units of a limit sets
    the other to 0, ports follow the MTU of their bond, and a link on top of another has at most its MTU."""
    yield from (SetMtu(link, mtu) for link, mtu in _following_mtus(plan, facts).items())
    for change in plan.changes:
        twin = Sysctl(change.tunable.removeprefix("sysctl:")).twin if change.tunable.startswith("sysctl:") else None
        if twin is not None and change.after != "0":
            yield WriteFile(sysctl_path(twin), "0")
        yield from change.steps
    for file in plan.files:
        yield PutFile(file.path, file.after)


def _following_mtus(plan: Plan, facts: Facts) -> dict[str, int]:
    """Return the MTUs that the kernel gives to other links (bond_change_mtu, vlan_device_event)."""
    planned = {step.link: step.mtu for change in plan.changes for step in change.steps if isinstance(step, SetMtu)}
    kinds = {link.name: link.kind for link in facts.links}
    found = {
        port.name: planned[upper]
        for port in facts.links
        for upper in port.upper
        if upper in planned and kinds.get(upper) in ("bond", "team") and port.name not in planned
    }
    for link in facts.links if planned else ():
        below = [{**found, **planned}[lower] for lower in link.lower if lower in found or lower in planned]
        if link.kind in _ON_TOP and link.mtu is not None and below and link.mtu > min(below):
            found[link.name] = min(below)
    return {name: mtu for name, mtu in found.items() if name not in planned}
