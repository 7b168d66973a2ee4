"""How many rules had the facts that they need: a rule that reads what could not be read says nothing.

``tables/rule-facts.csv`` has the facts that each rule reads, by its code (``python -m tests.rules.needs`` writes it).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from advisor.errors import UsageError
from advisor.facts.block.block import natural
from advisor.facts.clusters.infoscale_configuration import FSS_TCP, FSS_UDP, FSS_ZONES, SHARED_DISK, SINGLE_NODE
from advisor.facts.host_facts import Facts
from advisor.host.numbers import is_count
from advisor.host.origin import package_data
from advisor.host.patterns import lazy_regex
from advisor.rules import __path__
from advisor.rules.clusters.infoscale import as_seen, private_carriers, profile_of, recognition
from advisor.rules.network.buffers import LLT_WINDOW_BYTES
from advisor.rules.queries import JUMBO_FRAMES, LLT_FLOW_CONTROL, NETWORK_BUFFERS, by_name, links_below
from advisor.rules.rule import (
    REGISTERED,
    SEVERITIES,
    Finding,
    PlanProfile,
    Remedy,
    Rule,
    Severity,
    describe_remedy,
    finding_devices,
    list_commands,
)
from advisor.rules.workload import DeclaredWorkload

# Which profile a finding sends to, where a recognised system has one that holds all of its tunings.

PARTS: Mapping[str, tuple[str, ...]] = {
    SINGLE_NODE: (),
    SHARED_DISK: (),
    FSS_TCP: (JUMBO_FRAMES,),
    FSS_UDP: (JUMBO_FRAMES, NETWORK_BUFFERS),
    FSS_ZONES: (JUMBO_FRAMES, NETWORK_BUFFERS, LLT_FLOW_CONTROL),
}
"""Which of the three tunings the profile of each configuration has."""

_BYTES = lazy_regex(r"--set bytes=(\d{1,12})", re.ASCII)


def sent_whole(facts: Facts, workload: DeclaredWorkload | None, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, those about one tuning with the profile of the configuration that holds it."""
    found = recognition(facts, workload)
    name = found.configuration if found else None
    if name is None or not PARTS[name] or (workload is not None and not _may_mirror(workload)):
        return tuple(findings)
    return tuple(_with_profile(one, name, facts) if one.profile in PARTS[name] else one for one in findings)


def _may_mirror(workload: DeclaredWorkload) -> bool:
    """Whether writes of the declared workload may cross to the other node."""
    if workload.replication == "none" or (workload.transport == "local" and not workload.is_replicated):
        return False
    return workload.mirrors_writes or not workload.is_replicated


def _with_profile(one: Finding, configuration: str, facts: Facts) -> Finding:
    if one.profile == JUMBO_FRAMES and not _of_llt(one, facts):
        return one
    size = _BYTES.search(one.advice)
    larger = [size[1]] if size and int(size[1]) > LLT_WINDOW_BYTES else []
    profile = profile_of(configuration)
    single = next((step for step in one.remedy if isinstance(step, PlanProfile)), None)
    plan = PlanProfile(profile, (("bytes", larger[0]),) if larger else (), single.only if single else ())
    if single is None or single.only:
        remedy: tuple[Remedy, ...] = (plan,)
        text, commands = describe_remedy(remedy), list_commands(remedy)
    else:
        remedy = one.remedy
        text = f"{describe_remedy(remedy)} The profile {profile} sets all that belongs to it."
        commands = (*list_commands(remedy), plan.command)
    return msgspec.structs.replace(
        one, profile=profile, advice=plan.command, fix=text, commands=commands, remedy=remedy
    )


def _of_llt(one: Finding, facts: Facts) -> bool:
    """Whether all links of the finding carry LLT's private links."""
    named, links = one.evidence.get("links"), by_name(facts)
    carriers = {each.name for name in private_carriers(facts) for each in links_below(name, links)}
    return isinstance(named, tuple) and bool(named) and carriers.issuperset(named)


# All rules, and their judgement of a host. Every module of this package is imported: a new file needs no list.

LAST = 1_000_000
"""The place of the rules of a module without an ``ORDER`` of its own: after all others, by the module's name."""


def _needs_nobody(_facts: Facts) -> None:
    """A module without rules: those that use it import it."""


def _has_ebs_model(facts: Facts) -> bool:
    return any("Amazon" in (disk.model or "") for disk in facts.disks)


