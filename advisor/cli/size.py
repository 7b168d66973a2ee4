"""``advisor size``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from advisor.cli.limits import InstanceTypes
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.scan import Json


def size(
    read: Annotated[
        str | None, Option("--read", metavar="RATE", help="Require this throughput of reads: 8GB/s, 500MiB/s.")
    ] = None,
    write: Annotated[
        str | None, Option("--write", metavar="RATE", help="Require this throughput of writes at the same time.")
    ] = None,
    iops: Annotated[
        str | None, Option("--iops", metavar="NUMBER", help="Require so many reads and writes a second together: 200k.")
    ] = None,
    latency: Annotated[
        str | None,
        Option("--latency", metavar="TIME", help="Require a documented latency of at most this: 1ms, 500us."),
    ] = None,
    capacity: Annotated[str | None, Option("--capacity", metavar="SIZE", help="Require this space: 10TiB.")] = None,
    series: Annotated[
        Path | None, Option("--from", metavar="FILE", help="Require what a series saved by advisor bench measured.")
    ] = None,
    cloud: Annotated[
        str | None, Option("--cloud", metavar="NAME", help="Search one of aws, azure and metal. Default: all three.")
    ] = None,
    instance: Annotated[
        str | None, Option("--instance", metavar="TYPE,…", help="Search only these instance types or VM sizes.")
    ] = None,
    layout: Annotated[
        str | None,
        Option(
            "--layout",
            metavar="KIND[xN],…",
            help="Search only these volumes or RAID levels, with their number: gp3x16,io2 or raid10x8.",
        ),
    ] = None,
    instance_types: InstanceTypes = None,
    volumes: Annotated[
        Path | None,
        Option(
            "--volumes",
            metavar="FILE",
            help="Read volumes that are bought already, or data sheets of drives (docs/limits.md).",
        ),
    ] = None,
    prices: Annotated[
        Path | None, Option("--prices", metavar="FILE", help="Rank by these prices (docs/size.md).")
    ] = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=10_000, help="Show so many choices of each cloud.")
    ] = 10,
    as_json: Json = False,
) -> int:
    """Choose hardware that carries a demand. Searches the tables of limits for a machine, volumes and stripes in a
    cloud, or drives, RAID and links. Exit code 1 where no choice is known to carry it. Reads nothing of this host."""
    from advisor.operations.sizing import size_hardware

    found = size_hardware(
        read=read,
        write=write,
        iops=iops,
        latency=latency,
        capacity=capacity,
        series=series,
        cloud=cloud,
        instance=instance,
        layout=layout,
        instance_types=instance_types,
        volumes=volumes,
        prices=prices,
        limit=limit,
    )
    if as_json:
        from advisor.report.size import size_document

        print_json(size_document(found))
    else:
        from advisor.report.size import size_text

        print_text(size_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.found > found.undecided else 1


COMMANDS = {"size": size}
