"""What the rules would newly say of a host after a plan: they judge the facts with the plan's values in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, PutFile, SetMtu, Step, WriteFile
from advisor.host.would_be import after_steps
from advisor.planning.records import Foreseen, Plan
from advisor.rules.difference import EarlierScan, compare_findings
from advisor.rules.finding import SEVERITIES, Finding, finding_devices
from advisor.rules.registry import judge
from advisor.tunables.sysctl import Sysctl, sysctl_path

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
