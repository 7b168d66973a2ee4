"""What became of each line of an imported profile, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.importers.made import shorten_text
from advisor.importers.records import ImportDifference, Imported, ImportedSetting, Said, count_outcomes
from advisor.report.layout import Page, Piece, Span, Style, counted
from advisor.report.severities import severity_span

MAX_QUOTED = 240
_STYLES: Mapping[str, Style] = {"tunable": "green", "ignored": "dim", "manual": "yellow"}


def imported_text(imported: Imported, *, width: int, color: bool) -> str:
    """The page: what comes over, what does not and why, and where doing and meaning differ."""
    page = Page(width, color=color)
    page.add(Span(imported.origin, "bold"), f" as {imported.name}, {imported.mode}", hang=2)
    number = count_outcomes(imported.settings)
    lines = counted(sum(number.values()), "setting")
    page.add(f"{lines}: {number['tunable']} tunable, {number['ignored']} ignored, {number['manual']} by hand.")
    for title, outcome in (("Comes over", "tunable"), ("By hand", "manual"), ("Ignored", "ignored")):
        chosen = [one for one in imported.settings if one.outcome == outcome and not one.sets_nothing]
        if chosen:
            page.heading(title)
        for one in chosen:
            _add_import(page, one)
    if imported.differences:
        page.heading("What is done and what is meant")
    for difference in imported.differences:
        section = f"[{difference.section}] " if difference.section else ""
        place = _place_pieces(difference)
        page.add(Span(difference.kind, "yellow"), f"  {section}{difference.key}", *place, indent=2, hang=4)
        page.labelled(
            [("done", (difference.faithful,)), ("meant", (difference.intent,)), ("because", (difference.why,))],
            indent=6,
        )
    return page.text


def _add_import(page: Page, one: ImportedSetting) -> None:
    section = f"[{one.section}] " if one.section else ""
    page.add(f"{section}{shorten_text(one.quoted, MAX_QUOTED)}", indent=2, hang=4)
    if one.outcome == "tunable":
        page.add(Span(tunable_words(one), "green"), indent=6, hang=2)
        if one.note:
            page.add(Span(one.note, "dim"), indent=6)
        for said in one.judged:
            page.add(*said_pieces(said), indent=6, hang=2)
    else:
        page.add(Span(one.why, _STYLES[one.outcome]), *_place_pieces(one), indent=6)


def said_pieces(said: Said) -> list[Piece]:
    """``warning: Window scaling of TCP is switched off (advice.tcp-window-scaling-off): …``."""
    return [
        severity_span(said.severity),
        f": {said.title} ({said.id}): {said.why}",
        f" Instead: {said.instead}." if said.instead else "",
    ]


def _place_pieces(one: ImportedSetting | ImportDifference) -> list[Piece]:
    """Where it stands; nothing for what is no line of a file."""
    return [" ", Span(f"({one.file}:{one.line})", "dim")] if one.line else []


def tunable_words(one: ImportedSetting) -> str:
    """``sysctl:vm.swappiness 10``, with its sense and whom it is for."""
    value = one.value if one.multiply is None else f"{one.multiply} × the value before"
    senses = one.sense if isinstance(one.sense, tuple) else (one.sense,)
    sense = "" if set(senses) == {"exactly"} else f" ({', '.join(senses)})"
    names = f" on {', '.join(one.only.names)}" if one.only is not None and one.only.names else ""
    return f"{one.tunable} {value}{sense}{names}"


def import_document(imported: Imported, toml: str) -> dict[str, object]:
    """``advisor.import/1``."""
    body: dict[str, object] = msgspec.to_builtins(imported)
    return {"schema": "advisor.import/1", "counts": count_outcomes(imported.settings), **body, "toml": toml}
