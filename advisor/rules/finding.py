"""What a rule says about a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.rules.contradictions import Contradiction
from advisor.rules.remedy import Remedy, RunShell

Severity = Literal["info", "advice", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "advice", "warning", "critical")
"""``critical``: redundancy or a path is lost, a drive is failing, I/O waits or data is at risk now."""
Evidence = Mapping[str, str | int | float | tuple[str, ...] | None]
_DEVICE_KEYS = (
    *("arrays", "links", "disks", "devices", "device", "link", "disk", "instances", "units", "sessions"),
    *("controllers", "targets"),
)


class Muted(msgspec.Struct, frozen=True):
    """Why a finding is accepted, and until which day (ISO 8601), that one included; None for no end."""

    reason: str
    until: str | None = None


class Finding(msgspec.Struct, frozen=True):
    """A rule's judgement on the facts: what (``title``), ``why``, on which ``evidence``, what to do, and when that
    would hurt.

    What to do is data (``remedy``), a text (``fix``), the ``commands`` (each one line that can be pasted) and, for
    readers of older documents, commands and text in one (``advice``).
    ``profile`` is the one that acts on it, None where a person must. ``intent`` is True where no counter or mismatch
    made the rule fire but the declared workload, or none: then it is a matter of intent, not a fault.
    ``contradictions`` are those among the sources that bear on the advice. ``muted`` is set where this host's
    administrator has accepted it (``advisor mute``).
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
    fix: str | None = None
    commands: tuple[str, ...] = ()
    remedy: tuple[Remedy, ...] = ()
    muted: Muted | None = None

    @property
    def is_maxim(self) -> bool:
        """Whether it is worth knowing and no finding: nothing is wrong, and no counter or mismatch speaks of it."""
        return self.severity == "info" and self.intent

    @property
    def interrupts(self) -> tuple[str, ...]:
        """What the commands of the remedy disturb, each once."""
        return tuple(
            dict.fromkeys(one.interrupts for one in self.remedy if isinstance(one, RunShell) if one.interrupts)
        )


def at_or_above(severity: Severity, floor: str) -> bool:
    """Whether a severity is at least ``floor``, one of `SEVERITIES`."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(floor)


def finding_devices(finding: Finding) -> tuple[str, ...]:
    """What the finding is about, by name: the arrays, links, disks or services of its evidence; none for the host."""
    for key in _DEVICE_KEYS:
        value = finding.evidence.get(key)
        if value and isinstance(value, str | tuple):
            return (value,) if isinstance(value, str) else value
    return ()
