"""The terminal of ``advisor why --watch``: redraws, and takes keys one at a time."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.errors import UsageError
from advisor.operations.diagnosis import watch_host
from advisor.report.watch import LOOK_SECONDS, WatchScreen, saved_note

if TYPE_CHECKING:
    from advisor.diagnosis.diagnose import Diagnosis


def watch_terminal(seconds: float) -> Diagnosis:
    """Show the host until q or Ctrl-C, and return the last diagnosis. Raises UsageError without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--watch needs a terminal", hint="advisor why --seconds 60 observes without one")
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

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
