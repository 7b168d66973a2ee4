"""What an imported profile comes to on a host, without being in the library."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.facts.whole import Facts, scan
from advisor.host import Host
from advisor.interchange.records import Imported
from advisor.interchange.to_profile import to_profile
from advisor.plan.compute import make_plan
from advisor.plan.expansion import expand_targets
from advisor.plan.observations import observe_targets
from advisor.plan.records import Plan
from advisor.plan.targets import Request, resolve_targets


def plan_imported(imported: Imported, host: Host, facts: Facts | None = None) -> Plan:
    """Its plan on this host, as `advisor.workflow.plan_profiles` would make it. Changes nothing.

    Raises InvalidInputError where the import made a profile that is none.
    """
    found = scan(host) if facts is None else facts
    targets, skipped = resolve_targets(Request.of(to_profile(imported), {}), found)
    expanded, nowhere = expand_targets(host, targets)
    return make_plan((imported.name,), expanded, (*skipped, *nowhere), observe_targets(host, expanded, {}), found)


def planned_values(imported: Imported, host: Host, facts: Facts | None = None) -> Mapping[str, str]:
    """Tunable → value that its plan ends in on this host, those that are there already among them."""
    plan = plan_imported(imported, host, facts)
    there = {
        one.tunable: one.before
        for one in plan.skipped
        if one.state in ("in-place", "would-lower") and one.before is not None
    }
    return dict(sorted({**there, **{change.tunable: change.after for change in plan.changes}}.items()))
