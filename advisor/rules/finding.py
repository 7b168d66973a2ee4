"""What a rule says about a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.rules.contradictions import Contradiction

Severity = Literal["info", "advice", "warning"]
SEVERITIES: tuple[Severity, ...] = ("info", "advice", "warning")
Evidence = Mapping[str, str | int | float | tuple[str, ...] | None]


class Finding(msgspec.Struct, frozen=True):
    """A rule's judgement on the facts: what (``title``), ``why``, on which ``evidence``, what to do
    (``advice``), and when that would hurt.

    ``profile`` is the one that acts on it, None where a person must. ``intent`` is True where no counter or mismatch
    made the rule fire but the declared workload, or none: then it is a matter of intent, not a fault.
    ``contradictions`` are those among the sources that bear on the advice.
    """

    id: str
    severity: Severity
    title: str
    why: str
    evidence: Evidence
    advice: str
    profile: str | None
    hurts_when: str
    sources: tuple[str, ...]
    intent: bool = False
    contradictions: tuple[Contradiction, ...] = ()


def at_or_above(severity: Severity, floor: str) -> bool:
    """Whether a severity is at least ``floor``, one of `SEVERITIES`."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(floor)
