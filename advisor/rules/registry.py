"""All rules, and their judgement of a host. Every module of this package is imported: a new file needs no list."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from advisor.rules import __path__
from advisor.rules.finding import SEVERITIES, Finding
from advisor.rules.llt_path import as_seen
from advisor.rules.rule import REGISTERED, DeclaredWorkload, Facts, Rule
from advisor.rules.whole_profile import sent_whole

LAST = 1_000_000
"""The place of the rules of a module without an ``ORDER`` of its own: after all others, by the module's name."""


def _needs_nobody(_facts: Facts) -> None:
    """A module without rules: those that use it import it."""


def _has_ebs_model(facts: Facts) -> bool:
    return any("Amazon" in (disk.model or "") for disk in facts.disks)


_SUBJECTS: Mapping[str, Callable[[Facts], object]] = {
    "arrays": lambda facts: facts.arrays,
    "attachment": lambda facts: (
        facts.fibre_channel
        or facts.arrays
        or any(
            disk.detail.get("remote_port") or {"queue_count", "ctrl_loss_tmo"} & disk.detail.keys()
            for disk in facts.disks
        )
        or any(link.kind == "infiniband" or "pci_write_ordering" in link.detail for link in facts.links)
    ),
    "beegfs": lambda facts: facts.beegfs,
    "beegfs_client": lambda facts: facts.beegfs,
    "beegfs_links": lambda facts: facts.beegfs,
    "beegfs_settings": lambda facts: facts.beegfs,
    "beegfs_sizes": _needs_nobody,
    "controllers": lambda facts: facts.controllers or facts.arrays,
    "difference": _needs_nobody,
    "drive_health": lambda facts: (
        any(disk.health is not None for disk in facts.disks) or any(one.drives for one in facts.controllers)
    ),
    "drive_caches": lambda facts: facts.disks,
    "ebs": lambda facts: facts.host.cloud or _has_ebs_model(facts),
    "ebs_purchase": lambda facts: facts.purchases or facts.bursting,
    "ebs_quotas": _has_ebs_model,
    "iris": lambda facts: facts.iris,
    "iris_memory": lambda facts: facts.iris,
    "iscsi": lambda facts: facts.iscsi,
    "judged": _needs_nobody,
    "iscsi_sessions": lambda facts: facts.iscsi or facts.arrays,
    "llt": lambda facts: facts.llt,
    "llt_cluster": lambda facts: facts.llt,
    "locality_score": _needs_nobody,
    "md": lambda facts: facts.arrays,
    "multipath": _needs_nobody,
    "pcie": lambda facts: any(disk.pcie for disk in facts.disks) or any(link.pcie for link in facts.links),
    "roles": lambda facts: facts.roles,
    "storage_software": lambda facts: facts.software or facts.network_storage,
    "vxvm": lambda facts: facts.arrays,
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
    names = {name for directory in __path__ for name in os.listdir(directory)}
    return tuple(sorted(name[:-3] for name in names if name.endswith(".py") and name[:-3].isidentifier()))


@cache
def _collect_rules(names: tuple[str, ...]) -> tuple[Rule, ...]:
    modules = {name: import_module(name) for name in (f"advisor.rules.{one}" for one in names if one != "__init__")}
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
