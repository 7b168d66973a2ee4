"""Jinja2, set up once for shell and once for HTML; imported only by what renders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.host.package_data import package_data

if TYPE_CHECKING:
    from jinja2 import Environment


def template_directory() -> Path:
    """Where the templates of this installation lie: inside the package, or at the top of a checkout."""
    return package_data("templates")


@cache
def make_environment(*, escape_html: bool) -> Environment:
    """The environment for HTML, or for shell, where every name goes through the ``sh`` filter instead."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from advisor.shell import state_table
    from advisor.shell.quote import shell_quote

    made = Environment(
        loader=FileSystemLoader(template_directory()),
        autoescape=escape_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["sh"] = shell_quote
    made.globals["state_table"] = state_table
    return made


def render_shell(template: str, context: Mapping[str, object]) -> str:
    """A shell script from its template."""
    return make_environment(escape_html=False).get_template(template).render(context)
