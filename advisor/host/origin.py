"""What a support archive is, and what it does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec


class Origin(msgspec.Struct, frozen=True):
    """``kind`` is what made the archive, such as ``sosreport``, and ``version`` which of it. ``user`` is who ran it:
    ``root``, or another's name or number. ``unknown`` are facts of the archive itself with their reasons: what was left
    out of it, and what failed where it was made. ``ask`` returns what its owner may be asked for after a scan has read
    what is there."""

    kind: str
    version: str | None = None
    user: str | None = None
    unknown: tuple[tuple[str, str], ...] = ()
    note: str = ""
    """A remark on all of it: that its names are obfuscated."""
    ask: Callable[[], str] = str

    @property
    def title(self) -> str:
        """The kind with its version: ``sosreport 4.5``."""
        return f"{self.kind} {self.version}" if self.version else self.kind

    @property
    def as_whom(self) -> str:
        """Who ran it, as the end of a sentence: ``, as root``; empty where that is not known."""
        return f", as {'' if self.user == 'root' else 'user '}{self.user}" if self.user else ""


# Where the files that belong to this installation lie: profiles, templates and tables.

_PACKAGE = Path(__file__).parent.parent


def package_data(name: str) -> Path:
    """The directory ``name``: inside an installed package, or at the top of a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def read_sections(table: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections of a table: what stands in brackets, and each ``name = text`` below it, a line each."""
    for section in (package_data("tables") / table).read_text("utf-8").split("\n[")[1:]:
        head, _, body = section.partition("]\n")
        pairs = (line.partition(" = ") for line in body.splitlines() if line)
        yield head, [(name, text) for name, _, text in pairs]
