"""The version of this package, which pyproject.toml holds as well, and the commit of a checkout."""

from __future__ import annotations

import os

__version__ = "0.1.0"
_SHOWN_DIGITS = 12
_LONGEST_CHAIN = 5
"""A reference may lead to another one; git itself follows five."""


def describe_version() -> str:
    """The version; in a git checkout with the commit that is checked out: ``0.1.0 (17329f0ab12c)``; in a package that
    brings its libraries along ``0.1.0 (bundle with its libraries)``."""
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # Written by packaging/sbom.py; the place is PEP 770's.
    if os.path.isfile(os.path.join(place, f"host_advisor-{__version__}.dist-info", "sboms", "host-advisor.cdx.json")):
        return f"{__version__} (bundle with its libraries)"
    commit = read_commit(place)
    return __version__ if commit is None else f"{__version__} ({commit[:_SHOWN_DIGITS]})"


def read_commit(directory: str) -> str | None:
    """The commit, in hexadecimal, that is checked out in a directory; None where no git repository says one.

    Reads git's own files (gitrepository-layout(5)): git itself would take longer to start than the rest of the answer.
    """
    place = os.path.join(directory, ".git")
    if os.path.isfile(place):  # a further work tree, or a submodule
        place = os.path.join(directory, _read_text(place).removeprefix("gitdir:").strip())
    common = os.path.join(place, _read_text(os.path.join(place, "commondir")).strip())
    value = _read_text(os.path.join(place, "HEAD")).strip()
    for _ in range(_LONGEST_CHAIN):
        if not value.startswith("ref: refs/"):
            break
        name = value.removeprefix("ref: ")
        value = (
            _read_text(os.path.join(place, name))
            or _read_text(os.path.join(common, name))
            or _find_packed(common, name)
        ).strip()
    is_commit = len(value) in (40, 64) and not value.strip("0123456789abcdef")  # SHA-1, SHA-256
    return value if is_commit else None


def _find_packed(common: str, name: str) -> str:
    lines = _read_text(os.path.join(common, "packed-refs")).splitlines()
    return next((line.partition(" ")[0] for line in lines if line.partition(" ")[2] == name), "")


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
