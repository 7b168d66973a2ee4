"""Findings as a person counts them: those of one rule and one severity are one line, with one number.

The numbers are the same on the page, in the HTML and for ``advisor explain N`` and ``advisor fix N``: they depend on
the findings alone, in the order of `advisor.rules.registry.judge`. Muted findings have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.i18n import msg
from advisor.rules.finding import Finding, Severity


class NumberedFindings(msgspec.Struct, frozen=True):
    """The findings of one rule with one severity; ``number`` counts from 1."""

    number: int
    id: str
    severity: Severity
    findings: tuple[Finding, ...]


def number_findings(findings: Iterable[Finding]) -> tuple[NumberedFindings, ...]:
    """The findings that are not muted, in the order given, those of one rule and severity at the place of the first."""
    groups: dict[tuple[str, Severity, bool], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.id, one.severity, one.intent), []).append(one)
    return tuple(
        NumberedFindings(number, some[0].id, some[0].severity, tuple(some))
        for number, some in enumerate(groups.values(), 1)
    )


def find_numbered(numbered: Sequence[NumberedFindings], name: str) -> tuple[NumberedFindings, ...]:
    """Those that a number or the id of a rule means; an id may mean several, of different severities.

    Raises UsageError for a number that there is not, and for an id that no finding has.
    """
    wanted = tuple(one for one in numbered if name in (str(one.number), one.id))
    if wanted:
        return wanted
    if name.isdigit() and numbered:
        raise UsageError(
            msg("finding {name}: there are {count}", name=name, count=len(numbered)),
            hint="advisor scan lists them with their numbers",
        )
    raise UsageError(
        msg("{name}: no finding on this host has this number or id", name=name),
        hint="advisor scan lists the findings with their numbers",
    )
