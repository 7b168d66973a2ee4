"""The page of ``advisor prove --html``: looked at before the measurement, written after the result was printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli.output import say

if TYPE_CHECKING:
    from advisor.plan.records import Plan
    from advisor.proof.records import Proof

UNWRITTEN: Final = 4
"""The exit code where the result was printed and the page was not written."""


def check_page(path: Path) -> None:
    """Raise UsageError where no page can be written there, before anything is measured."""
    from advisor.errors import UsageError

    if not path.absolute().parent.is_dir():
        raise UsageError(f"--html {path}: there is no such directory", hint="make it first")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(f"--html {path}: is there and is no regular file", hint="name a file that is new")


def write_page(path: Path, proof: Proof, plan: Plan | None) -> bool:
    """Write the page, whole or not at all; whether that went well. A fault is told on standard error.

    ``plan`` is the one whose values are arm B; None where there was none, or it is not known.
    """
    from advisor.errors import AdvisorError
    from advisor.host.putfile import save_output
    from advisor.report.proof_page import Setting, proof_page

    changes = () if plan is None else plan.changes
    values = [Setting(one.tunable, one.before, one.after, one.why) for one in changes]
    page = proof_page(proof, values or None)
    try:
        save_output(str(path), page.encode(), mode=0o644)
    except (AdvisorError, OSError) as error:
        say(f"advisor: the page was not written: {error}")
        return False
    say(f"{path}: the result as a page")
    return True
