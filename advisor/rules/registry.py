"""All rules, and their judgement of a host. Every module of this package is imported: a new file needs no list."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from typing import Final

from advisor.facts.host_facts import Facts
from advisor.rules import __path__
from advisor.rules.finding import SEVERITIES, Finding
from advisor.rules.llt_path import as_seen
from advisor.rules.rule import REGISTERED, Rule
from advisor.rules.whole_profile import sent_whole
from advisor.rules.workload import DeclaredWorkload

LAST: Final = 1_000_000
"""The place of the rules of a module without an ``ORDER`` of its own: after all others, by the module's name."""


def _collect_rules() -> tuple[Rule, ...]:
    for module in sorted(one.name for one in pkgutil.iter_modules(__path__, "advisor.rules.")):
        import_module(module)
    # The sort is stable: within a module, rules stay in the order in which they stand there.
    return tuple(
        sorted(REGISTERED.values(), key=lambda rule: (getattr(sys.modules[rule.module], "ORDER", LAST), rule.module))
    )


RULES: Final = _collect_rules()
"""In the order of documents and lists: by the ``ORDER`` of their module, then as they stand in it."""


def judge(facts: Facts, workload: DeclaredWorkload | None = None) -> tuple[Finding, ...]:
    """Every rule's findings: warnings first, matters of intent last among their like, then by id.

    Where a recognised system has a profile of its own, its findings name that one.
    """
    return sent_whole(facts, workload, judge_singly(facts, workload))


def judge_singly(facts: Facts, workload: DeclaredWorkload | None = None) -> tuple[Finding, ...]:
    """As `judge`, each finding with the profile that its rule names.

    What was seen outranks what is declared: all rules but those that recognise the configuration get both together.
    """
    seen = as_seen(facts, workload)
    found = (one for rule in RULES for one in rule(facts, workload if rule.judges_declared else seen))
    order = SEVERITIES.index
    return tuple(
        sorted(found, key=lambda one: (-order(one.severity), one.intent, one.id, repr(sorted(one.evidence.items()))))
    )
