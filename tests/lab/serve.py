"""One guest kept up for many commands: a server that runs it, and `ServedGuest`, which reaches it by a unix
socket.

One connection carries one request and its reply, each a line of JSON; requests are served one after another.
A request with `op` goes to the guest's agent, one with `method` to the guest object itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from .guest import (
    ANSWER_SECONDS,
    ATTEMPTS,
    SETTLE_SECONDS,
    SHUTDOWN_SECONDS,
    AgentError,
    GuestGoneError,
    LabError,
    Machine,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .guest import Guest

POWER_METHODS = ("boot", "power_cut", "reboot", "stop")
_POWER_SECONDS = ATTEMPTS * ANSWER_SECONDS + SETTLE_SECONDS + SHUTDOWN_SECONDS + 30


def serve(guest: Guest, path: Path) -> None:
    """Serve until a `stop` request or SIGTERM; the guest is on when the socket appears."""
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(0)))
    guest.boot()
    with socket.socket(socket.AF_UNIX) as listener:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen(16)
        path.chmod(0o600)
        try:
            while _serve_one(guest, listener):
                pass
        finally:
            path.unlink(missing_ok=True)
            guest.stop()


def _serve_one(guest: Guest, listener: socket.socket) -> bool:
    connection, _ = listener.accept()
    with connection:
        request = json.loads(_read_line(connection, time.monotonic() + 60) or "{}")
        method = request.pop("method", None)
        try:
            if method in POWER_METHODS:
                getattr(guest, method)()
                reply: dict[str, Any] = {"answer_seconds": guest.answer_seconds, "boot_seconds": guest.boot_seconds}
            elif method == "monitor":
                reply = {"return": guest.monitor(request["command"], request["arguments"])}
            else:
                reply = guest.call(request, timeout=float(request.pop("patience", 60)))
        except AgentError as error:
            reply = {"error": str(error), "errno": error.errno, "kind": "agent"}
        except LabError as error:
            reply = {"error": str(error), "kind": "gone" if isinstance(error, GuestGoneError) else "lab"}
        with contextlib.suppress(OSError):  # The client gave up; the guest is still wanted.
            connection.sendall(json.dumps(reply).encode() + b"\n")
    return bool(method != "stop")


def _read_line(connection: socket.socket, deadline: float) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([connection], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise GuestGoneError("no answer from the lab's server in time")
        chunk = connection.recv(1 << 16)
        if not chunk:
            break
        data += chunk
    return bytes(data)


class ServedGuest(Machine):
    """A guest that `python -m tests.lab serve` keeps up. Requests wait for those of others."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def call(self, request: Mapping[str, Any], *, timeout: float) -> dict[str, Any]:
        """See `Machine.call`."""
        return self._request({**request, "patience": timeout}, timeout)

    @property
    def is_on(self) -> bool:
        """See `Machine.is_on`; false also if nothing is served."""
        try:
            self.call({"op": "ping"}, timeout=30)
        except GuestGoneError:
            return False
        return True

    def monitor(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """See `Machine.monitor`."""
        request = {"method": "monitor", "command": command, "arguments": dict(arguments)}
        return self._request(request, 60)["return"]

    def boot(self) -> None:
        """See `Machine.boot`."""
        self._request({"method": "boot"}, _POWER_SECONDS)

    def power_cut(self) -> None:
        """See `Machine.power_cut`."""
        self._request({"method": "power_cut"}, _POWER_SECONDS)

    def reboot(self) -> None:
        """See `Machine.reboot`."""
        self._request({"method": "reboot"}, _POWER_SECONDS)

    def stop(self) -> None:
        """Stop the guest and its server."""
        self._request({"method": "stop"}, _POWER_SECONDS)

    def _request(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self._path))
            except OSError as error:
                raise GuestGoneError(f"no guest is served at {self._path}: {os.strerror(error.errno or 0)}") from None
            connection.sendall(json.dumps(request).encode() + b"\n")
            # Others' requests come first, so the wait is longer than this one's own.
            line = _read_line(connection, time.monotonic() + timeout + _POWER_SECONDS)
        if not line:
            raise GuestGoneError("the lab's server closed the connection")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            if reply["kind"] == "agent":
                raise AgentError(reply["error"], reply.get("errno"))
            raise (GuestGoneError if reply["kind"] == "gone" else LabError)(reply["error"])
        return reply
