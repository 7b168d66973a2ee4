"""Figures of a Prometheus server: one of this host that answers as it is reported, over a real connection."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from advisor.errors import UsageError
from advisor.operations.prove import choose_command
from advisor.proof import metrics as prometheus
from advisor.proof.metrics import read_query, split_source
from advisor.proof.own_command import CommandMetric, parse_metrics
from advisor.proof.process import Stop, StoppedError
from tests.cases import read_cases
from tests.known import known

DATA = read_cases(__file__)


class Server(ThreadingHTTPServer):
    """Answers each query by ``answer``: a status and a body. ``asked`` are the parameters of every query."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Callable[[dict[str, str]], tuple[int, bytes]] = lambda _asked: (500, b"")
        self.asked: list[dict[str, str]] = []

    def handle_error(self, *_args: object) -> None:
        """Who asked has gone."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/prefix/api/v1/query" or parts.path == "/api/v1/query":
            self.server.asked.append(asked)
            status, body = self.server.answer(asked)
        else:
            status, body = 404, b"no such page"
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, _format: str, *_args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def vector(*values: str, at: float | None = None, **labels: str) -> tuple[int, bytes]:
    result: list[dict[str, object]] = [
        {"metric": {**labels, "i": str(number)}, "value": [time.time() if at is None else at, value]}
        for number, value in enumerate(values)
    ]
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def measured(server: Server, query: str, began: float | None = None) -> str:
    return read_query(f"{server.url}:{query}", time.monotonic() - 5 if began is None else began, Stop().check)


def vector_at(at: str) -> tuple[int, bytes]:
    """An answer with this time, as JSON has it."""
    return 200, b'{"data": {"resultType": "vector", "result": [{"value": [%s, "1"]}]}}' % at.encode()


def fresh(value: str) -> Callable[[dict[str, str]], tuple[int, bytes]]:
    return lambda asked: vector(str(time.time()) if asked["query"].startswith("timestamp(") else value)


# -- what the user writes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "expected"), DATA["a_source_is_a_url_and_a_query"])
def test_a_source_is_a_url_and_a_query(text: str, expected: tuple[str, str]) -> None:
    assert split_source(text) == expected


@pytest.mark.parametrize("query", ["sum(up)", "up offset 5m", "rate(x[5m])", "a + b", "x @ end()"])
def test_a_query_that_could_hold_other_runs_is_refused(query: str) -> None:
    with pytest.raises(UsageError, match="could hold samples from before the run"):
        parse_metrics([f"prom:http://h:9090:{query}"])


def test_direction_and_unit_are_taken_from_the_right() -> None:
    assert parse_metrics(["p99=prom:http://h:9090:job:p99:lower:ms"]) == (
        CommandMetric("p99", "prom", "http://h:9090:job:p99", "lower", "ms"),
    )


# -- what the server answers -------------------------------------------------------------------------------------------


def test_a_figure_and_what_is_asked_for_it(server: Server) -> None:
    server.answer = fresh("812.5")
    assert measured(server, 'requests{job="a b"}') == "812.5"
    assert [one["query"] for one in server.asked] == ['timestamp(requests{job="a b"})', 'requests{job="a b"}']
    # samples from before the run are left out
    assert all(5000 <= int(one["lookback_delta"].removesuffix("ms")) < 60000 for one in server.asked)


def test_figures_and_spans_that_are_asked_for(server: Server) -> None:
    server.answer = fresh("3")
    assert measured(server, "rate(requests_total[$span])") == "3"
    (asked,) = server.asked
    assert asked["query"].startswith("rate(requests_total[5")
    assert asked["query"].endswith("ms])")
    body = {"status": "success", "data": {"resultType": "scalar", "result": [time.time(), "7"]}}
    server.answer = lambda _asked: (200, json.dumps(body).encode())
    assert measured(server, "scalar(sum(rate(x[$span])))") == "7"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (vector(), "the answer is empty: no series, or no sample since the run began"),
        (vector("1", "2", job="a"), 'the answer has 2 series; sum() or a label chooses one: {"job": "a", "i": "0"}'),
        ((200, b"<html>"), "the answer is not that of Prometheus' HTTP API"),
        ((200, b'{"data": []}'), "the answer is not that of Prometheus' HTTP API"),
        ((200, b'{"data": {"resultType": "vector", "result": [{"value": 1}]}}'), "is not that of Prometheus"),
        (vector_at("9" * 310), "is not that of Prometheus"),
        (vector_at("NaN"), "is not that of Prometheus"),
        ((200, b'{"data": {"resultType": "matrix", "result": []}}'), "the answer is a matrix; expected a vector"),
        ((200, b"x" * (prometheus.ANSWER_BYTES + 1)), "the answer is longer than 1048576 bytes"),
        ((503, b"busy"), "the server answered with status 503"),
        ((400, b'{"status": "error", "error": "bad: x"}'), "the server answered with status 400: bad: x"),
        ((302, b""), "the server answered with status 302"),
    ],
)
def test_an_answer_without_one_figure_is_named(server: Server, answer: tuple[int, bytes], message: str) -> None:
    server.answer = lambda _asked: answer
    with pytest.raises(ValueError, match=r"\S") as caught:
        measured(server, "sum(rate(x[$span]))")
    assert message in str(caught.value)
    assert len(server.asked) == 1, "a redirect is not followed"


def test_a_sample_from_before_the_run_is_refused(server: Server) -> None:
    # Prometheus: the time of the answer is that of the evaluation, the sample's is asked for
    server.answer = lambda asked: vector(str(time.time() - 9) if "timestamp(" in asked["query"] else "1")
    with pytest.raises(ValueError, match=r"the sample is 9\.[0-9] s old and from before the run"):
        measured(server, "up")
    # others answer with the time of the sample itself
    server.answer = lambda _asked: vector("1", at=time.time() - 60)
    with pytest.raises(ValueError, match=r"and from before the run, which began [0-9.]+ s ago"):
        measured(server, "sum(rate(up[$span]))")


def test_a_range_longer_than_the_run_is_refused(server: Server) -> None:
    with pytest.raises(ValueError, match=r"\[1m30s\] is longer than the run of 5\.[0-9] s") as caught:
        measured(server, 'rate(x{a="[5m]"}[1m30s]) / rate(x[$span])')
    assert "write [$span]" in str(caught.value)
    assert server.asked == []


def test_no_server_and_no_host_are_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(ValueError, match="no connection: Connection refused"):
        read_query(f"http://127.0.0.1:{port}:sum(rate(x[$span]))", time.monotonic(), Stop().check)
    with pytest.raises(ValueError, match=r"no such host|no answer within"):
        read_query("http://no-such-host.invalid:9090:sum(rate(x[$span]))", time.monotonic(), Stop().check)


def test_a_server_that_does_not_answer_is_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "ANSWER_SECONDS", 0.2)
    gone = threading.Event()
    server.answer = lambda _asked: (gone.wait(20), vector("1"))[1]
    with pytest.raises(ValueError, match=r"no answer within 0\.2 s|timed out"):
        measured(server, "sum(rate(x[$span]))")
    gone.set()


def test_a_signal_ends_the_wait(server: Server) -> None:
    gone, stop = threading.Event(), Stop()

    def hang(_asked: dict[str, str]) -> tuple[int, bytes]:
        stop.request(signal.SIGTERM)
        gone.wait(20)
        return vector("1")

    server.answer = hang
    with pytest.raises(StoppedError):
        read_query(f"{server.url}:sum(rate(x[$span]))", time.monotonic(), stop.check)
    gone.set()


# -- a run of a command ------------------------------------------------------------------------------------------------


def test_a_run_is_judged_by_what_the_server_counted(server: Server, tmp_path: Path) -> None:
    server.answer = fresh("1.5e+03")
    command = known(
        choose_command("sleep 0.05", [f"rate=prom:{server.url}/prefix/:sum(rate(x[$span])):higher:1/s", "time"])
    )
    figures, _ = command.run_command(Stop())
    assert figures.measures["rate"] == 1500
    assert 0.05 <= figures.measures["time"] < 60
