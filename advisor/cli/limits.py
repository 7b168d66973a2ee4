"""``advisor limits``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.output import print_json, print_text, terminal_width, the_host, wants_color
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json, Root, Snapshot
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.limits.measured import MeasuredThroughput as MeasuredThroughput
    from advisor.limits.observed import Measurement
    from advisor.limits.records import Limits
    from advisor.limits.what_if import WhatIfChange
    from advisor.proof.series import Bench
    from advisor.proof.series import WorkloadSeries as MeasuredWorkload

Measured = Annotated[
    str | None,
    Option(
        "--measured",
        metavar="FIGURE",
        help="A measured throughput, as a share of the ceiling: 132GB/s, or read=132GB/s,write=121GB/s.",
    ),
]
WhatIf = Annotated[
    list[str] | None,
    Option(
        "--what-if",
        metavar="K=V…",
        help="The same host with other volumes, instance, raid, stripes, links, speed or mtu, side by side: "
        "raid=raid10, /db:volumes=16xgp3:1000MB/s:16000iops, instance=r5b.24xlarge, links=+1. May be repeated.",
    ),
]


InstanceTypes = Annotated[
    Path | None,
    Option(
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
        Option(
            "--volumes",
            metavar="FILE",
            help="What volumes and drives carry: TOML (docs/limits.md), or what aws ec2 describe-volumes printed.",
        ),
    ] = None,
    instance_types: InstanceTypes = None,
    bench: Annotated[
        Path | None, Option("--bench", metavar="FILE", help="Set a series saved by advisor bench against it.")
    ] = None,
    measured_text: Measured = None,
    what_if: WhatIf = None,
    more: Annotated[list[str] | None, Argument(metavar="[K=V]...", hidden=True)] = None,
) -> int:
    """The ceilings on each path from application to medium, and the one that binds; last, those of the whole host.
    Measures and changes nothing."""
    from advisor.facts.host_facts import scan
    from advisor.limits.declared import Declared, read_declared
    from advisor.limits.machine_file import read_machines
    from advisor.limits.measured import parse_measured
    from advisor.limits.observed import with_observed
    from advisor.limits.pci_and_network import read_surroundings
    from advisor.limits.purchase import with_findings
    from advisor.limits.storage_use import read_front
    from advisor.limits.what_if import Scene, limits_of_scene, with_what_if

    declared = read_declared(volumes) if volumes else Declared()
    machines = read_machines(instance_types) if instance_types else None
    measured = measurements(bench) if bench else ()
    given = parse_measured(measured_text) if measured_text is not None else ()
    changes = _changes(what_if, more)
    host = the_host(root, snapshot)
    facts = scan(host)
    scene = Scene(facts, read_surroundings(host, facts), declared, read_front(host, facts), machines)
    found = limits_of_scene(scene)
    if changes:
        found = with_what_if(found, scene, changes)
    if bench:
        found = with_observed(found, measured, facts, declared)
    found = with_findings(found, facts, declared)
    if given:
        found = _with_measured(found, given)
    if as_json:
        from advisor.report.limits import limits_document

        print_json(limits_document(found))
    else:
        from advisor.report.limits import limits_text

        print_text(limits_text(found, width=terminal_width(), color=wants_color()))
    return 0


def _changes(what_if: Sequence[str] | None, more: Sequence[str] | None) -> tuple[WhatIfChange, ...]:
    """What --what-if says, with further K=V behind it. Raises UsageError, InvalidInputError."""
    from advisor.errors import UsageError
    from advisor.limits.what_if import parse_changes

    if more and not what_if:
        raise UsageError(msg("unexpected argument: {more}", more=more[0]), hint="--what-if K=V…")
    return parse_changes((*(what_if or ()), *(more or ())))


def _with_measured(limits: Limits, given: Sequence[MeasuredThroughput]) -> Limits:
    """The figures as shares of the host's ceiling, and of the one with other hardware."""
    import msgspec

    from advisor.limits.measured import with_measured

    if limits.host is None:
        return limits
    limits = msgspec.structs.replace(limits, host=with_measured(limits.host, given))
    if limits.what_if is None:
        return limits
    after = msgspec.structs.replace(limits.what_if, host=with_measured(limits.what_if.host, given))
    return msgspec.structs.replace(limits, what_if=after)


def measurements(path: Path, *, option: str = "--bench") -> tuple[Measurement, ...]:
    """The medians of a saved series, as the value of an option. Raises InvalidInputError for what is none."""
    from advisor.errors import InvalidInputError
    from advisor.proof.archive import SavedBench, load_any, reanalyse_series

    saved = load_any(path)
    if not isinstance(saved, SavedBench):
        raise InvalidInputError(
            msg("{path}: not a saved series but a saved proof", path=path),
            hint=msg("{option} takes what bench saved", option=option),
        )
    series = reanalyse_series(saved)
    return tuple(one for measured in series.workloads for one in _of_workload(series, measured))


def _of_workload(series: Bench, measured: MeasuredWorkload) -> Iterator[Measurement]:
    """MB/s and IOPS of a workload that touches storage."""
    from advisor.limits.observed import Measurement
    from advisor.proof.workloads import get_workload

    workload = get_workload(measured.name)
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
