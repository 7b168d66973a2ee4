"""In which sense profiles want their values: a plan holds what that comes to on one host, and no longer says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.planner import profile_requests
from advisor.planning.expansion import expand_targets
from advisor.planning.targets import resolve_targets
from advisor.tunables.tunable import Sense


def read_senses(
    host: Host, names: Sequence[str], settings: Mapping[str, str], facts: Facts
) -> Mapping[str, Sense | tuple[Sense, ...]]:
    """Tunable → sense of every value that the profiles do not want exactly so. Raises UsageError as a plan does."""
    wanted = (target for request in profile_requests(names, settings) for target in resolve_targets(request, facts)[0])
    return {target.tunable: target.sense for target in expand_targets(host, wanted)[0] if target.sense != "exactly"}
