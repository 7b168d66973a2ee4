"""``advisor limits``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot
from advisor.operations import open_host

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
    what_if: WhatIf = None,
    more: Annotated[list[str] | None, Argument(metavar="[K=V]...", hidden=True)] = None,
) -> int:
    """List the ceilings of each storage path, and which binds. From application to medium, then those of the whole
    host. Measures and changes nothing."""
    from advisor.operations.limits import host_limits

    found = host_limits(
        open_host(root, snapshot),
        volumes=volumes,
        instance_types=instance_types,
        bench=bench,
        measured=measured_text,
        what_if=what_if or (),
        more=more or (),
    )
    if as_json:
        from advisor.report.limits import limits_document

        print_json(limits_document(found))
    else:
        from advisor.report.limits import limits_text

        print_text(limits_text(found, width=terminal_width(), color=wants_color()))
    return 0


COMMANDS = {"limits": limits}
