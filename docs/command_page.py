"""The page of commands: the options of each, in the groups of help, with the page that says more."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from unittest.mock import patch

from advisor.cli.help_text import ENVIRONMENT, EXIT_CODES, FILES, GROUPS
from advisor.cli.parser import build_program, walk_commands

MORE = {
    "scan": "scan.md",
    "explain": "rules.md",
    "judge": "advice.md",
    "recommend": "advice.md",
    "mute": "how-to/silence-a-finding.md",
    "unmute": "how-to/silence-a-finding.md",
    "limits": "limits.md",
    "size": "size.md",
    "why": "why.md",
    "probe": "probing.md",
    "snapshot": "how-to/capture-a-host.md",
    "plan": "profile-format.md",
    "apply": "safety.md",
    "fix": "how-to/fix-one-finding.md",
    "confirm": "how-to/apply-on-trial.md",
    "status": "layers.md",
    "verify": "monitoring.md",
    "rollback": "safety.md",
    "rollback-script": "how-to/roll-back-with-nothing-installed.md",
    "apply-script": "apply-script.md",
    "profiles": "profiles/README.md",
    **dict.fromkeys(("prove", "prove-arms", "prove-values", "prove-live", "prove-replay"), "proof.md"),
    "tune": "how-to/search-for-a-gain.md",
    "bench": "proof.md",
    "compare": "proof.md",
    "observe": "observe.md",
    "fleet": "fleet.md",
    "schema": "schemas/README.md",
    "mcp": "how-to/agents.md",
    "approve": "how-to/agents.md",
}
"""The page that says more of each command."""


SHARED_FROM = 3
"""So many commands with the same option and text make it a shared option, described once."""

ENTRY = re.compile(r"^  (?P<name>\S.*?)(?:  +(?P<text>\S.*))?$")


def help_pages() -> dict[str, str]:
    """Return the help of each command by its path, 80 columns wide."""
    program = build_program()
    pages = {}
    for path in ["", *(path for path, _command in walk_commands(program))]:
        with patch.dict(os.environ, COLUMNS="80"), contextlib.redirect_stdout(io.StringIO()) as printed:
            program([*path.split(), "--help"], standalone_mode=False, prog_name="advisor")
        pages[path] = printed.getvalue()
    return pages


def command_page(head: str, heading_of: dict[str, str]) -> str:
    """Return the page; ``heading_of`` has the heading of each page that is linked."""
    pages = {path: parse_help(text) for path, text in help_pages().items()}
    shared = shared_options(pages.values())
    lines = [
        head,
        "# Commands\n",
        "`advisor` alone on a terminal leads from the scan to a change, step by step. Scanning and planning need no"
        " root; changing a host does. `advisor COMMAND --help` prints the same of one command, with examples.\n",
        "## Shared options\n",
        "These mean the same in every command that names them.\n",
        *_bullets(shared.items()),
        "",
    ]
    for group, names in GROUPS.items():
        lines.append(f"## {group}\n")
        for name in names:
            for path in (path for path in pages if path == name or path.startswith(f"{name} ")):
                more = f" More: [{heading_of[MORE[name]]}]({MORE[name]})." if path == name else ""
                lines += [f"### advisor {path}\n", *_command(pages[path], shared, more)]
    for title, column, rows in (
        ("Exit codes", "code", EXIT_CODES),
        ("Files", "file", FILES),
        ("Environment", "variable", ENVIRONMENT),
    ):
        lines += [f"## {title}\n", f"| {column} | meaning |", "|---|---|"]
        lines += [f"| `{key}` | {text} |" for key, text in rows]
        lines.append("")
    lines.append("With `--json` a command prints one document on standard output and nothing else there.")
    return "\n".join(lines) + "\n"


class Help(NamedTuple):
    """The parts of a command's help: its usage, its paragraphs, and name and text of each entry of a section."""

    usage: str
    about: str
    sections: dict[str, dict[str, str]]


def parse_help(text: str) -> Help:
    """Return the parts of what ``--help`` prints."""
    usage, _, rest = text.partition("\n\n")
    about: list[str] = []
    sections: dict[str, dict[str, str]] = {}
    entries: dict[str, str] | None = None
    name = ""
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            entries = sections.setdefault(line.rstrip(":"), {})
        elif entries is None:
            about.append(line.strip())
        elif (entry := ENTRY.match(line)) is not None:
            name = " ".join(entry["name"].split())
            entries[name] = entry["text"] or ""
        elif line.strip():
            # A long word is broken after its hyphen, without a blank.
            glue = "" if entries[name].endswith("-") and not entries[name].endswith(" -") else " "
            entries[name] = f"{entries[name]}{glue}{line.strip()}".strip()
    return Help(" ".join(usage.split()), " ".join(about).strip(), sections)


def shared_options(pages: Iterable[Help]) -> dict[str, str]:
    """Return the options that several commands have with the same text."""
    counts = Counter(option for page in pages for option in page.sections.get("Options", {}).items())
    return dict(option for option, count in counts.items() if count >= SHARED_FROM)


def _command(page: Help, shared: Mapping[str, str], more: str) -> list[str]:
    options = page.sections.get("Options", {})
    common = [name for name, text in options.items() if shared.get(name) == text and not name.startswith("-h")]
    own = [(name, text) for name, text in options.items() if shared.get(name) != text]
    entries = [*page.sections.get("Arguments", {}).items(), *page.sections.get("Commands", {}).items(), *own]
    names = ", ".join(f"`{name.partition(' ')[0].rstrip(',')}`" for name in common)
    usage = page.usage.removeprefix("Usage: ").replace(" [OPTIONS]", "")
    return [f"`{usage}`: {page.about}{more}\n", *_bullets(entries), *([f"- Shared: {names}"] if names else []), ""]


def _bullets(entries: Iterable[tuple[str, str]]) -> list[str]:
    return [f"- `{name}`: {text}" for name, text in entries]
