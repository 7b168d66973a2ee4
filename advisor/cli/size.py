"""``advisor size``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.limits import InstanceTypes, measurements
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.parameters import Option
from advisor.cli.scan import Json
from advisor.errors import UsageError
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.sizing.demand import Demand
    from advisor.sizing.records import Cloud


def size(
    read: Annotated[
        str | None, Option("--read", metavar="RATE", help="Throughput of reads, as 8GB/s or 500MiB/s.")
    ] = None,
    write: Annotated[
        str | None, Option("--write", metavar="RATE", help="Throughput of writes at the same time.")
    ] = None,
    iops: Annotated[
        str | None, Option("--iops", metavar="NUMBER", help="Reads and writes a second together, as 200k.")
    ] = None,
    latency: Annotated[
        str | None,
        Option("--latency", metavar="TIME", help="Only volumes whose documented latency fits, as 1ms or 500us."),
    ] = None,
    capacity: Annotated[
        str | None, Option("--capacity", metavar="SIZE", help="Space that is needed, as 10TiB.")
    ] = None,
    series: Annotated[
        Path | None,
        Option("--from", metavar="FILE", help="The demand is that of a series saved by advisor bench."),
    ] = None,
    cloud: Annotated[
        str | None, Option("--cloud", metavar="NAME", help="aws, azure or metal; all three without it.")
    ] = None,
    instance: Annotated[
        str | None, Option("--instance", metavar="TYPE,…", help="Only these instance types or VM sizes.")
    ] = None,
    layout: Annotated[
        str | None,
        Option(
            "--layout",
            metavar="KIND[xN],…",
            help="Only these volumes or RAID levels, with their number: gp3x16,io2 or raid10x8.",
        ),
    ] = None,
    instance_types: InstanceTypes = None,
    volumes: Annotated[
        Path | None,
        Option(
            "--volumes",
            metavar="FILE",
            help="Volumes that are bought already, or data sheets of drives (docs/limits.md).",
        ),
    ] = None,
    prices: Annotated[
        Path | None, Option("--prices", metavar="FILE", help="Rank by these prices (docs/size.md).")
    ] = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=10_000, help="Choices to show, of each cloud.")
    ] = 10,
    as_json: Json = False,
) -> int:
    """Choose hardware that carries a demand: machine, volumes and stripes in a cloud, or drives, RAID and links.
    Searches the tables of limits; 1 where no choice is known to carry it. Reads nothing of this host."""
    from advisor.limits.declared import Declared, read_declared
    from advisor.limits.machine_file import read_machines
    from advisor.sizing.prices import read_prices
    from advisor.sizing.search import CLOUDS, SizeQuestion, answer, parse_layouts

    demand = _demand(read, write, iops, latency, capacity, series)
    found = answer(
        SizeQuestion(
            demand=demand,
            clouds=_clouds(cloud) if cloud is not None else CLOUDS,
            instances=tuple(name.strip() for name in instance.split(",")) if instance is not None else (),
            layouts=parse_layouts(layout) if layout is not None else (),
            given=read_machines(instance_types) if instance_types else None,
            declared=read_declared(volumes) if volumes else Declared(),
            prices=read_prices(prices) if prices else None,
            prices_where=str(prices or ""),
            limit=limit,
        )
    )
    if as_json:
        from advisor.report.size import size_document

        print_json(size_document(found))
    else:
        from advisor.report.size import size_text

        print_text(size_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.found > found.undecided else 1


def _clouds(name: str) -> tuple[Cloud, ...]:
    from advisor.sizing.search import CLOUDS

    found = tuple(one for one in CLOUDS if one == name.strip().lower())
    if not found:
        raise UsageError(msg("--cloud {name}: expected one of {clouds}", name=name, clouds=", ".join(CLOUDS)))
    return found


def _demand(
    read: str | None,
    write: str | None,
    iops: str | None,
    latency: str | None,
    capacity: str | None,
    series: Path | None,
) -> Demand:
    """What the options say; of a saved series what they leave out."""
    import msgspec

    from advisor.sizing.demand import parse_demand

    asked = parse_demand(read, write, iops, latency, capacity)
    if series is not None:
        measured = _measured_demand(series)
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


def _measured_demand(path: Path) -> Demand:
    """The throughput of the workload with the most of it, and the IOPS of the one with the most of these: workloads of
    a series run one after the other."""
    from advisor.errors import InvalidInputError
    from advisor.sizing.demand import Demand

    found = measurements(path, option="--from")
    rates = [one for one in found if one.measure == "mb_per_s"]
    operations = [one.value for one in found if one.measure == "iops"]
    if not found:
        raise InvalidInputError(msg("{path}: no workload of it reads or writes a disk", path=path))
    most = max(rates, key=lambda one: one.value, default=None)
    return Demand(
        read_mb_s=most.value * most.read_share if most and most.read_share else None,
        write_mb_s=most.value * (1 - most.read_share) if most and most.read_share < 1 else None,
        iops=max(operations, default=None),
    )


COMMANDS: Final = {"size": size}
