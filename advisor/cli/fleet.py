"""``advisor fleet``: the same over many hosts of an Ansible inventory."""

from __future__ import annotations

from collections.abc import Callable

from advisor.cli import fleet_change, fleet_compare, fleet_limits, fleet_look, fleet_why
from advisor.cli.commands import make_group

_VERBS: dict[str, Callable[..., int]] = {
    **fleet_look.COMMANDS,
    "compare": fleet_compare.compare,
    **fleet_why.COMMANDS,
    **fleet_limits.COMMANDS,
    **fleet_change.COMMANDS,
}
COMMANDS = {"fleet": make_group("Do the same on many hosts of an Ansible inventory.", _VERBS)}
