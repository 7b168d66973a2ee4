"""The records of a recommendation; their JSON is ``advisor.recommendation/1``."""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.rules.finding import Evidence

Fits = Literal["yes", "perhaps", "no"]
Standing = Literal[
    "symptom", "workload", "intent", "in-force", "not-applicable", "blocked", "unfit", "unknown", "broken"
]
"""What the judgement rests on: a symptom of the host, the declared workload, or neither (a matter of intent); or that
the profile is active, does not apply here, is blocked, does not suit the workload, is unknown, or is broken."""


class Reason(msgspec.Struct, frozen=True):
    """One reason, the strongest first. ``rule`` is what `advisor explain` describes."""

    kind: Literal["counter", "finding", "workload", "host"]
    text: str
    rule: str | None = None
    evidence: Evidence = {}


class Case(msgspec.Struct, frozen=True):
    """A case in which the source says that the profile helps, and whether it is this one; None: not declared."""

    text: str
    holds: bool | None


class Figure(msgspec.Struct, frozen=True):
    """What somebody measured, with which workload, and who."""

    text: str
    workload: str
    source: str


class Recommendation(msgspec.Struct, frozen=True):
    """The judgement on one profile. ``command`` is what to do next; None where there is nothing to do."""

    profile: str
    title: str
    fits: Fits
    standing: Standing
    summary: str
    why: tuple[Reason, ...]
    cases: tuple[Case, ...]
    measured: tuple[Figure, ...]
    hurts: tuple[str, ...]
    unknown: tuple[str, ...]
    command: str | None
