"""Where the files that belong to this installation lie: profiles, templates and tables."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def package_data(name: str) -> Path:
    """The directory ``name``: inside an installed package, or at the top of a checkout."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
