"""A rule: one decorated function with its citation, with the conditions under which its advice helps and hurts.

What every rule names is imported from here with the decorator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from advisor.facts.host_facts import Facts
from advisor.rules.contradictions import named
from advisor.rules.finding import SEVERITIES, Evidence, Finding, Severity
from advisor.rules.remedy import PlanProfile, RemedyPart, describe_remedy, list_commands, list_notes, to_remedy
from advisor.rules.workload import DeclaredWorkload

__all__ = [
    "REGISTERED",
    "DeclaredWorkload",
    "Evidence",
    "Facts",
    "Finding",
    "Judge",
    "Rule",
    "Severity",
    "register",
    "rule",
]

Judge = Callable[[Facts, DeclaredWorkload | None], Finding | Iterable[Finding] | None]
"""Judges a host: nothing, one finding or several."""
_registered: dict[str, Rule] = {}

REGISTERED: Mapping[str, Rule] = MappingProxyType(_registered)
"""The rules of all modules that have been imported, by id."""


class Rule(msgspec.Struct, frozen=True):
    """What ``advisor explain ID`` prints, and the function that judges a host by it.

    ``severity`` is the highest of its findings, ``what`` is what the rule looks at, ``why`` the mechanism behind it.
    ``contradictions`` are the ids of those among the sources that bear on its advice
    (`advisor.rules.contradictions`). A rule that ``judges_declared`` gets the workload as it was declared; all others
    get it with what was seen of its path (`advisor.rules.llt_path.as_seen`).
    """

    id: str
    severity: Severity
    title: str
    what: str
    why: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    function: Judge
    module: str
    contradictions: tuple[str, ...] = ()
    judges_declared: bool = False
    seen_live: bool = True
    """Whether it was tried on what it judges; else its hosts are built from the structures of its source alone."""

    def __call__(self, facts: Facts, workload: DeclaredWorkload | None) -> tuple[Finding, ...]:
        found = self.function(facts, workload)
        return () if found is None else (found,) if isinstance(found, Finding) else tuple(found)

    def found(
        self,
        *,
        why: str,
        evidence: Evidence,
        remedy: RemedyPart | Iterable[RemedyPart],
        severity: Severity | None = None,
        profile: str | None = None,
        title: str | None = None,
        intent: bool = False,
        hurts_when: str | None = None,
    ) -> Finding:
        """A finding of this rule; its severity, title, and when it would hurt, may be made more precise."""
        parts = to_remedy(remedy)
        commands = list_commands(parts)
        planned = next((one.profile for one in parts if isinstance(one, PlanProfile)), None)
        return Finding(
            id=self.id,
            severity=severity or self.severity,
            title=title or self.title,
            why=why,
            evidence=evidence,
            advice="; ".join([*list_commands(parts, with_parts=False), *list_notes(parts)]),
            profile=profile or planned,
            hurts_when=hurts_when or self.hurts_when,
            sources=self.sources,
            intent=intent,
            contradictions=named(self.contradictions),
            fix=describe_remedy(parts),
            commands=commands,
            remedy=parts,
        )


def register(new: Rule) -> Rule:
    """Adds a rule. Raises ValueError, which names file and rule, for an id that is taken, an unknown severity and a
    field that is empty: a rule without source, or that never hurts, is none."""
    path = getattr(sys.modules.get(new.module), "__file__", None) or new.module
    empty = [name for name in ("id", "title", "what", "why", "helps_when", "hurts_when") if not getattr(new, name)]
    if not new.sources:
        empty.append("sources")
    if empty:
        raise ValueError(f"{path}: rule {new.id!r} has no {', '.join(empty)}")
    if new.severity not in SEVERITIES:
        raise ValueError(f"{path}: rule {new.id!r}: severity {new.severity!r} is not one of {', '.join(SEVERITIES)}")
    if new.id in _registered:
        raise ValueError(f"{path}: rule {new.id!r} is already defined in {_registered[new.id].module}")
    _registered[new.id] = new
    return new


def rule(
    *,
    id: str,  # noqa: A002
    severity: Severity,
    title: str = "",
    what: str = "",
    why: str = "",
    helps_when: str = "",
    hurts_when: str = "",
    sources: tuple[str, ...] = (),
    contradictions: tuple[str, ...] = (),
    judges_declared: bool = False,
    seen_live: bool = True,
) -> Callable[[Judge], Rule]:
    """Makes the function below a registered rule; the parameters are the fields of `Rule`.

    Raises ValueError, which names file and rule, where a text or the sources are missing (see `register`).
    """
    return lambda function: register(
        Rule(
            id=id,
            severity=severity,
            title=title,
            what=what,
            why=why,
            helps_when=helps_when,
            hurts_when=hurts_when,
            sources=sources,
            function=function,
            module=function.__module__,
            contradictions=contradictions,
            judges_declared=judges_declared,
            seen_live=seen_live,
        )
    )
