"""Whether a profile helps: hosts of an Ansible inventory as units, half of them treated by coin, then rolled back."""

from advisor.fleet.inventory import Inventory
from advisor.operations import fleet_runs, fleet_trials

wish = fleet_runs.make_wish(Inventory(("inventory.ini",)), ["socket-buffers-8m"], {}, confirm_within=300)
terms = fleet_trials.make_terms(["command:/usr/local/bin/p99:lower:ms"], readings=6, period_seconds=60.0)


def prove_after_review() -> int:
    """Measure all hosts, treat those that the coin names, measure again, and roll back."""
    return fleet_trials.prove_on_fleet(wish, terms, agree=lambda plan, design: True, say=print).code


print([metric.name for metric in terms.metrics])
