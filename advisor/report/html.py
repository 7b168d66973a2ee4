"""What every HTML page shares: its environment of templates, in which no text can be anything but text."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any

from advisor.report.format import clean
from advisor.report.severities import LOOKS, split_counts
from advisor.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


class Raw(str):
    """Text of our own that stands as it is."""

    def __html__(self) -> str:
        return self


@cache
def html_environment() -> Environment:
    """Return an environment that escapes everything and spells out what is not printable.

    Filters are ``place`` (percent or pixels), ``pixels`` and ``split_counts``.
    """
    from advisor.shell.templates import make_environment

    made = make_environment(escape_html=True).overlay(finalize=_mark_said)
    made.globals["severities"] = LOOKS
    made.filters["place"] = _format_place
    made.filters["split_counts"] = split_counts
    made.filters["pixels"] = _format_pixels
    return made


def render_page(page: str, *styles: str, **values: Any) -> str:
    """Return a page of a template, with its style sheet, the hash that its policy allows, and our version."""
    made = html_environment()
    style = "".join(made.get_template(f"{name}.css.j2").render() for name in styles or ("proof",))
    values |= {"style": Raw(style), "style_hash": style_hash(style), "version": __version__}
    return made.get_template(f"{page}.html.j2").render(values)


def style_hash(style: str) -> str:
    """The SHA-256 by which a page's policy allows its style sheet and no other."""
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _mark_said(value: object) -> object:
    """What is not printable is spelt out, here for every text of the page, so that none can be forgotten."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _format_place(value: float, unit: str) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") + unit if unit else _format_pixels(value)


def _format_pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
