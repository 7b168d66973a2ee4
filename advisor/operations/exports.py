"""A plan in the forms of other tools, and as a script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.exporters import Bundle, collect_settings, export_form
from advisor.exporters.apply_script import script_for_profiles
from advisor.exporters.settings import read_senses, write_bundle
from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.shell.quote import shell_quote


def export_profiles(
    host: Host, names: Sequence[str], settings: Mapping[str, str], form: str, output: Path | None = None
) -> tuple[Plan, Bundle]:
    """Return the plan of the profiles on ``host`` and its files in the form of another tool.

    With ``output``, a new directory, the files are written there; a form that carries no value has none. Raises
    UsageError for an unknown form, RefusedError.
    """
    facts = scan(host)
    plan = plan_profiles(host, names, settings, facts=facts)
    senses = read_senses(host, names, settings, facts)
    bundle = _place_bundle(
        export_form(collect_settings(host, plan, hostname=facts.host.hostname, senses=senses), form), output
    )
    if output is not None and bundle.files:
        write_bundle(bundle, output)
    return plan, bundle


def write_apply_script(
    host: Host, names: Sequence[str], settings: Mapping[str, str], *, runtime_only: bool = False
) -> str:
    """Return the POSIX ``sh`` script that applies the profiles to ``host`` with nothing installed there."""
    return script_for_profiles(host, names, settings, runtime_only=runtime_only)


def _place_bundle(bundle: Bundle, output: Path | None) -> Bundle:
    """With the directory's name in the commands that put the files to use."""
    if output is None:
        return bundle
    # A path that begins with a dash would be an option.
    name = str(output) if not str(output).startswith("-") else f"./{output}"

    def fill_directory(line: str) -> str:
        """``DIRECTORY/FILE`` is quoted as one word: the name may hold blanks."""
        return re.sub(r"DIRECTORY(/\S*)", lambda found: shell_quote(name + found[1]), line)

    return msgspec.structs.replace(bundle, use=tuple(map(fill_directory, bundle.use)))
