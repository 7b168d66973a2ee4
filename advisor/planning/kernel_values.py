"""Values of the kernel that imported profiles set as a rule: read for a snapshot, so that it can answer for them."""

from __future__ import annotations

from advisor.host import Host
from advisor.planning.expansion import expand_targets
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget
from advisor.tunables import all_kinds


def read_kernel_values(host: Host) -> None:
    """Read what plans for these values read."""
    captures = (kind.capture for kind in all_kinds() if kind.capture is not None)
    values = (item for capture in captures for item in capture.values.items())
    targets = tuple(PlanTarget(name, value, "exactly", "", "", (), "advisor") for name, value in values)
    observe_targets(host, expand_targets(host, targets)[0], {})
