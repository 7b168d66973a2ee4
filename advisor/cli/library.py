"""``advisor profiles list|show|lint`` and ``advisor explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from advisor.cli.complete import explainable, profile_names
from advisor.cli.exporting import export
from advisor.cli.importing import import_profile
from advisor.cli.output import print_json, print_text, say, terminal_width, the_host, wants_color
from advisor.cli.parameters import Argument, Group
from advisor.cli.scan import Json, Root, Snapshot
from advisor.errors import AdvisorError, UsageError


def list_profiles(as_json: Json = False) -> int:
    """Every profile with its title."""
    from advisor.profiles.profile import load, profile_paths

    found, code = [], 0
    for name in profile_paths():
        try:
            found.append(load(name))
        except AdvisorError as error:
            # The others are still there to be had.
            say(f"advisor: {error.message}")
            code = error.exit_code
    if as_json:
        print_json({"schema": "advisor.profiles/1", "profiles": found})
    else:
        from advisor.report.library import profile_list_text

        print_text(profile_list_text(found, width=terminal_width(), color=wants_color()))
    return code


def show(name: Annotated[str, Argument(autocompletion=profile_names)], as_json: Json = False) -> int:
    """One profile whole: what it sets, why, when it helps and hurts, its parameters and sources."""
    from advisor.profiles.requested import load_one

    profile = load_one([name]).profile
    if as_json:
        print_json({"schema": "advisor.profile/1", **_document(profile)})
    else:
        from advisor.report.library import profile_text

        print_text(profile_text(profile, width=terminal_width(), color=wants_color()))
    return 0


def _document(record: object) -> dict[str, object]:
    import msgspec

    document: dict[str, object] = msgspec.to_builtins(record)
    return document


def lint(files: Annotated[list[Path], Argument(metavar="FILE…")]) -> int:
    """Check profile files; the first error is named with its file, line and field, exit code 2."""
    from advisor.profiles.profile import lint_profile
    from advisor.proof.relevance import laxer_than_needed
    from advisor.report.format import clean

    for path in files:
        profile = lint_profile(path)
        lax = laxer_than_needed(profile)
        if lax is not None and profile.proof is not None:
            tunable, needed = lax
            print_text(
                clean(
                    f'{path}: {profile.name}: [proof] toggle = "{profile.proof.toggle}", but {tunable} needs {needed}:'
                    " advisor prove takes the stricter"
                )
            )
            continue
        print_text(clean(f"{path}: {profile.name}: no fault found"))
    return 0


def explain(
    identity: Annotated[
        str,
        Argument(
            metavar="ID|N",
            help="A rule, a profile, a tunable, or the number of a finding of this host's scan; contradictions lists "
            "where sources differ.",
            autocompletion=explainable,
        ),
    ],
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
) -> int:
    """Explain a finding, rule, profile or tunable, with its sources."""
    from advisor.report.explain import explain_id as look_up
    from advisor.report.explain import explanation_text

    group = None
    if identity.isascii() and identity.isdigit():
        from advisor.operations import scan
        from advisor.rules.numbering import find_numbered, number_findings

        (group,) = find_numbered(number_findings(scan(the_host(root, snapshot)).findings), identity)
    elif root or snapshot:
        raise UsageError("--root and --snapshot choose the host of a finding's number; an id needs no host")
    found = look_up(group.id if group else identity)
    if as_json:
        of_host = {"number": group.number if group else None, "findings": group.findings if group else ()}
        print_json({"schema": "advisor.explanation/1", **_document(found), **of_host})
        return 0
    width, color = terminal_width(), wants_color()
    if group is not None:
        from advisor.report.finding_blocks import group_text

        print_text(group_text(group, width=width, color=color) + "\n")
    print_text(explanation_text(found, width=width, color=color))
    return 0


_PROFILES: Final = Group(
    "The profile library.",
    {"export": export, "import": import_profile, "list": list_profiles, "show": show, "lint": lint},
    default=list_profiles,
)
COMMANDS: Final = {"profiles": _PROFILES, "explain": explain}
