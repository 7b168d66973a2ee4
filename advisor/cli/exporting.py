"""``advisor profiles export``: a plan in the words of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from advisor.cli.change import Names, RuntimeOnly, ScriptOutput, Set
from advisor.cli.complete import export_forms
from advisor.cli.output import parse_settings, print_json, print_text, say
from advisor.cli.scan import Json, Root, Snapshot
from advisor.operations import open_host

if TYPE_CHECKING:
    from advisor.exporters import Bundle

# ``advisor apply-script``: a plan as a script that carries itself out on its host, with nothing installed there.


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


def export(
    names: Names,
    form: Annotated[
        str,
        Option(
            "--format",
            metavar="FORM",
            help="Write ansible, cloud-init, files (sysctl.d, udev, …), networkmanager, nmstate, shell or tuned.",
            autocompletion=export_forms,
        ),
    ],
    output: Annotated[
        Path | None,
        Option(
            "-o", "--output", metavar="DIR", help="Write the files below this new directory; without it, to stdout."
        ),
    ] = None,
    pairs: Set = None,
    root: Root = None,
    snapshot: Snapshot = None,
    as_json: Json = False,
) -> int:
    """Export what profiles set on this host for other tools. What a form cannot express is listed, never
    approximated."""
    from advisor.operations.exports import export_profiles

    plan, bundle = export_profiles(open_host(root, snapshot), names, parse_settings(pairs), form, output)
    if as_json:
        print_json(
            {
                "schema": "advisor.export/1",
                "format": form,
                "profiles": list(plan.profiles),
                "files": {path: content.decode("utf-8", "replace") for path, content in sorted(bundle.files.items())},
                "left_out": list(bundle.left_out),
                "not_kept": list(bundle.not_kept),
                "use": list(bundle.use),
            }
        )
    elif output is None:
        # One file as it is; several with a line of their path before each.
        for path, content in sorted(bundle.files.items()):
            if len(bundle.files) > 1:
                print_text(f"==> {path} <==")
            print_text(content.decode("utf-8", "replace"))
    _report_use(bundle, output, as_json=as_json)
    return 0 if bundle.files else 3


def _report_use(bundle: Bundle, output: Path | None, *, as_json: bool) -> None:
    """What is not carried, what a restart takes back, what was written, and how it is put to use: standard error."""
    for one in bundle.left_out:
        say(f"left out: {one.tunable} = {one.value}: {one.why}" if one.value else f"left out: {one.tunable}: {one.why}")
    for one in bundle.not_kept:
        say(f"not kept over a restart: {one.tunable} = {one.value}: {one.why}")
    if not bundle.files:
        say("nothing to export: this form carries no value of these profiles that this host takes")
        return
    if as_json:
        return
    if output is None:
        say("-o DIR writes the files and prints the command that uses them")
        return
    for path in sorted(bundle.files):
        say(f"written: {output / path}")
    for line in bundle.use:
        say(f"use it with: {line}")
