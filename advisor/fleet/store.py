"""What the controller keeps: the last capture of each host, and the runs. Only its owner can go in there.

::

    captures/HOST.tar.gz   an advisor snapshot, without passwords and keys
    captures/HOST.json     whose it is, when it was taken, how far that host's clock is off
    runs/RUNID/            what a run means to do, what it did, and the answers

Host names are quoted as in a URL. Each file is written whole or not at all. A capture is handed over by Ansible's
worker before anything of it is on disk here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import unquote

import msgspec

from advisor.errors import InvalidInputError
from advisor.fleet.engine import CaptureTimes
from advisor.fleet.inventory import file_name
from advisor.host.putfile import put_file
from advisor.host.trusted_files import (
    FILE_MODE,
    check_own_directory,
    make_own_directory,
    named_directory,
    read_own_file,
)

ARCHIVE = ".tar.gz"
HEADER = ".json"
MAX_HEADER_BYTES = 1 << 20

T = TypeVar("T")


class CaptureHeader(msgspec.Struct, frozen=True):
    """What is known of a kept capture in addition to its content.

    ``taken`` is in seconds since 1970 by the controller's clock, ``host_time`` by the host's; ``skew_seconds`` how far
    the host's clock is ahead (negative: behind) at the least, None where it is unknown.
    """

    host: str
    hostname: str
    machine_id: str
    boot_id: str
    uid: int | None
    taken: float
    host_time: int | None
    skew_seconds: float | None = None


def default_directory() -> Path:
    """``$ADVISOR_STATE_DIR/fleet``, else ``/var/lib/advisor/fleet`` for root, else below ``$XDG_STATE_HOME``."""
    state = named_directory()
    if state:
        return Path(state) / "fleet"
    if os.geteuid() == 0:
        return Path("/var/lib/advisor/fleet")
    # A relative one is none (XDG Base Directory Specification).
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local/state"
    return base / "advisor/fleet"


class FleetStore:
    """The state of the controller below one directory; nothing is made before something is written."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = (directory or default_directory()).absolute()

    def captures(self) -> Path:
        """The directory of the captures, made if need be. Raises RefusedError where others can write to it."""
        return self._own_directory("captures")

    def run(self, run_id: str) -> Path:
        """The directory of one run, made if need be."""
        self._own_directory("runs")
        return self._own_directory("runs", file_name(run_id))

    def runs(self) -> tuple[str, ...]:
        """The ids of the runs that are kept, in the order of their names."""
        return tuple(sorted(unquote(path.name) for path in _list_directory(self.directory / "runs") if path.is_dir()))

    def archive(self, host: str) -> Path:
        """Where the last capture of a host lies, if there is one."""
        return self.directory / "captures" / (file_name(host) + ARCHIVE)

    def keep_capture(self, header: CaptureHeader, archive: bytes) -> Path:
        """Replace the capture of a host. The header comes last: one without the other is as none."""
        place = self.captures()
        path = place / (file_name(header.host) + ARCHIVE)
        header_path = place / (file_name(header.host) + HEADER)
        put_own(header_path, None)
        put_own(path, archive)
        put_own(header_path, msgspec.json.encode(header) + b"\n")
        return path

    def header(self, host: str) -> CaptureHeader | None:
        """The header of the last capture of a host; None where there is none. Raises InvalidInputError."""
        return read_own(self.directory / "captures" / (file_name(host) + HEADER), CaptureHeader)

    def headers(self) -> Iterator[CaptureHeader]:
        """Those of all captures that are kept, by file name."""
        for path in sorted(_list_directory(self.directory / "captures")):
            if path.name.endswith(HEADER) and not path.name.startswith("."):
                found = read_own(path, CaptureHeader)
                if found is not None:
                    yield found

    def _own_directory(self, *names: str) -> Path:
        make_own_directory(str(self.directory))
        path = self.directory.joinpath(*names)
        make_own_directory(str(path))
        return path


def put_own(path: Path, content: bytes | None) -> None:
    """Replace (None: remove) a file of the store, whole or not at all, readable by its owner alone. Raises OSError."""
    put_file(str(path), content, mode=FILE_MODE, uid=os.geteuid(), gid=os.getegid())


def read_own(path: Path, kind: type[T], *, limit: int = MAX_HEADER_BYTES) -> T | None:
    """A JSON record of the store; None where there is no such file.

    Raises RefusedError where others could have written it, InvalidInputError where it is none.
    """
    try:
        content = read_own_file(str(path), limit=limit)
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{path}: {error}", hint="it is damaged: remove it and run the command again"
        ) from error


def _list_directory(directory: Path) -> list[Path]:
    try:
        check_own_directory(str(directory))
        return list(directory.iterdir())
    except FileNotFoundError:
        return []


def parse_facts(text: str) -> CaptureTimes:
    """The JSON object that Ansible's worker adds; other keys are not looked at. Raises InvalidInputError."""
    try:
        return msgspec.json.decode(text, type=CaptureTimes)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(f"facts of a capture: {error}") from error


def receive_capture(stream: IO[bytes], host: str, facts: CaptureTimes, store: FleetStore) -> Path:
    """Keep the capture of ``host``. Raises InvalidInputError for a stream that is none, RefusedError, OSError."""
    from advisor.snapshot.remote.capture import decode_capture

    captured = decode_capture(stream, host)
    header = CaptureHeader(
        host,
        captured.hostname,
        captured.machine_id,
        captured.boot_id,
        captured.uid,
        facts.started or time.time(),
        captured.time,
        facts.skew_seconds,
    )
    return store.keep_capture(header, captured.archive)
