"""A rule: a citation, the conditions under which it helps and hurts, and a pure function from facts to findings."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from advisor.facts.whole import Facts
from advisor.rules.contradictions import named
from advisor.rules.finding import Evidence, Finding, Severity
from advisor.rules.workload import Workload

Judge = Callable[[Facts, Workload | None], tuple[Finding, ...]]


class Rule(msgspec.Struct, frozen=True):
    """What ``advisor explain ID`` tells, and the function that judges a host by it.

    ``what`` is what the rule looks at, ``why`` the mechanism behind it. ``contradictions`` are the ids of those among
    the sources that bear on its advice (`advisor.rules.contradictions`).
    """

    id: str
    title: str
    what: str
    why: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    function: Judge
    contradictions: tuple[str, ...] = ()

    def found(
        self,
        severity: Severity,
        *,
        why: str,
        evidence: Evidence,
        advice: str,
        profile: str | None = None,
        title: str | None = None,
        intent: bool = False,
        hurts_when: str | None = None,
    ) -> Finding:
        """A finding of this rule; its title, and when it would hurt, may be made more precise."""
        return Finding(
            id=self.id,
            severity=severity,
            title=title or self.title,
            why=why,
            evidence=evidence,
            advice=advice,
            profile=profile,
            hurts_when=hurts_when or self.hurts_when,
            sources=self.sources,
            intent=intent,
            contradictions=named(self.contradictions),
        )
