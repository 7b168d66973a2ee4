"""Exported files on disk: a new directory, whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from advisor.errors import AdvisorError, RefusedError, UsageError
from advisor.exporters.settings import Bundle


def write_bundle(bundle: Bundle, directory: Path) -> None:
    """Write the files below ``directory``, which must not be there yet or be empty. Raises RefusedError, UsageError."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RefusedError(f"{directory}: is there already", hint="name a new directory: nothing is written over")
    parent = directory.resolve().parent
    if not parent.is_dir():
        raise UsageError(f"{parent}: no such directory")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=parent) as temporary:
            made = Path(temporary, directory.name)
            made.mkdir()
            for path, content in sorted(bundle.files.items()):
                place = made / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.touch(mode=0o777 if path in bundle.executable else 0o666)
                place.write_bytes(content)
            if directory.is_dir():
                directory.rmdir()
            made.rename(directory)
    except OSError as error:
        raise AdvisorError(f"{error.filename or directory}: {error.strerror or error}") from error
