"""``advisor profiles export``: a plan in the words of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from advisor.cli.change import Names
from advisor.cli.output import print_json, print_text, say, settings, the_host
from advisor.cli.parameters import Option
from advisor.cli.scan import Json, Root, Snapshot

if TYPE_CHECKING:
    from advisor.exporters import Bundle


def export(
    names: Names,
    form: Annotated[
        str,
        Option(
            "--format",
            metavar="FORM",
            help="ansible, cloud-init, files (sysctl.d, udev, …), networkmanager, nmstate, shell or tuned.",
        ),
    ],
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="DIR", help="Write the files below this new directory.")
    ] = None,
    pairs: Annotated[
        list[str] | None, Option("--set", metavar="K=V", help="A parameter of the profile; may be given again.")
    ] = None,
    root: Root = None,
    snapshot: Snapshot = None,
    as_json: Json = False,
) -> int:
    """What profiles mean on this host, as files for other tools. What a form has no word for is listed, never
    approximated."""
    from advisor.exporters import collect
    from advisor.exporters import export as exported
    from advisor.exporters.comparison import senses
    from advisor.facts.host_facts import scan
    from advisor.planner import plan_profiles

    host = the_host(root, snapshot)
    facts = scan(host)
    given = settings(pairs)
    plan = plan_profiles(host, names, given, facts=facts)
    wanted = collect(host, plan, hostname=facts.host.hostname, senses=senses(host, names, given, facts))
    bundle = _placed(exported(wanted, form), output)
    if output is not None:
        from advisor.exporters.write import write

        write(bundle, output)
    if as_json:
        print_json(_document(form, plan.profiles, bundle))
    elif output is None:
        _print(bundle)
    _tell(bundle, output, as_json=as_json)
    return 0 if bundle.files else 3


def _placed(bundle: Bundle, output: Path | None) -> Bundle:
    """With the directory's name in the commands that put the files to use."""
    if output is None:
        return bundle
    import msgspec

    from advisor.shell.quote import shell_quote

    # A path that begins with a dash would be an option.
    name = str(output) if not str(output).startswith("-") else f"./{output}"
    return msgspec.structs.replace(bundle, use=tuple(_filled(line, name, shell_quote) for line in bundle.use))


def _filled(line: str, name: str, quote: Callable[[str], str]) -> str:
    """``DIRECTORY/FILE`` is quoted as one word: the name may hold blanks."""
    return re.sub(r"DIRECTORY(/\S*)", lambda found: quote(name + found[1]), line)


def _tell(bundle: Bundle, output: Path | None, *, as_json: bool) -> None:
    """What is not carried, what a restart takes back, what was written, and how it is put to use: standard error."""
    for one in bundle.left_out:
        say(f"left out: {one.tunable} = {one.value}: {one.why}")
    for one in bundle.not_kept:
        say(f"not kept over a restart: {one.tunable} = {one.value}: {one.why}")
    if as_json or not bundle.files:
        return
    if output is None:
        say("with -o DIR the files are written, and what puts them to use is said")
        return
    for path in sorted(bundle.files):
        say(f"written: {output / path}")
    for line in bundle.use:
        say(f"use it with: {line}")


def _document(form: str, profiles: tuple[str, ...], bundle: Bundle) -> dict[str, object]:
    return {
        "schema": "advisor.export/1",
        "format": form,
        "profiles": list(profiles),
        "files": {path: content.decode("utf-8", "replace") for path, content in sorted(bundle.files.items())},
        "left_out": list(bundle.left_out),
        "not_kept": list(bundle.not_kept),
        "use": list(bundle.use),
    }


def _print(bundle: Bundle) -> None:
    """One file as it is; several with a line of their path before each."""
    for path, content in sorted(bundle.files.items()):
        if len(bundle.files) > 1:
            print_text(f"==> {path} <==")
        print_text(content.decode("utf-8", "replace"))
