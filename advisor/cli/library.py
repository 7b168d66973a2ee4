"""``advisor profiles list|show|lint`` and ``advisor explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from advisor.cli.commands import make_group
from advisor.cli.complete import explainable_ids, profile_names, schema_names
from advisor.cli.exporting import export
from advisor.cli.judge import import_profile
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot, Volumes, Workload
from advisor.errors import UsageError
from advisor.operations import open_host

if TYPE_CHECKING:
    from advisor.rules.judged import NumberedFindings

# ``advisor schema``.


def schema(
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="A document: scan, or advisor.scan/1.", autocompletion=schema_names)
    ] = None,
    as_json: Json = False,
) -> int:
    """Print the JSON Schema of a document of --json. Without a name, the names of all documents."""
    from advisor.operations import library

    if name is not None:
        print_json(library.read_schema(name))
    elif as_json:
        print_json({"schema": "advisor.schemas/1", "schemas": library.list_schemas()})
    else:
        print_text("\n".join(library.list_schemas()))
    return 0


def list_profiles(as_json: Json = False) -> int:
    """List every profile with its title."""
    from advisor.operations import library

    found, faults = library.list_profiles()
    for error in faults:
        say(f"advisor: {error.message}")
    if as_json:
        print_json({"schema": "advisor.profiles/1", "profiles": list(found)})
    else:
        from advisor.report.library import profile_list_text

        print_text(profile_list_text(found, width=terminal_width(), color=wants_color()))
    return faults[-1].exit_code if faults else 0


def show(
    name: Annotated[str, Argument(metavar="NAME", help="A profile by name or file.", autocompletion=profile_names)],
    as_json: Json = False,
) -> int:
    """Show what a profile sets, why, and when it hurts. With its parameters and sources."""
    from advisor.operations.library import read_profile

    profile = read_profile(name)
    if as_json:
        print_json({"schema": "advisor.profile/1", **_profile_document(profile)})
    else:
        from advisor.report.library import profile_text

        print_text(profile_text(profile, width=terminal_width(), color=wants_color()))
    return 0


def _profile_document(record: object) -> dict[str, object]:
    import msgspec

    document: dict[str, object] = msgspec.to_builtins(record)
    return document


def lint(files: Annotated[list[Path], Argument(metavar="FILE…", help="Profile files, TOML.")]) -> int:
    """Check profile files. The first error is named with file, line and field; exit code 2."""
    from advisor.operations.library import lint_file
    from advisor.report.format import clean

    for path in files:
        checked = lint_file(path)
        profile = checked.profile
        for word, said in checked.judged:
            print_text(clean(f"{path}: {profile.name}: {word}: {said.severity}: {said.title} ({said.id}): {said.why}"))
        if checked.lax is not None and profile.proof is not None:
            tunable, needed = checked.lax
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
            autocompletion=explainable_ids,
        ),
    ],
    as_json: Json = False,
    workload: Workload = None,
    volumes: Volumes = None,
    root: Root = None,
    snapshot: Snapshot = None,
) -> int:
    """Explain a finding, rule, profile or tunable. With its sources, and where they differ."""
    import re

    from advisor.host.provenance import is_own_tree
    from advisor.operations.library import explain_absence, explain_last_word
    from advisor.report.explain import describe_handling, explanation_text
    from advisor.report.explain import explain_id as look_up

    host = open_host(root, snapshot)
    is_captured = root is not None or snapshot is not None
    is_elsewhere = is_captured and not is_own_tree(root)
    groups: tuple[NumberedFindings, ...] = ()
    if is_captured or workload or volumes or re.fullmatch(r"[0-9]{1,9}", identity):
        from advisor.operations.findings import find_captured

        groups = find_captured(identity, host, workload=workload, volumes=volumes)
    found = look_up(groups[0].id if groups else identity, host)
    absent = explain_absence(found.id, host) if found.kind == "tunable" else None
    similar = [text for label, text in found.details if label == "similar"]
    if absent and similar:
        hint = f"did you mean {', '.join(similar)}?"
        raise UsageError(f"{identity}: {absent}", hint=hint)
    if as_json:
        of_host = {
            "number": groups[0].number if groups else None,
            "findings": [one for group in groups for one in group.findings],
        }
        print_json({"schema": "advisor.explanation/1", **_profile_document(found), **of_host})
        return 0
    width, color = terminal_width(), wants_color()
    parts: list[str] = []
    for group in groups:
        from advisor.report.findings import group_text

        parts.append(group_text(group, found.hurts_when, width=width, color=color) + "\n")
    if is_captured and not groups and found.kind == "rule":
        parts.append(f"{'The captured' if is_elsewhere else 'This'} host has no finding of this rule.\n\n")
    elif is_elsewhere and groups:
        parts.append("The commands are for the captured host.\n\n")
    if absent:
        what = "Not known of the captured host" if is_elsewhere else "This host does not have it"
        parts.append(f"{what}: {absent}.\n\n")
    if host is not None and found.kind == "tunable" and not absent:
        path = describe_handling(found.id, host=host).persists_in
        last = explain_last_word(found.id, path, host)
        parts += [f"Has the last word here: {last}.\n\n"] if last else []
    print_text("".join((*parts, explanation_text(found, width=width, color=color, below_finding=bool(groups)))))
    return 0


_PROFILES = make_group(
    "List, show, check, import and export profiles.",
    {"export": export, "import": import_profile, "list": list_profiles, "show": show, "lint": lint},
    default=list_profiles,
)


COMMANDS = {"schema": schema, "profiles": _PROFILES, "explain": explain}
