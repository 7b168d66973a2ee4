"""How many rules had the facts that they need: a rule that reads what could not be read says nothing.

``tables/rule-facts.csv`` has the facts that each rule reads, by its code (``python -m tests.rules.needs`` writes it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from advisor.host.package_data import package_data
from advisor.rules.finding import Finding
from advisor.rules.registry import find_gate
from advisor.rules.rule import Facts


class Judged(NamedTuple):
    """``rules`` of ``of`` rules had their facts; ``unread`` are the facts for want of which others did not, without
    names of devices, those that most rules read first."""

    rules: int
    of: int
    unread: tuple[str, ...] = ()


def count_judged(facts: Facts, findings: Iterable[Finding]) -> Judged:
    """Return how many rules could judge the host: those with a finding, those of which it has no subject, and those
    that read nothing unknown."""
    rows, _ = _read_rows()
    unknown = frozenset(filter(None, (_fact_key(one.fact) for one in facts.unknown)))
    if not unknown:
        return Judged(len(rows), len(rows))
    found = {one.id for one in findings}
    wanted: Counter[str] = Counter()
    idle = 0
    gates: dict[str, frozenset[str] | None] = {}
    for identity, (module, read) in rows.items():
        missing = unknown & read
        if missing and identity not in found:
            if module not in gates:
                gates[module] = find_gate(module, facts)
            gate = gates[module]
            if gate is not None:
                missing = frozenset(one for one in missing if one.partition(".")[0] in gate)
            idle += bool(missing)
            wanted.update(missing)
    return Judged(len(rows) - idle, len(rows), tuple(sorted(wanted, key=lambda one: (-wanted[one], one))))


@cache
def _read_rows() -> tuple[Mapping[str, tuple[str, frozenset[str]]], frozenset[str]]:
    """Return module and facts by rule, and the facts that no rule reads."""
    lines = (package_data("tables") / "rule-facts.csv").read_text("utf-8").splitlines()[1:]
    rows = {
        identity: (module, frozenset(read.split())) for module, identity, read in (line.split(",") for line in lines)
    }
    return rows, rows.pop("")[1]


@cache
def _known_facts() -> frozenset[str]:
    return frozenset[str]().union(*(read for _module, read in _read_rows()[0].values()))


def _fact_key(fact: str) -> str | None:
    """Return an unknown fact as rules read it: without the names of devices (``links.rings``), whole where it is a file
    or a directory; None where no rule reads it."""
    subject, _, rest = fact.partition(".")
    subject = {"zfs": "zfs_pools"}.get(subject, subject)
    known, idle = _known_facts(), _read_rows()[1]
    if not rest or rest.startswith("/"):
        return subject if subject in known else None
    if subject == "sysctl":
        return fact if fact in known else subject
    keys = (f"{subject}.{word}" for word in reversed(rest.split(".")))
    key = next((one for one in keys if one in known or one in idle), None)
    return key if key in known else None
