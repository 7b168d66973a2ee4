"""What a shell may complete a word with. A completion that fails is none: it never disturbs the line being typed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from advisor.errors import AdvisorError


def _names_matching(names: Iterable[str], start: str) -> list[str]:
    return sorted(name for name in names if name.startswith(start))


def profile_names(start: str) -> list[str]:
    """Profiles of the library that begin so."""
    from advisor.operations.names import list_profile_names

    with contextlib.suppress(AdvisorError, OSError):
        return _names_matching(list_profile_names(), start)
    return []


def requestable_words(start: str) -> list[str]:
    """Profiles, profile files and values that begin so."""
    if "/" in start or start.startswith((".", "~")):
        from glob import escape, glob
        from os.path import isdir

        found = (f"{one}/" if isdir(one) else one for one in glob(f"{escape(start)}*"))
        return sorted(one for one in found if one.endswith(("/", ".toml")))
    if ":" in start:
        from advisor.operations.names import list_value_ids

        with contextlib.suppress(AdvisorError, OSError):
            device = start.split(":")[1] if start.count(":") > 1 else ""
            return _names_matching({f"{one}=" for one in list_value_ids(device)}, start)
        return []
    return profile_names(start)


def transaction_ids(start: str) -> list[str]:
    """Transactions of this host that begin so; none where they cannot be read."""
    from advisor.operations.names import list_transaction_ids

    with contextlib.suppress(AdvisorError, OSError):
        return _names_matching(list_transaction_ids(), start)
    return []


def transactions_or_profiles(start: str) -> list[str]:
    """What ``rollback-script`` takes."""
    return [*transaction_ids(start), *profile_names(start)]


def finding_ids(start: str) -> list[str]:
    """Rules, whose ids findings have, for ``fix``."""
    from advisor.operations.names import list_rule_ids

    return _names_matching(list_rule_ids(), start)


def explainable_ids(start: str) -> list[str]:
    """Rules, profiles and the list of contradictions, for ``explain``."""
    from advisor.operations.names import list_rule_ids

    return _names_matching(["contradictions", *list_rule_ids()], start) + profile_names(start)


def workload_names(start: str) -> list[str]:
    """Workloads of ``prove`` and ``bench`` that begin so."""
    from advisor.operations.names import list_workload_names

    return _names_matching(list_workload_names(), start)
