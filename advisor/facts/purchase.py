"""What was bought of volumes against what the machine carries. No host shows what was bought: the user declares it
(``--volumes FILE``), and `advisor.limits.purchase` works it out."""

from __future__ import annotations

from typing import Literal

import msgspec


class PurchasedFigures(msgspec.Struct, frozen=True):
    """Of all volumes together: MB/s (10^6 bytes) or IOPS bought, what the machine carries for as long as one likes, and
    the fraction that cannot pass it."""

    unit: Literal["MB/s", "IOPS"]
    volumes: float
    machine: float
    machine_type: str
    unusable: float
    devices: tuple[str, ...]


class BurstingVolume(msgspec.Struct, frozen=True):
    """A volume that was bought with a bucket of credits: what it carries for ``seconds`` from a full bucket, and then
    for as long as one likes."""

    device: str
    unit: Literal["MB/s", "IOPS"]
    burst: float
    sustained: float
    seconds: float
