"""The table of causes in docs/why.md: ``python -m tests.diagnosis.table`` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from advisor.diagnosis.diagnose import list_causes
from tests.diagnosis.live import INJECTIONS

PAGE: Final = Path(__file__).parents[2] / "docs" / "why.md"
SEEN_LIVE: Final = frozenset(identity for one in INJECTIONS for identity in one.right)
"""Causes that were answered in a run with the bottleneck really there."""


def cause_rows() -> list[str]:
    """Return a row for each cause: its id, its help, and the counters that it reads."""
    rows = ["| cause | helps | reads |", "|---|---|---|"]
    for cause in sorted(list_causes(), key=lambda cause: cause.id):
        name = f"**`{cause.id}`**" if cause.is_error else f"`{cause.id}`"
        rows.append(f"| {name}{'' if cause.id in SEEN_LIVE else ' *'} | {cause.help} | {cause.what} |")
    return rows


if __name__ == "__main__":
    head, rest = PAGE.read_text().split("<!-- causes -->\n")
    tail = rest.split("<!-- end of causes -->\n")[1]
    rows = "\n".join(cause_rows())
    PAGE.write_text(f"{head}<!-- causes -->\n{rows}\n<!-- end of causes -->\n{tail}")
