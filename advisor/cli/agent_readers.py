"""Calls of tools that only read, each in a process of its own: they run side by side, and each can be ended.

The processes are forked from one that has no other thread, which is forked before the protocol has one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from advisor.cli.agent_tools import ServedHost, call_tool

MAX_CALLS = 4
"""Calls that run at a time; others wait for one of them to end."""

_USED = (
    *("advisor.operations.approvals", "advisor.operations.diagnosis", "advisor.operations.findings"),
    *("advisor.operations.limits", "advisor.report.documents", "advisor.report.explain", "advisor.report.limits"),
    *("advisor.report.why", "advisor.rules", "advisor.transaction.verify"),
)
"""What nearly every call needs: it is loaded once, and not in each process."""


class ReaderHost:
    """The process that calls are forked from; it ends with this one, and with it all calls."""

    def __init__(self, served: ServedHost) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._pid = os.fork()
        if self._pid == 0:
            with _leaving():
                ours.close()
                _detach_streams()
                _serve_calls(its, served)
        its.close()

    async def ask(
        self, name: str, arguments: Mapping[str, Any], asked_by: str
    ) -> tuple[dict[str, object], bool] | None:
        """The answer of a tool, and whether it is an error; None where its process has died. Cancelling ends it."""
        ours, its = socket.socketpair()
        with its:
            try:
                socket.send_fds(self._control, [b"+"], [its.fileno()])
            except OSError:
                ours.close()
                return None
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        try:
            writer.write(json.dumps([name, arguments, asked_by]).encode())
            writer.write_eof()
            found = await reader.read(-1)
        except ConnectionError:
            return None
        finally:
            writer.close()
        answer, is_error = json.loads(found) if found else (None, True)
        return None if answer is None else (answer, is_error)

    def close(self) -> None:
        """End all calls, and the process that they are forked from."""
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


class _Call(NamedTuple):
    """A call that is under way: its process, its end of the socket, and a pipe that is closed when the process ends."""

    pid: int
    answer: socket.socket
    is_alive: int

    def end(self) -> None:
        # One that has just been forked may have no group of its own yet.
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.answer.close()
        os.close(self.is_alive)


def _serve_calls(control: socket.socket, served: ServedHost) -> None:
    """Fork a process for each call until the other end is closed; end the process of a call that nobody waits for."""
    for module in _USED:
        import_module(module)
    calls: dict[int, _Call] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    try:
        while True:
            for fd, _ in poll.poll():
                if fd == control.fileno():
                    word, fds, _, _ = socket.recv_fds(control, 1, 1)
                    if not word:
                        return
                    call = _fork_call(socket.socket(fileno=fds[0]), served, (control, *calls.values()))
                    # Without events: what is reported is that the other end is closed.
                    for one in (call.answer.fileno(), call.is_alive):
                        calls[one] = call
                        poll.register(one, 0)
                elif fd in calls:
                    call = calls[fd]
                    for one in (call.answer.fileno(), call.is_alive):
                        del calls[one]
                        poll.unregister(one)
                    call.end()
    finally:
        for call in {*calls.values()}:
            call.end()


def _fork_call(answer: socket.socket, served: ServedHost, others: tuple[socket.socket | _Call, ...]) -> _Call:
    is_alive, ended = os.pipe()
    pid = os.fork()
    if pid == 0:
        with _leaving():
            os.setpgid(0, 0)
            os.close(is_alive)
            for one in others:
                (one.answer if isinstance(one, _Call) else one).close()
            with answer.makefile("rb") as file:
                name, arguments, asked_by = json.load(file)
            answer.sendall(json.dumps(call_tool(served, name, arguments, asked_by)).encode())
    os.close(ended)
    return _Call(pid, answer, is_alive)


def _detach_streams() -> None:
    """Standard input and output are the protocol's."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)


@contextlib.contextmanager
def _leaving() -> Iterator[None]:
    """Ends a forked process, whatever happens in it: nothing of the program that it comes from is run."""
    try:
        yield
    finally:
        os._exit(0)
