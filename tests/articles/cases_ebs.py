"""The cases of docs/systems/ebs.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles.table import Case

CASES: Final[tuple[Case, ...]] = ()
