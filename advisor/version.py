"""The version of this package; pyproject.toml holds the same."""

from __future__ import annotations

__version__ = "0.1.0"
