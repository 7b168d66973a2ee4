"""Jinja2, set up once for shell and once for HTML; imported only by what renders."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def template_directory() -> Path:
    """Where the templates of this installation lie: inside the package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "_data" / "templates"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "templates"


@cache
def environment(*, escape_html: bool) -> Environment:
    """The environment for HTML, or for shell, where every name goes through the ``sh`` filter instead."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from advisor.script import shell_quote

    made = Environment(
        loader=FileSystemLoader(template_directory()),
        autoescape=escape_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["sh"] = shell_quote
    return made
