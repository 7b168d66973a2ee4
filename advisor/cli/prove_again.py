"""``advisor prove --again``."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color


def prove_again(identity: str, pairs: int | None, given: Mapping[str, object], *, force: bool, as_json: bool) -> int:
    """Repeat a kept proof and print whether its gain is still there; the exit code of the command. ``given`` are the
    other options of the call. Raises UsageError for one of them: they are those of the proof."""
    from advisor.errors import UsageError
    from advisor.operations import again
    from advisor.proof.session_runner import InterruptedProofError
    from advisor.report.gain import gain_text
    from advisor.report.session_progress import show_progress

    for option, value in given.items():
        if value not in (None, False) and value != []:
            raise UsageError(
                f"{option} and --again exclude each other", hint="the proof is repeated with its own options"
            )
    try:
        found = again.prove_again(
            identity, pairs=pairs or again.PAIRS, force=force, progress=show_progress(say), say=say
        )
    except InterruptedProofError as stopped:
        say(f"advisor: {stopped.message}")
        return stopped.exit_code
    if as_json:
        print_json(found)
    else:
        print_text(gain_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_there else 1
