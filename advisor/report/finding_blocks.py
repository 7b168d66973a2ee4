"""Findings as blocks of a page: what, why, evidence, what to do, commands, when it would hurt, and who says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from advisor.i18n import N_, _, english_page, ngettext
from advisor.report.format import ranked, runs
from advisor.report.page import (
    COMMAND,
    QUIET,
    SEVERITY_STYLE,
    Block,
    Cell,
    PageText,
    UnbrokenText,
    grid,
    joined,
    labelled,
    lined,
    prose,
    render,
    said,
    section,
)
from advisor.rules.contradictions import Contradiction
from advisor.rules.finding import SEVERITIES, Finding, Severity
from advisor.rules.numbering import NumberedFindings, number_findings

_DETAIL_LINES = 12
GROUP_SHOWN = 3
SEVERITY_WORDS = {"critical": N_("critical"), "warning": N_("warning"), "advice": N_("advice"), "info": N_("info")}


def finding_blocks(findings: Sequence[Finding]) -> Iterator[Block]:
    """A section with every finding, in the order given."""
    counts = Counter(finding.severity for finding in findings)
    seen = (severity for severity in reversed(SEVERITIES) if counts[severity])
    summary = [counted_severity(severity, counts[severity]) for severity in seen]
    none = _("none: nothing that is known here asks for a change")
    yield section(_("Findings"), joined(summary) if findings else none)
    numbers = {id(one): group.number for group in number_findings(findings) for one in group.findings}
    shown: set[str] = set()
    for finding in findings:
        yield from _finding(finding, numbers[id(finding)], shown)


def _finding(finding: Finding, number: int, shown: set[str]) -> Iterator[Block]:
    yield PageText()
    yield grid([_title(finding, number)])
    yield prose(labelled([*_rows(finding), *_contradictions(finding, shown)], indent=4))


@english_page
def group_text(group: NumberedFindings, *, width: int, color: bool) -> str:
    """The findings of one number with their reasons: the first `GROUP_SHOWN`, then how many more."""
    shown: set[str] = set()
    blocks = [block for one in group.findings[:GROUP_SHOWN] for block in _finding(one, group.number, shown)]
    rest = group.findings[GROUP_SHOWN:]
    if rest:
        names = ", ".join(one.title for one in rest)
        blocks += [PageText(), prose(said(f"… and {len(rest)} more: {names}"))]
    return render(blocks[1:], width=width, color=color)


def counted_severity(severity: Severity, count: int) -> str:
    """``4 warnings``, ``1 advice``: only a warning has a plural."""
    match severity:
        case "warning":
            return ngettext("{count} warning", "{count} warnings", count).format(count=count)
        case "critical":
            return _("{count} critical").format(count=count)
        case "advice":
            return _("{count} advice").format(count=count)
    return _("{count} info").format(count=count)


def _title(finding: Finding, number: int) -> list[Cell]:
    return [
        said(str(number), QUIET),
        said(_(SEVERITY_WORDS[finding.severity]), SEVERITY_STYLE[finding.severity]),
        joined([said(finding.title, "bold"), said(finding.id, QUIET)], "  "),
    ]


def _rows(finding: Finding) -> Iterator[tuple[str, Cell]]:
    yield _("why"), finding.why
    yield _("evidence"), _evidence(finding.evidence)
    yield _("fix"), finding.fix or finding.advice
    yield _("commands"), UnbrokenText(lined(said(command, COMMAND) for command in finding.commands).spans)
    yield _("caution"), "; ".join(_("interrupts {what}").format(what=what) for what in finding.interrupts)
    yield _("hurts when"), finding.hurts_when
    yield _("source"), said("; ".join(finding.sources), QUIET)


def _contradictions(finding: Finding, shown: set[str]) -> Iterator[tuple[str, Cell]]:
    """What is done about each stands where it comes first on the page; ``shown`` are the ids that are printed."""
    for one in finding.contradictions:
        yield (
            _("but"),
            said(_("see {finding} above").format(finding=one.id), QUIET) if one.id in shown else _contradiction(one),
        )
        shown.add(one.id)


def _contradiction(one: Contradiction) -> PageText:
    """The question, what is done about it, and between whom it is; every side's words are a command away."""
    between = "; ".join(dict.fromkeys(side.source for side in one.sides))
    return lined(
        (
            said(f"{_('Sources contradict each other')}: {one.topic}. {one.what_we_do}"),
            joined([said(between, QUIET), said(f"advisor explain {one.id}", COMMAND)]),
        )
    )


def _evidence(evidence: Mapping[str, object]) -> PageText:
    """The sentences of ``detail`` line by line where there are some, else every name with its value."""
    detail = evidence.get("detail")
    if not isinstance(detail, tuple):
        return joined(f"{key} {_value(value)}" for key, value in evidence.items() if value not in (None, ()))
    lines = [said(line) for line in detail[:_DETAIL_LINES]]
    if len(detail) > _DETAIL_LINES:
        lines.append(said(_("… and {count} more; --json lists all").format(count=len(detail) - _DETAIL_LINES), QUIET))
    return lined(lines)


def _value(value: object) -> str:
    return runs(value, ranked(value)) if isinstance(value, tuple) else str(value)
