"""Commands on a page, which are to be pasted and so are never wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.report.format import clean
from advisor.rules.finding import Finding


def lines_without_commands(text: str, findings: Iterable[Finding]) -> Iterator[str]:
    """The lines that have to fit the page."""
    commands = tuple(clean(command).rstrip() for one in findings for command in one.commands)
    return (line for line in text.split("\n") if not line.endswith(commands))
