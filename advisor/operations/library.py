"""The profiles of this host: those that are shipped and those of /etc/advisor/profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from advisor.errors import AdvisorError
from advisor.host import Host, Missing, live_host, observe
from advisor.host.origin import package_data
from advisor.importers.records import Said
from advisor.profiles.lint import lint_profile
from advisor.profiles.profile import Profile, load, profile_paths
from advisor.profiles.requested import known_ids, load_one
from advisor.proof.relevance import laxer_than_needed
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import ExpandsIds


class LintResult(msgspec.Struct, frozen=True):
    """A profile file without a fault; ``lax`` is a tunable whose measurement needs a stricter toggle than the file
    names, and that toggle."""

    profile: Profile
    lax: tuple[str, str] | None
    judged: tuple[tuple[str, Said], ...] = ()
    """What a scan of this host would say of a value, each with its ``TUNABLE=VALUE``; those of the library are weighed
    in its profiles."""


def list_profiles() -> tuple[tuple[Profile, ...], tuple[AdvisorError, ...]]:
    """Return every profile of the library, and the errors of those that cannot be read."""
    found, faults = [], []
    for name in profile_paths():
        try:
            found.append(load(name))
        except AdvisorError as error:
            faults.append(error)
    return tuple(found), tuple(faults)


def read_profile(name: str) -> Profile:
    """Return the profile of this name or file, with what it inherits. Raises UsageError, InvalidInputError."""
    return load_one([name]).profile


def explain_absence(tunable: str, host: Host | None = None) -> str | None:
    """Return why ``host``, by default this one, does not have a tunable; None where it has it, where that cannot be
    seen, and for an id that stands for several. Reads the host. Raises UsageError for an id that is none."""
    one = parse_tunable(tunable)
    here = host or live_host()
    live = None if isinstance(one, ExpandsIds) else observe(here, one.probe)
    if isinstance(live, Missing):
        live = one.explain_absence(here, live)
    return live.why if isinstance(live, Missing) and live.is_absent else None


def explain_last_word(tunable: str, path: str | None, host: Host) -> str | None:
    """Return what gives a tunable of ``host`` a value after advisor's file at ``path``, and where to change it; None
    where nothing does. Scans the host."""
    from advisor.facts.host_facts import scan
    from advisor.facts.writers import overriding_write

    write = overriding_write(scan(host), tunable, "", path) if path else None
    if write is None:
        return None
    return f"{write.place} sets {'it' if write.value is None else write.value} {write.acts}; {write.change}"


def lint_file(path: Path) -> LintResult:
    """Check a profile file. Raises InvalidInputError, which names file, line and field."""
    from advisor.facts.host_facts import scan
    from advisor.importers.to_profile import say_of

    profile = lint_profile(path)
    lax = laxer_than_needed(profile) if profile.proof is not None else None
    values = [
        (one.tunable, one.value) for one in profile.tunables if isinstance(one.value, str) and "{" not in one.value
    ]
    if path.resolve().parent == package_data("profiles").resolve() or not values:
        return LintResult(profile, lax)
    facts = scan(live_host())
    said = ((f"{name}={value}", one) for name, value in values for one in say_of(facts, name, value))
    return LintResult(profile, lax, tuple(said))


# Words that commands take, as a completion of a shell or a form needs them. Nothing of the host is judged.


def list_profile_names() -> Iterable[str]:
    """Return the names of all profiles of the library. Raises InvalidInputError, OSError."""

    return profile_paths()


def list_value_ids(device: str = "") -> Iterable[str]:
    """Return the ids of tunables whose values can be planned by themselves (``sysctl:vm.swappiness``); with a device,
    those of that device. Raises OSError."""

    return (one for one in known_ids(device) if "{" not in one)


def list_devices(kind: str) -> Iterable[str]:
    """Return the devices of this machine whose values of a kind of tunable can be planned (``block``: its disks and
    arrays); none for a kind whose values are not those of a device."""
    from advisor.tunables.catalogue import find_kind

    found = find_kind(f"{kind}:")
    return found.devices(live_host()) if found else ()


def list_transaction_ids() -> Iterable[str]:
    """Return the ids of all transactions of this host, the oldest first. Raises PermissionDeniedError without root."""
    from advisor.transaction.journal import Store

    return (record.id for record in Store().read_records())


def describe_parameters(profile: str) -> Mapping[str, str]:
    """Return what each parameter of a profile, by name or file, is. Raises InvalidInputError, UsageError, OSError."""

    return {name: one.about for name, one in read_profile(profile).parameters.items()}


def describe_transactions() -> Mapping[str, str]:
    """Return the profiles of each transaction of this host by its id, the latest first; none that is damaged.

    Raises PermissionDeniedError without root, RefusedError where others could have written the journals.
    """
    from advisor.transaction.journal import Store

    return {one.id: ", ".join(one.plan.profiles) for one in reversed(Store().readable_records())}


def list_rule_ids() -> Iterable[str]:
    """Return the ids of all rules, which are those of findings."""
    from advisor.rules.judged import RULES

    return (rule.id for rule in RULES)


def describe_muted() -> Mapping[str, str]:
    """Return the reasons of the accepted findings of this machine's file by their rules. Raises InvalidInputError."""
    from advisor.operations.muting import read_muting

    found: dict[str, dict[str, None]] = {}
    for entry in read_muting():
        found.setdefault(entry.id, {})[entry.reason] = None
    return {name: "; ".join(reasons) for name, reasons in sorted(found.items())}


def list_workload_names() -> Iterable[str]:
    """Return the names of the workloads that ``prove`` and ``bench`` measure."""
    from advisor.proof.workloads import WORKLOADS

    return [name for name, workload in WORKLOADS.items() if not workload.is_network]


def list_workload_patterns() -> Iterable[str]:
    """Return a pattern for each group of those workloads (``infoscale.*``)."""
    groups = [name.partition(".")[0] for name in list_workload_names()]
    return (f"{group}.*" for group in dict.fromkeys(groups) if groups.count(group) > 1)


def list_declarable_workloads() -> Iterable[str]:
    """Return the names of the workloads that a host can be declared to be for. `recommend` takes those of
    `list_workload_names` as well."""
    from advisor.rules.workload import WORKLOADS

    return WORKLOADS


def list_severities() -> Iterable[str]:
    """Return the severities of findings, the least first."""
    from advisor.rules.rule import SEVERITIES

    return SEVERITIES


def list_export_forms() -> Iterable[str]:
    """Return the forms that ``profiles export`` writes."""
    from advisor.exporters import FORMATS

    return FORMATS


# The JSON Schemas of the documents that ``--json`` prints.


def list_schemas() -> tuple[str, ...]:
    """Return the names of all documents, as their ``schema`` key has them."""
    from advisor.report.schemas import SCHEMA_NAMES

    return SCHEMA_NAMES


def read_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, by its name (``advisor.scan/1``) or its word (``scan``).

    Raises UsageError for an unknown name.
    """
    from advisor.report.schemas import build_schema

    return build_schema(name)
