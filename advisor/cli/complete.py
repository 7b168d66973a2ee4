"""What a shell may complete a word with. A completion that fails is none: it never disturbs the line being typed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from advisor.errors import AdvisorError


def _names_matching(names: Iterable[str], start: str) -> list[str]:
    return sorted(name for name in names if name.startswith(start))


def profile_names(start: str) -> list[str]:
    """Profiles of the library that begin so."""
    from advisor.profiles.profile import profile_paths

    with contextlib.suppress(AdvisorError, OSError):
        return _names_matching(profile_paths(), start)
    return []


def requestable_words(start: str) -> list[str]:
    """Profiles, profile files and values that begin so."""
    if "/" in start or start.startswith((".", "~")):
        from glob import escape, glob
        from os.path import isdir

        found = (f"{one}/" if isdir(one) else one for one in glob(f"{escape(start)}*"))
        return sorted(one for one in found if one.endswith(("/", ".toml")))
    if ":" in start:
        from advisor.profiles.single_values import known_ids

        with contextlib.suppress(AdvisorError, OSError):
            device = start.split(":")[1] if start.count(":") > 1 else ""
            return _names_matching({f"{one}=" for one in known_ids(device) if "{" not in one}, start)
        return []
    return profile_names(start)


def transaction_ids(start: str) -> list[str]:
    """Transactions of this host that begin so; none where they cannot be read."""
    from advisor.transaction.journal import Store

    with contextlib.suppress(AdvisorError, OSError):
        return _names_matching((record.id for record in Store().read_records()), start)
    return []


def transactions_or_profiles(start: str) -> list[str]:
    """What ``rollback-script`` takes."""
    return [*transaction_ids(start), *profile_names(start)]


def finding_ids(start: str) -> list[str]:
    """Rules, whose ids findings have, for ``fix``."""
    from advisor.rules.registry import RULES

    return _names_matching((rule.id for rule in RULES), start)


def explainable_ids(start: str) -> list[str]:
    """Rules, profiles and the list of contradictions, for ``explain``."""
    from advisor.rules.registry import RULES

    return _names_matching(["contradictions", *(rule.id for rule in RULES)], start) + profile_names(start)


def workload_names(start: str) -> list[str]:
    """Workloads of ``prove`` and ``bench`` that begin so."""
    from advisor.proof.workloads import WORKLOADS

    return _names_matching(WORKLOADS, start)
