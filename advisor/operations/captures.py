"""Hosts in archives: what a scan reads, to be read again elsewhere with the same result."""

from __future__ import annotations

from pathlib import Path

from advisor.host import Host
from advisor.planner import read_for_scan_and_plans
from advisor.snapshot import archive
from advisor.snapshot.remote import capture


def save_capture(host: Host, path: Path) -> int:
    """Write what a scan and plans read of ``host`` into an archive, which `open_host` reads; ``-`` is standard output.

    Return its size in bytes. It names devices, addresses and serial numbers, and holds no passwords and keys. Raises
    UsageError where the file cannot be written.
    """
    data = archive.capture_host(host, read_for_scan_and_plans)
    archive.save_snapshot(data, path)
    return len(data)


def capture_script() -> str:
    """Return the POSIX ``sh`` script that prints what a scan reads of the host that runs it; `open_host` reads that as
    well. It only reads, and is the same for every host."""
    return capture.capture_script()
