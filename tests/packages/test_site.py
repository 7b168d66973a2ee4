"""The documentation as a site: every page has its place, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from advisor.operations.library import read_schema

from .conftest import ROOT, run


def test_it_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    # --strict makes a warning a failure: a page outside the navigation, a link or an anchor that leads nowhere.
    run(sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", tmp_path / "site")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    fetched = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(?:https?:)?//""")
    for page in pages:
        assert not fetched.search(page.read_text()), page
    schema = json.loads((tmp_path / "site/schemas/scan.1.json").read_text())
    assert schema == read_schema("scan")
    assert "apply_profiles" in (tmp_path / "site/api/index.html").read_text()
    assert not list((tmp_path / "site").rglob("*.py")), "generators are no part of the manual"


def test_the_readme_leads_to_every_page_by_itself_or_by_the_manual() -> None:
    text = (ROOT / "README.md").read_text()
    linked = set(re.findall(r"\]\((docs/[^)#]+)\)", text))
    assert not [one for one in linked if not (ROOT / one).exists()]
    assert "docs/README.md" in linked
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")} - {"docs/README.md"}
    index = (ROOT / "docs/README.md").read_text()
    assert not {page for page in pages if page not in linked and f"]({Path(page).name})" not in index}
