"""What the journal of a run holds of a trial with hosts as units: what was asked, tossed, measured and found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from advisor.proof.own_command import CommandMetric

Phase = Literal["before", "after"]
TrialVerdict = Literal["gain", "gain-with-cost", "loss", "no-difference", "inconclusive"]


class TrialTerms(msgspec.Struct, frozen=True):
    """What is measured, and what follows from it. The first metric is the claim, the others are guardrails.

    ``blocks`` is ``hardware``, ``none`` or ``var=NAME``; ``margin`` is the ratio minus one within which a difference
    is none. With a ``command`` the metrics are read of its output.
    """

    metrics: tuple[CommandMetric, ...]
    command: str | None
    rounds: int
    period_seconds: float
    settle_seconds: float
    timeout_seconds: int
    seed: int
    blocks: str = "hardware"
    margin: float = 0.05
    keeps_gain: bool = False

    @property
    def reads_counts(self) -> bool:
        """Whether a figure is what happened since the reading before."""
        return any(metric.kind in ("counter", "host", "prom") for metric in self.metrics)


class HostsAssigned(msgspec.Struct, frozen=True, tag="assigned", tag_field="event"):
    """The toss, on disk before any host is changed; ``detectable`` is the effect, as a ratio minus one, that about 80 %
    of such trials would find, by the scatter of the baseline."""

    time: float
    blocks: tuple[tuple[str, ...], ...]
    treated: tuple[str, ...]
    seed: int
    detectable: float | None = None


class PhaseMeasured(msgspec.Struct, frozen=True, tag="phase", tag_field="event"):
    """Figures by metric and host, one for each reading in its order, None where it failed; why, for the last."""

    time: float
    phase: Phase
    figures: Mapping[str, Mapping[str, tuple[float | None, ...]]]
    failures: Mapping[str, str] = {}


class MetricEffect(msgspec.Struct, frozen=True):
    """The effect on one metric, as ratios minus one, plus is better; ``changes`` of each host, after against before.

    Without an interval where a host gave no figure; ``p_value`` is then the bound that holds whatever its figure was.
    """

    name: str
    unit: str
    better: str
    is_guardrail: bool
    effect: float
    low: float | None
    high: float | None
    p_value: float
    changes: Mapping[str, float | None]


class TrialJudged(msgspec.Struct, frozen=True, tag="judged", tag_field="event"):
    """The verdict, with the reasons in sentences. ``missing`` are hosts without a figure, ``not_held`` treated hosts on
    which the values did not last."""

    time: float
    verdict: TrialVerdict
    effects: tuple[MetricEffect, ...]
    reasons: tuple[str, ...]
    assignments: int
    is_exact: bool
    missing: tuple[str, ...] = ()
    not_held: Mapping[str, str] = {}
