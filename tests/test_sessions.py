"""The manual: every page is reached, every link resolves."""

from __future__ import annotations

import re
from pathlib import Path

from docs.sessions import DOCS

PAGES = sorted(DOCS.rglob("*.md"))


def links_of(page: Path) -> list[tuple[str, Path]]:
    """The text and the target of each relative link."""
    found = re.findall(r"\[([^\]]*)\]\(([^)#\s]+)[^)]*\)", page.read_text())
    return [(text, (page.parent / target).resolve()) for text, target in found if "://" not in target]


def test_every_page_is_reached_from_the_landing_page_and_every_link_resolves() -> None:
    seen, ahead = set(), [DOCS / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        for _text, target in links_of(page):
            assert target.exists(), f"{page}: {target}"
            ahead += [target] if target.suffix == ".md" and target.is_relative_to(DOCS) else []
    assert set(PAGES) - seen == set()
