"""Profiles of other tools (TuneD, saptune, sysctl files) and settings of other hosts, as profiles of this library.

Nothing of what is imported is ever executed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from advisor.errors import PermissionDeniedError, RefusedError, UsageError
from advisor.facts.host_facts import scan
from advisor.facts.writers import overriding_write, read_boot_settings
from advisor.host import Host, live_host
from advisor.importers.from_host import import_host
from advisor.importers.records import Imported, ImportedSetting, Mode
from advisor.importers.source import find_source, import_source, list_installed
from advisor.importers.to_profile import to_profile, to_toml, with_judgement
from advisor.operations import open_host
from advisor.operations.files import write_output
from advisor.profiles.lint import checked_name
from advisor.profiles.profile import LOCAL_PROFILES


def import_profile(
    source: str | None = None,
    *,
    from_host: Path | None = None,
    mode: str = "intent",
    host: Host | None = None,
    tuned_version: str | None = None,
) -> Imported:
    """Return another tool's profile with a report on each of its lines, as it would be on ``host`` (this one).

    ``source`` is ``tuned:NAME``, ``saptune:NOTE``, ``sysctl:FILE`` or a file of one of them; ``from_host`` is a capture
    of a host whose settings are taken instead. ``mode`` is ``faithful`` (what its program really does) or ``intent``
    (what was meant). ``tuned_version``, such as 2.25, says which release of TuneD is judged by instead of the
    installed one. Raises UsageError for what is not there, InvalidInputError naming file and line.
    """
    if (source is None) == (from_host is None):
        raise UsageError("name one source: tuned:NAME, saptune:NOTE, sysctl:FILE, a file, or --from-host SNAPSHOT")
    if mode not in ("faithful", "intent"):
        raise UsageError(f"--mode {mode}: neither faithful nor intent")
    chosen: Mode = "faithful" if mode == "faithful" else "intent"
    here = host or live_host()
    if from_host is not None:
        if tuned_version is not None:
            raise UsageError("--tuned-version is for profiles of TuneD")
        imported = import_host(open_host(snapshot=from_host), here, chosen, where=str(from_host))
    else:
        assert source is not None
        found = find_source(source)
        files = live_host() if found.path else here
        imported = import_source(found, here, files, chosen, tuned_version=tuned_version)
    return _with_writers(with_judgement(imported, scan(here)), here)


def _with_writers(found: Imported, host: Host) -> Imported:
    """The import, with a note where something sets a kernel parameter otherwise after a file of advisor's."""
    names = [one.tunable for one in found.settings if one.tunable and one.tunable.startswith("sysctl:")]
    boot = read_boot_settings(host, names)
    path = f"/etc/sysctl.d/90-advisor-{found.name}.conf"

    def noted(one: ImportedSetting) -> ImportedSetting:
        write = overriding_write(boot, one.tunable, one.value or "", path) if one.tunable in names else None
        if write is None or write.value is None or write.file == one.file:
            return one
        return msgspec.structs.replace(one, note="; ".join(filter(None, (one.note, write.sentence))))

    return msgspec.structs.replace(found, settings=tuple(map(noted, found.settings)))


def render_profile(found: Imported) -> str:
    """Return the TOML of an imported profile. Raises InvalidInputError where the import made one that is none."""
    to_profile(found)
    return to_toml(found)


def save_profile(found: Imported, path: Path | None = None) -> tuple[Imported, Path]:
    """Write an imported profile to ``NAME.toml``, by default into the library of this host; return it with that name.

    Raises PermissionDeniedError where only root may write there, RefusedError for a profile in the library that was
    not imported, UsageError for another ending and for a name that no profile may have.
    """
    target = path or LOCAL_PROFILES / f"{found.name}.toml"
    if path is None:
        if os.geteuid() != 0:
            raise PermissionDeniedError(
                f"{target}: only root may write there", hint=f"-o {target.stem}.toml writes it here"
            )
        LOCAL_PROFILES.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.read_bytes().startswith(b"# Imported from "):
            raise RefusedError(
                f"{target}: is there, and was not imported", hint="move it away, or write elsewhere with -o"
            )
    named = msgspec.structs.replace(found, name=checked_name(target.stem))
    toml = render_profile(named)
    if target.suffix != ".toml":
        raise UsageError(f"{target}: a profile's file is NAME.toml")
    write_output(target, toml)
    return named, target


def place_in_library(path: Path) -> Path | None:
    """Return where a profile's file has to lie for the library of this host to have it; None for one that is there."""
    return None if path.parent.resolve() == LOCAL_PROFILES.resolve() else LOCAL_PROFILES / path.name


def list_importable(host: Host | None = None) -> Mapping[str, str]:
    """Return the file of each source that can be imported by name from ``host``, by default this one."""
    return list_installed(host or live_host())
