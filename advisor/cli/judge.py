"""``advisor judge``."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import Argument

from advisor import operations
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot, Workload
from advisor.errors import UsageError


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
    from advisor.report.judge_page import judge_document, judge_text

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
