"""The page and the document of ``advisor judge``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from advisor.facts.cpulist import fold_list
from advisor.recommend.verdicts import VERDICTS, JudgedLine, JudgedText, Verdict
from advisor.report.layout import Page, Piece, Span, Style, counted
from advisor.shell.quote import shell_quote

SCHEMA = "advisor.judge/1"
_HEADINGS: Mapping[Verdict, tuple[str, Style]] = {
    "harmful": ("Harmful", "red"),
    "helps": ("Would help here", "green"),
    "overridden": ("Overridden", "yellow"),
    "owned": ("Belongs to another program", "yellow"),
    "no-effect": ("No effect on this host", "yellow"),
    "lowers": ("Would lower yours", "yellow"),
    "no-evidence": ("No evidence here", "dim"),
    "unknown": ("Not known", "dim"),
    "set": ("Already so", "dim"),
}
_SHOWN = 4
_MOST_SAME = 10
"""Settings that a host has already, each on a line of the page; of more the numbers of their lines."""

_MOST_PASSED = 20
"""Lines that look like a setting and were not read, each on a line of the page."""


def judge_text(
    found: JudgedText, hostname: str, *, width: int, color: bool, is_live: bool = True, with_files: bool = False
) -> str:
    """The judgement for a person, a setting a line, the most important first; ``with_files`` names the file of each.

    Unless ``is_live``, the commands are for another host.
    """
    page = Page(width, color=color)
    lines = counted(len(found.lines), "setting")
    page.add(Span(f"{lines} judged on {hostname}", "bold"), f"; {counted(found.passed_over, 'line')} without a setting")
    for verdict in VERDICTS:
        chosen = [one for one in found.lines if one.verdict == verdict]
        heading, style = _HEADINGS[verdict]
        if chosen:
            page.heading(f"{heading} ({len(chosen)})" if len(chosen) > 1 else heading)
        if verdict == "set" and len(chosen) > _MOST_SAME and not with_files:
            page.add(Span(f"lines {fold_list({one.line for one in chosen})}", style), hang=6)
            continue
        counted_whys = Counter(one.why for one in chosen if one.live is None and not one.instead)
        many = [why for why, count in counted_whys.items() if count > _MOST_SAME and not with_files]
        for why in many:
            named = [f"{one.line} {one.tunable or one.text} = {one.wanted}" for one in chosen if one.why == why]
            page.add(Span("; ".join(named), style), f": {why}", hang=6)
        for alike in _fold_devices([one for one in chosen if one.why not in many]):
            _add_lines(page, alike, style, with_files=with_files)
    if found.alike:
        page.heading(f"Looks like a setting, and was not read ({len(found.alike)})")
    for passed in found.alike[:_MOST_PASSED]:
        place = f"{passed.file}:{passed.line}" if with_files else f"{passed.line:>4}"
        page.add(Span(place, "dim"), "  ", passed.text, indent=0, hang=6)
    if rest := found.alike[_MOST_PASSED:]:
        page.add(f"and lines {fold_list({one.line for one in rest})}", hang=6)
    page.blank()
    if not found.lines:
        page.add("Nothing in it is a setting that advisor reads.")
    elif not found.apply:
        page.add("Nothing of it is known to help here.")
    else:
        words = " ".join(map(shell_quote, found.apply))
        page.add("What is left to apply" + (":" if is_live else ", on the captured host:"))
        page.command(f"advisor apply {words}")
        page.add("To keep it only if a gain is measured:")
        page.command(found.prove or "")
    return page.text


def _fold_devices(lines: Sequence[JudgedLine]) -> Iterator[list[JudgedLine]]:
    """The devices of one setting of the text that have the same verdict for the same reason."""
    for _, alike in groupby(lines, lambda one: (one.file, one.line, one.text, one.wanted, one.live, one.why)):
        yield list(alike)


def _add_lines(page: Page, alike: Sequence[JudgedLine], style: Style, *, with_files: bool) -> None:
    first = alike[0]
    place = f"{first.file}:{first.line}" if with_files else f"{first.line:>4}"
    names = [one.tunable for one in alike if one.tunable]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = f"{', '.join(names[:_SHOWN])}{more}" if names else first.text
    wanted = f" = {first.wanted}" if names and first.wanted is not None else ""
    live = f" (now {first.live})" if first.live not in (None, first.wanted) else ""
    parts: list[Piece] = [Span(place, "dim"), "  ", Span(f"{shown}{wanted}", style), live]
    page.add(*parts, ": " if first.why else "", first.why, indent=0, hang=6)
    if first.instead:
        page.add(f"instead: {first.instead}", indent=6, hang=2)


def judge_document(found: JudgedText, hostname: str | None, source: str) -> dict[str, Any]:
    """``advisor.judge/1``."""
    return {
        "schema": SCHEMA,
        "hostname": hostname,
        "source": source,
        "lines": list(found.lines),
        "passed_over": found.passed_over,
        "alike": found.alike,
        "apply": found.apply,
        "prove": found.prove,
    }
