"""Plan a profile for the hosts of an Ansible inventory, one canary first; then what runs this controller knows."""

from advisor.fleet.inventory import Inventory
from advisor.operations import fleet_runs

wish = fleet_runs.make_wish(
    Inventory(("inventory.ini",)), ["socket-buffers-8m"], {}, canary=["node1"], batch="50%", confirm_within=300
)


def apply_after_review() -> int:
    """Connect to the hosts, print each step, and apply the plan that was agreed to."""
    return fleet_runs.apply_fleet(wish, agree=lambda plan: bool(plan.waves), say=print).code


print(fleet_runs.read_fleet_status(None).runs)
