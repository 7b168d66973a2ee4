"""Files that commands write: those that an option names, and errors of those that advisor keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.errors import PermissionDeniedError, RefusedError


@contextmanager
def explain_file_errors(path: Path) -> Iterator[None]:
    """Raise PermissionDeniedError or RefusedError that names ``path`` in the place of an OSError."""
    try:
        yield
    except PermissionError as error:
        raise PermissionDeniedError(f"{path}: {error.strerror}", hint="run it with sudo") from error
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}") from error


def check_output(path: Path | str) -> None:
    """Raise UsageError where `write_output` could not write, before the work whose result it is. Leaves nothing."""
    from advisor.host import putfile

    putfile.check_output(str(path))


def write_output(path: Path | str, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write a result into the file that an option names, whole or not at all: a new one or a regular one.

    Bytes of names that are no UTF-8 stay as they are. Raises UsageError where it cannot be written.
    """
    from advisor.host.putfile import save_output

    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    save_output(str(path), data, mode=mode)
