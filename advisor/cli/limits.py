"""``advisor limits``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor import operations
from advisor.cli.complete import recommendable_workloads
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot
from advisor.operations import open_host

if TYPE_CHECKING:
    from advisor.host import Host
    from advisor.limits.figures import Figures
    from advisor.limits.records import Limits

# ``advisor recommend``.


def recommend(
    workload: Annotated[
        list[str] | None,
        Option(
            "--workload",
            metavar="NAME|FILE|K=V,…",
            help="Declare what runs here: oltp, batch, backup, fss-udp …, a pattern of `advisor bench`, a file, or "
            "read=70%,block=8k, access=random, transport=tcp, rtt=1.16ms, replication=sync.",
            autocompletion=recommendable_workloads,
        ),
    ] = None,
    whole: Annotated[bool, Option("--all", help="Print each profile that does not apply, with the reason.")] = False,
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
) -> int:
    """List which profiles fit this host and workload, and why. Names those that do not apply in one line. Changes
    nothing and needs no root."""
    from advisor.operations.severity import has_severity
    from advisor.report.recommend import recommendation_document, recommendation_text

    # Given several times it says as much as once, with commas.
    declared = ",".join(workload) if workload else None
    found = operations.recommend(operations.open_host(root, snapshot), workload=declared)
    asked = found.workload, found.recommendations, found.recognised
    if as_json:
        print_json(recommendation_document(*asked))
    else:
        others = [one for one in found.active if one.profile is None and has_severity([one], "advice")]
        text = recommendation_text(
            *asked,
            width=terminal_width(),
            color=wants_color(),
            findings=len(others),
            is_live=root is None and snapshot is None,
            everything=whole,
        )
        print_text(text)
    return 0


Measured = Annotated[
    str | None,
    Option(
        "--measured",
        metavar="FIGURE",
        help="Compare a measured throughput with the ceiling: 132GB/s, or read=132GB/s,write=121GB/s.",
    ),
]
WhatIf = Annotated[
    list[str] | None,
    Option(
        "--what-if",
        metavar="K=V…",
        help="Compare with other volumes, instance, raid, stripes, links, speed or mtu, side by side, several with "
        "blanks or commas between them: "
        "raid=raid10, /db:volumes=16xgp3:1000MB/s:16000iops, instance=r5b.24xlarge, links=+1. May be repeated.",
    ),
]


InstanceTypes = Annotated[
    Path | None,
    Option(
        "--instance-types",
        metavar="FILE",
        help="Read limits of machines, before those of the tables: the output of aws ec2 describe-instance-types or "
        "az vm list-skus -o json.",
    ),
]


def limits(
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    volumes: Annotated[
        Path | None,
        Option(
            "--volumes",
            metavar="FILE",
            help="Read what volumes and drives carry: TOML (docs/limits.md), or the output of aws ec2 "
            "describe-volumes.",
        ),
    ] = None,
    instance_types: InstanceTypes = None,
    bench: Annotated[
        Path | None,
        Option("--bench", metavar="FILE", help="Compare a series saved by advisor bench with the ceilings."),
    ] = None,
    measured_text: Measured = None,
    measure: Annotated[
        bool,
        Option(
            "--measure",
            help="Read the drives whose ceiling is not known by fio, 6 s each, after a question. Never writes to them.",
        ),
    ] = False,
    is_agreed: Annotated[bool, Option("--yes", help="With --measure: do not ask.")] = False,
    what_if: WhatIf = None,
    whole: Annotated[
        bool, Option("--all", help="Print each part of each path, also where nothing is declared.")
    ] = False,
    more: Annotated[list[str] | None, Argument(metavar="[K=V]...", hidden=True)] = None,
) -> int:
    """List the ceilings of each storage path, and which binds. From application to medium, then those of the whole
    host. Changes nothing, and measures with --measure only."""
    from advisor.operations.limits import host_limits

    host = open_host(root, snapshot)
    limits_here = partial(
        host_limits,
        host,
        volumes=volumes,
        instance_types=instance_types,
        bench=bench,
        measured=measured_text,
        what_if=what_if or (),
        more=more or (),
    )
    found = limits_here()
    if measure:
        found = limits_here(readings=_read_drives(host, found, is_agreed=is_agreed))
    if as_json:
        from advisor.report.limits import limits_document

        print_json(limits_document(found))
    else:
        from advisor.report.limits import limits_text

        everything = whole or measure or any((volumes, instance_types, bench, measured_text, what_if, more))
        print_text(limits_text(found, width=terminal_width(), color=wants_color(), everything=everything))
    return 0


def _read_drives(host: Host, found: Limits, *, is_agreed: bool) -> Mapping[str, Figures]:
    """Ask, then read the drives of which no ceiling is known. Raises RefusedError, UsageError."""
    from advisor.cli.change import ask_user
    from advisor.operations.drive_readings import predicted_seconds, read_drives, unknown_drives

    names = unknown_drives(found)
    if not names:
        say("no drive of unknown ceiling is there: nothing was measured")
        return {}
    if not is_agreed:
        seconds = predicted_seconds(names)
        ask_user(f"Read {', '.join(names)} with fio, {seconds:.0f} s in all? Nothing is written.", has_dry_run=False)
    readings, kept = read_drives(host, names)
    for name, why in readings.failed.items():
        say(f"{name} was not measured: {why}")
    say(f"{len(readings.drives)} of {len(names)} measured; {kept}")
    return readings.figures()


# ``advisor size``.


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
        from advisor.report.limits import size_document

        print_json(size_document(found))
    else:
        from advisor.report.limits import size_text

        print_text(size_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.found > found.undecided else 1


COMMANDS = {"recommend": recommend, "limits": limits, "size": size}
