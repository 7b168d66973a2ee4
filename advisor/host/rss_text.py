"""The RSS indirection table in what ``ethtool -x LINK`` prints, as one canonical line: the words of ethtool(8) that set
it, and its size. ``templates/rollback.sh.j2`` has the same.

``default 4 of 128``          what the kernel makes for 4 receive queues: 0 1 2 3 0 1 2 3 …
``equal 2 start 1 of 128``    1 2 1 2 …
``weight 96 0 32 of 128``     96 times 0, 32 times 2
``table 0 3 1 … of 128``      anything else, which ethtool cannot set
"""

from __future__ import annotations

import re

from advisor.host.missing import Missing

_HEADER = r"RX flow hash indirection table for .* with ([0-9]+) RX ring\(s\):[ \t]*"
_ROW = r"[ \t]*[0-9]+:((?:[ \t]+[0-9]+)+)[ \t]*"
_MAX_DIGITS = 5

NO_TABLE = Missing("absent", "its driver shows no RSS indirection table")


def indirection(text: str, _: str = "") -> str | Missing:
    """The table. Absent where the driver has none."""
    rings = ""
    words: list[str] = []
    for line in text.split("\n"):
        header, row = re.fullmatch(_HEADER, line), re.fullmatch(_ROW, line)
        if line.startswith("RSS hash"):
            break
        if header:
            rings = header[1]
        elif row:
            words += row[1].split()
    if not rings or not words:
        return NO_TABLE
    if any(len(word) > _MAX_DIGITS for word in (rings, *words)):
        return Missing("unreadable", "numbers in its RSS indirection table that no queue has")
    return f"{_format_table(int(rings), [int(word) for word in words])} of {len(words)}"


def _format_table(rings: int, table: list[int]) -> str:
    low, high = min(table), max(table)
    if rings and table == [place % rings for place in range(len(table))]:
        return f"default {rings}"
    if table == [low + place % (high - low + 1) for place in range(len(table))]:
        return f"equal {high - low + 1}" + (f" start {low}" if low else "")
    if table == sorted(table):
        return " ".join(("weight", *(str(table.count(queue)) for queue in range(high + 1))))
    return " ".join(("table", *map(str, table)))


def highest_queue(value: str) -> int:
    """The last queue that a table uses."""
    kind, *rest = value.split(" ")[:-2]
    numbers = [int(word) for word in rest if word != "start"]
    if kind == "table":
        return max(numbers)
    return len(numbers) - 1 if kind == "weight" else sum(numbers) - 1


def setting_words(value: str) -> tuple[str, ...] | None:
    """What to give ``ethtool -X LINK`` for a table; None where ethtool cannot set it."""
    words = tuple(value.split(" ")[:-2])
    if words[0] == "default":
        return words[:1]
    return None if words[0] == "table" else words
