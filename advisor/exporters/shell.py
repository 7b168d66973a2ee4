"""The plan as a script that replaces `advisor apply`, with journal, watchdog and rollback."""

from __future__ import annotations

from advisor.exporters.apply_script import transaction_script
from advisor.exporters.settings import Bundle, Exported


def make_shell_script(wanted: Exported) -> Bundle:
    """One script for this host alone: it changes what the plan saw. Raises RefusedError where that is nothing."""
    name = f"{wanted.name}.sh"
    text = transaction_script(wanted.plan, machine_id=wanted.plan.machine_id, hostname=wanted.hostname).encode(
        "utf-8", "surrogateescape"
    )
    use = tuple(f"sh DIRECTORY/{name} {verb}" for verb in ("check", "apply", "verify", "rollback"))
    return Bundle({name: text}, wanted.left_out, use, (name,))
