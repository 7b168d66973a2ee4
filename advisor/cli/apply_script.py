"""``advisor apply-script``: a plan as a script that carries itself out on its host, with nothing installed there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from advisor.cli.change import Names, RuntimeOnly, Set
from advisor.cli.output import print_text, say, settings, the_host
from advisor.cli.parameters import Option
from advisor.cli.scan import Root, Snapshot


def apply_script(
    names: Names,
    pairs: Set = None,
    output: Annotated[Path | None, Option("-o", "--output", metavar="FILE", help="Write it there, mode 0700.")] = None,
    root: Root = None,
    snapshot: Snapshot = None,
    runtime_only: RuntimeOnly = False,
) -> int:
    """A self-contained POSIX sh script that applies profiles to one host, this or a captured one, nothing installed."""
    from advisor.exporters.apply_script import script_for_profiles
    from advisor.operations.apply import write_script

    text = script_for_profiles(the_host(root, snapshot), names, settings(pairs), runtime_only=runtime_only)
    if output is None:
        print_text(text)
    else:
        write_script(text, output)
        say(f"{output}: run it on its host as root: sh {output} check, then apply")
    return 0


COMMANDS: Final = {"apply-script": apply_script}
