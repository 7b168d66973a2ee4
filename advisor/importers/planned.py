"""What an imported profile comes to on a host, without being in the library."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.facts.host_facts import Facts, scan
from advisor.host import Host
from advisor.importers.records import Imported
from advisor.importers.to_profile import to_profile
from advisor.planning.comparison import combine_values
from advisor.planning.compute import make_plan
from advisor.planning.expansion import expand_targets
from advisor.planning.observations import observe_targets
from advisor.planning.records import SATISFIED, Plan, PlanTarget, Skipped
from advisor.planning.targets import Request, resolve_targets
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import ChoosesValue


def plan_imported(imported: Imported, host: Host, facts: Facts | None = None) -> Plan:
    """Its plan on this host, as `advisor.planner.plan_profiles` would make it. Changes nothing.

    Raises InvalidInputError where the import made a profile that is none.
    """
    found = scan(host) if facts is None else facts
    expanded, skipped = imported_targets(imported, host, found)
    return make_plan((imported.name,), expanded, skipped, observe_targets(host, expanded, {}), found)


def imported_targets(
    imported: Imported, host: Host, facts: Facts
) -> tuple[tuple[PlanTarget, ...], tuple[Skipped, ...]]:
    """What it wants of each tunable of this host, and what it has nothing here for."""
    targets, skipped = resolve_targets(Request.from_settings(to_profile(imported), {}), facts)
    expanded, nowhere = expand_targets(host, targets)
    return tuple(expanded), (*skipped, *nowhere)


def planned_values(imported: Imported, host: Host) -> Mapping[str, str]:
    """Tunable → value that its plan ends in on this host, those that are there already among them."""
    plan = plan_imported(imported, host)
    there = {one.tunable: one.before for one in plan.skipped if one.state in SATISFIED and one.before is not None}
    return dict(sorted({**there, **{change.tunable: change.after for change in plan.changes}}.items()))


def made_of(values: Mapping[str, str], imported: Imported, host: Host, facts: Facts) -> Mapping[str, str]:
    """What the other program makes of these values (by tunable) when it sets its own: those alone that it changes.

    A value that is a multiple of what it finds is reported as such.
    """
    found: dict[str, str] = {}
    for target in imported_targets(imported, host, facts)[0]:
        ours = values.get(target.tunable)
        if ours is None:
            continue
        if target.multiply is not None:
            found[target.tunable] = f"{target.multiply} times what it finds"
            continue
        one = parse_tunable(target.tunable)
        wanted = one.choose_value(host, ours, target.value) if isinstance(one, ChoosesValue) else target.value
        theirs = combine_values(ours, wanted, target.sense)
        if theirs != ours:
            found[target.tunable] = theirs
    return found
