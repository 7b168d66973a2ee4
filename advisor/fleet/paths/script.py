"""What a node is asked to do, as a POSIX ``sh`` script that needs ping(8) and nothing else, and what it answers.

The answer is the word of a host: only lines of the very form that the script prints are taken, and of them only numbers
and addresses. ping's own sentences are kept as text to be shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec

from advisor.fleet.paths.targets import ProbedLink
from advisor.host.patterns import lazy_regex
from advisor.reach.addresses import parse_address

WORKERS = 8
"""Targets that a node asks at a time: many at once would make the round trips longer that they measure."""
LIMIT_SECONDS = 60
"""After which a node begins with no other target. A target that answers takes a second; one with a silent end some
twenty."""
MAX_ANSWER = 1 << 20

Tool = Literal["probe", "do", "plain", "none"]
Ending = Literal["link", "own", "too-big", "silent", "unknown"]

_NUMBER = "[0-9]{1,6}"
_TIME = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_LINE = lazy_regex(
    rf"cell ({_NUMBER}) sent ({_NUMBER}) received ({_NUMBER}) times (-|{_TIME}(?:,{_TIME}){{0,19}}) "
    rf"carries (-|yes|no) mtu (-|{_NUMBER}) limit ({'|'.join(get_args(Ending))}) said (-|{_NUMBER}) "
    r"by (-|[0-9a-fA-F:.]{2,45}) why ?([^\n]{0,300})"
)
_BEGIN = lazy_regex(r"advisor-probe 1 (probe|do|plain|none)")


class TargetAnswer(msgspec.Struct, frozen=True):
    """What a node says about one target.

    ``times_us`` are round trips in microseconds. ``carries`` is whether packets of the wanted size came back, None
    where that is not known. ``mtu`` is the largest size that did, in bytes of the whole packet, and ``limit`` what
    ends it: the words of `advisor.reach.records.Limit`, and ``own`` where the node's own kernel refuses more.
    ``said_mtu`` is the MTU that somebody named, ``by`` who; ``why`` is text.
    """

    index: int
    sent: int
    received: int
    times_us: tuple[float, ...]
    carries: bool | None
    mtu: int | None
    limit: Ending
    said_mtu: int | None
    by: str | None
    why: str | None


class Answer(msgspec.Struct, frozen=True):
    """All that a node said. ``tool`` is None where the text is no answer of the script at all; ``is_whole`` is False
    where its end is missing."""

    tool: Tool | None
    lines: Mapping[int, TargetAnswer]
    is_whole: bool


def probe_script(targets: Sequence[ProbedLink]) -> str:
    """The script that asks ``targets``, which it knows by their place in the sequence."""
    from advisor.shell.templates import make_environment

    asked = [(index, target, target.wanted or 0) for index, target in enumerate(targets)]
    workers = [asked[number::WORKERS] for number in range(min(WORKERS, len(asked)))]
    template = make_environment(escape_html=False).get_template("probe.sh.j2")
    return template.render(workers=workers, most_workers=WORKERS, count=len(asked), limit_seconds=LIMIT_SECONDS)


def parse_answer(text: str) -> Answer:
    """What a node printed. Lines that are not of the script's form are left out, and so is a target of which there are
    two: one of them is not the script's."""
    if len(text) > MAX_ANSWER:
        return Answer(None, {}, is_whole=False)
    rows = [row.removesuffix("\r") for row in text.split("\n")]
    begins = [number for number, row in enumerate(rows) if _BEGIN.fullmatch(row)]
    if len(begins) != 1:
        return Answer(None, {}, is_whole=False)
    matched = _BEGIN.fullmatch(rows[begins[0]])
    tool = msgspec.convert(matched[1], Tool) if matched else None
    found = {}
    for row in rows[begins[0] + 1 :]:
        line = _parse_line(row)
        if line is not None:
            found[line.index] = None if line.index in found else line
    lines = {index: line for index, line in found.items() if line is not None}
    return Answer(tool, lines, is_whole=any(re.fullmatch(f"end {_NUMBER}", row) for row in rows))


def _parse_line(row: str) -> TargetAnswer | None:
    matched = _LINE.fullmatch(row)
    if matched is None:
        return None
    index, sent, received, times, carries, mtu, limit, said, by, why = matched.groups()
    if int(received) > int(sent) or (times == "-") != (int(received) == 0) or (by != "-" and not parse_address(by)):
        return None
    return TargetAnswer(
        index=int(index),
        sent=int(sent),
        received=int(received),
        times_us=() if times == "-" else tuple(round(float(one) * 1000, 3) for one in times.split(",")),
        carries={"yes": True, "no": False}.get(carries),
        mtu=_parse_number(mtu),
        limit=msgspec.convert(limit, Ending),
        said_mtu=_parse_number(said),
        by=None if by == "-" else by,
        why=None if why.strip() in ("", "-") else why.strip(),
    )


def _parse_number(word: str) -> int | None:
    return None if word == "-" else int(word)
