"""``advisor prove --arms``: several profiles against the host as it is, in one session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color

if TYPE_CHECKING:
    from advisor.profiles.requested import RequestedProfile
    from advisor.proof.blocks import ArmsProof
    from advisor.proof.command_runner import CommandProcess
    from advisor.proof.session_runner import Settings


def prove_arms(
    arms: str,
    workloads: Sequence[str],
    values: Mapping[str, str],
    chosen: Settings,
    peer: str | None,
    command: CommandProcess | None,
    reconnect: str | None,
    options: Sequence[str],
    html: Path | None,
    svg: Path | None,
    *,
    as_json: bool,
) -> int:
    """Measure, print, write the page and the picture. 0 where a gain of any arm is proven, 1 where none is."""
    from advisor.cli.progress import session_progress
    from advisor.operations import prove
    from advisor.proof.arms_session import InterruptedArmsError

    try:
        with session_progress() as progress:
            found = prove.prove_arms(
                arms,
                workloads,
                chosen,
                values=values,
                reconnect=reconnect,
                peer=peer,
                command=command,
                options=options,
                progress=progress,
                say=say,
            )
    except InterruptedArmsError as stopped:
        show_arms(stopped.result, html, svg, as_json=as_json)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    return show_arms(found, html, svg, as_json=as_json)


def prove_values(
    asked: RequestedProfile,
    workloads: Sequence[str],
    values: Mapping[str, str],
    chosen: Settings,
    peer: str | None,
    command: CommandProcess | None,
    reconnect: str | None,
    options: Sequence[str],
    reduced: Path | None,
    html: Path | None,
    svg: Path | None,
    *,
    as_json: bool,
) -> int:
    """Measure the values of one profile, print, and write page, picture and the reduced profile. 0 where a gain of any
    value is shown, 1 where none is."""
    from advisor.cli.progress import session_progress
    from advisor.cli.prove_page import UNWRITTEN
    from advisor.errors import AdvisorError
    from advisor.operations import prove
    from advisor.proof.arms_session import InterruptedArmsError

    try:
        with session_progress() as progress:
            found = prove.prove_values(
                asked,
                workloads,
                chosen,
                values=values,
                reconnect=reconnect,
                peer=peer,
                command=command,
                options=options,
                progress=progress,
                say=say,
            )
    except InterruptedArmsError as stopped:
        show_arms(stopped.result, html, svg, as_json=as_json)
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    code = show_arms(found, html, svg, as_json=as_json)
    if reduced is None:
        return code
    try:
        prove.write_reduced_profile(reduced, found, asked, values)
    except AdvisorError as error:
        say(f"advisor: {reduced} was not written: {error.message}")
        return UNWRITTEN if code == 0 else code
    say(f"{reduced}: the reduced profile; the result has the command that proves it")
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
