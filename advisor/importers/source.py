"""What ``advisor profiles import`` is given: ``tuned:NAME``, ``saptune:NOTE``, ``sysctl:PLACE`` or a file."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.host import Host
from advisor.host.input_files import open_given
from advisor.i18n import msg
from advisor.importers.records import Imported, Mode
from advisor.importers.tuned.ini import MAX_BYTES

Kind = Literal["tuned", "saptune", "sysctl"]
KINDS: Final[tuple[Kind, ...]] = ("tuned", "saptune", "sysctl")


class ImportSource(msgspec.Struct, frozen=True):
    """``name`` of a profile, a note or a place, a path where a slash is in it; ``path`` where it is a file of this
    machine."""

    kind: Kind
    name: str
    path: str | None = None


def find_source(text: str) -> ImportSource:
    """What is to be imported; the kind of a file follows from its content. Raises UsageError and InvalidInputError."""
    kind, colon, name = text.partition(":")
    for known in KINDS:
        if colon and kind == known:
            if not name:
                raise UsageError(
                    msg("{text}: names nothing", text=text), hint="write tuned:NAME, saptune:NOTE or sysctl:FILE"
                )
            return ImportSource(known, name)
    place = Path(text)
    if not place.exists():
        hint = "write tuned:NAME, saptune:NOTE, sysctl:FILE or a file; --list shows what is installed"
        raise UsageError(msg("{text}: no such file", text=text[:120]), hint=hint)
    path = os.path.abspath(text)
    if place.is_dir():
        inside = os.path.join(path, "tuned.conf")
        return (
            ImportSource("tuned", os.path.basename(path), inside)
            if os.path.isfile(inside)
            else ImportSource("sysctl", path, path)
        )
    found = kind_of_text(_read_head(place))
    name = os.path.basename(os.path.dirname(path)) if os.path.basename(path) == "tuned.conf" else Path(path).stem
    return ImportSource(found, path if found == "sysctl" else name, path)


def _read_head(path: Path) -> str:
    if path.suffix == ".toml":
        raise UsageError(
            msg("{path}: already a profile of advisor", path=path), hint=msg("advisor profiles lint {path}", path=path)
        )
    try:
        with open_given(path) as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidInputError(msg("{path}: {error}", path=path, error=error.strerror)) from error


def kind_of_text(text: str) -> Kind:
    """Whose file it is: saptune's notes have a section version, TuneD's profiles sections, sysctl's none."""
    sections = re.findall(r"(?m)^\s*\[([^\]\n]+)", text)
    if not sections:
        return "sysctl"
    return "saptune" if "version" in sections else "tuned"


def import_source(source: ImportSource, host: Host, files: Host, mode: Mode) -> Imported:
    """The profile as it comes over to ``host``; ``files`` is the machine whose files are read.

    Raises UsageError for what is not there, InvalidInputError naming file and line for what is broken.
    """
    if source.kind != "sysctl" and "/" in source.name:
        source = _source_at(source, files)
    if source.kind == "tuned":
        from advisor.importers.from_tuned import import_tuned

        return import_tuned(source.name, host, mode, files=files, path=source.path)
    if source.kind == "saptune":
        from advisor.importers.saptune import import_saptune

        return import_saptune(source.name, host, mode, files=files, path=source.path)
    from advisor.importers.sysctl_text import import_sysctl

    return import_sysctl(source.path or source.name, host, mode, files=files)


def _source_at(source: ImportSource, files: Host) -> ImportSource:
    """A profile or a note that is named by its path on the machine whose files are read."""
    path = source.name.rstrip("/") or "/"
    if source.kind == "saptune":
        return ImportSource("saptune", os.path.basename(path).removesuffix(".conf"), path)
    path = f"{path}/tuned.conf" if files.is_dir(path) else path
    return ImportSource("tuned", os.path.basename(os.path.dirname(path)), path)


def list_installed(files: Host) -> Mapping[str, str]:
    """Source → file of everything that can be imported by name, sorted."""
    from advisor.importers.saptune import installed_notes
    from advisor.importers.tuned.places import installed_profiles

    found = {f"tuned:{name}": path for name, path in installed_profiles(files).items()}
    found |= {f"saptune:{name}": path for name, path in installed_notes(files).items()}
    for path in ("/etc/sysctl.conf", "/etc/sysctl.d"):
        if files.exists(path):
            found[f"sysctl:{path}"] = path
    return found
