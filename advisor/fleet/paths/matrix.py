"""What the paths between the nodes of a fleet carry, and how long they are: each node asks the others.

targets = choose_targets({name: summary.memberships for name, summary in …})
scripts = {name: probe_script(asked) for name, asked in targets.by_host.items() if asked}
…                                              # run each on its host; an answer, or why there is none
found = make_matrix(targets, {name: parse_answer(text) …, name: "unreachable" …})
findings = judge(found)                        # advisor.fleet.paths.findings
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import msgspec

from advisor.fleet.paths.script import Answer, TargetAnswer, Tool, parse_answer, probe_script
from advisor.fleet.paths.targets import ProbedLink, Targets, choose_targets
from advisor.reach.records import Limit

__all__ = [
    "Answer",
    "Matrix",
    "MatrixCell",
    "ProbedLink",
    "Targets",
    "choose_targets",
    "make_matrix",
    "parse_answer",
    "probe_script",
]


class MatrixCell(msgspec.Struct, frozen=True):
    """One direction between two links, as ``source`` saw it.

    ``rtt_us`` is the shortest, the median and the longest round trip in microseconds, None where nothing came back.
    ``path_mtu`` is the largest packet in bytes that came back while one byte more did not (or, ``limit`` being
    ``link``, could not be asked for); None where that is not known. ``wanted`` is what both links carry, and
    ``carries`` whether packets of that size came back: False may be known where the path MTU is not. ``error`` says
    why something of this is not known.
    """

    source: str
    target: str
    address: str
    network: str
    link: str
    target_link: str
    role: str
    mtu: int | None
    target_mtu: int | None
    rtt_us: tuple[float, float, float] | None
    sent: int
    received: int
    path_mtu: int | None
    wanted: int | None
    carries: bool | None
    limit: Limit
    limited_by: str | None = None
    said_mtu: int | None = None
    error: str | None = None

    @property
    def answered(self) -> bool:
        return self.rtt_us is not None


class Matrix(msgspec.Struct, frozen=True):
    """All cells, by source and target in the order they were asked. ``hosts`` are those that ask or are asked;
    ``possible`` counts the pairs of links that share a network, in both directions. ``silent_hosts`` are those whose
    probes did not come back, with the reason."""

    hosts: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    possible: int
    notes: tuple[str, ...]
    silent_hosts: Mapping[str, str] = {}


_NO_PING = "no ping(8) on this host"
_NO_DF = "the ping of this host cannot set don't-fragment: that a packet passes proves nothing"


def make_matrix(targets: Targets, answers: Mapping[str, Answer | str]) -> Matrix:
    """The cells of everybody who was to be asked. In place of an answer stands why there is none; a host without either
    was not asked."""
    cells = [
        _make_cell(host, index, target, answers.get(host, "not asked"))
        for host, asked in targets.by_host.items()
        for index, target in enumerate(asked)
    ]
    hosts = sorted({one.source for one in cells} | {one.target for one in cells})
    silent = {
        host: why
        for host, asked in targets.by_host.items()
        if asked and (why := _why_none(answers.get(host, "not asked"))) is not None
    }
    return Matrix(tuple(hosts), tuple(cells), targets.possible, targets.notes, silent)


def _why_none(answer: Answer | str) -> str | None:
    """Why a host says nothing of any target; None where it says something."""
    if isinstance(answer, str):
        return answer
    if answer.tool is None:
        return "what it printed is no answer of the probe"
    return _NO_PING if answer.tool == "none" else None


def _make_cell(source: str, index: int, target: ProbedLink, answer: Answer | str) -> MatrixCell:
    why = _why_none(answer)
    if why is not None or isinstance(answer, str):
        return _unknown_cell(source, target, why or "not asked")
    line = answer.lines.get(index)
    if line is None:
        lost = "no line of it in the answer" if answer.is_whole else "the answer broke off before it"
        return _unknown_cell(source, target, lost)
    if not line.times_us:
        return _unknown_cell(source, target, line.why or f"no answer to {line.sent} echoes", line)
    times = line.times_us
    # Only what was asked for can be believed: a path MTU beyond the wanted one was never tried.
    mtu = line.mtu if line.mtu is not None and target.wanted is not None and line.mtu <= target.wanted else None
    carries = None if line.carries is None or target.wanted is None else line.carries
    limit = "unknown" if carries is None else _path_limit(line, target)
    return MatrixCell(
        source=source,
        **msgspec.structs.asdict(target),
        wanted=target.wanted,
        rtt_us=(min(times), round(statistics.median(times), 3), max(times)),
        sent=line.sent,
        received=line.received,
        path_mtu=mtu if carries is not None else None,
        carries=carries,
        limit=limit,
        limited_by=line.by,
        said_mtu=line.said_mtu,
        error=_why_unknown(target, line, answer.tool) if carries is None else None,
    )


def _unknown_cell(source: str, target: ProbedLink, why: str, line: TargetAnswer | None = None) -> MatrixCell:
    return MatrixCell(
        source=source,
        **msgspec.structs.asdict(target),
        wanted=target.wanted,
        rtt_us=None,
        sent=line.sent if line else 0,
        received=0,
        path_mtu=None,
        carries=None,
        limit="unknown",
        error=why,
    )


def _path_limit(line: TargetAnswer, target: ProbedLink) -> Limit:
    if line.limit != "own":
        return line.limit
    # A kernel that refuses less than its link carries has learnt of a smaller limit before.
    is_learnt = line.said_mtu is not None and target.mtu is not None and line.said_mtu < target.mtu
    return "too-big" if is_learnt else "link"


def _why_unknown(target: ProbedLink, line: TargetAnswer, tool: Tool | None) -> str:
    if target.wanted is None:
        return "the MTU of one of the links is unknown"
    if line.why is not None:
        return line.why
    return _NO_DF if tool == "plain" else f"no more than {target.wanted} bytes to ask for"
