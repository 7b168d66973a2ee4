"""Burst credits: what a session may take out of a volume's bucket, told and bounded before it starts.

Inside an instance nothing shows the type of an EBS volume or how full its bucket is: the type is the user's word.

Sources: Amazon EBS user guide, general purpose SSD volumes (gp2: baseline 3 IOPS per GiB, at least 100 and at most
16,000; bursts of 3,000 IOPS; a bucket of 5.4 million I/O credits) and HDD volumes (st1: 40 MiB/s per TiB, bursts of
250 MiB/s per TiB, at most 500; sc1: 12 and 80 MiB/s per TiB, at most 192 and 250; a bucket of 1 TiB per TiB).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host, Missing

VolumeType = Literal["gp2", "gp3", "io1", "io2", "st1", "sc1"]
VOLUME_TYPES: Final = get_args(VolumeType)
LARGEST_GIB: Final = 65536
MOST_SHARE: Final = 0.05
"""The share of a full bucket that a session may use up."""
EBS_MODEL: Final = "Amazon Elastic Block Store"


class Volume(msgspec.Struct, frozen=True):
    """An EBS volume: its type, and its size in GiB."""

    kind: VolumeType
    gib: int


class Bucket(msgspec.Struct, frozen=True):
    """A bucket of burst credits. ``base`` refills it and ``burst`` empties it, both in ``unit`` a second; ``size`` is
    what it holds when full, in ``unit``."""

    unit: Literal["I/O", "MiB"]
    base: float
    burst: float
    size: float


def parse_volume(text: str) -> Volume:
    """``gp2:100``: type and GiB. Raises UsageError."""
    kind, _, size = text.partition(":")
    if kind not in VOLUME_TYPES or not re.fullmatch(r"[1-9][0-9]{0,4}", size) or int(size) > LARGEST_GIB:
        raise UsageError(
            f"{text!r} is no volume", hint=f"--volume takes TYPE:GIB such as gp2:100; types: {', '.join(VOLUME_TYPES)}"
        )
    return msgspec.convert({"kind": kind, "gib": int(size)}, Volume)


def bucket_of(volume: Volume) -> Bucket | None:
    """The bucket of a volume; ``None`` where its speed does not depend on one."""
    tib = volume.gib / 1024
    if volume.kind == "gp2":
        base = min(max(100.0, 3.0 * volume.gib), 16000.0)
        return Bucket("I/O", base, 3000.0, 5.4e6) if base < 3000 else None
    if volume.kind not in ("st1", "sc1"):
        return None
    if volume.kind == "st1":
        base, burst = min(40 * tib, 500.0), min(250 * tib, 500.0)
    else:
        base, burst = min(12 * tib, 192.0), min(80 * tib, 250.0)
    return Bucket("MiB", base, burst, 1024.0 * volume.gib) if base < burst else None


def most_spent(bucket: Bucket, io_seconds: float) -> float:
    """Credits that I/O at the full burst rate takes out of a bucket, in its unit, less what refills it meanwhile."""
    return (bucket.burst - bucket.base) * io_seconds


def credit_notes(host: Host, device: str | None, volume: Volume | None, io_seconds: float) -> Iterator[str]:
    """What is to be said of the credits of a target. Raises RefusedError above `MOST_SHARE` of a full bucket: beyond
    it a session could cross the edge where the volume falls back to its baseline, and compare credits, not arms."""
    if volume is None:
        if device is not None and any(model == EBS_MODEL for model in _models(host, device)):
            yield (
                "burst credits: an EBS volume does not tell its type; gp2, st1 and sc1 have a bucket that this session"
                " draws on. --volume TYPE:GIB bounds that to 5 % of it"
            )
        return
    bucket = bucket_of(volume)
    if bucket is None:
        return
    spent = most_spent(bucket, io_seconds)
    share = spent / bucket.size
    if share > MOST_SHARE:
        raise RefusedError(
            f"the session could use up {spent:,.0f} {bucket.unit} of burst credits, {share:.0%} of the full bucket of a"
            f" {volume.gib} GiB {volume.kind} volume, and slow down in the middle",
            hint="choose --quick, fewer workloads or a smaller --budget",
        )
    yield (
        f"burst credits: at most {spent:,.0f} {bucket.unit}, {share:.1%} of the full bucket of a {volume.gib} GiB"
        f" {volume.kind} volume; how full it is cannot be seen from here"
    )


def _models(host: Host, device: str, depth: int = 8) -> Iterator[str]:
    """Models of the disks that a block device is made of or lies on."""
    real = host.real(f"/sys/class/block/{device}")
    for place in (f"/sys/class/block/{device}", "" if isinstance(real, Missing) else real.rpartition("/")[0]):
        model = host.read(f"{place}/device/model") if place else Missing("absent", "")
        if not isinstance(model, Missing):
            yield model.strip()
    if depth:
        for member in host.names(f"/sys/class/block/{device}/slaves"):
            yield from _models(host, member, depth - 1)
