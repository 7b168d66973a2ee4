"""Words that commands take, as a completion of a shell or a form needs them. Nothing of the host is judged."""

from __future__ import annotations

from collections.abc import Iterable


def list_profile_names() -> Iterable[str]:
    """Return the names of all profiles of the library. Raises InvalidInputError, OSError."""
    from advisor.profiles.profile import profile_paths

    return profile_paths()


def list_value_ids(device: str = "") -> Iterable[str]:
    """Return the ids of tunables whose values can be planned by themselves (``sysctl:vm.swappiness``); with a device,
    those of that device. Raises OSError."""
    from advisor.profiles.single_values import known_ids

    return (one for one in known_ids(device) if "{" not in one)


def list_transaction_ids() -> Iterable[str]:
    """Return the ids of all transactions of this host, the oldest first. Raises PermissionDeniedError without root."""
    from advisor.transaction.journal import Store

    return (record.id for record in Store().read_records())


def list_rule_ids() -> Iterable[str]:
    """Return the ids of all rules, which are those of findings."""
    from advisor.rules.registry import RULES

    return (rule.id for rule in RULES)


def list_workload_names() -> Iterable[str]:
    """Return the names of the workloads that ``prove`` and ``bench`` measure."""
    from advisor.proof.workloads import WORKLOADS

    return WORKLOADS
