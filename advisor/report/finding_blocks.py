"""Findings on a page: what, why, evidence, what to do, commands, when it would hurt, and who says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from advisor.report.format import ranked, runs
from advisor.report.layout import (
    QUIET,
    Cell,
    Page,
    Piece,
    Span,
    columns,
    command_span,
    join_parts,
    value_words,
    width_of,
)
from advisor.report.severities import count_spans, severity_span
from advisor.rules.finding import Finding
from advisor.rules.numbering import NumberedFindings, number_findings

_DETAIL_LINES = 12
GROUP_SHOWN = 3
_LONG_COMMAND = 240
"""Columns from which on `advisor fix N` stands for a command of advisor's own."""


def add_findings(page: Page, findings: Sequence[Finding], notes: Iterable[str] = ()) -> None:
    """A section with every finding, in the order given, after notes on all of them."""
    counts = join_parts(count_spans(finding.severity for finding in findings))
    page.section("Findings", counts or ["none: nothing that is known here asks for a change"])
    for note in filter(None, notes):
        page.add(Span(note, QUIET), indent=2)
    numbers = {id(one): group.number for group in number_findings(findings) for one in group.findings}
    shown: set[str] = set()
    for finding in findings:
        _add_finding(page, finding, numbers[id(finding)], shown)


def _add_finding(page: Page, finding: Finding, number: int, shown: set[str]) -> None:
    page.blank()
    title = join_parts([Span(finding.title, "bold"), Span(finding.id, QUIET)])
    page.table([(Span(str(number), QUIET), severity_span(finding.severity), title)])
    rows = (*_rows(finding, number), *_contradictions(finding, shown))
    page.labelled([(label, pieces) for label, pieces in rows if width_of(pieces)], indent=4)


def group_text(group: NumberedFindings, hurts_when: str, *, width: int, color: bool) -> str:
    """The findings of one number: the first `GROUP_SHOWN`, then how many more. What the text of their rule says below
    is left to it: sources, contradictions, and ``hurts_when``."""
    page = Page(width, color=color)
    for one in group.findings[:GROUP_SHOWN]:
        own = "" if one.hurts_when == hurts_when else one.hurts_when
        _add_finding(page, replace(one, hurts_when=own, sources=(), contradictions=()), group.number, set())
    rest = group.findings[GROUP_SHOWN:]
    if rest:
        page.blank()
        page.add(f"… and {len(rest)} more: {', '.join(one.title for one in rest)}")
    return page.text


def _shown_command(command: str, number: int) -> str:
    """The command; in place of advisor's own with a value for each of many devices, the one that means them all."""
    is_long = command.startswith("advisor apply ") and columns(command) > _LONG_COMMAND
    return f"advisor fix {number}" if is_long else command


def _rows(finding: Finding, number: int) -> Iterator[tuple[str, Sequence[Piece]]]:
    yield "why", [finding.why]
    yield from _below_label("evidence", _evidence(finding.evidence))
    yield "fix", [finding.fix or finding.advice]
    yield from _below_label("commands", [command_span(_shown_command(command, number)) for command in finding.commands])
    yield "caution", ["; ".join(f"interrupts {what}" for what in finding.interrupts)]
    yield "hurts when", [finding.hurts_when]
    yield "source", [Span("; ".join(finding.sources), QUIET)]


def _below_label(label: str, lines: Sequence[Cell]) -> Iterator[tuple[str, Sequence[Piece]]]:
    """Lines one below the other, the first next to the label."""
    for number, line in enumerate(lines):
        yield "" if number else label, line if isinstance(line, list) else [line]


def _contradictions(finding: Finding, shown: set[str]) -> Iterator[tuple[str, Sequence[Piece]]]:
    """What is done about each stands where it comes first on the page; ``shown`` are the ids that are printed."""
    for one in finding.contradictions:
        if one.id in shown:
            yield "but", [Span(f"see {one.id} above", QUIET)]
        else:
            # The question, what is done about it, and between whom it is; every side's words are a command away.
            between = "; ".join(dict.fromkeys(side.source for side in one.sides))
            yield from _below_label(
                "but",
                [
                    f"Sources contradict each other: {one.topic}. {one.what_we_do}",
                    join_parts([Span(between, QUIET), command_span(f"advisor explain {one.id}")]),
                ],
            )
        shown.add(one.id)


def _evidence(evidence: Mapping[str, object]) -> list[Cell]:
    """The sentences of ``detail`` line by line where there are some, else every name with its value."""
    detail = evidence.get("detail")
    if not isinstance(detail, tuple):
        return [join_parts(f"{key} {value_text(value)}" for key, value in evidence.items() if value not in (None, ()))]
    lines: list[Cell] = [str(line) for line in detail[:_DETAIL_LINES]]
    if len(detail) > _DETAIL_LINES:
        lines.append(Span(f"… and {len(detail) - _DETAIL_LINES} more; --json lists all", QUIET))
    return lines


def value_text(value: object) -> str:
    """A value of the evidence, a list by its runs; one that is blank says so."""
    if isinstance(value, tuple):
        names = tuple(value_words(str(one)) for one in value)
        return runs(names, ranked(names))
    return value_words(str(value))
