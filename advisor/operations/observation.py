"""A load observed on this host as a workload file: its fio twin, and how it compares with what was observed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.host import Host, live_host
from advisor.operations.files import write_output
from advisor.proof.interrupt import caught_signals
from advisor.proof.observing import find_disk, observe_workload, require_unit
from advisor.proof.scratch import require_space
from advisor.proof.target import read_target
from advisor.proof.twin import correct_arrival, list_alternatives
from advisor.proof.twin_check import SCRATCH_BYTES, TwinComparison, check_twin, traced_device
from advisor.proof.workload_file import WorkloadFile, encode_workload, read_workload

LONGEST_SECONDS: Final = 3600.0
CHECK_SECONDS: Final = 5.0
_CORRECTIONS: Final = 2


class ObservedTwin(msgspec.Struct, frozen=True):
    """A workload file, and the comparison of its twin with what was observed, where the twin has run."""

    workload: WorkloadFile
    comparison: TwinComparison | None = None


def observe_load(
    *, seconds: float = 10.0, device: str | None = None, unit: str | None = None, host: Host | None = None
) -> WorkloadFile:
    """Return the twin of the load on ``device`` (default: the busiest), or of ``unit``, over the next ``seconds``.

    Changes nothing; as root it traces requests in a tracing instance of its own, which it removes. Raises UsageError,
    RefusedError with the reason where no faithful twin can be made, and StoppedError after a signal.
    """
    asked = host or live_host()
    check_observation(seconds=seconds, device=device, unit=unit, host=asked)
    with caught_signals() as stop:
        return observe_workload(asked, seconds, device=device, unit=unit, sleep=stop.sleep)


def check_observation(
    *, seconds: float = 10.0, device: str | None = None, unit: str | None = None, host: Host | None = None
) -> None:
    """Raise UsageError or RefusedError where `observe_load` has nothing to observe, without its wait."""
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise UsageError(f"--seconds {seconds}: expected 1 to {LONGEST_SECONDS:.0f}")
    asked = host or live_host()
    if not asked.is_live:
        raise UsageError("a captured host has no requests to observe")
    if device is not None:
        find_disk(asked, device)
    if unit is not None:
        require_unit(asked, unit)


def load_workload(path: Path) -> WorkloadFile:
    """Return the workload of a file. Raises InvalidInputError that names file and field, PermissionDeniedError."""
    return read_workload(str(path))


def save_workload(found: WorkloadFile, path: Path) -> None:
    """Write a workload file, whole or not at all. Raises UsageError where it cannot be written."""
    write_output(path, encode_workload(found))


def check_target(target: Path) -> None:
    """Raise UsageError for what is no directory, RefusedError or PermissionDeniedError where no twin can run and be
    traced in that directory, or has no room: before an observation, not after it."""
    if not target.exists() or target.is_file():
        raise UsageError(f"--target {target}: not a directory", hint="--target DIR")
    host = live_host()
    place = read_target(host, str(target))
    traced_device(host, place)
    require_space(place, SCRATCH_BYTES)


def judge_twin(found: WorkloadFile, target: Path, *, seconds: float = CHECK_SECONDS) -> ObservedTwin:
    """Run the twin on a scratch file in a directory, and compare it with what was observed. The file is removed.

    Where the twin is not within its bounds, other arrivals are tried, then the nearest with its pauses or its rate
    corrected by what it did; the nearest of all is returned. Raises RefusedError where nothing can be compared,
    PermissionDeniedError without root, StoppedError after a signal.
    """
    host = live_host()
    with caught_signals() as stop:
        place = read_target(host, str(target.resolve()))
        tried: list[ObservedTwin] = []
        for one in (found, *_other_arrivals(found)):
            comparison = check_twin(host, one, place, seconds, stop)
            tried.append(ObservedTwin(one, comparison))
            if comparison.is_faithful:
                break
        for _ in range(_CORRECTIONS):
            nearest = min(tried, key=_distance_of)
            corrected = None if _distance_of(nearest) <= 1 else _correct(nearest)
            if corrected is None:
                break
            tried.append(ObservedTwin(corrected, check_twin(host, corrected, place, seconds, stop)))
        return min(tried, key=_distance_of)


def refuse_unfaithful(found: ObservedTwin) -> None:
    """Raise RefusedError, with the figure that is the farthest from its bound, for a twin that is beyond it."""
    comparison = found.comparison
    if comparison is None or comparison.is_faithful:
        return
    worst = comparison.worst
    raise RefusedError(
        f"no faithful twin: {worst.name} differs by {worst.difference:.1%}, bound {worst.bound or 0.0:.0%}",
        hint="what fio cannot repeat: an application that waits for more than its requests, other load on the device",
    )


def _distance_of(one: ObservedTwin) -> float:
    worst = None if one.comparison is None else one.comparison.worst
    return 0.0 if worst is None else worst.difference / (worst.bound or 1.0)


def _other_arrivals(found: WorkloadFile) -> list[WorkloadFile]:
    figures = None if found.observed is None else found.observed.figures
    if figures is None or len(found.sections) != 1:
        return []
    others = list_alternatives(found.sections[0], figures)
    return [msgspec.structs.replace(found, sections=(one,)) for one in others]


def _correct(tried: ObservedTwin) -> WorkloadFile | None:
    """The twin as its run shows that it has to be asked for; None where that says nothing more."""
    ran = tried.comparison
    if ran is None or len(tried.workload.sections) != 1:
        return None
    section = correct_arrival(tried.workload.sections[0], ran.observed, ran.twin)
    return None if section is None else msgspec.structs.replace(tried.workload, sections=(section,))
