"""What binds a host over an interval: observed now, or as a snapshot recorded it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from advisor.diagnosis.diagnose import Diagnosis, ResourceUse, diagnose, measure_uses
from advisor.diagnosis.observation import DiagnosisContext, read_context
from advisor.errors import UsageError
from advisor.facts.unknown import Unknown
from advisor.host import Host, live_host
from advisor.host.provenance import Provenance, read_provenance
from advisor.observe.rates import observe_host, take_sample
from advisor.observe.sample import CounterSpan, encode_span
from advisor.operations.files import write_output
from advisor.planner import read_for_scan_and_plans
from advisor.proof.observing import find_disk, observe_workload, require_unit
from advisor.proof.pattern import WorkloadFile, encode_workload
from advisor.proof.process import caught_signals
from advisor.snapshot import archive
from advisor.snapshot.archive import SPAN
from advisor.snapshot.open import open_observed
from advisor.snapshot.remote import capture

# Hosts in archives: what a scan reads, to be read again elsewhere with the same result.


def read_capture(host: Host, *, seconds: float | None = None) -> bytes:
    """Return what a scan and plans read of ``host`` as an archive, which `open_host` reads.

    With ``seconds`` it also holds the counters of that time, which `diagnosis.diagnose_snapshot` judges. It names
    devices, addresses and serial numbers, and holds no passwords and keys. Raises UsageError for ``seconds`` of a
    captured host.
    """
    if seconds is not None and not host.is_live:
        raise UsageError("--seconds and --root exclude each other: counters are recorded on the running host")
    return _read_archive(host, None if seconds is None else observe_host(host, seconds))


def save_capture(host: Host, path: Path, *, seconds: float | None = None) -> int:
    """As `read_capture`, into a file. Return its size in bytes. Raises UsageError where it cannot be written, too."""
    return _save_archive(read_capture(host, seconds=seconds), path)


def save_span(host: Host, path: Path, span: CounterSpan | None) -> int:
    """As `save_capture`, with counters that have been read already, or none."""
    return _save_archive(_read_archive(host, span), path)


def _save_archive(data: bytes, path: Path) -> int:
    archive.save_snapshot(data, path)
    return len(data)


def _read_archive(host: Host, span: CounterSpan | None) -> bytes:
    def read_all(recording: Host) -> None:
        read_for_scan_and_plans(recording)
        if span is not None:
            read_context(recording)

    return archive.capture_host(host, read_all, {} if span is None else {SPAN: encode_span(span, time.time())})


def capture_script(seconds: float | None = None) -> str:
    """Return the POSIX ``sh`` script that prints what a scan reads of the host that runs it; `open_host` reads that as
    well. It only reads, and is the same for every host. With ``seconds`` it takes the counters of that time, too."""
    return capture.capture_script(seconds)


# A load observed on this host as a workload file: its fio twin, with its error.

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


class ObservedSpan(msgspec.Struct, frozen=True):
    """A host over a span: its counters, what it is, where this comes from, and what binds it."""

    host: Host
    span: CounterSpan
    context: DiagnosisContext
    diagnosis: Diagnosis
    provenance: Provenance

    @property
    def uses(self) -> tuple[ResourceUse, ...]:
        """How much of each resource was used over the span."""
        return measure_uses(self.span, self.context)


def diagnose_host(host: Host | None = None, *, seconds: float = 10.0) -> Diagnosis:
    """Return what binds ``host``, by default this one, over the next ``seconds``. Changes nothing. Raises as
    `observe_span`."""
    return observe_span(host, seconds=seconds).diagnosis


def observe_span(host: Host | None = None, *, seconds: float = 10.0) -> ObservedSpan:
    """Return ``host``, by default this one, over the next ``seconds``. Changes nothing.

    Raises UsageError for a host that is not the running one: its counters do not move.
    """
    asked = host or live_host()
    if not asked.is_live:
        raise UsageError(
            "a captured host has no counters that move", hint="advisor snapshot --seconds 30 -o FILE records a span"
        )
    context = read_context(asked)
    span = observe_host(asked, seconds)
    found = diagnose(span, context, time.time())
    if not asked.is_root:
        hidden = Unknown(
            "what needs root",
            "storage and open files of other users' processes, the kernel's log, multipath paths, health of NVMe "
            "drives, limits of EBS volumes: run advisor why as root for them",
        )
        found = msgspec.structs.replace(found, unknown=(*found.unknown, hidden))
    return ObservedSpan(asked, span, context, found, read_provenance(asked))


def diagnose_snapshot(path: Path) -> Diagnosis:
    """Return what bound the host of a snapshot over the span that it holds. Raises as `read_observed_span`."""
    return read_observed_span(path).diagnosis


def read_observed_span(path: Path) -> ObservedSpan:
    """Return the host of a snapshot over the span that it holds.

    Raises InvalidInputError for what is no snapshot, and for one without a span.
    """
    host, span, taken_at = open_observed(path)
    context = read_context(host)
    found = diagnose(span, context, taken_at)
    return ObservedSpan(host, span, context, found, read_provenance(host, str(path)))


_COSTLY_SECONDS = 5.5  # with a look each two seconds: every third
_COSTLY_FROM = 10.0  # shorter spans would hold one such look


class WatchedHost:
    """A host that is observed again and again: what binds over the last seconds, and what is used since the last look.

    What costs the most to read and changes seldom (`advisor.observe.rates.COSTLY`) is read at every third look,
    unless the span is short.
    ``diagnosis`` is None until two samples are there.
    """

    def __init__(self, host: Host, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._host, self._seconds, self._clock = host, seconds, clock
        self._context = read_context(host)
        self._samples = [take_sample(host, clock=clock)]
        self._costly_at = self._samples[0].at_seconds
        self.diagnosis: Diagnosis | None = None

    def advance(self) -> tuple[ResourceUse, ...]:
        """Take one more sample, and return what was used since the one before."""
        # Twice in each span at least; after the first look a rate is wanted at once.
        is_each = len(self._samples) == 1 or self._seconds < _COSTLY_FROM
        is_due = is_each or self._clock() - self._costly_at >= _COSTLY_SECONDS
        self._samples.append(take_sample(self._host, costly=is_due, clock=self._clock))
        if is_due:
            self._costly_at = self._samples[-1].at_seconds
        first = self._samples[-1].at_seconds - self._seconds
        while len(self._samples) > 2 and self._samples[1].at_seconds <= first:
            del self._samples[0]
        self.diagnosis = diagnose(CounterSpan(self._samples), self._context, time.time())
        return measure_uses(CounterSpan(self._samples[-2:]), self._context)

    @property
    def uses(self) -> tuple[ResourceUse, ...]:
        """How much of each resource was used over the span that ``diagnosis`` judges."""
        return measure_uses(CounterSpan(self._samples), self._context) if len(self._samples) > 1 else ()

    def save_snapshot(self, path: Path) -> None:
        """Write a snapshot with the last samples. Raises UsageError where the file cannot be written."""
        save_span(self._host, path, CounterSpan(self._samples))


def watch_host(seconds: float, host: Host | None = None) -> WatchedHost:
    """Return this host (or ``host``) to be observed; what binds is judged over the last ``seconds``."""
    return WatchedHost(host or live_host(), seconds)


def check_seconds(seconds: float) -> None:
    """Raises UsageError for a time that is no span."""
    if not 0.5 <= seconds <= LONGEST_SECONDS:
        raise UsageError(f"--seconds {seconds}: expected 0.5 to {LONGEST_SECONDS:.0f}", hint="--seconds 10")
