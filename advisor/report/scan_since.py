"""What has changed since an earlier scan, and what is muted: further pages of ``advisor scan``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from advisor.report.finding_blocks import SEVERITY_WORDS
from advisor.report.finding_lines import finding_text, shortened
from advisor.report.format import format_minute
from advisor.report.layout import HEADING, QUIET, SEVERITY_STYLE, Page, Piece, Span, Style, counted, emit_line
from advisor.report.scan_summary import ScanSummary, write_headline
from advisor.rules.difference import ScanDifference
from advisor.rules.finding import Finding
from advisor.rules.numbering import NumberedFindings, number_findings


def since_text(summary: ScanSummary, difference: ScanDifference, *, width: int, color: bool) -> str:
    """The page of ``advisor scan --since``: new, worse and gone, each finding in a line. ``width`` in columns."""
    numbers = {id(one): group.number for group in summary.numbered for one in group.findings}
    lines: list[Sequence[Span]] = [*write_headline(summary.facts, summary.provenance, width)]
    lists = ((difference.new, "new"), (difference.worse, "worse"), (difference.gone, "gone"))
    counts = [(len(_grouped(findings)), word) for findings, word in lists]
    words = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing is new, worse or gone"
    when = format_minute(difference.earlier.time)
    lines.append([Span(shortened(f"since {when or 'a scan without a date'}: {words}", width), HEADING)])
    earlier = difference.earlier
    if earlier.hostname and earlier.hostname != summary.facts.host.hostname:
        lines.append([Span(shortened(f"the earlier scan is of another host: {earlier.hostname}", width), "yellow")])
    for title, findings in (("New", difference.new), ("Worse", difference.worse), ("Gone", difference.gone)):
        if findings:
            lines += [[], [Span(title, HEADING)], *_lines(findings, numbers, width)]
    return "\n".join(emit_line(line, color=color) for line in lines) + "\n"


def _grouped(findings: Iterable[Finding]) -> tuple[NumberedFindings, ...]:
    return number_findings(msgspec.structs.replace(one, muted=None) for one in findings)


def _lines(findings: Iterable[Finding], numbers: dict[int, int], width: int) -> Iterator[Sequence[Span]]:
    for group in _grouped(findings):
        # Numbers are those of the page of today; what is gone, or muted, has none.
        number = next((numbers[id(one)] for one in findings if one.id == group.id and id(one) in numbers), None)
        words = SEVERITY_WORDS[group.severity]
        head = f"  {'' if number is None else number:>2} "
        text = shortened(finding_text(group, width - 16), width - 16)
        yield [Span(head), Span(f"{words:<8}", SEVERITY_STYLE[group.severity]), Span(f"  {text}")]


class MutingRow(msgspec.Struct, frozen=True):
    """One accepted finding: what it is bound to, why, until when, and what became of it in this scan. One that
    ``is_elsewhere`` is for other hosts than the scanned one. ``unknown`` are ids like its own where no rule has it."""

    label: str
    reason: str
    until: str | None
    is_expired: bool
    titles: tuple[str, ...]
    is_elsewhere: bool = False
    unknown: tuple[str, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Whether it mutes a finding of this scan."""
        return bool(self.titles) and not self.is_expired and not self.is_elsewhere


def _did_you_mean(names: Sequence[str]) -> str:
    return f"; did you mean {', '.join(names)}?" if names else ""


def muted_text(rows: Sequence[MutingRow], place: str, *, muted: int, width: int, color: bool) -> str:
    """The page of ``advisor scan --muted``; ``muted`` counts findings."""
    page = Page(width, color=color)
    if not rows:
        page.add(f"Nothing is muted ({place}).")
        return page.text
    active = sum(row.is_active for row in rows)
    entries = counted(len(rows), "entry", "entries")
    by = f"{active} of {entries}" if active < len(rows) else entries
    counts = f"{counted(muted, 'finding')} muted{f' by {by}' if muted else f', {entries}'}"
    page.add(Span(counts, HEADING), Span(" · ", QUIET), place)
    for number, row in enumerate(rows, 1):
        end = f"until {row.until}" if row.until else "without an end"
        state = f"expired on {row.until}" if row.is_expired else end
        page.blank()
        style: Style = "yellow" if row.is_expired else QUIET
        page.add(f"{number} ", Span(row.label, HEADING), "  ", Span(state, style), indent=2, hang=2)
        page.add(row.reason, indent=6)
        nothing = "not for this host: mutes nothing here" if row.is_elsewhere else "no finding of this scan"
        if row.unknown is not None:
            nothing = f"no rule has this id: mutes nothing{_did_you_mean(row.unknown)}"
        for title in row.titles or (nothing,):
            page.add(Span(title, QUIET), indent=6, hang=2)
    page.blank()
    several: list[Piece] = [", ", Span("advisor unmute 1 2", "cyan"), " several at once"] if len(rows) > 1 else []
    page.add(Span("advisor unmute N", "cyan"), " shows a finding again", *several, ".")
    return page.text
