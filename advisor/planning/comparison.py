"""What *at least*, *at most*, *within* and *exactly* make of a live value and a wanted one."""

from __future__ import annotations

import re

from advisor.facts.cpulist import parse_list
from advisor.tunables.tunable import Sense


def combine_values(live: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> str:
    """The value to set: per field where ``sense`` is a tuple (a triple such as tcp_rmem), else for the whole.

    A field that is not a number is replaced whatever the sense: there is no order to compare it by.
    """
    live_fields, wanted_fields = live.split(), wanted.split()
    # Folded as every probe folds what it reads, so that it can be read back.
    wanted = " ".join(wanted_fields)
    if sense == "keep":
        return live
    if sense == "within":
        try:
            is_within = bool(live) and set(parse_list(live)) <= set(parse_list(wanted))
        except ValueError:
            is_within = False
        return live if is_within else wanted
    if not isinstance(sense, tuple):
        sense = (sense,) * len(wanted_fields)
    if len(live_fields) != len(wanted_fields) or len(sense) != len(wanted_fields):
        return wanted
    return " ".join(_combine_field(*three) for three in zip(live_fields, wanted_fields, sense, strict=True))


def is_comparable(live: str, wanted: str, sense: Sense | tuple[Sense, ...]) -> bool:
    """Whether there is a field for each field, which every sense needs that goes by fields."""
    return sense in ("exactly", "within", "keep") or len(live.split()) == len(wanted.split())


def would_lower(live: str, wanted: str, combined: str) -> bool:
    """Whether writing ``wanted`` as it stands would have lowered a number that ``combined`` keeps."""
    return combined != wanted and any(
        _is_number(old) and _is_number(new) and int(old) > int(new) and kept == old
        for old, new, kept in zip(live.split(), wanted.split(), combined.split(), strict=False)
    )


def _combine_field(live: str, wanted: str, sense: Sense) -> str:
    if sense == "keep":
        return live
    if sense == "exactly" or not (_is_number(live) and _is_number(wanted)):
        return wanted
    better = max if sense == "at-least" else min
    return str(better(int(live), int(wanted)))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]{1,20}", text))
