"""``advisor why``."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from advisor.cli.monitored import MetricFiles, OpenMetrics, Prometheus, check_forms, observe_host
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Snapshot
from advisor.errors import UsageError

if TYPE_CHECKING:
    from advisor.diagnosis.diagnose import Diagnosis
    from advisor.operations.diagnosis import ObservedSpan

# ``advisor observe``.


def observe(
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Write the workload file here.")],
    seconds: Annotated[float, Option("--seconds", metavar="SECONDS", help="Observe this long.")] = 10.0,
    device: Annotated[
        str | None, Option("--device", metavar="DEV", help="Observe this disk. Default: the busiest one.")
    ] = None,
    unit: Annotated[
        str | None, Option("--unit", metavar="NAME", help="Observe the requests of this systemd unit alone.")
    ] = None,
) -> int:
    """Write a workload file, the fio twin of the observed load. It states its error. As root each request is traced;
    else the counters give a coarse twin. `prove`, `bench` and `recommend` take the file with --workload.

    Exit code 0 for a twin that was written, 3 with the reason where no faithful one can be made. The host is not
    changed.
    """
    from advisor.cli.progress import wait_progress
    from advisor.operations.diagnosis import check_observation, observe_load, save_workload
    from advisor.operations.files import check_output
    from advisor.report.why import twin_text

    # All that can be wrong is found before anything is waited for.
    check_observation(seconds=seconds, device=device, unit=unit)
    check_output(output)
    with wait_progress("observing", seconds):
        found = observe_load(seconds=seconds, device=device, unit=unit)
    print_text(twin_text(found, output, width=terminal_width(), color=wants_color()))
    save_workload(found, output)
    say(f"{output}: the workload file")
    return 0


# The terminal of ``advisor why --watch``: redraws, and takes keys one at a time.


def watch_terminal(seconds: float) -> Diagnosis:
    """Show the host until q or Ctrl-C, and return the last diagnosis. Raises UsageError without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--watch needs a terminal", hint="advisor why --seconds 60 observes without one")
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from advisor.operations.diagnosis import watch_host
    from advisor.report.why import LOOK_SECONDS, WatchScreen, saved_note

    console = Console(highlight=False)
    screen = WatchScreen(unicode="utf" in (sys.stdout.encoding or "").lower())
    watched = watch_host(seconds)
    paused_at: float | None = None
    note = ""
    with _single_keys(), Live(Text("observing …"), console=console, screen=True, auto_refresh=False) as live:
        due = time.monotonic() + 1
        try:
            while True:
                key = ""
                if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
                    key = os.read(sys.stdin.fileno(), 1).decode("ascii", "replace").lower()
                if key == "q" and watched.diagnosis is not None:
                    break
                if key == "p" and paused_at is None:
                    paused_at, note = time.monotonic(), "paused; p goes on"
                elif key == "p" and paused_at is not None:
                    # What was used meanwhile belongs to no look: the next one counts from here.
                    watched.advance()
                    screen.add_gap(max(1, round((time.monotonic() - paused_at) / LOOK_SECONDS)))
                    paused_at, note, due = None, "", time.monotonic() + LOOK_SECONDS
                if key == "s" and watched.diagnosis is not None:
                    place = Path(time.strftime("advisor-why-%Y%m%d-%H%M%S.tar.gz"))
                    watched.save_snapshot(place)
                    note = saved_note(place)
                if time.monotonic() >= due:
                    due = time.monotonic() + LOOK_SECONDS
                    if paused_at is None:
                        screen.add_uses(watched.advance())
                if watched.diagnosis is not None:
                    text = screen.render_text(watched.diagnosis, width=console.width, note=note, whole=watched.uses)
                    live.update(Text(text), refresh=True)
        except KeyboardInterrupt:
            if watched.diagnosis is None:
                raise
    return watched.diagnosis


@contextmanager
def _single_keys() -> Iterator[None]:
    """Keys arrive without Enter, and the terminal is as it was afterwards."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


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

        found = watch_terminal(observed)
    else:
        if snapshot is not None and seconds is not None:
            raise UsageError("--snapshot excludes --seconds: the span that was recorded counts")
        if html is not None:
            from advisor.cli.pages import check_files

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


COMMANDS = {"observe": observe, "why": why}
