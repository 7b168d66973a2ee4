"""The table of rules and hosts: for every rule, hosts on which it fires and hosts on which it is silent.

A new list of cases gets one line in `CASES`, hosts that are whole one in `LINES`. What docs/rules.md says about a
rule (its severities, whether it fires on a counter, on what is seen, on a declared workload or as a matter of intent)
is not written down anywhere: it is what the rule does on these hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from advisor.facts.counters import Counters
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, MemoryFiles
from advisor.host.commands import NoCommands
from advisor.rules.finding import SEVERITIES, Finding, Severity
from advisor.rules.registry import RULES
from advisor.rules.rule import Rule
from advisor.rules.workload import parse_workload
from tests.rules import (
    cases,
    cases_advice,
    cases_beegfs,
    cases_checks,
    cases_controllers,
    cases_drive_health,
    cases_infoscale,
    cases_iscsi,
    cases_power,
    cases_storage,
    cases_vxvm,
    test_ebs,
    test_iris,
)
from tests.rules.build import facts

COUNTER: Final = "a counter"
SEEN: Final = "what is seen"
WORKLOAD: Final = "a declared workload"
INTENT: Final = "a matter of intent"
GROUNDS: Final = (COUNTER, SEEN, WORKLOAD, INTENT)


class Cases(NamedTuple):
    """Rows that begin with rule, workload and parts of `tests.rules.build.facts`; ``common`` are parts of all hosts."""

    fires: Iterable[tuple[Any, ...]]
    silent: Iterable[tuple[Any, ...]]
    common: Mapping[str, Any] = {}


CASES: Final = (
    Cases(cases.FIRES, cases.SILENT),
    Cases(cases_storage.FIRES, cases_storage.SILENT),
    Cases(cases_infoscale.FIRES, cases_infoscale.SILENT),
    Cases(cases_controllers.FIRES, cases_controllers.SILENT),
    Cases(cases_drive_health.FIRES, cases_drive_health.SILENT),
    Cases(cases_power.FIRES, cases_power.SILENT),
    Cases(cases_checks.FIRES, cases_checks.SILENT),
    Cases(cases_vxvm.FIRES, cases_vxvm.SILENT),
    Cases(test_ebs.FIRES, test_ebs.SILENT),
    Cases(
        test_iris.FIRES,
        test_iris.SILENT,
        {"iris": test_iris.given(), "memory": test_iris.memory(), "sysctl": test_iris.QUIET},
    ),
    Cases(cases_iscsi.FIRES, cases_iscsi.SILENT),
)


class Line(NamedTuple):
    """A rule, the workload, a host that needs it and one that does not, whole."""

    rule: str
    workload: str | None
    fires: Facts
    silent: Facts


LINES: Final[tuple[Line, ...]] = tuple(Line(*row) for row in cases_beegfs.ALL)


class Seen(NamedTuple):
    """A host, and the workload that its owner declares."""

    facts: Facts
    workload: str | None

    def findings(self, rule: Rule) -> tuple[Finding, ...]:
        return rule(self.facts, parse_workload(self.workload) if self.workload else None)


class Row(NamedTuple):
    rule: Rule
    fires: tuple[Seen, ...]
    silent: tuple[Seen, ...]


def _with_file(path: str, text: str) -> Facts:
    files = {name: content.encode() for name, content in {**cases_advice.BASE, path: f"{text}\n"}.items()}
    return scan(Host(MemoryFiles(files), NoCommands(), is_root=True))


def _firing() -> Iterator[tuple[str, Seen]]:
    for listed in CASES:
        for rule, workload, parts, *_ in listed.fires:
            yield rule, Seen(facts(**{**listed.common, **parts}), workload)
    for rule, path, bad, _ in cases_advice.ALL:
        yield f"advice.{rule}", Seen(_with_file(path, bad), None)
    for line in LINES:
        yield line.rule, Seen(line.fires, line.workload)


def _silent() -> Iterator[tuple[str, Seen]]:
    for listed in CASES:
        for rule, workload, parts, *_ in listed.silent:
            yield rule, Seen(facts(**{**listed.common, **parts}), workload)
    for rule, path, _, good in cases_advice.ALL:
        yield f"advice.{rule}", Seen(_with_file(path, good), None)
    for line in LINES:
        yield line.rule, Seen(line.silent, line.workload)


def _grouped(pairs: Iterable[tuple[str, Seen]]) -> dict[str, tuple[Seen, ...]]:
    found: dict[str, list[Seen]] = {}
    for rule, seen in pairs:
        found.setdefault(rule, []).append(seen)
    return {rule: tuple(listed) for rule, listed in found.items()}


def table() -> tuple[Row, ...]:
    """A row for each rule, in the order in which they judge; a rule without hosts has a row without any."""
    fires, silent = _grouped(_firing()), _grouped(_silent())
    return tuple(Row(rule, fires.get(rule.id, ()), silent.get(rule.id, ())) for rule in RULES)


def named() -> set[str]:
    """Every rule that the table names, whether it exists or not."""
    return {rule for rule, _ in (*_firing(), *_silent())}


def without_counters(host: Facts) -> Facts:
    """The same host on which nothing has been counted."""
    links = tuple(msgspec.structs.replace(link, counters={}) for link in host.links)
    arrays = tuple(msgspec.structs.replace(array, detail=_uncounted(array.detail)) for array in host.arrays)
    return msgspec.structs.replace(host, counters=Counters(), links=links, arrays=arrays)


def _uncounted(detail: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in detail.items() if key not in ("mismatch_cnt", "sync_speed")}


def ground(rule: Rule, seen: Seen) -> str:
    """Why the rule fires on this host, found by taking away one thing after the other."""
    if all(finding.intent for finding in seen.findings(rule)):
        return INTENT
    if _loudest(rule, Seen(without_counters(seen.facts), seen.workload)) < _loudest(rule, seen):
        return COUNTER
    if seen.workload and _loudest(rule, Seen(seen.facts, None)) < _loudest(rule, seen):
        return WORKLOAD
    return SEEN


def _loudest(rule: Rule, seen: Seen) -> tuple[int, bool]:
    """The rank of the most important finding, a matter of intent below a fault; -1 where there is none."""
    ranks = [(SEVERITIES.index(finding.severity), not finding.intent) for finding in seen.findings(rule)]
    return max(ranks, default=(-1, False))


def grounds(row: Row) -> tuple[str, ...]:
    """All reasons for which the rule fires on its hosts."""
    found = {ground(row.rule, seen) for seen in row.fires}
    return tuple(one for one in GROUNDS if one in found)


def severities(row: Row) -> tuple[Severity, ...]:
    """The severities of its findings on its hosts, the least first."""
    found = {finding.severity for seen in row.fires for finding in seen.findings(row.rule)}
    return tuple(one for one in SEVERITIES if one in found)


def profiles(row: Row) -> tuple[str, ...]:
    """The profiles that its findings name."""
    found = (finding.profile for seen in row.fires for finding in seen.findings(row.rule))
    return tuple(sorted({profile for profile in found if profile}))
