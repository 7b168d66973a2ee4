"""Errors of files that advisor writes for itself, as errors of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.errors import PermissionDeniedError, RefusedError
from advisor.i18n import msg


@contextmanager
def explain_file_errors(path: Path) -> Iterator[None]:
    """Raise PermissionDeniedError or RefusedError that names ``path`` in the place of an OSError."""
    try:
        yield
    except PermissionError as error:
        raise PermissionDeniedError(
            msg("{path}: {error}", path=path, error=error.strerror), hint="run it with sudo"
        ) from error
    except OSError as error:
        raise RefusedError(msg("{path}: {error}", path=path, error=error.strerror)) from error