_SUBJECTS: Mapping[str, Callable[[Facts], object]] = {
    "block.arrays": lambda facts: facts.arrays,
    "block.attachment": lambda facts: (
        facts.fibre_channel
        or facts.arrays
        or any(
            disk.detail.get("remote_port") or {"queue_count", "ctrl_loss_tmo"} & disk.detail.keys()
            for disk in facts.disks
        )
        or any(link.kind == "infiniband" or "pci_write_ordering" in link.detail for link in facts.links)
    ),
    "block.controllers": lambda facts: facts.controllers or facts.arrays,
    "block.drive_caches": lambda facts: facts.disks,
    "block.drive_health": lambda facts: (
        any(disk.health is not None for disk in facts.disks) or any(one.drives for one in facts.controllers)
    ),
    "block.md": lambda facts: facts.arrays,
    "block.vxvm": lambda facts: facts.arrays,
    "clusters.beegfs": lambda facts: facts.beegfs,
    "clusters.beegfs_client": lambda facts: facts.beegfs,
    "clusters.beegfs_links": lambda facts: facts.beegfs,
    "clusters.beegfs_settings": lambda facts: facts.beegfs,
    "clusters.iris": lambda facts: facts.iris,
    "clusters.iris_memory": lambda facts: facts.iris,
    "clusters.llt": lambda facts: facts.llt,
    "clusters.llt_cluster": lambda facts: facts.llt,
    "processors.locality_score": _needs_nobody,
    "processors.pcie": lambda facts: any(one.pcie for one in facts.disks) or any(one.pcie for one in facts.links),
    "remote.ebs": lambda facts: facts.host.cloud or _has_ebs_model(facts),
    "remote.ebs_purchase": lambda facts: facts.purchases or facts.bursting,
    "remote.ebs_quotas": _has_ebs_model,
    "remote.iscsi": lambda facts: facts.iscsi,
    "remote.iscsi_sessions": lambda facts: facts.iscsi or facts.arrays,
    "remote.multipath": _needs_nobody,
    "remote.storage_software": lambda facts: facts.software or facts.network_storage,
    "roles": lambda facts: facts.roles,
}
"""What a host has where a rule of the module can find something without a declared workload. On other hosts the module
is not loaded. A module that is not named here always is."""

if TYPE_CHECKING:
    RULES: tuple[Rule, ...]
    """In the order of documents and lists: by the ``ORDER`` of their module, then as they stand in it."""
else:

    def __getattr__(name: str) -> Any:
        if name == "RULES":
            return _collect_rules(_module_names())
        raise AttributeError(name)


@cache
def _module_names() -> tuple[str, ...]:
    """The modules below this package, by their path: ``block.md``."""
    names = set()
    for directory in __path__:
        for place in (directory, *(one.path for one in os.scandir(directory) if one.is_dir())):
            room = place[len(directory) + 1 :]
            stems = (name[:-3] for name in os.listdir(place) if name.endswith(".py"))
            names |= {
                f"{room}.{stem}" if room else stem for stem in stems if stem.isidentifier() and stem != "__init__"
            }
    return tuple(sorted(names))


@cache
def _collect_rules(names: tuple[str, ...]) -> tuple[Rule, ...]:
    modules = {name: import_module(name) for name in (f"advisor.rules.{one}" for one in names)}
    # The sort is stable: within a module, rules stay in the order in which they stand there.
    rules = (rule for rule in REGISTERED.values() if rule.module in modules)
    return tuple(sorted(rules, key=lambda rule: (getattr(modules[rule.module], "ORDER", LAST), rule.module)))


def find_gate(module: str, facts: Facts) -> frozenset[str] | None:
    """Return the fields of the facts by which a host is seen to have no subject of this module; None where it has, or
    where the module judges every host."""
    subject = _SUBJECTS.get(module)
    return None if subject is None or subject(facts) else frozenset(subject.__code__.co_names)


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
    names = _module_names()
    if seen is None and workload is None:
        names = tuple(name for name in names if name not in _SUBJECTS or _SUBJECTS[name](facts))
    found = (one for rule in _collect_rules(names) for one in rule(facts, workload if rule.judges_declared else seen))
    order = SEVERITIES.index
    return tuple(
        sorted(found, key=lambda one: (-order(one.severity), one.intent, one.id, repr(sorted(one.evidence.items()))))
    )


# Findings as a person counts them: those of one rule that say the same of several devices are one line, one number.

NAME = "\0"
"""Stands in the template of a title for the device."""
_NUMBER = lazy_regex(r"[0-9][0-9,.]*")


class NumberedFindings(msgspec.Struct, frozen=True):
    """Findings of one rule and severity that say the same of several devices; ``number`` counts from 1."""

    number: int
    id: str
    severity: Severity
    findings: tuple[Finding, ...]

    @property
    def is_maxim(self) -> bool:
        """Whether they are worth knowing and no findings (`Finding.is_maxim`)."""
        return self.findings[0].is_maxim


