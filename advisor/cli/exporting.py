"""``advisor profiles export``: a plan in the words of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.complete import profile_names
from advisor.cli.output import print_json, print_text, say, settings, the_host
from advisor.cli.scan import Json, Root, Snapshot

if TYPE_CHECKING:
    from advisor.interchange.export import Bundle


def export(
    names: Annotated[list[str], typer.Argument(metavar="PROFILE…", autocompletion=profile_names)],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORM",
            help="ansible, cloud-init, files (sysctl.d, udev, …), networkmanager, nmstate, shell or tuned.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write the files below this new directory.")
    ] = None,
    pairs: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="A parameter of the profile; may be given again.")
    ] = None,
    root: Root = None,
    snapshot: Snapshot = None,
    as_json: Json = False,
) -> int:
    """What profiles mean on this host, as files for other tools. What a form has no word for is listed, never
    approximated."""
    from advisor.facts.whole import scan
    from advisor.interchange.export import collect
    from advisor.interchange.export import export as exported
    from advisor.workflow import plan_profiles

    host = the_host(root, snapshot)
    facts = scan(host)
    plan = plan_profiles(host, names, settings(pairs), facts=facts)
    bundle = exported(collect(host, plan, hostname=facts.host.hostname), form)
    if output is not None:
        from advisor.interchange.export.write import write

        write(bundle, output)
    if as_json:
        print_json(_document(form, plan.profiles, bundle))
    elif output is None:
        _print(bundle)
    for one in bundle.left_out:
        say(f"left out: {one.tunable} = {one.value}: {one.why}")
    if not as_json:
        for line in bundle.use if bundle.files else ():
            say(f"use it with: {line}")
    return 0 if bundle.files else 3


def _document(form: str, profiles: tuple[str, ...], bundle: Bundle) -> dict[str, object]:
    return {
        "schema": "advisor.export/1",
        "format": form,
        "profiles": list(profiles),
        "files": {path: content.decode("utf-8", "replace") for path, content in sorted(bundle.files.items())},
        "left_out": list(bundle.left_out),
        "use": list(bundle.use),
    }


def _print(bundle: Bundle) -> None:
    """One file as it is; several with a line of their path before each."""
    for path, content in sorted(bundle.files.items()):
        if len(bundle.files) > 1:
            print_text(f"==> {path} <==")
        print_text(content.decode("utf-8", "replace"))
