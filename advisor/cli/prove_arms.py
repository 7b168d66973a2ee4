"""``advisor prove --arms`` and ``--ablate``: profiles, or values of one, against the host as it is, in one session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.proof.blocks import ArmsProof
    from advisor.proof.session_runner import Progress


def run_arms(
    measure: Callable[[Progress], ArmsProof],
    html: Path | None,
    svg: Path | None,
    *,
    as_json: bool,
    write_reduced: Callable[[ArmsProof], object] | None = None,
) -> int:
    """Measure, print, and write page, picture and the reduced profile. 0 where a gain of any arm is proven, else 1."""
    from advisor.cli.progress import session_progress
    from advisor.cli.prove_page import UNWRITTEN
    from advisor.errors import AdvisorError
    from advisor.proof.arms_session import InterruptedArmsError

    try:
        with session_progress() as progress:
            found = measure(progress)
    except InterruptedArmsError as stopped:
        show_arms(stopped.result, html, svg, as_json=as_json)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    code = show_arms(found, html, svg, as_json=as_json)
    if write_reduced is None:
        return code
    try:
        write_reduced(found)
    except AdvisorError as error:
        say(f"advisor: the reduced profile was not written: {error.message}")
        return UNWRITTEN if code == 0 else code
    say("the reduced profile is written; the result has the command that proves it")
    return code


def show_arms(found: ArmsProof, html: Path | None, svg: Path | None, *, as_json: bool) -> int:
    """Print a result and write what was asked for; the exit code of the command."""
    from advisor.cli.prove_page import UNWRITTEN, write_text
    from advisor.report.arms import arms_page, arms_svg, arms_text

    if found.saved_to:
        say(f"every run is kept in {found.saved_to}")
    if as_json:
        print_json(found)
    else:
        print_text(arms_text(found, width=terminal_width(), color=wants_color()))
    written = [
        write_text(path, made(found), noun)
        for path, made, noun in ((html, arms_page, "page"), (svg, arms_svg, "picture"))
        if path is not None
    ]
    if not all(written):
        return UNWRITTEN
    return 0 if found.has_gain else 1
