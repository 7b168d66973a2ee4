"""The ceilings of a host, and what a saved series measured against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.limits.declared import Declared, read_declared
from advisor.limits.figures import Figures
from advisor.limits.links import read_pci_and_network
from advisor.limits.machine_file import read_machines
from advisor.limits.notes import Measurement, with_observed
from advisor.limits.paths import with_findings
from advisor.limits.records import Limits
from advisor.limits.storage_use import MeasuredThroughput, parse_measured, read_front, with_measured
from advisor.limits.what_if import KEYS, Scene, limits_of_scene, parse_changes, with_what_if
from advisor.proof.archive import SavedBench, load_any, reanalyse_series
from advisor.proof.series import Bench, WorkloadSeries
from advisor.proof.workloads import get_workload


def host_limits(
    host: Host,
    *,
    volumes: Path | None = None,
    instance_types: Path | None = None,
    bench: Path | None = None,
    measured: str | None = None,
    what_if: Sequence[str] = (),
    more: Sequence[str] = (),
    readings: Mapping[str, Figures] | None = None,
) -> Limits:
    """Return the ceilings of each path of ``host`` and of the host as a whole. Measures and changes nothing.

    ``volumes``, ``instance_types`` and ``bench`` are files as the options of their names take them, ``measured`` a
    throughput to compare with, ``what_if`` other hardware as ``K=V``, ``more`` further ones, ``readings`` what drives
    were measured with. Raises UsageError, InvalidInputError.
    """
    declared = read_declared(volumes) if volumes else Declared()
    declared = msgspec.structs.replace(declared, measured=readings or {})
    machines = read_machines(instance_types) if instance_types else None
    measurements = read_measurements(bench) if bench else ()
    given = parse_measured(measured) if measured is not None else ()
    # What --what-if says, with further K=V behind it. Raises UsageError, InvalidInputError.
    if more and not what_if:
        raise UsageError(
            f"unexpected argument: {more[0]}",
            hint=f"K=V stands after --what-if, K is one of {', '.join(KEYS)}: advisor limits --what-if raid=raid10",
        )
    changes = parse_changes((*what_if, *more))
    facts = scan(host)
    scene = Scene(facts, read_pci_and_network(host, facts), declared, read_front(host, facts), machines)
    found = limits_of_scene(scene)
    if changes:
        found = with_what_if(found, scene, changes)
    if bench:
        found = with_observed(found, measurements, facts, declared)
    found = with_findings(found, facts, declared)
    return _with_measured(found, given) if given else found


def _with_measured(limits: Limits, given: Sequence[MeasuredThroughput]) -> Limits:
    """The figures as shares of the host's ceiling, and of the one with other hardware."""
    if limits.host is None:
        return limits
    limits = msgspec.structs.replace(limits, host=with_measured(limits.host, given))
    if limits.what_if is None:
        return limits
    after = msgspec.structs.replace(limits.what_if, host=with_measured(limits.what_if.host, given))
    return msgspec.structs.replace(limits, what_if=after)


def read_measurements(path: Path, *, option: str = "--bench") -> tuple[Measurement, ...]:
    """The medians of a saved series, as the value of an option. Raises InvalidInputError for what is none."""
    saved = load_any(path)
    if not isinstance(saved, SavedBench):
        raise InvalidInputError(
            f"{path}: not a saved series but a saved proof", hint=f"{option} takes what bench saved"
        )
    series = reanalyse_series(saved)
    return tuple(one for measured in series.workloads for one in _of_workload(series, measured))


def _of_workload(series: Bench, measured: WorkloadSeries) -> Iterator[Measurement]:
    """MB/s and IOPS of a workload that touches storage."""
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
