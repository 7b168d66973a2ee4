"""Whether a proven gain is still there, as a page."""

from __future__ import annotations

from advisor.proof.gain_history import GainReport, GainState
from advisor.report.layout import Page, Span, Style, counted


def gain_text(report: GainReport, *, width: int, color: bool) -> str:
    """A line for each gain, what is different since it has gone, and what to do."""
    page = Page(width, color=color)
    for one in report.gains:
        sentence, style = _verdict_words(report, one)
        page.add(Span(sentence, style), hang=2)
        if one.state == "there":
            continue
        if one.differences:
            listed = ", ".join(f"{name} {before} → {after}" for name, before, after in one.differences)
            page.add(f"different since then: {listed}", indent=2, hang=2)
        else:
            page.add("nothing that is recorded of the host is different since then", indent=2)
    page.blank()
    page.add(_evidence_words(report), hang=2)
    if report.is_inverted:
        page.add("The profile is active: its values were taken away in turn, and are back.")
    if not report.is_there:
        page.blank()
        page.add("To see what is active, before it is proven again or rolled back:")
        page.command("advisor status")
    return page.text


def _verdict_words(report: GainReport, one: GainState) -> tuple[str, Style]:
    values = {
        "what": f"{one.workload}, {one.metric}",
        "gain": f"{one.gain:.0%}".replace("%", " %"),
        "date": report.proven[:10],
        "since": (one.since or "")[:10],
        "effect": "-" if one.effect is None else f"{one.effect:+.1%}".replace("%", " %"),
        "pairs": counted(one.pairs, "pair"),
    }
    if one.state == "gone":
        text = "{what}: the gain of {gain} ({date}) has gone since the repetition of {since}: {effect}, {pairs}"
        return text.format(**values), "red"
    if one.state == "smaller":
        text = (
            "{what}: the gain of {gain} ({date}) has become smaller since the repetition of {since}: {effect}, {pairs}"
        )
        return text.format(**values), "yellow"
    if not one.pairs:
        return "{what}: the gain of {gain} ({date}) was not measured again yet".format(**values), ""
    text = "{what}: the gain of {gain} ({date}) is not shown to have gone: {effect}, {pairs}"
    return text.format(**values), "green"


def _evidence_words(report: GainReport) -> str:
    against = max(report.gains, key=lambda one: one.evidence / one.needed)
    return (
        f"{counted(report.repetitions, 'repetition')}; evidence against the gain (at least "
        f"{f'{against.least:.0%}'.replace('%', ' %')} was proven): {against.evidence:.2g} of "
        f"{against.needed:.0f}. A gain that is there is called gone in at most 5 % of all sequences, however "
        "long. Percentages count in the direction of better: 100 % is twice the rate, or half the time."
    )
