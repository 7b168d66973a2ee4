"""``advisor limits``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot
from advisor.operations import open_host

if TYPE_CHECKING:
    from advisor.host import Host
    from advisor.limits.figures import Figures
    from advisor.limits.records import Limits

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


COMMANDS = {"limits": limits}
