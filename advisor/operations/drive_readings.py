"""Readings of drives whose ceiling is not known: two bounded runs of fio each, which open the device for reading only.

The readings are kept beside proofs and series in the state directory; what else ran meanwhile takes from them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from advisor.errors import AdvisorError, RefusedError
from advisor.host import Host
from advisor.limits.figures import Figures
from advisor.limits.records import Limits
from advisor.proof.command_runner import explain_not_stored, store_result
from advisor.proof.fio import GRACE_SECONDS, FioJob, FioProcess, FioRunner, fio_command, read_figures, read_version
from advisor.proof.pattern import JobSection, Pattern
from advisor.proof.process import Stop, caught_signals

SECONDS = 3.0
"""Of each of the two runs."""
_RUNS = (
    Pattern("stream", "Large reads in sequence", (JobSection("stream", "read", 1 << 20, depth=16),), "bandwidth", ""),
    Pattern("random", "Small reads at random", (JobSection("random", "randread", 4096, 32, 4),), "iops", ""),
)


class DriveReading(msgspec.Struct, frozen=True):
    """What one drive was read with, in MB/s and operations a second."""

    device: str
    read_mb_per_s: float
    read_iops: float


class DriveReadings(msgspec.Struct, frozen=True):
    """The readings of a host, when they began, and a drive that could not be read with the reason."""

    schema: str
    started: str
    fio: str
    drives: tuple[DriveReading, ...]
    failed: Mapping[str, str] = {}

    def figures(self) -> dict[str, Figures]:
        """By disk; of writes nothing is known."""
        return {one.device: Figures(read_mb_per_s=one.read_mb_per_s, read_iops=one.read_iops) for one in self.drives}


def unknown_drives(limits: Limits) -> tuple[str, ...]:
    """The drives and volumes at the bottom of paths of which no ceiling is known, each once."""
    rows = (one for path in limits.paths for one in path.ceilings if one.stage in ("medium", "volume"))
    return tuple(dict.fromkeys(name for one in rows if one.known == "unknown" for name in one.where))


def predicted_seconds(names: Sequence[str]) -> float:
    """How long the readings of these drives take, one after the other."""
    return len(names) * len(_RUNS) * SECONDS


def read_drives(host: Host, names: Iterable[str], *, runner: FioRunner | None = None) -> tuple[DriveReadings, str]:
    """Read each drive alone, and keep the result: the readings, and where they are kept or why not.

    Raises RefusedError for a captured host and without root, FioMissingError, StoppedError after a signal.
    """
    if not host.is_live or not host.is_root:
        raise RefusedError("--measure reads the drives of this host, as root", hint="sudo advisor limits --measure")
    runner = runner or FioProcess()
    started = datetime.now(UTC)
    drives: list[DriveReading] = []
    failed: dict[str, str] = {}
    with caught_signals() as stop:
        version = read_version(runner, stop)
        for name in names:
            size = host.read_int(f"/sys/class/block/{name}/size")
            if not isinstance(size, int) or size <= 0:
                failed[name] = "its size is not known"
                continue
            try:
                drives.append(_read_drive(runner, name, size * 512, stop))
            except AdvisorError as error:
                stop.check()
                failed[name] = error.message
    schema = "advisor.drive-readings/1"
    found = DriveReadings(schema, started.isoformat(timespec="seconds"), version, tuple(drives), failed)
    try:
        return found, f"kept in {store_result(gzip.compress(msgspec.json.encode(found)), 'drive-readings', started)}"
    except (OSError, RefusedError) as error:
        return found, f"not kept: {explain_not_stored(error)}"


def _read_drive(runner: FioRunner, name: str, size_bytes: int, stop: Stop) -> DriveReading:
    """Both runs of one drive; fio starts in /dev and refuses to write (``--readonly``)."""
    figures = []
    for pattern in _RUNS:
        job = FioJob(pattern, SECONDS, size_bytes, 0, file_name=name.replace("!", "/"), is_read_only=True)
        done = runner.run(fio_command(job), timeout=SECONDS + GRACE_SECONDS, cwd="/dev", stop=stop)
        figures.append(read_figures(job, done))
    stream, random = figures
    return DriveReading(name, stream.bandwidth_bytes_per_s / 1e6, random.iops)
