"""``advisor mcp`` as lines of JSON: what is no message, calls side by side, and the end of the input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.agent_server import MAX_CALLS
from tests.schemas import judge
from tests.waiting import until

ROOT = Path(__file__).parents[2]


class Wire:
    """A server, and what is written to it and read from it, a line each."""

    def __init__(self, home: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "advisor", "mcp", *words],
            env={**os.environ, "ADVISOR_STATE_DIR": str(home / "state"), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        client = {"name": "wire", "version": "1"}
        self.send("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        assert self.read()["id"] == 0
        self.send("notifications/initialized")

    def send(self, method: str, number: int | None = None, **params: object) -> None:
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message if number is None else message | {"id": number}).encode())

    def call(self, number: int, name: str, **arguments: object) -> None:
        self.send("tools/call", number, name=name, arguments=arguments)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def members(self) -> dict[int, int]:
        """The processes of the server's session, itself included, each with the one that started it."""
        found: dict[int, int] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, parent, _, session, *_ = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(session) == self.process.pid and state != "Z":
                found[int(path.parent.name)] = int(parent)
        return found


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    one = Wire(tmp_path)
    with one.process:
        yield one
        one.process.kill()


GARBAGE: tuple[tuple[bytes, int, int | str | None], ...] = (
    (b"{garbage", -32700, None),
    (b"\xff\xfe\x00", -32700, None),
    (b"", -32700, None),
    (b"[" * 100_000, -32700, None),
    (b"42", -32600, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
    (b'{"id": 5, "method": 7}', -32600, 5),
    (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', -32600, "a"),
    (b'{"jsonrpc": "2.0", "id": 6, "method": "ping", "params": [1]}', -32600, 6),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "no/such"}', -32601, 7),
    (b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": 5}}', -32602, 8),
)


@pytest.mark.repeats(4)
@pytest.mark.parametrize(("line", "code", "identity"), GARBAGE)
def test_a_line_that_is_no_message_is_answered(wire: Wire, line: bytes, code: int, identity: int | str | None) -> None:
    wire.write(line)
    answer = wire.read()
    assert (answer["jsonrpc"], answer["error"]["code"], answer["id"]) == ("2.0", code, identity)
    # What looks like an answer is not answered: two programs would go on for ever. The server goes on.
    wire.write(b'{"jsonrpc": "2.0", "result": 1}')
    wire.send("ping", 99)
    assert wire.read() == {"jsonrpc": "2.0", "id": 99, "result": {}}


def test_a_long_call_holds_up_no_other_and_ends_with_the_input(wire: Wire) -> None:
    wire.call(1, "why", seconds=60)
    wire.call(2, "explain", id="jumbo-frames")
    answer = wire.read()
    assert answer["id"] == 2
    judge(json.dumps(answer["result"]["structuredContent"]))
    # Refused, by the thread that makes changes.
    wire.call(3, "apply", fingerprint="x")
    answer = wire.read()
    assert (answer["id"], answer["result"]["isError"]) == (3, True)
    assert len(wire.members()) > 2
    assert wire.process.stdin is not None
    wire.process.stdin.close()
    # A server that waits for the first call does not end within this.
    assert wire.process.wait(timeout=45) == 0
    assert wire.process.stdout is not None
    assert b'"id":1,"result"' not in wire.process.stdout.read()
    until(lambda: not wire.members(), "the processes of calls have ended")


def test_a_cancelled_call_is_ended_and_makes_room(wire: Wire) -> None:
    for number in range(MAX_CALLS):
        wire.call(number + 10, "why", seconds=60)
    wire.call(1, "explain", id="jumbo-frames")
    until(lambda: len(wire.members()) == 2 + MAX_CALLS, "as many calls as may run at a time")
    wire.send("notifications/cancelled", requestId=10)
    assert wire.read()["id"] == 1


def test_a_call_whose_process_dies_is_answered(wire: Wire) -> None:
    wire.call(1, "why", seconds=60)
    until(lambda: len(wire.members()) == 3, "the call is under way")
    started = wire.members()
    (leaf,) = started.keys() - started.values()
    os.kill(leaf, 9)
    answer = wire.read()
    assert (answer["id"], answer["result"]["isError"]) == (1, True)
    document = judge(json.dumps(answer["result"]["structuredContent"]))
    assert document["advisor"]["refused"] == "fault"
    wire.call(2, "explain", id="jumbo-frames")
    assert wire.read()["result"].get("isError") in (None, False)


def test_long_arguments_arrive(wire: Wire) -> None:
    """More than a socket holds at once."""
    wire.call(1, "plan", profiles=["vm-swappiness"], settings={f"{'é' * 490}{at}": "é" * 500 for at in range(50)})
    answer = wire.read()
    assert answer["result"]["structuredContent"]["advisor"]["refused"] == "usage"
    wire.call(2, "explain", id="y" * 2_000_000)
    assert "type or length" in wire.read()["result"]["structuredContent"]["untrusted"]["message"]


def test_what_a_captured_host_cannot_do_is_said_as_such(tmp_path: Path) -> None:
    """The next step of an apply is not to approve: this server can apply nothing, ever."""
    (tmp_path / "root/proc").mkdir(parents=True)
    wire = Wire(tmp_path, "--root", str(tmp_path / "root"))
    for name, arguments in (("apply", {"fingerprint": "0" * 64}), ("rollback", {"transaction": "1"}), ("status", {})):
        wire.call(1, name, **arguments)
        own = wire.read()["result"]["structuredContent"]["advisor"]
        assert own["refused"] == "refused"
        assert "without --snapshot" in own["next_step"]
        assert "approve" not in own["next_step"]
    wire.process.kill()
    wire.process.communicate()
