"""Declared volumes against the machine, as facts for the rules, and the findings of ``advisor limits``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.purchase import BurstingVolume, PurchasedFigures
from advisor.limits.declared import Declared
from advisor.limits.machines import Given
from advisor.limits.media import Media
from advisor.limits.paths import limits_of
from advisor.limits.records import Limits
from advisor.rules.ebs_purchase import unusable


def with_purchases(facts: Facts, declared: Declared, given: Given | None = None) -> Facts:
    """The facts with what the user declares of volumes set against the machine."""
    return _with_purchases(facts, limits_of(facts, None, declared, given), declared)


def with_findings(limits: Limits, facts: Facts, declared: Declared) -> Limits:
    """The limits with what is wrong with the purchase."""
    return msgspec.structs.replace(limits, findings=unusable(_with_purchases(facts, limits, declared), None))


def _with_purchases(facts: Facts, limits: Limits, declared: Declared) -> Facts:
    media = Media(facts, declared)
    devices = tuple(disk.name for disk in facts.disks if media.is_volume(disk.name))
    return msgspec.structs.replace(
        facts,
        bursting=tuple(_bursting(media, devices)),
        purchases=tuple(
            PurchasedFigures(
                unit="IOPS" if one.quantity.endswith("iops") else "MB/s",
                volumes=one.volumes,
                machine=one.instance,
                machine_type=limits.instance_type or "",
                unusable=one.unusable,
                devices=devices,
            )
            for one in limits.bought
        ),
    )


def _bursting(media: Media, devices: Iterable[str]) -> Iterator[BurstingVolume]:
    """gp2 by its IOPS, st1 and sc1, of which 1 MiB counts as one, by their MB/s."""
    for name in devices:
        medium = media.figures(name)
        if medium is None or medium.burst is None or medium.burst_seconds is None:
            continue
        now, always = medium.burst, medium.sustained
        declared = media.declared(name)
        if declared is not None and declared.type in ("st1", "sc1"):
            yield BurstingVolume(name, "MB/s", now.read_mb_per_s, always.read_mb_per_s, medium.burst_seconds)
        else:
            yield BurstingVolume(name, "IOPS", now.read_iops, always.read_iops, medium.burst_seconds)
