"""A load observed on this host as a workload file: its fio twin, with its error."""

from __future__ import annotations

from pathlib import Path

from advisor.errors import UsageError
from advisor.host import Host, live_host
from advisor.operations.files import write_output
from advisor.proof.interrupt import caught_signals
from advisor.proof.observing import find_disk, observe_workload, require_unit
from advisor.proof.workload_file import WorkloadFile, encode_workload

LONGEST_SECONDS = 3600.0


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
        raise UsageError(f"--seconds {seconds}: expected 1 to {LONGEST_SECONDS:.0f}", hint="--seconds 10")
    asked = host or live_host()
    if not asked.is_live:
        raise UsageError("a captured host has no requests to observe")
    if device is not None:
        find_disk(asked, device)
    if unit is not None:
        require_unit(asked, unit)


def save_workload(found: WorkloadFile, path: Path) -> None:
    """Write a workload file, whole or not at all. Raises UsageError where it cannot be written."""
    write_output(path, encode_workload(found))
