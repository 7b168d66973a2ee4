"""Commands on a page, which are to be pasted and so are never wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from advisor.report.format import clean
from advisor.report.layout import columns, wrap_pieces
from advisor.rules.rule import Finding

_COMMAND = re.compile(r" *(?:commands +|then +)?(?:advisor|sh|kill|systemctl|sysctl|ip|ethtool|printf|cat|nft|env) .*")

_LABEL = re.compile(r" *(?:- |\[\d+\] \w+  )?")


def lines_too_wide(text: str, width: int) -> list[str]:
    """The lines that are wider than the page, but for one word (and its label), commands and lines of files."""
    lines = ["", *_without_diffs(text.splitlines())]
    wide = (
        line
        for before, line in pairwise(lines)
        if columns(line) > width and not _COMMAND.fullmatch(line) and before.strip() != "by hand:"
    )
    # In columns of one, a text is broken wherever it may be.
    return [line for line in wide if len(wrap_pieces((_LABEL.sub("", line, count=1),), 1)) > 1]


def _without_diffs(lines: Iterable[str]) -> Iterator[str]:
    """The lines but those of a unified diff, which are the file's own."""
    is_diff = False
    for line in lines:
        is_diff = line.startswith(("  --- ", "  +++ ", "  @@ ")) or (is_diff and line[:3] in ("  +", "  -", "   "))
        if not is_diff:
            yield line


def lines_without_commands(text: str, findings: Iterable[Finding]) -> Iterator[str]:
    """The lines of a scan that have no command."""
    commands = tuple(clean(command).rstrip() for one in findings for command in one.commands)
    return (line for line in text.split("\n") if not line.endswith(commands))
