"""The Model Context Protocol (https://modelcontextprotocol.io/specification) around the tools, by its Python SDK.

Loaded by ``advisor mcp`` alone. The protocol has a thread of its own. Calls that only read run side by side, each in a
process of its own (`advisor.cli.agent_readers`). Changes are made one after the other in the main thread, where no
event loop runs: a transaction handles signals and talks to the kernel there, as on the command line.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from advisor.cli.agent_readers import MAX_CALLS, ReaderHost
from advisor.cli.agent_tools import TOOLS, ServedHost, call_tool, lost_answer
from advisor.report.untrusted import NOTICE, escape_text
from advisor.version import __version__

_INSTRUCTIONS = (
    "advisor inspects, plans and, with the approval of a person for each plan, tunes a Linux storage or cluster host. "
    f"{NOTICE} To apply or roll back, show the plan to the person and pass on advisor.next_step: a person approves "
    "on a terminal of the host, with advisor approve. Never run that command yourself."
)


def serve_stdio(served: ServedHost) -> None:
    """Answer on standard input and output until the input ends. Raises what ended the protocol, if not that.

    At the end of the input, calls that read are ended, and a change that is under way is made to its end.
    """
    calls: SimpleQueue[_Call | None] = SimpleQueue()
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
            call = _Call(Future(), asked)
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


class _Call(NamedTuple):
    """A call of a tool: its name, its arguments, and what the caller calls itself."""

    answered: Future[tuple[dict[str, object], bool]]
    asked: tuple[str, dict[str, Any], str]
