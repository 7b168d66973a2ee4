"""Which hardware carries a demand."""

from __future__ import annotations

from pathlib import Path

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.limits.declared import Declared, read_declared
from advisor.limits.machine_file import read_machines
from advisor.operations.limits import read_measurements
from advisor.sizing.cloud import read_prices
from advisor.sizing.records import Cloud, Demand, Sizing, parse_demand
from advisor.sizing.search import CLOUDS, SizeQuestion, answer, parse_layouts


def size_hardware(
    *,
    read: str | None = None,
    write: str | None = None,
    iops: str | None = None,
    latency: str | None = None,
    capacity: str | None = None,
    series: Path | None = None,
    cloud: str | None = None,
    instance: str | None = None,
    layout: str | None = None,
    instance_types: Path | None = None,
    volumes: Path | None = None,
    prices: Path | None = None,
    limit: int = 10,
) -> Sizing:
    """Return the machines and volumes, or drives and links, that carry a demand, at most ``limit`` of each cloud.

    The arguments are what the options of their names take (``8GB/s``, ``200k``, ``1ms``, ``10TiB``, files); ``series``
    is that of ``--from``. Reads nothing of this host. Raises UsageError, InvalidInputError.
    """
    return answer(
        SizeQuestion(
            demand=_make_demand(read, write, iops, latency, capacity, series),
            clouds=_parse_clouds(cloud) if cloud is not None else CLOUDS,
            instances=tuple(name.strip() for name in instance.split(",")) if instance is not None else (),
            layouts=parse_layouts(layout) if layout is not None else (),
            given=read_machines(instance_types) if instance_types else None,
            declared=read_declared(volumes) if volumes else Declared(),
            prices=read_prices(prices) if prices else None,
            prices_where=str(prices or ""),
            limit=limit,
        )
    )


def _parse_clouds(name: str) -> tuple[Cloud, ...]:
    found = tuple(one for one in CLOUDS if one == name.strip().lower())
    if not found:
        raise UsageError(f"--cloud {name}: expected one of {', '.join(CLOUDS)}")
    return found


def _make_demand(
    read: str | None,
    write: str | None,
    iops: str | None,
    latency: str | None,
    capacity: str | None,
    series: Path | None,
) -> Demand:
    """What the options say; of a saved series what they leave out."""
    asked = parse_demand(read, write, iops, latency, capacity)
    if series is not None:
        # The throughput of the workload with the most of it, and the IOPS of the one with the most of these:
        # workloads of a series run one after the other.
        found = read_measurements(series, option="--from")
        rates = [one for one in found if one.measure == "mb_per_s"]
        operations = [one.value for one in found if one.measure == "iops"]
        if not found:
            raise InvalidInputError(f"{series}: no workload of it reads or writes a disk")
        most = max(rates, key=lambda one: one.value, default=None)
        measured = Demand(
            read_mb_s=most.value * most.read_share if most and most.read_share else None,
            write_mb_s=most.value * (1 - most.read_share) if most and most.read_share < 1 else None,
            iops=max(operations, default=None),
        )
        fields = {
            name: getattr(measured, name)
            for name in ("read_mb_s", "write_mb_s", "iops")
            if getattr(asked, name) is None and not (name != "iops" and asked.mb_s is not None)
        }
        asked = msgspec.structs.replace(asked, **fields, measured_from=str(series))
    if asked.mb_s is None and asked.iops is None:
        raise UsageError(
            "nothing is asked for: give --read, --write or --iops, or --from FILE",
            hint="advisor size --read 8GB/s --write 3GB/s --iops 200k --latency 1ms",
        )
    return asked
