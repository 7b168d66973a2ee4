"""Whether findings are grave enough for an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from advisor.errors import UsageError
from advisor.rules.rule import SEVERITIES, Severity, at_or_above


def check_severity(text: str | None) -> str | None:
    """Return ``text``, the severity of ``--fail-on``. Raises UsageError for a word that is none."""
    if text is not None and text not in SEVERITIES:
        raise UsageError(
            f"--fail-on {text}: not one of {', '.join(SEVERITIES)}",
            hint="--fail-on warning exits with 1 on a finding of warning or critical",
        )
    return text


class Graded(Protocol):
    """Anything with a severity."""

    @property
    def severity(self) -> Severity: ...


def has_severity(findings: Iterable[Graded], floor: str | None) -> bool:
    """Whether one of the findings is of severity ``floor`` (info, advice, warning or critical) or above; never for
    None."""
    return floor is not None and any(at_or_above(one.severity, floor) for one in findings)
