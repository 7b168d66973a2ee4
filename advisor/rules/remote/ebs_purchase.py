"""Volumes that were bought for more than the machine carries. What was bought is declared: see advisor.ceilings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.rules import sources
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, rule

if TYPE_CHECKING:
    from advisor.facts.system.identity import PurchasedFigures

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


@rule(
    id="ebs.burst-bucket",
    severity="advice",
    title="A volume is fast until its credits are used up",
    what="Declared volumes (--volumes FILE) of type gp2 below 1,000 GiB, st1 and sc1, and disks of Azure that burst: "
    "what they carry from a full bucket of credits, for how long, and afterwards.",
    why="A benchmark of a few minutes measures the bucket, and a service lives on what refills it.",
    helps_when="The load lasts longer than the bucket: gp3 has 3,000 IOPS without one, for less money than gp2.",
    hurts_when="Short bursts with long pauses: that is what the credits are for (CloudWatch, BurstBalance).",
    sources=(sources.AWS_EBS_TYPES,),
)
def burst_bucket(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
    if not facts.bursting:
        return None
    least = min(facts.bursting, key=lambda one: one.sustained / one.burst)
    return burst_bucket.found(
        title=f"{least.device}: {least.burst:,.0f} {least.unit} for {least.seconds / 60:,.0f} minutes, then "
        f"{least.sustained:,.0f}",
        why="The figure from a full bucket of credits holds for that long at that rate; then the volume carries what "
        "refills the bucket.",
        evidence={
            "devices": tuple(one.device for one in facts.bursting),
            "detail": tuple(
                f"{one.device}: {one.burst:,.0f} {one.unit} for {one.seconds / 60:,.0f} min, then {one.sustained:,.0f}"
                for one in facts.bursting
            ),
        },
        remedy=(
            "change gp2 to gp3, which may be done while it is in use; of st1 and sc1 buy larger ones, or gp3",
            "prove and bench for longer than the bucket lasts, or from an empty one",
        ),
    )
