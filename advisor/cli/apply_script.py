"""``advisor apply-script``: a plan as a script that carries itself out on its host, with nothing installed there."""

from __future__ import annotations

from advisor.cli.change import Names, RuntimeOnly, ScriptOutput, Set
from advisor.cli.output import parse_settings, print_text, say
from advisor.cli.scan import Root, Snapshot
from advisor.operations import open_host


def apply_script(
    names: Names,
    pairs: Set = None,
    output: ScriptOutput = None,
    root: Root = None,
    snapshot: Snapshot = None,
    runtime_only: RuntimeOnly = False,
) -> int:
    """Print a POSIX sh script that applies profiles. It is for one host, this or a captured one, and needs nothing
    installed there."""
    from advisor.operations.exports import write_apply_script
    from advisor.operations.files import write_output

    text = write_apply_script(open_host(root, snapshot), names, parse_settings(pairs), runtime_only=runtime_only)
    if output is None:
        print_text(text)
    else:
        write_output(output, text, mode=0o700)
        say(f"{output}: run it on its host as root: sh {output} check, then apply")
    return 0


COMMANDS = {"apply-script": apply_script}
