"""What ``advisor profiles import`` is given: ``tuned:NAME``, ``saptune:NOTE``, ``sysctl:PLACE`` or a file."""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.tuned.ini import MAX_BYTES
from advisor.host import Host
from advisor.host.input_files import open_given
from advisor.importers.records import Imported, Mode

Kind = Literal["tuned", "saptune", "sysctl"]
KINDS: tuple[Kind, ...] = ("tuned", "saptune", "sysctl")


class ImportSource(msgspec.Struct, frozen=True):
    """``name`` of a profile, a note or a place, a path where a slash is in it; ``path`` where it is a file of this
    machine."""

    kind: Kind
    name: str
    path: str | None = None


def find_source(text: str) -> ImportSource:
    """What is to be imported; the kind of a file follows from its content. Raises UsageError and InvalidInputError."""
    if not text.strip():
        raise UsageError(
            "the source is empty: a variable that is not set?", hint="write tuned:NAME, saptune:NOTE or sysctl:FILE"
        )
    kind, colon, name = text.partition(":")
    for known in KINDS:
        if colon and kind == known:
            if not name:
                raise UsageError(f"{text}: names nothing", hint="write tuned:NAME, saptune:NOTE or sysctl:FILE")
            return ImportSource(known, name)
    place = Path(text)
    if not place.exists():
        raise UsageError(
            f"{text[:120]}: no such file",
            hint="write tuned:NAME, saptune:NOTE, sysctl:FILE or a file; --list shows what is installed",
        )
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
        raise UsageError(f"{path}: already a profile of advisor", hint=f"advisor profiles lint {path}")
    try:
        with open_given(path) as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error


def kind_of_text(text: str) -> Kind:
    """Whose file it is: saptune's notes have a section version, TuneD's profiles sections, sysctl's none."""
    sections = re.findall(r"(?m)^\s*\[([^\]\n]+)", text)
    if not sections:
        return "sysctl"
    return "saptune" if "version" in sections else "tuned"


def import_source(
    source: ImportSource, host: Host, files: Host, mode: Mode, *, tuned_version: str | None = None
) -> Imported:
    """The profile as it comes over to ``host``; ``files`` is the machine whose files are read, ``tuned_version`` that
    of TuneD to judge by instead of the one that is installed there.

    Raises UsageError for what is not there, InvalidInputError naming file and line for what is broken.
    """
    if source.kind != "sysctl" and "/" in source.name:
        # A profile or a note that is named by its path on the machine whose files are read.
        path = source.name.rstrip("/") or "/"
        if source.kind == "saptune":
            source = ImportSource("saptune", os.path.basename(path).removesuffix(".conf"), path)
        else:
            path = f"{path}/tuned.conf" if files.is_dir(path) else path
            source = ImportSource("tuned", os.path.basename(os.path.dirname(path)), path)
    if source.kind == "tuned":
        from advisor.importers.from_tuned import import_tuned
        from advisor.importers.tuned.versions import parse_tuned_version

        version = None if tuned_version is None else parse_tuned_version(tuned_version)
        return import_tuned(source.name, host, mode, files=files, path=source.path, version=version)
    if source.kind == "saptune":
        from advisor.importers.saptune import import_saptune

        found = import_saptune(source.name, host, mode, files=files, path=source.path)
    else:
        from advisor.importers.sysctl_text import import_sysctl

        found = import_sysctl(source.path or source.name, host, mode, files=files)
    # After what is wrong with the file: that may be why it is taken for no profile of TuneD.
    if tuned_version is not None:
        raise UsageError(f"{found.origin}: --tuned-version is for profiles of TuneD", hint="leave it out")
    return found


def list_installed(files: Host) -> Mapping[str, str]:
    """Source → file of everything that can be imported by name, sorted."""
    from advisor.facts.tuned.places import installed_profiles
    from advisor.importers.saptune import installed_notes

    found = {f"tuned:{name}": path for name, path in installed_profiles(files).items()}
    found |= {f"saptune:{name}": path for name, path in installed_notes(files).items()}
    for path in ("/etc/sysctl.conf", "/etc/sysctl.d"):
        if files.exists(path):
            found[f"sysctl:{path}"] = path
    return found
