"""The rules of some modules."""

from __future__ import annotations

from advisor.rules.judged import RULES
from advisor.rules.rule import Rule


def rules_of(*modules: str) -> tuple[Rule, ...]:
    """The rules of ``advisor.rules.NAME`` for each name, in the order of documents."""
    return tuple(rule for rule in RULES if rule.module.rpartition(".")[2] in modules)
