"""Volumes that were bought for more than the machine carries. What was bought is declared: see advisor.ceilings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.rules import sources
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

if TYPE_CHECKING:
    from advisor.facts.purchase import PurchasedFigures

ORDER = 220

_LEAST = 0.1
_LARGE = 1 / 3
"""From this share on it is advice."""


def _describe_purchase(one: PurchasedFigures) -> str:
    tail = f"{_describe_share(one)} cannot pass" if one.unusable else "all of it is usable"
    return f"volumes {one.volumes:,.0f} {one.unit}, {one.machine_type} {one.machine:,.0f} {one.unit}: {tail}"


def _describe_machine(one: PurchasedFigures) -> str:
    return f"{one.machine:,.0f} {one.unit}"


def _describe_share(one: PurchasedFigures) -> str:
    return f"{100 * one.unusable:.0f} %"


@rule(
    id="ebs.unusable-purchase",
    severity="advice",
    title="Volumes can do more than the instance carries",
    what="Declared volumes (--volumes FILE) against what the instance carries to all of them together, for as long as "
    "one likes. Advice from a third on, information from a tenth on.",
    why="An instance has one limit of MB/s and one of IOPS for all its volumes; what is bought beyond is paid for and "
    "never reached.",
    helps_when="The volumes are busy at the same time, as those of one striped volume are.",
    hurts_when="Volumes that are never busy at the same time, as a WIJ between two bursts and a database, may be "
    "bought for more than the instance together; and some instances carry more than this for half an hour a day.",
    sources=(sources.IRIS_GP3, sources.AWS_EBS_OPTIMIZED),
)
def unusable(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    found = tuple(one for one in facts.purchases if one.unusable >= _LEAST)
    if not found:
        return None
    worst = max(found, key=lambda one: one.unusable)
    return unusable.found(
        severity="advice" if worst.unusable >= _LARGE else "info",
        title=f"{_describe_share(worst)} of what these volumes promise cannot pass this instance",
        why=f"All volumes of a {worst.machine_type} share what it carries to them, whatever was bought of each.",
        evidence={
            "instance_type": worst.machine_type,
            "devices": worst.devices,
            "detail": tuple(map(_describe_purchase, facts.purchases)),
        },
        remedy=(
            f"buy less of the volumes, up to {' and '.join(map(_describe_machine, found))} together, or take a "
            "larger instance: advisor size searches, and advisor limits --what-if instance=TYPE compares",
        ),
    )
