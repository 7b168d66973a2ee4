"""``advisor profiles import``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from advisor.cli.output import print_json, print_text, say, terminal_width, the_host, wants_color
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json, Root, Snapshot
from advisor.errors import PermissionDeniedError, RefusedError, UsageError
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.host import Host
    from advisor.importers.records import Imported, Mode


def import_profile(
    source: Annotated[
        str | None,
        Argument(metavar="SOURCE", help="tuned:NAME, saptune:NOTE, sysctl:FILE-OR-DIR, or a file of one of them."),
    ] = None,
    from_host: Annotated[
        Path | None,
        Option("--from-host", metavar="SNAPSHOT", help="Import the settings of the host of a snapshot."),
    ] = None,
    mode: Annotated[
        str,
        Option(
            "--mode", metavar="MODE", help="Import what its program really does (faithful) or what was meant (intent)."
        ),
    ] = "intent",
    output: Annotated[
        Path | None,
        Option("-o", "--output", metavar="FILE", help="Write the profile here, NAME.toml; without it, to stdout."),
    ] = None,
    install: Annotated[bool, Option("--install", help="Write it to /etc/advisor/profiles, as root.")] = False,
    listing: Annotated[bool, Option("--list", help="List what is installed and can be imported.")] = False,
    root: Root = None,
    snapshot: Snapshot = None,
    as_json: Json = False,
) -> int:
    """Import another tool's profile, and report on each of its lines. Nothing of it is ever executed."""
    if listing:
        return _list_importable(the_host(root, snapshot), as_json=as_json)
    if (source is None) == (from_host is None):
        raise UsageError("name one source: tuned:NAME, saptune:NOTE, sysctl:FILE, a file, or --from-host SNAPSHOT")
    if mode not in ("faithful", "intent"):
        raise UsageError(msg("--mode {mode}: neither faithful nor intent", mode=mode))
    if output is not None and install:
        raise UsageError("-o and --install exclude each other")
    chosen: Mode = "faithful" if mode == "faithful" else "intent"
    found = _import_profile(source, from_host, the_host(root, snapshot), chosen)
    return _deliver_profile(found, output, is_installed=install, as_json=as_json)


def _import_profile(source: str | None, from_host: Path | None, host: Host, mode: Mode) -> Imported:
    if from_host is not None:
        from advisor.importers.from_host import import_host
        from advisor.snapshot.archive import open_snapshot

        return import_host(open_snapshot(from_host), host, mode, where=str(from_host))
    from advisor.host import live_host
    from advisor.importers.source import find_source, import_source

    assert source is not None
    found = find_source(source)
    return import_source(found, host, live_host() if found.path else host, mode)


def _deliver_profile(found: Imported, output: Path | None, *, is_installed: bool, as_json: bool) -> int:
    """The profile to where it was asked for, the report to where the profile is not."""
    import msgspec

    from advisor.importers.to_profile import checked_name, to_profile, to_toml
    from advisor.report.imported import import_document, imported_text

    target = _installed_path(found.name) if is_installed else output
    if target is not None:
        found = msgspec.structs.replace(found, name=checked_name(target.stem))
    to_profile(found)
    toml = to_toml(found)
    if target is not None:
        _write_profile(target, toml)
    if as_json:
        print_json(import_document(found, toml))
    elif target is not None:
        print_text(imported_text(found, width=terminal_width(), color=wants_color()))
        say(f"{target}: written; {_next_step(target)}")
    else:
        print_text(toml)
        say(imported_text(found, width=terminal_width(), color=False).rstrip("\n"))
    return 0


def _next_step(target: Path) -> str:
    """How to see what a written profile means: a plan is made of what is in the library."""
    import shlex

    from advisor.profiles.profile import LOCAL_PROFILES

    plan = f"advisor plan {target.stem} says what it means here"
    if target.parent.resolve() == LOCAL_PROFILES.resolve():
        return plan
    place = LOCAL_PROFILES / target.name
    return f"as root `install -D -m 644 -- {shlex.quote(str(target))} {place}`; then {plan}"


def _installed_path(name: str) -> Path:
    from advisor.profiles.profile import LOCAL_PROFILES

    target = LOCAL_PROFILES / f"{name}.toml"
    if os.geteuid() != 0:
        raise PermissionDeniedError(
            msg("{target}: only root may write there", target=target),
            hint=msg("-o {name}.toml writes it here", name=name),
        )
    LOCAL_PROFILES.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.read_bytes().startswith(b"# Imported from "):
        raise RefusedError(
            msg("{target}: is there, and was not imported", target=target),
            hint="move it away, or write elsewhere with -o",
        )
    return target


def _write_profile(target: Path, toml: str) -> None:
    from advisor.host.putfile import save_output

    if target.suffix != ".toml":
        raise UsageError(msg("{target}: a profile's file is NAME.toml", target=target))
    save_output(str(target), toml.encode(), mode=0o644)


def _list_importable(host: Host, *, as_json: bool) -> int:
    from advisor.importers.source import list_installed

    found = list_installed(host)
    if as_json:
        sources = [{"source": source, "file": file} for source, file in found.items()]
        print_json({"schema": "advisor.importable/1", "sources": sources})
        return 0
    from advisor.report.format import clean

    print_text("\n".join(clean(f"{source}  {file}") for source, file in found.items()) or "Nothing is installed.")
    return 0
