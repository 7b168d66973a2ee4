"""Hosts in archives: what a scan reads, to be read again elsewhere with the same result."""

from __future__ import annotations

import time
from pathlib import Path

from advisor.diagnosis.observation import read_context
from advisor.errors import UsageError
from advisor.host import Host
from advisor.observe.recording import encode_span
from advisor.observe.series import observe_host
from advisor.observe.span import CounterSpan
from advisor.planner import read_for_scan_and_plans
from advisor.snapshot import archive
from advisor.snapshot.remote import capture
from advisor.snapshot.spans import SPAN


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
