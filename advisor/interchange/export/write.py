"""Exported files on disk: a new directory, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.interchange.export.settings import Bundle


def write(bundle: Bundle, directory: Path) -> None:
    """Write the files below ``directory``, which must not be there yet or be empty. Raises RefusedError, UsageError."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedError(f"{directory}: is there already", hint="name a new directory: nothing is written over")
    parent = directory.resolve().parent
    if not parent.is_dir():
        raise UsageError(f"{parent}: no such directory")
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=parent))
        try:
            made.chmod(0o777 & ~_umask())
            for path, content in sorted(bundle.files.items()):
                place = made / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
                if path in bundle.executable:
                    place.chmod(0o777 & ~_umask())
            if directory.is_dir():
                directory.rmdir()
            made.rename(directory)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise AdvisorError(f"{error.filename or directory}: {error.strerror or error}") from error


def _umask() -> int:
    found = os.umask(0o022)
    os.umask(found)
    return found