def number_findings(findings: Iterable[Finding]) -> tuple[NumberedFindings, ...]:
    """The findings that are not muted, in the order given, those that say the same at the place of the first, and in
    the order of their devices: md3 before md12."""
    groups: dict[tuple[str, Severity, bool, str], list[Finding]] = {}
    for one in findings:
        if one.muted is not None:
            continue
        shape = _NUMBER.sub("#", title_template(one))
        groups.setdefault((one.id, one.severity, one.intent, shape), []).append(one)
    return tuple(
        NumberedFindings(number, some[0].id, some[0].severity, tuple(sorted(some, key=_devices_rank)))
        for number, some in enumerate(groups.values(), 1)
    )


def _devices_rank(finding: Finding) -> list[object]:
    return [natural(name) for name in finding_devices(finding)]


def title_template(finding: Finding) -> str:
    """The title with `NAME` in place of the device that it names first, if it names one."""
    for name in finding_devices(finding):
        template = _replace_word(finding.title, name, NAME)
        if template != finding.title:
            return template
    return finding.title


def _replace_word(text: str, word: str, new: str) -> str:
    """The text with the first occurrence of a word replaced that is no part of a longer word.

    Not by an expression: to compile one for each device made half of the page of a host with 1,000 disks.
    """
    at = text.find(word)
    while at >= 0:
        before, after = text[:at], text[at + len(word) :]
        if not _is_letter(before[-1:]) and not _is_letter(after[:1]):
            return f"{before}{new}{after}"
        at = text.find(word, at + 1)
    return text


def _is_letter(char: str) -> bool:
    return char.isalnum() or char == "_"


def find_numbered(numbered: Sequence[NumberedFindings], name: str) -> tuple[NumberedFindings, ...]:
    """Those that a number or the id of a rule means; an id may mean several.

    Raises UsageError for a number that there is not, and for an id that no finding has.
    """
    wanted = tuple(one for one in numbered if name in (str(one.number), one.id))
    if wanted:
        return wanted
    if is_count(name) and numbered:
        raise UsageError(
            f"finding {name}: there are {len(numbered)}", hint="advisor scan lists them with their numbers"
        )
    raise UsageError(
        f"{name}: no finding on this host has this number or id",
        hint="advisor scan lists the findings with their numbers, advisor scan --muted those that are accepted",
    )


# What has changed between two scans of a host: findings that are new, worse and gone.

_Unit = tuple[str, str]


class EarlierScan(msgspec.Struct, frozen=True):
    """Findings of an earlier scan; ``time`` in seconds since the epoch, None where the file does not say."""

    place: str
    hostname: str | None
    time: float | None
    findings: tuple[Finding, ...]


class ScanDifference(msgspec.Struct, frozen=True):
    """``new`` and ``worse`` are of the later scan, ``gone`` of the earlier one.

    A finding is worse where its severity rose, where more is missing, or where it is about further devices.
    """

    earlier: EarlierScan
    new: tuple[Finding, ...]
    worse: tuple[Finding, ...]
    gone: tuple[Finding, ...]


def compare_findings(earlier: EarlierScan, findings: Iterable[Finding]) -> ScanDifference:
    """The difference by rule and device; what both have in the same severity is in none of the lists.

    What is muted is neither new nor worse, and not gone.
    """
    later = tuple(findings)
    before, after = _units(earlier.findings), _units(later)
    shown = tuple(one for one in later if one.muted is None)
    new = tuple(one for one in shown if not any(unit in before for unit in _units_of(one)))
    worse = tuple(
        one for one in shown if one not in new and any(_is_worse(unit, one, before) for unit in _units_of(one))
    )
    gone = tuple(one for one in earlier.findings if not any(unit in after for unit in _units_of(one)))
    return ScanDifference(earlier, new, worse, gone)


def _units_of(finding: Finding) -> Iterator[_Unit]:
    for device in finding_devices(finding) or ("",):
        yield finding.id, device


def _units(findings: Iterable[Finding]) -> Mapping[_Unit, Finding]:
    return {unit: one for one in findings for unit in _units_of(one)}


def _is_worse(unit: _Unit, finding: Finding, before: Mapping[_Unit, Finding]) -> bool:
    old = before.get(unit)
    if old is None:
        return True
    missing = (finding.evidence.get("missing"), old.evidence.get("missing"))
    has_lost_more = all(isinstance(one, int) for one in missing) and missing[0] > missing[1]  # type: ignore[operator]
    return SEVERITIES.index(finding.severity) > SEVERITIES.index(old.severity) or has_lost_more


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
