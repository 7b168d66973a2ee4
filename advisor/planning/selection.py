"""What ``for-each`` selects: one link, unit or IRQ, with its value or the reason why it cannot have one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.planning.records import SkipState


class Selected(msgspec.Struct, frozen=True):
    """``names`` fill the places of the tunable's id; ``value`` is the computed value where the profile computes one."""

    names: Mapping[str, str]
    value: str | None = None
    why: str = ""
    rank: int = 0
    refusal: str | None = None
    state: SkipState = "not-applicable"
    before: str | None = None
    may_be_left_out: bool = False
    """The line is for all such devices, and nobody named this one: where it cannot take the value, the others go on."""
