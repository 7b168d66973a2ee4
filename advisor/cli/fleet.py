"""``advisor fleet``: the same over many hosts of an Ansible inventory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

from advisor.cli import fleet_change, fleet_compare, fleet_limits, fleet_look

fleet = typer.Typer(help="The same over many hosts of an Ansible inventory.", no_args_is_help=True)
_VERBS: Final[dict[str, Callable[..., int]]] = {
    **fleet_look.COMMANDS,
    "compare": fleet_compare.compare,
    **fleet_limits.COMMANDS,
    **fleet_change.COMMANDS,
}
for _name, _command in _VERBS.items():
    fleet.command(_name)(_command)

COMMANDS: Final = {"fleet": fleet}
