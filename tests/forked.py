"""A function in a child process that is in a world of its own, such as a namespace; what it returns, or raises."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def forked(function: Callable[[], T], *, enter: Callable[[], None] = lambda: None) -> T:
    """What the function returns (or raises) in a child process, after ``enter`` there; it must be picklable."""
    reader, writer = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(reader)
        outcome: tuple[bool, object]
        try:
            enter()
            outcome = True, function()
        except BaseException as error:  # noqa: BLE001  # it is raised again by the parent
            outcome = False, error
        try:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(outcome, pipe)
        finally:
            # Whatever happens, the child must not go on as a second test runner.
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    went_well, value = pickle.loads(data)
    if not went_well:
        raise value
    return value  # type: ignore[no-any-return]


def fork() -> int:
    with warnings.catch_warnings():
        # Threads of the test runner (xdist) do nothing that the child needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
