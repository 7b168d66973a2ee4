"""A figure of a run from a Prometheus server: an instant query at the end of the run, which holds the run alone.

Source: Prometheus' HTTP API (/api/v1/query). The server's clock alone counts: it evaluates at its present time. A
sample from before the run is the other arm's. So a plain selector is also asked for the time of its sample, and every
other query has to hold ``[$span]``, the range of the run: Prometheus does not say how old the samples in a sum are.
Newer servers leave out older samples on request (``lookback_delta``).
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from advisor.host.patterns import lazy_regex

if TYPE_CHECKING:
    from http.client import HTTPMessage

ANSWER_SECONDS = 10.0
"""For one answer, name resolution included."""
ANSWER_BYTES = 1 << 20
SPAN = "$span"
"""Stands in a query for the seconds of the run, as a range: ``rate(requests_total[$span])``."""
CLOCK_SECONDS = 1.0
"""The server's clock is known from its Date header, to a second."""
_LAST_TIME = 1e12
"""Seconds since 1970 beyond any clock: JSON also holds NaN, and integers that no float holds."""
_SLICE_SECONDS = 0.05
_MAX_NAMED = 3

_SOURCE = lazy_regex(r"(https?://(?:\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::[0-9]{1,5})?(?:/[^\s:@?#]*)?):(.+)", re.DOTALL)
_PASSWORD = lazy_regex(r"https?://[^\s/(){}\"']*@")
_SELECTOR = lazy_regex(
    r"""\s*(?:[A-Za-z_:][A-Za-z0-9_:]*)?\s*(?:\{(?:[^{}"'`]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)*\})?\s*"""
)
_QUOTED = lazy_regex(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`""")
_RANGE = lazy_regex(r"\[\s*((?:[0-9]{1,9}(?:ms|[smhdwy]))+)")
_PART = lazy_regex(r"([0-9]+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}


def split_source(expression: str) -> tuple[str, str]:
    """The server's URL and the query of ``URL:QUERY``. Raises ValueError."""
    match = _SOURCE.fullmatch(expression)
    if match is None or _PASSWORD.match(expression):
        raise ValueError("expected URL:QUERY, such as http://localhost:9090:up, and no password in the URL")
    if match[2][0] in "0123456789":
        # What was read as the query is the port, with or without a path.
        raise ValueError("there is no query behind the URL: write URL:QUERY, such as http://localhost:9090:up")
    if SPAN not in match[2] and not _SELECTOR.fullmatch(match[2]):
        raise ValueError(
            "the query could hold samples from before the run: write the range of the run, such as rate(x[$span])"
        )
    return match[1].rstrip("/"), match[2]


def read_query(expression: str, began: float, check_stop: Callable[[], None]) -> str:
    """What the query of ``URL:QUERY`` gives for the time since ``began`` (of the monotonic clock): one number as the
    server writes it.

    Raises ValueError with the reason: no such host, an error status, no series or several, an answer that is too late.
    """
    url, query = split_source(expression)
    span = time.monotonic() - began
    _refuse_long_ranges(query, span)
    span_words = f"{max(1, round(1000 * span))}ms"
    asked = query.replace(SPAN, span_words)
    if _SELECTOR.fullmatch(asked):
        evaluated, sampled = _ask(url, f"timestamp({asked})", span_words, span, check_stop)
        _refuse_late(evaluated - float(sampled), time.monotonic() - began)
    return _ask(url, asked, span_words, time.monotonic() - began, check_stop)[1]


def _refuse_long_ranges(query: str, span: float) -> None:
    """A range that is longer than the run holds runs of the other arm."""
    for found in _RANGE.finditer(_QUOTED.sub("", query)):
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(found[1]))
        if seconds > span:
            raise ValueError(
                f"[{found[1]}] is longer than the run of {span:.1f} s, so it holds other runs: write [$span]"
            )


def _refuse_late(age: float, span: float) -> None:
    if age > span:
        raise ValueError(
            f"the sample is {age:.1f} s old and from before the run, which began {span:.1f} s ago: make the "
            "run several scrape intervals long"
        )


def _ask(url: str, query: str, lookback: str, span: float, check_stop: Callable[[], None]) -> tuple[float, str]:
    """The time of the only sample, and its value. Raises ValueError."""
    from urllib.parse import urlencode

    words = urlencode({"query": query, "lookback_delta": lookback, "timeout": f"{ANSWER_SECONDS:g}s"})
    body, headers = _fetch(f"{url}/api/v1/query?{words}", check_stop)
    at, value = _only_sample(_parse_data(body))
    _refuse_late(_server_time(headers) - at - CLOCK_SECONDS, span)
    return at, value


def _server_time(headers: HTTPMessage) -> float:
    """By its Date header; without one, by the clock here."""
    try:
        return parsedate_to_datetime(headers["Date"] or "").timestamp()
    except ValueError:
        return time.time()


# -- the answer --------------------------------------------------------------------------------------------------------


def _parse_data(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise ValueError("the answer is not that of Prometheus' HTTP API")
    return data


def _only_sample(data: dict[str, object]) -> tuple[float, str]:
    """(time, value) of a scalar, or of a vector of one series."""
    kind, result = data.get("resultType"), data.get("result")
    if kind == "vector" and isinstance(result, list):
        if not result:
            raise ValueError("the answer is empty: no series, or no sample since the run began")
        if len(result) > 1:
            names = (json.dumps(one.get("metric")) for one in result[:_MAX_NAMED] if isinstance(one, dict))
            raise ValueError(f"the answer has {len(result)} series; sum() or a label chooses one: {', '.join(names)}")
        result = result[0].get("value") if isinstance(result[0], dict) else None
    elif kind != "scalar":
        raise ValueError(f"the answer is a {str(kind)[:40]}; expected a vector of one series")
    match result:
        case [int() | float() as at, str() as value] if 0 <= at < _LAST_TIME:
            return float(at), value
    raise ValueError("the answer is not that of Prometheus' HTTP API")


def _fetch(address: str, check_stop: Callable[[], None]) -> tuple[bytes, HTTPMessage]:
    """The answer of that very server: no redirect, no proxy, and never longer than `ANSWER_SECONDS`.

    Raises ValueError, and what ``check_stop`` raises.
    """
    answers: list[tuple[bytes, HTTPMessage] | ValueError] = []

    def ask() -> None:
        try:
            answers.append(_open_address(address))
        except ValueError as error:
            answers.append(error)

    # Name resolution has no time limit, nor has a server that sends a byte now and then.
    thread = threading.Thread(target=ask, name="advisor-prometheus", daemon=True)
    thread.start()
    end = time.monotonic() + ANSWER_SECONDS
    while thread.is_alive() and time.monotonic() < end:
        check_stop()
        thread.join(_SLICE_SECONDS)
    if not answers:
        raise ValueError(f"no answer within {ANSWER_SECONDS:g} s")
    if isinstance(answers[0], ValueError):
        raise answers[0]
    return answers[0]


def _open_address(address: str) -> tuple[bytes, HTTPMessage]:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirect is an answer, not a way."""

        def redirect_request(self, *_args: object) -> None:
            return None

    try:
        with build_opener(ProxyHandler({}), Stay).open(address, timeout=ANSWER_SECONDS) as answer:
            body, headers = answer.read(ANSWER_BYTES + 1), answer.headers
    except HTTPError as error:
        with error:
            raise ValueError(_status_words(error.code, error.read(ANSWER_BYTES))) from None
    except URLError as error:
        reason = error.reason
        if isinstance(reason, socket.gaierror):
            raise ValueError(f"no such host: {reason.strerror or reason}") from None
        raise ValueError(f"no connection: {getattr(reason, 'strerror', None) or reason}") from None
    except (OSError, HTTPException) as error:
        raise ValueError(f"no connection: {error}") from None
    if len(body) > ANSWER_BYTES:
        raise ValueError(f"the answer is longer than {ANSWER_BYTES} bytes")
    return body, headers


def _status_words(code: int, body: bytes) -> str:
    """The server's own words of what is wrong with a query, where it has some."""
    try:
        words = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"the server answered with status {code}"
    return f"the server answered with status {code}: {str(words)[:200]}"
