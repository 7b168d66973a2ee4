"""How a severity looks, the same on every page: a word, a style of the terminal, and colours of pages and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from advisor.host.patterns import lazy_regex
from advisor.report.layout import Cell, Span, Style, counted

if TYPE_CHECKING:
    from advisor.rules.rule import Severity


class SeverityLook(NamedTuple):
    """``light`` and ``dark`` are colours on light and dark paper, each with a contrast of at least 4.5 (WCAG 2.2)."""

    name: Severity
    title: str
    style: Style
    light: str
    dark: str


LOOKS = (
    SeverityLook("critical", "Critical", "bold red", "#b3131f", "#ff7b72"),
    SeverityLook("warning", "Warnings", "bold yellow", "#7a5b00", "#e6c14c"),
    SeverityLook("advice", "Advice", "bold cyan", "#00687a", "#4cc9dc"),
    SeverityLook("info", "Info", "bold blue", "#4a5fb0", "#a3b4ff"),
)
"""The gravest first."""
SEVERITY_STYLE: dict[str, Style] = {look.name: look.style for look in LOOKS}


_COUNT = lazy_regex(r"(\b[0-9]+ (?:critical|warnings?|advice|info)\b)")


def split_counts(text: str) -> Iterator[tuple[str, str]]:
    """The text in parts, each with the severity that it counts, or none."""
    for part in _COUNT.split(text):
        yield (part.rpartition(" ")[2].removesuffix("s") if _COUNT.fullmatch(part) else ""), part


def paint_counts(text: str, style: Style = "") -> list[Span]:
    """A text with its counts of severities in their colours, the rest in ``style``."""
    return [Span(part, SEVERITY_STYLE.get(severity, style)) for severity, part in split_counts(text)]


def severity_span(severity: str) -> Span:
    """Return the word in its colour."""
    return Span(severity, SEVERITY_STYLE[severity])


def count_severities(severities: Iterable[Severity]) -> list[tuple[Severity, str]]:
    """Return each severity that occurs with its count, the gravest first: ``critical``, ``1 critical``."""
    found = list(severities)
    # Only a warning has a plural.
    return [
        (look.name, counted(count, look.name, None if look.name == "warning" else look.name))
        for look in LOOKS
        if (count := found.count(look.name))
    ]


def count_spans(severities: Iterable[Severity]) -> list[Cell]:
    """Return the counts in their colours."""
    return [Span(text, SEVERITY_STYLE[name]) for name, text in count_severities(severities)]
