"""Burst credits: what a session may draw from a volume's bucket, reported and bounded before it starts.

Types and buckets are those of `advisor.limits.ebs`, with their sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host, Missing
from advisor.limits.ebs import EBS_MODEL, LARGEST_GIB, VOLUME_TYPES, Bucket, EbsVolume, bucket_of

__all__ = ["EBS_MODEL", "MOST_SHARE", "EbsVolume", "bucket_of", "credit_notes", "most_spent", "parse_volume"]

MOST_SHARE: Final = 0.05
"""The share of a full bucket that a session may use up."""


def parse_volume(text: str) -> EbsVolume:
    """``gp2:100``: type and GiB. Raises UsageError."""
    kind, _, size = text.partition(":")
    if kind not in VOLUME_TYPES or not re.fullmatch(r"[1-9][0-9]{0,4}", size) or int(size) > LARGEST_GIB:
        raise UsageError(
            f"{text!r} is no volume", hint=f"--volume takes TYPE:GIB such as gp2:100; types: {', '.join(VOLUME_TYPES)}"
        )
    return msgspec.convert({"kind": kind, "gib": int(size)}, EbsVolume)


def most_spent(bucket: Bucket, io_seconds: float) -> float:
    """Credits that I/O at the full burst rate uses of a bucket, in its unit, less what refills it meanwhile."""
    return (bucket.burst - bucket.base) * io_seconds


def credit_notes(host: Host, device: str | None, volume: EbsVolume | None, io_seconds: float) -> Iterator[str]:
    """What is to be said about the credits of a target. Raises RefusedError above `MOST_SHARE` of a full bucket: beyond
    it a session could cross the edge where the volume falls back to its baseline, and compare credits, not arms."""
    if volume is None:
        if device is not None and any(model == EBS_MODEL for model in _disk_models(host, device)):
            yield (
                "burst credits: an EBS volume does not report its type; gp2, st1 and sc1 have a bucket that this"
                " session draws on. --volume TYPE:GIB bounds that to 5 % of it"
            )
        return
    bucket = bucket_of(volume)
    if bucket is None:
        return
    spent = most_spent(bucket, io_seconds)
    share = spent / bucket.size
    if share > MOST_SHARE:
        raise RefusedError(
            (
                f"the session could use up {spent:,.0f} {bucket.unit} of burst credits, {share:.0%} of the full "
                f"bucket of a {volume.gib} GiB {volume.kind} volume, and slow down in the middle"
            ),
            hint="choose --quick, fewer workloads or a smaller --budget",
        )
    yield (
        f"burst credits: at most {spent:,.0f} {bucket.unit}, {share:.1%} of the full bucket of a {volume.gib} GiB"
        f" {volume.kind} volume; how full it is cannot be seen from here"
    )


def _disk_models(host: Host, device: str, depth: int = 8) -> Iterator[str]:
    """Models of the disks that a block device is made of or lies on."""
    real = host.real(f"/sys/class/block/{device}")
    for place in (f"/sys/class/block/{device}", "" if isinstance(real, Missing) else real.rpartition("/")[0]):
        model = host.read(f"{place}/device/model") if place else Missing("absent", "")
        if not isinstance(model, Missing):
            yield model.strip()
    if depth:
        for member in host.names(f"/sys/class/block/{device}/slaves"):
            yield from _disk_models(host, member, depth - 1)
