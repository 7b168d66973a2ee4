"""Words that commands take, as a completion of a shell or a form needs them. Nothing of the host is judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def list_profile_names() -> Iterable[str]:
    """Return the names of all profiles of the library. Raises InvalidInputError, OSError."""
    from advisor.profiles.profile import profile_paths

    return profile_paths()


def list_value_ids(device: str = "") -> Iterable[str]:
    """Return the ids of tunables whose values can be planned by themselves (``sysctl:vm.swappiness``); with a device,
    those of that device. Raises OSError."""
    from advisor.profiles.requested import known_ids

    return (one for one in known_ids(device) if "{" not in one)


def list_devices(kind: str) -> Iterable[str]:
    """Return the devices of this machine whose values of a kind of tunable can be planned (``block``: its disks and
    arrays); none for a kind whose values are not those of a device."""
    from advisor.host import live_host
    from advisor.tunables.catalogue import find_kind

    found = find_kind(f"{kind}:")
    return found.devices(live_host()) if found else ()


def list_transaction_ids() -> Iterable[str]:
    """Return the ids of all transactions of this host, the oldest first. Raises PermissionDeniedError without root."""
    from advisor.transaction.journal import Store

    return (record.id for record in Store().read_records())


def describe_parameters(profile: str) -> Mapping[str, str]:
    """Return what each parameter of a profile, by name or file, is. Raises InvalidInputError, UsageError, OSError."""
    from advisor.operations.library import read_profile

    return {name: one.about for name, one in read_profile(profile).parameters.items()}


def describe_transactions() -> Mapping[str, str]:
    """Return the profiles of each transaction of this host by its id, the latest first; none that is damaged.

    Raises PermissionDeniedError without root, RefusedError where others could have written the journals.
    """
    from advisor.transaction.journal import Store

    return {one.id: ", ".join(one.plan.profiles) for one in reversed(Store().readable_records())}


def list_rule_ids() -> Iterable[str]:
    """Return the ids of all rules, which are those of findings."""
    from advisor.rules.registry import RULES

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
    from advisor.rules.finding import SEVERITIES

    return SEVERITIES


def list_export_forms() -> Iterable[str]:
    """Return the forms that ``profiles export`` writes."""
    from advisor.exporters import FORMATS

    return FORMATS
