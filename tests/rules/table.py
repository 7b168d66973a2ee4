"""The table of rules and hosts: for every rule, hosts on which it fires and hosts on which it is silent.

A new table of cases gets one line in `LISTED`, hosts that are whole one in `LINES`. What docs/rules.md says about a
rule (its severities, whether it fires on a counter, on what is seen, on a declared workload or as a matter of intent)
is not written down anywhere: it is what the rule does on these hosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from advisor.facts.host_facts import Facts, scan
from advisor.facts.system.memory import Counters
from advisor.host import Host, MemoryFiles
from advisor.host.commands import NoCommands
from advisor.rules.judged import RULES
from advisor.rules.rule import SEVERITIES, Finding, Rule, Severity
from advisor.rules.workload import parse_workload
from tests.rules import (
    cases,
    cases_advice,
    cases_beegfs,
    cases_checks,
    cases_controllers,
    cases_drive_health,
    cases_edges,
    cases_infoscale,
    cases_iscsi,
    cases_power,
    cases_storage,
    cases_vxvm,
    test_ebs,
    test_iris,
)
from tests.rules.build import Table, facts

COUNTER: Final = "a counter"
SEEN: Final = "what is seen"
WORKLOAD: Final = "a declared workload"
INTENT: Final = "a matter of intent"
GROUNDS: Final = (COUNTER, SEEN, WORKLOAD, INTENT)


class Case(NamedTuple):
    """``parts`` are those of `tests.rules.build.facts`; without a severity the rule is silent. ``shown`` is a text of
    the evidence, title or advice."""

    rule: str
    workload: str | None
    parts: dict[str, Any]
    severity: Severity | None = None
    shown: str = ""
    shown_in: Literal["evidence", "title", "advice"] = "evidence"


class Listed(NamedTuple):
    """Cases of a module, as `cases_of` reads them; ``common`` are parts of all its hosts."""

    table: Table
    common: Mapping[str, Any] = {}
    shown_in: Literal["evidence", "title", "advice"] = "evidence"


LISTED: Final = (
    *map(Listed, (cases.CASES, cases_storage.CASES, cases_infoscale.CASES, cases_controllers.CASES)),
    *map(Listed, (cases_drive_health.CASES, cases_power.CASES, cases_checks.CASES)),
    Listed(cases_vxvm.CASES, shown_in="advice"),
    Listed(test_ebs.CASES),
    Listed(cases_edges.CASES),
    Listed(test_iris.CASES, test_iris.COMMON, "title"),
    Listed(cases_iscsi.CASES),
)


def cases_of(listed: Listed) -> Iterator[Case]:
    """A row is (workload, parts, severity, shown); a workload that is not declared, and severity and shown text of a
    silent host, are left out; a row of the host alone is no tuple."""
    for rule, rows in listed.table.items():
        for row in rows:
            values = row if isinstance(row, tuple) else (row,)
            workload, parts, *expected = values if isinstance(values[0], str) else (None, *values)
            severity, shown = expected or (None, "")
            yield Case(rule, workload, {**listed.common, **parts}, severity, shown, listed.shown_in)


CASES: Final = tuple(case for listed in LISTED for case in cases_of(listed))


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
    for case in CASES:
        if case.severity:
            yield case.rule, Seen(facts(**case.parts), case.workload)
    for rule, path, bad, _ in cases_advice.ALL:
        yield f"advice.{rule}", Seen(_with_file(path, bad), None)
    for line in LINES:
        yield line.rule, Seen(line.fires, line.workload)


def _silent() -> Iterator[tuple[str, Seen]]:
    for case in CASES:
        if not case.severity:
            yield case.rule, Seen(facts(**case.parts), case.workload)
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
