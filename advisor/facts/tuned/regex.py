"""Regular expressions from a foreign file: searched with a bound, as one can be written that takes years."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from re import _constants, _parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

MAX_PATTERN = 2000
_SECONDS = 1.0


class UnsafePatternError(Exception):
    """Not a regular expression, or one that is not searched for; the text says why."""


def search_text(pattern: str, text: str, *, lines: bool = False) -> bool:
    """Whether the pattern is found, as ``re.search`` says. ``lines``: ``^`` and ``$`` fit at every line.

    Raises UnsafePatternError for a pattern that is none, repeats what repeats itself, or takes more than a second.
    """
    if len(pattern) > MAX_PATTERN:
        raise UnsafePatternError(f"the regular expression is longer than {MAX_PATTERN} characters")
    flags = re.MULTILINE if lines else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if _nests_repeats(_parser.parse(pattern, flags)):
                raise UnsafePatternError("the regular expression repeats what repeats itself: it could take for ever")
            compiled = re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnsafePatternError(f"not a regular expression: {error}") from error
    with _time_limit():
        return compiled.search(text) is not None


def _nests_repeats(parsed: Any, *, inside: bool = False) -> bool:
    for operation, argument in parsed:
        repeats = operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and argument[1] > 1
        if repeats and inside:
            return True
        if any(_nests_repeats(part, inside=inside or repeats) for part in _nested_patterns(argument)):
            return True
    return False


def _nested_patterns(argument: Any) -> Iterator[Any]:
    """The patterns within an operation, however deep its arguments hold them."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for one in argument:
            yield from _nested_patterns(one)


@contextmanager
def _time_limit() -> Iterator[None]:
    """Ends a search that takes too long. Python looks for signals while it matches; only the main thread gets them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise UnsafePatternError("the search for the regular expression takes too long")

    before = signal.signal(signal.SIGALRM, late)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, remaining, interval)
        signal.signal(signal.SIGALRM, before)
