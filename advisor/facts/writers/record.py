"""A writer of values on a Linux host, what it writes, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

import msgspec

from advisor.host import Host


class LastWord(msgspec.Struct, frozen=True):
    """Who sets a tunable last: the writer, the file and line where it says so, and the value, None where unknown."""

    writer: str
    file: str | None
    line: int | None
    value: str | None


class Write(msgspec.Struct, frozen=True):
    """A value that a writer gives a tunable by the next boot, or whenever the writer starts.

    ``tunable`` is an id, with ``*`` where the writer means every device or key. ``value`` is None where it sets a value
    that cannot be known. ``rank`` is the writer's place in the order of time. ``acts`` says when it writes, ``change``
    how to change it there.
    """

    tunable: str
    value: str | None
    writer: str
    rank: int
    file: str | None = None
    line: int | None = None
    acts: str = ""
    change: str = ""
    is_program: bool = False
    """A running program sets it: again whenever it starts, whatever the files of others say."""

    def covers(self, tunable: str) -> bool:
        """Return whether the tunable is one that this writes."""
        return self.tunable == tunable or ("*" in self.tunable and fnmatchcase(tunable, self.tunable))

    @property
    def word(self) -> LastWord:
        """The same, as documents have it."""
        return LastWord(self.writer, self.file, self.line, self.value)

    @property
    def place(self) -> str:
        """Where the value stands: file and line, the file, or the writer's name."""
        if self.file is None:
            return self.writer
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def sentence(self) -> str:
        """Who sets it to what, when and where, and how to change it there."""
        value = "" if self.value is None else f" to {self.value}"
        where = "" if self.file is None else f" ({self.place})"
        return f"{self.writer} sets it{value} {self.acts}{where}: {self.change}"


class Place(msgspec.Struct, frozen=True):
    """What a reader of files found: a tunable, its value, and where. ``by``: the writer, where a row has several."""

    tunable: str
    value: str | None
    file: str | None = None
    line: int | None = None
    by: str | None = None


class Writer(msgspec.Struct, frozen=True):
    """A row of the table. ``acts`` says when; ``change`` how to change a value there. ``read`` recognises it."""

    name: str
    acts: str
    read: Callable[[Host], Iterable[Place]]
    change: str
    is_program: bool = False
