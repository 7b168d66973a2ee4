"""What a host printed when it was captured becomes a capture in the store, without passwords and keys.

Ansible's worker hands the stream over before anything of it is on disk here.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import IO

import msgspec

from advisor.errors import InvalidInputError
from advisor.fleet.engine import estimate_skew
from advisor.fleet.store import CaptureHeader, FleetStore
from advisor.snapshot.remote.capture import decode_capture


class CaptureTimes(msgspec.Struct, frozen=True):
    """When the host was asked and answered, by the controller's clock, and its own time at these two moments."""

    started: float | None = None
    ended: float | None = None
    host_started: int | None = None
    host_ended: int | None = None


def parse_facts(text: str) -> CaptureTimes:
    """The JSON object that Ansible's worker adds; other keys are not looked at. Raises InvalidInputError."""
    try:
        return msgspec.json.decode(text, type=CaptureTimes)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(f"facts of a capture: {error}") from error


def receive_capture(stream: IO[bytes], host: str, facts: CaptureTimes, store: FleetStore) -> Path:
    """Keep the capture of ``host``. Raises InvalidInputError for a stream that is none, RefusedError, OSError."""
    captured = decode_capture(stream, host)
    ahead = estimate_skew(facts.started, facts.ended, facts.host_started, facts.host_ended)
    header = CaptureHeader(
        host,
        captured.hostname,
        captured.machine_id,
        captured.boot_id,
        captured.uid,
        facts.started or time.time(),
        captured.time,
        ahead,
    )
    return store.keep_capture(header, captured.archive)
