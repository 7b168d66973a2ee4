"""The page of commands: what each prints as its help, in the groups of help, with the page that says more."""

from __future__ import annotations

from advisor.cli.help_text import ENVIRONMENT, EXIT_CODES, FILES, GROUPS
from docs.command_tables import help_pages

MORE = {
    "scan": "scan.md",
    "explain": "rules.md",
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
    "prove": "proof.md",
    "tune": "how-to/search-for-a-gain.md",
    "bench": "proof.md",
    "compare": "proof.md",
    "observe": "observe.md",
    "fleet": "fleet.md",
    "mcp": "how-to/agents.md",
    "approve": "how-to/agents.md",
}
"""The page that says more of each command."""


def command_page(head: str, heading_of: dict[str, str]) -> str:
    """The page; ``heading_of`` has the heading of each page that is linked."""
    pages = help_pages()
    lines = [head, "# Commands\n", "What `advisor COMMAND --help` prints, whole. `advisor` alone on a terminal leads"]
    lines += ["from the scan to a change, step by step. Scanning and planning need no root; changing a host does.\n"]
    for group, names in GROUPS.items():
        lines.append(f"## {group}\n")
        for name in names:
            for path in (path for path in pages if path == name or path.startswith(f"{name} ")):
                lines.append(f"### advisor {path}\n")
                if path == name:
                    lines.append(f"More: [{heading_of[MORE[name]]}]({MORE[name]})\n")
                lines.append(f"```text\n{pages[path].rstrip()}\n```\n")
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
