"""Plans of what was imported, as the saved profile would have them."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.importers.records import Imported
from advisor.importers.to_profile import to_profile
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.requested import RequestedProfile


def plan_imported(imported: Imported, host: Host, facts: Facts | None = None) -> Plan:
    return plan_profiles(host, (RequestedProfile(to_profile(imported), ()),), {}, facts=facts)
