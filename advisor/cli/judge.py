"""``advisor judge``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from advisor import operations
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot, Workload
from advisor.errors import UsageError
from advisor.operations import open_host

# ``advisor profiles import``.


def import_profile(
    source: Annotated[
        str | None,
        Argument(metavar="SOURCE", help="tuned:NAME, saptune:NOTE, sysctl:FILE-OR-DIR, or a file of one of them."),
    ] = None,
    from_host: Annotated[
        Path | None, Option("--from-host", metavar="SNAPSHOT", help="Import the settings of the host of a snapshot.")
    ] = None,
    mode: Annotated[
        str,
        Option(
            "--mode", metavar="MODE", help="Import what its program really does (faithful) or what was meant (intent)."
        ),
    ] = "intent",
    tuned_version: Annotated[
        str | None,
        Option("--tuned-version", metavar="X.Y", help="Judge by this release of TuneD, not the installed one."),
    ] = None,
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
    from advisor.operations import imports

    host = open_host(root, snapshot)
    if listing:
        return _list_importable(imports.list_importable(host), as_json=as_json)
    if output is not None and install:
        raise UsageError("-o and --install exclude each other")
    found = imports.import_profile(source, from_host=from_host, mode=mode, host=host, tuned_version=tuned_version)
    target = None
    if install or output is not None:
        found, target = imports.save_profile(found, None if install else output)
    # The profile on standard output unless it was written, the report where the profile is not.
    toml = imports.render_profile(found)
    from advisor.report.recommend import import_document, imported_text

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

    from advisor.operations.imports import place_in_library

    plan = f"advisor plan {target.stem} lists what it would change here"
    place = place_in_library(target)
    if not place:
        return plan
    return f"as root `install -D -m 644 -- {shlex.quote(str(target))} {place}`; then {plan}"


def _list_importable(found: Mapping[str, str], *, as_json: bool) -> int:
    if as_json:
        sources = [{"source": source, "file": file} for source, file in found.items()]
        print_json({"schema": "advisor.importable/1", "sources": sources})
        return 0
    from advisor.report.format import clean

    print_text("\n".join(clean(f"{source}  {file}") for source, file in found.items()) or "Nothing is installed.")
    return 0


def judge(
    files: Annotated[
        list[str] | None, Argument(metavar="[FILE…|-]", help="Texts with settings; - is standard input, the default.")
    ] = None,
    root: Root = None,
    snapshot: Snapshot = None,
    workload: Workload = None,
    as_json: Json = False,
) -> int:
    """Judge an article's settings on this host, a line each. Runs nothing of them. Exit code 1 where a line is harmful,
    3 where no line is a setting."""
    from advisor.operations.judge import MAX_BYTES, judge_lines, read_given
    from advisor.report.recommend import judge_document, judge_text

    names = files or ["-"]
    if "-" in names and str(snapshot) == "-":
        raise UsageError("--snapshot - takes standard input, as the text does", hint="name a file for one of both")
    host = operations.open_host(root, snapshot)
    if "-" in names and sys.stdin is None:
        raise UsageError("standard input is closed", hint="name a file")
    if "-" in names and sys.stdin.isatty():
        say("Paste the settings, then press Ctrl-D.")
    texts = {name: sys.stdin.buffer.read(MAX_BYTES + 1) if name == "-" else read_given(name) for name in names}
    found = judge_lines(texts, host, workload=workload, place=str(root or snapshot or ""))
    name = found.facts.host.hostname
    if as_json:
        print_json(judge_document(found.judged, name, found.provenance.source))
    else:
        print_text(
            judge_text(
                *(found.judged, name or "this host"),
                width=terminal_width(),
                color=wants_color(),
                is_live=found.provenance.is_this_host,
                with_files=len(files or ()) > 1,
            )
        )
    return 3 if not found.has_settings else 1 if found.is_harmful else 0


COMMANDS = {"judge": judge}
