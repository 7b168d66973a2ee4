"""What an imported profile comes to on a host, without being in the library, and what a scan would say of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.importers.records import Imported, Said
from advisor.importers.to_profile import to_profile
from advisor.planning.comparison import combine_values
from advisor.planning.expansion import expand_targets
from advisor.planning.records import PlanTarget, Skipped
from advisor.planning.targets import Request, resolve_targets
from advisor.rules.settings import judge_value
from advisor.tunables import parse_tunable


def say_of(facts: Facts, tunable: str, value: str) -> tuple[Said, ...]:
    """Return what the record of a kernel parameter says against a value; nothing for other tunables."""
    kind, _, key = tunable.partition(":")
    found = judge_value(facts, key, value) if kind == "sysctl" else ()
    return tuple(Said(one.id, one.severity, one.title, one.why, one.instead) for one in found)


def with_judgement(imported: Imported, facts: Facts) -> Imported:
    """Return the import with what is said against each of its values."""
    settings = tuple(
        msgspec.structs.replace(one, judged=say_of(facts, one.tunable, one.value)) if one.tunable and one.value else one
        for one in imported.settings
    )
    return msgspec.structs.replace(imported, settings=settings)


def imported_targets(
    imported: Imported, host: Host, facts: Facts
) -> tuple[tuple[PlanTarget, ...], tuple[Skipped, ...]]:
    """What it wants of each tunable of this host, and what it has nothing here for."""
    targets, skipped = resolve_targets(Request.from_settings(to_profile(imported), {}), facts)
    expanded, nowhere = expand_targets(host, targets)
    return tuple(expanded), (*skipped, *nowhere)


def made_of(values: Mapping[str, str], imported: Imported, host: Host, facts: Facts) -> Mapping[str, str]:
    """What the other program makes of these values (by tunable) when it sets its own: those alone that it changes.

    A value that is a multiple of what it finds is reported as such.
    """
    found = {}
    for target in imported_targets(imported, host, facts)[0]:
        ours = values.get(target.tunable)
        if ours is None:
            continue
        if target.multiply is not None:
            found[target.tunable] = f"{target.multiply} times what it finds"
            continue
        one = parse_tunable(target.tunable)
        wanted = one.choose_value(host, ours, target.value)
        theirs = combine_values(ours, wanted, target.sense)
        if theirs != ours:
            found[target.tunable] = theirs
    return found
