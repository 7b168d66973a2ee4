"""The Model Context Protocol (https://modelcontextprotocol.io/specification) around the tools, by its Python SDK.

Loaded by ``advisor mcp`` alone. The protocol has a thread of its own. Calls that only read run side by side, each in a
process of its own (`advisor.cli.agent_server`). Changes are made one after the other in the main thread, where no
event loop runs: a transaction handles signals and talks to the kernel there, as on the command line.
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
from concurrent.futures import Future
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from advisor.cli.agent_tools import TOOLS, ServedHost, call_tool, lost_answer
from advisor.report.format import NOTICE, escape_text
from advisor.version import __version__

# Calls of tools that only read, each in a process of its own: they run side by side, and each can be ended.

MAX_CALLS = 4
"""Calls that run at a time; others wait for one of them to end."""

_USED = (
    *("advisor.operations.approvals", "advisor.operations.diagnosis", "advisor.operations.findings"),
    *("advisor.operations.limits", "advisor.report.documents", "advisor.report.explain", "advisor.report.limits"),
    *("advisor.report.why", "advisor.rules", "advisor.transaction.status"),
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


_INSTRUCTIONS = (
    "advisor inspects, plans and, with the approval of a person for each plan, tunes a Linux storage or cluster host. "
    f"{NOTICE} To apply or roll back, show the plan to the person and pass on advisor.next_step: a person approves "
    "on a terminal of the host, with advisor approve. Never run that command yourself."
)


def serve_stdio(served: ServedHost) -> None:
    """Answer on standard input and output until the input ends. Raises what ended the protocol, if not that.

    At the end of the input, calls that read are ended, and a change that is under way is made to its end.
    """
    calls: SimpleQueue[_ServerCall | None] = SimpleQueue()
    readers = ReaderHost(served)
    limiter: list[anyio.CapacityLimiter] = []

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=one.description,
                    input_schema={
                        "type": "object",
                        "properties": dict(one.properties),
                        "required": list(one.required),
                        "additionalProperties": False,
                    },
                    annotations=types.ToolAnnotations(
                        read_only_hint=one.is_read_only, destructive_hint=not one.is_read_only, open_world_hint=False
                    ),
                )
                for name, one in TOOLS.items()
            ]
        )

    async def answer_call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = context.session.client_params
        asked_by = escape_text(f"{client.client_info.name} {client.client_info.version}", 100) if client else ""
        asked = (params.name, params.arguments or {}, asked_by)
        tool = TOOLS.get(params.name)
        if tool is None or tool.is_read_only:
            async with limiter[0]:
                answer, is_error = await readers.ask(*asked) or lost_answer(params.name)
        else:
            call = _ServerCall(Future(), asked)
            calls.put(call)
            answer, is_error = await asyncio.wrap_future(call.answered)
        text = types.TextContent(type="text", text=json.dumps(answer))
        return types.CallToolResult(content=[text], structured_content=answer, is_error=is_error)

    server: Server[Any] = Server(
        "advisor", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=answer_call
    )

    async def serve() -> None:
        limiter.append(anyio.CapacityLimiter(MAX_CALLS))
        async with stdio_server() as (reader, writer), anyio.create_task_group() as tasks:
            passed, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def pass_requests() -> None:
                async with passed:
                    async for item in reader:
                        if not isinstance(item, Exception):
                            await passed.send(item)
                        elif (refusal := _refuse_message(item)) is not None:
                            await writer.send(SessionMessage(refusal))

            tasks.start_soon(pass_requests)
            await server.run(requests, writer, server.create_initialization_options())

    faults: list[BaseException] = []

    def run_protocol() -> None:
        try:
            anyio.run(serve)
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            faults.append(error)
        finally:
            calls.put(None)

    Thread(target=run_protocol, daemon=True).start()
    while (call := calls.get()) is not None:
        # One that the client has cancelled meanwhile is not begun.
        if call.answered.set_running_or_notify_cancel():
            call.answered.set_result(call_tool(served, *call.asked))
    readers.close()
    for fault in faults:
        raise fault


def _refuse_message(error: Exception) -> types.JSONRPCError | None:
    """The answer to a line that is no message of JSON-RPC 2.0 (https://www.jsonrpc.org/specification#error_object);
    none to what looks like an answer itself. The SDK reports such a line and answers nothing."""
    faults = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if not faults or any(one["type"] == "json_invalid" for one in faults):
        return _refusal(types.PARSE_ERROR, "Parse error: expected one JSON document a line", None)
    whole = next((one["input"] for one in faults if isinstance(one["input"], dict)), None)
    if whole is not None and "method" not in whole and whole.keys() & {"result", "error"}:
        return None
    identity = None if whole is None else whole.get("id")
    known = identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None
    return _refusal(
        types.INVALID_REQUEST, "Invalid Request: not a message of JSON-RPC 2.0; batches are not taken", known
    )


def _refusal(code: int, message: str, identity: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=identity, error=types.ErrorData(code=code, message=message))


class _ServerCall(NamedTuple):
    """A call of a tool: its name, its arguments, and what the caller calls itself."""

    answered: Future[tuple[dict[str, object], bool]]
    asked: tuple[str, dict[str, Any], str]
