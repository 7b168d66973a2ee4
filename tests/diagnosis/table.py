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
    """What each cause reads, from when it counts, and by which source."""
    rows = ["| cause | helps | what is read | counts from | sources |", "|---|---|---|---|---|"]
    for cause in sorted(list_causes(), key=lambda one: one.id):
        error = "; an error: it comes first" if cause.is_error else ""
        error += "" if cause.id in SEEN_LIVE else "; *not seen live*"
        rows.append(
            f"| `{cause.id}` | {cause.help} | {cause.what} | {cause.threshold}{error} | {' · '.join(cause.sources)} |"
        )
    return rows


if __name__ == "__main__":
    head, rest = PAGE.read_text().split("<!-- causes -->\n")
    tail = rest.split("<!-- end of causes -->\n")[1]
    rows = "\n".join(cause_rows())
    PAGE.write_text(f"{head}<!-- causes -->\n{rows}\n<!-- end of causes -->\n{tail}")
