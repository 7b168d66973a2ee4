"""What a scan of this host would say of the values of an imported profile, or of a profile's own file."""

from __future__ import annotations

import msgspec

from advisor.facts.host_facts import Facts
from advisor.importers.records import Imported, Said
from advisor.rules.settings import judge_value


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
