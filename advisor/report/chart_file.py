"""A chart as an SVG file of its own, with a head that says what it shows and a key."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

from advisor.report.charts.shapes import FONT_SIZE, LETTER_WIDTH, LINE_HEIGHT, Picture
from advisor.report.format import clean
from advisor.report.html import Raw, html_environment
from advisor.report.layout import Style

_FILE_WIDTH: Final = 760
_MARGIN: Final = 20
CHART_WIDTH: Final = _FILE_WIDTH - 2 * _MARGIN
"""Pixels that the chart itself has."""
_KEY_GAP: Final = 16.0
_KEY_HEIGHT: Final = 26.0


def chart_svg(drawn: Picture, title: str, said: Sequence[str], verdict: str = "", style: Style = "") -> str:
    """The file. ``said`` are lines below the title; ``verdict`` is what it proves, or why nothing."""
    made = html_environment()
    letters = int(CHART_WIDTH / (FONT_SIZE * LETTER_WIDTH))
    texts = [(title, "title", letters * 4 // 5), *((text, "quiet", letters) for text in said)]
    lines = list(_head_lines([*texts, *([(verdict, style, letters)] if verdict else [])]))
    key_top = lines[-1]["y"] + _KEY_GAP
    return made.get_template("chart_file.svg.j2").render(
        drawn=drawn,
        css=Raw(made.get_template("proof.css.j2").render()),
        title=title,
        lines=lines,
        width=_FILE_WIDTH,
        inner=CHART_WIDTH,
        margin=_MARGIN,
        key_top=key_top,
        height=2 * _MARGIN + key_top + _KEY_HEIGHT + drawn.height,
    )


def _head_lines(texts: Iterable[tuple[str, str, int]]) -> Iterable[dict[str, Any]]:
    """Each line of text with its base line in pixels and its look."""
    at = 0.0
    for text, look, room in texts:
        for line in textwrap.wrap(clean(text), room):
            at += 18.0 if look == "title" else LINE_HEIGHT
            yield {"text": line, "look": look, "y": at}
