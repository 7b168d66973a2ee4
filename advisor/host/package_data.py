"""Where the files that belong to this installation lie: profiles, templates and tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
