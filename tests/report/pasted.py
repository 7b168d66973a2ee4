"""Commands on a page, which are to be pasted and so are never wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from advisor.report.format import clean
from advisor.report.layout import columns, wrap_pieces
from advisor.rules.finding import Finding

_COMMAND = re.compile(r" *(?:commands +)?(?:advisor|sh|kill|systemctl|sysctl|ip|ethtool|printf|cat|nft|env) .*")

_LABEL = re.compile(r" *(?:- |\[\d+\] \w+  )?")


def lines_too_wide(text: str, width: int) -> list[str]:
    """The lines that are wider than the page, but for one word (and its label) and commands."""
    lines = ["", *text.splitlines()]
    wide = (
        line
        for before, line in pairwise(lines)
        if columns(line) > width and not _COMMAND.fullmatch(line) and before.strip() != "by hand:"
    )
    # In columns of one, a text is broken wherever it may be.
    return [line for line in wide if len(wrap_pieces((_LABEL.sub("", line, count=1),), 1)) > 1]


def lines_without_commands(text: str, findings: Iterable[Finding]) -> Iterator[str]:
    """The lines of a scan that have no command."""
    commands = tuple(clean(command).rstrip() for one in findings for command in one.commands)
    return (line for line in text.split("\n") if not line.endswith(commands))
