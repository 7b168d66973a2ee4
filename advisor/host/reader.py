"""The reading half of a host, as those parts see it that a host itself is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from advisor.host.missing import Missing

T = TypeVar("T")


class Reader(Protocol):
    """What `advisor.host.machine.Host` answers of files and links; each with a value or `Missing`."""

    def read(self, path: str) -> str | Missing: ...

    def read_bytes(self, path: str) -> bytes | Missing: ...

    def names(self, path: str) -> tuple[str, ...]: ...

    def real(self, path: str) -> str | Missing: ...

    def exists(self, path: str) -> bool: ...

    def read_once(self, name: str, read: Callable[[], T]) -> T: ...
