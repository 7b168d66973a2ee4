"""``advisor why``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from advisor.cli.monitored import MetricFiles, OpenMetrics, Prometheus, check_forms, observe_host
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Snapshot

if TYPE_CHECKING:
    from advisor.operations.diagnosis import ObservedSpan


def why(
    seconds: Annotated[
        float | None, Option("--seconds", metavar="SECONDS", help="Observe this long.  [default: 10.0]")
    ] = None,
    as_json: Json = False,
    snapshot: Snapshot = None,
    watch: Annotated[
        bool, Option("--watch", help="Redraw every two seconds until q, then print what binds. Keys: q, p, s.")
    ] = False,
    html: Annotated[
        Path | None,
        Option("--html", metavar="FILE", help="Write the span as a page with the host's picture, too; - is stdout."),
    ] = None,
    prometheus: Prometheus = None,
    openmetrics: OpenMetrics = None,
) -> int:
    """Say what binds this host now. Observes its counters, names the narrowest resource that holds it up, with the
    evidence, who asks, and whether tuning can help. Exit code 0 where nothing binds, 1 where something does. Changes
    nothing; needs no root, and says what root would add."""
    from advisor.cli.progress import wait_progress
    from advisor.errors import UsageError
    from advisor.operations.diagnosis import check_seconds, observe_span, read_observed_span

    files = MetricFiles(prometheus, openmetrics)
    check_forms(files, as_json=as_json, pages={"--html": html})
    observed = 10.0 if seconds is None else seconds
    check_seconds(observed)
    if watch:
        if snapshot is not None or as_json or html is not None or files.is_asked:
            raise UsageError(
                "--watch excludes --json, --html, --snapshot and metrics: it is for the running host and a terminal"
            )
        from advisor.cli.watch import watch_terminal

        found = watch_terminal(observed)
    else:
        if snapshot is not None and seconds is not None:
            raise UsageError("--snapshot excludes --seconds: the span that was recorded counts")
        if html is not None:
            from advisor.cli.scan_picture import check_files

            check_files({"--html": html}, printing="--json" if as_json else "metrics" if files.takes_output else None)

        def look() -> ObservedSpan:
            if snapshot is not None:
                return read_observed_span(snapshot)
            # A timer that writes metrics would mail the line.
            with nullcontext() if files.is_asked else wait_progress("observing", observed):
                return observe_span(seconds=observed)

        seen = observe_host(look, files)
        found = seen.diagnosis
        if html is not None and _write_page(seen, html):
            return 1 if found.binds else 0
    if files.takes_output:
        pass
    elif as_json:
        from advisor.report.why import why_document

        print_json(why_document(found))
    else:
        from advisor.report.why import why_text

        print_text(why_text(found, width=terminal_width(), color=wants_color()))
    return 1 if found.binds else 0


def _write_page(seen: ObservedSpan, html: Path) -> bool:
    """Write the page; whether it went to standard output, in place of the text."""
    from advisor.operations.pictures import find_services
    from advisor.report.why_page import why_page

    facts, services = find_services(seen.host, seen.context.facts)
    page = why_page(seen.diagnosis, seen.span, seen.context, facts, services, seen.provenance)
    if str(html) == "-":
        sys.stdout.buffer.write(page.encode("utf-8", "replace"))
        return True
    from advisor.operations.files import write_output

    write_output(html, page.encode("utf-8", "replace"))
    say(f"{html}: the span as a page")
    return False


COMMANDS = {"why": why}
