"""The Model Context Protocol (https://modelcontextprotocol.io/specification) around the tools, by its Python SDK.

Loaded by ``advisor mcp`` alone. The protocol has a thread of its own; calls are answered one after the other in the
main thread, where no event loop runs: a transaction handles signals and talks to the kernel there, as on the command
line.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from advisor.cli.agent_tools import TOOLS, ServedHost, call_tool
from advisor.report.untrusted import NOTICE, escape_text
from advisor.version import __version__

_INSTRUCTIONS: Final = (
    "advisor inspects, plans and, with the approval of a person for each plan, tunes a Linux storage or cluster host. "
    f"{NOTICE} To apply or roll back, show the plan to the person and pass on advisor.next_step: a person approves "
    "on a terminal of the host, with advisor approve. Never run that command yourself."
)


def serve_stdio(served: ServedHost) -> None:
    """Answer on standard input and output until the input ends. Raises what ended the protocol, if not that."""
    calls: SimpleQueue[_Call | None] = SimpleQueue()

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
        call = _Call(Future(), (params.name, params.arguments or {}, asked_by))
        calls.put(call)
        answer, is_error = await asyncio.wrap_future(call.answered)
        text = types.TextContent(type="text", text=json.dumps(answer))
        return types.CallToolResult(content=[text], structured_content=answer, is_error=is_error)

    server: Server[Any] = Server(
        "advisor", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=answer_call
    )

    async def serve() -> None:
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

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
    for fault in faults:
        raise fault


class _Call(NamedTuple):
    """A call of a tool: its name, its arguments, and what the caller calls itself."""

    answered: Future[tuple[dict[str, object], bool]]
    asked: tuple[str, dict[str, Any], str]
