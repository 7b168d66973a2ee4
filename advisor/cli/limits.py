"""``advisor limits``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from advisor.cli.output import print_json, print_text, terminal_width, the_host, wants_color
from advisor.cli.scan import Json, Root, Snapshot

if TYPE_CHECKING:
    from advisor.ceilings.observed import Measurement
    from advisor.proof.series import Bench
    from advisor.proof.series import Measured as MeasuredWorkload

Measured = Annotated[
    str | None,
    typer.Option(
        "--measured",
        metavar="FIGURE",
        help="A measured throughput, as a share of the ceiling: 132GB/s, or read=132GB/s,write=121GB/s.",
    ),
]


InstanceTypes = Annotated[
    Path | None,
    typer.Option(
        "--instance-types",
        metavar="FILE",
        help="Limits of machines, before the tables: what aws ec2 describe-instance-types or az vm list-skus -o json "
        "printed.",
    ),
]


def limits(
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
    volumes: Annotated[
        Path | None,
        typer.Option(
            "--volumes",
            metavar="FILE",
            help="What volumes and drives carry: TOML (docs/limits.md), or what aws ec2 describe-volumes printed.",
        ),
    ] = None,
    instance_types: InstanceTypes = None,
    bench: Annotated[
        Path | None, typer.Option("--bench", metavar="FILE", help="Set a series saved by advisor bench against it.")
    ] = None,
    measured_text: Measured = None,
) -> int:
    """The ceilings on each path from application to medium, and the one that binds; last, those of the whole host.
    Measures and changes nothing."""
    import msgspec

    from advisor.ceilings.declared import Declared, read_declared
    from advisor.ceilings.front import read_front
    from advisor.ceilings.host_ceiling import with_host
    from advisor.ceilings.machine_file import read_machines
    from advisor.ceilings.measured import parse_measured, with_measured
    from advisor.ceilings.observed import with_observed
    from advisor.ceilings.paths import limits_of
    from advisor.ceilings.surroundings import read_surroundings
    from advisor.facts.whole import scan

    declared = read_declared(volumes) if volumes else Declared()
    machines = read_machines(instance_types) if instance_types else None
    measured = _measurements(bench) if bench else ()
    given = parse_measured(measured_text) if measured_text is not None else ()
    host = the_host(root, snapshot)
    facts = scan(host)
    around = read_surroundings(host, facts)
    found = limits_of(facts, around, declared, machines)
    found = with_host(found, facts, around, declared, read_front(host, facts), machines)
    if bench:
        found = with_observed(found, measured, facts, declared)
    if found.host and given:
        found = msgspec.structs.replace(found, host=with_measured(found.host, given))
    if as_json:
        from advisor.report.limits import limits_document

        print_json(limits_document(found))
    else:
        from advisor.report.limits import limits_text

        print_text(limits_text(found, width=terminal_width(), color=wants_color()))
    return 0


def _measurements(path: Path) -> tuple[Measurement, ...]:
    """The medians of a saved series. Raises InvalidInputError for what is none."""
    from advisor.errors import InvalidInputError
    from advisor.proof.archive import SavedBench, load_any, reanalyse_series

    saved = load_any(path)
    if not isinstance(saved, SavedBench):
        raise InvalidInputError(f"{path}: not a saved series but a saved proof", hint="--bench takes what bench saved")
    series = reanalyse_series(saved)
    return tuple(one for measured in series.workloads for one in _of_workload(series, measured))


def _of_workload(series: Bench, measured: MeasuredWorkload) -> Iterator[Measurement]:
    """MB/s and IOPS of a workload that touches storage."""
    from advisor.ceilings.observed import Measurement
    from advisor.proof.workloads import get

    workload = get(measured.name)
    shares = [section.write_share for section in workload.sections if section.needs_scratch]
    if not shares:
        return
    read_share = 1 - sum(shares) / len(shares)
    device = series.series.device
    if measured.bandwidth_mb_per_s:
        yield Measurement(measured.name, device, "mb_per_s", measured.bandwidth_mb_per_s, read_share)
    if measured.iops:
        yield Measurement(measured.name, device, "iops", measured.iops, read_share)


COMMANDS: Final = {"limits": limits}
