"""Progress on standard error: words and a bar on a terminal, else about ten plain lines.

The bar vanishes when its block ends, however it ends. What is written to standard error meanwhile appears above it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from advisor.cli.output import say
from advisor.fleet import counted_hosts
from advisor.host.signals import interruptible
from advisor.report.format import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress

    from advisor.fleet.runs.executor import Say
    from advisor.proof.session_runner import ProgressEvent

_REFRESHES_PER_SECOND = 2
"""More would load a host that is being measured."""
_WIDTH = 100
_MANY = 50
"""Hosts that are read without a wait worth a line."""


@contextmanager
def wait_progress(words: str, seconds: float | None = None) -> Iterator[None]:
    """Show ``words`` for a wait of ``seconds``, or of unknown length."""
    with _shown() as display:
        display.show(words, seconds_left=seconds)
        yield


@contextmanager
def session_progress() -> Iterator[Callable[[ProgressEvent], None]]:
    """Show the plan and the stages of a measured session. The bar starts with the first stage, so that a question may
    be asked before."""
    from advisor.report.proof.tuning import plan_lines, stage_words

    with _shown() as display:
        before: ProgressEvent | None = None
        block = 0

        def tell(event: ProgressEvent) -> None:
            nonlocal before, block
            if event.stage == "plan":
                display.close()
                for line in plan_lines(event):
                    say(line)
            else:
                block += event.stage == "pair" and not event.pair
                step = event.stage, 10 * event.pair // event.pairs if event.pair else block
                left = None if event.stage == "restore" else event.seconds_left
                display.show(stage_words(event, before, block), step, seconds_left=left)
            before = event

        yield tell


@contextmanager
def fleet_progress(*, has_lines: bool = True) -> Iterator[Callable[[str], Callable[..., None]]]:
    """Show ``37 of 100 hosts asked, 2 failed``, by a counter for each verb; a bar alone unless ``has_lines``."""
    with _shown() as display:

        def count(verb: str) -> Callable[..., None]:
            def show(done: int, total: int, failed: int = 0) -> None:
                words = f"{done} of {counted_hosts(total)} {verb}" + (f", {failed} failed" if failed else "")
                is_line = has_lines and (verb != "read" or total > _MANY)
                display.show(words, (verb, 10 * done // total) if is_line else None, done=done, total=total)
                if done == total:
                    # A question, or the answer on standard output, may follow.
                    display.close()

            return show

        yield count


@contextmanager
def run_progress() -> Iterator[Say]:
    """Tell the steps of a run of a fleet as lines; show the hosts that are done as a bar alone."""
    from advisor.fleet.runs.executor import Say

    with fleet_progress(has_lines=False) as count:
        yield Say(say, count)


@contextmanager
def _shown() -> Iterator[_Display]:
    display = _Display()
    # SIGTERM would kill the process and leave the bar on the terminal.
    with interruptible((signal.SIGTERM,)) if display.is_live else nullcontext(), closing(display):
        yield display


class _Display:
    """The present step: its words and how far it is."""

    def __init__(self) -> None:
        # The stream is None if the descriptor was closed before the start.
        is_terminal = bool(sys.stderr and sys.stderr.isatty())
        self.is_live = is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        self._bar: Progress | None = None
        self._step: object = None

    def show(
        self, words: str, step: object = "", *, seconds_left: float | None = None, done: int = 0,
        total: int | None = None,
    ) -> None:  # fmt: skip
        """Show words and bar. As plain lines, only the first words of each ``step`` are shown.

        The bar shows the time until ``seconds_left`` have passed, or ``done`` of ``total``.
        """
        if not self.is_live:
            if step not in (None, self._step):
                self._step = step
                say(words if seconds_left is None else f"{words}, about {format_duration(seconds_left)} left")
            return
        self._bar = self._bar or _make_bar()
        task = self._bar.tasks[0]
        ends = None if seconds_left is None else (task.elapsed or 0.0) + seconds_left
        self._bar.update(task.id, description=words, completed=done, ends=ends)
        task.total = total if ends is None else ends
        with suppress(OSError, ValueError):
            self._bar.start()

    def close(self) -> None:
        """Remove the bar."""
        bar, self._bar = self._bar, None
        # A terminal that is gone must not prevent a rollback.
        with suppress(OSError, ValueError):
            if bar is not None:
                bar.stop()


def _make_bar() -> Progress:
    from rich.console import Console, RenderableType
    from rich.constrain import Constrain
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.text import Text

    class Bar(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            for task in self.tasks:
                elapsed, ends = task.elapsed or 0.0, task.fields["ends"]
                left = task.time_remaining
                if ends is not None:
                    left = max(0.0, ends - elapsed)
                    task.completed = min(elapsed, ends)
                task.fields["times"] = format_duration(elapsed)
                task.fields["times"] += "" if left is None else f", about {format_duration(left)} left"
                yield Text(task.description)
            # The ^C that a terminal echoes must not begin a new line, which would be one to remove, too.
            yield Constrain(self.make_tasks_table(self.tasks), min(_WIDTH, console.width - 3))

    console = Console(file=sys.stderr, force_terminal=True, highlight=False)
    # A kill could not show a hidden cursor again.
    console.show_cursor = lambda show=True: False  # type: ignore[method-assign]
    bar = Bar(
        BarColumn(bar_width=None), TextColumn("{task.fields[times]}", markup=False), console=console, expand=True,
        refresh_per_second=_REFRESHES_PER_SECOND, redirect_stdout=False, transient=True,
    )  # fmt: skip
    bar.add_task("", ends=None, times="")
    return bar
