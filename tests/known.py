"""A value that is there."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return the value; an AssertionError if there is none."""
    assert value is not None
    return value
