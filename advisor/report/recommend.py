"""The page and the document of ``advisor recommend``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from advisor.facts.infoscale_configuration import TITLES, Recognition
from advisor.recommend.records import Case, Recommendation
from advisor.report.encode import encoded
from advisor.report.layout import Page, Piece, Span, Style, counted
from advisor.rules.workload import Workload

SCHEMA: Final = "advisor.recommendation/1"
_HEADINGS: Final = {"yes": "Fits", "perhaps": "May fit", "no": "Does not fit"}
_STYLES: Final[dict[str, Style]] = {"yes": "green", "perhaps": "yellow", "no": "dim"}
_HOLDS: Final = {True: "yes", False: "no", None: "not declared"}


def recommendation_document(
    workload: Workload | None, found: Sequence[Recommendation], recognised: Recognition | None = None
) -> bytes:
    """``advisor.recommendation/1``: the declared workload, what was recognised, and the judgement on each profile."""
    document = {"schema": SCHEMA, "workload": workload, "recognised": recognised, "recommendations": tuple(found)}
    return encoded(document)


def recommendation_text(
    workload: Workload | None,
    found: Sequence[Recommendation],
    recognised: Recognition | None = None,
    *,
    width: int,
    color: bool,
) -> str:
    """The judgements for a person, in at most ``width`` columns; what does not fit is told shortly, and last."""
    page = Page(width, color=color)
    page.add(Span(_headline(found), "bold"))
    page.add(_workload_words(workload))
    if recognised is not None:
        page.add(_recognised_words(recognised, workload), hang=2)
    for fits, heading in _HEADINGS.items():
        chosen = [one for one in found if one.fits == fits]
        if chosen:
            page.heading(heading)
        for one in chosen:
            _add(page, one)
    return page.text


def _headline(found: Sequence[Recommendation]) -> str:
    fitting = [one for one in found if one.fits == "yes" and one.standing != "in-force"]
    in_force = sum(one.standing == "in-force" for one in found)
    tail = f" {counted(in_force, 'profile')} {'is' if in_force == 1 else 'are'} in force." if in_force else ""
    if not fitting:
        return f"Nothing to recommend.{tail}"
    return f"{counted(len(fitting), 'profile')} to consider: {', '.join(one.profile for one in fitting)}.{tail}"


def _workload_words(workload: Workload | None) -> str:
    if workload is None:
        return "No workload is declared: only what this host shows by itself is judged (--workload NAME or K=V,…)."
    said = [
        "" if workload.block_bytes is None else f"blocks of {_size(workload.block_bytes)}",
        "" if workload.write_share is None else f"{100 * workload.write_share:g} % writes",
        workload.access or "",
        "" if workload.transport is None else f"over {workload.transport}",
        "" if workload.rtt_seconds is None else f"round trip {workload.rtt_seconds * 1e3:g} ms",
        "" if workload.replication is None else f"replication {workload.replication}",
    ]
    name = f"{workload.name}: " if workload.name else ""
    return f"Workload: {name}{', '.join(word for word in said if word)}"


def _recognised_words(found: Recognition, workload: Workload | None) -> str:
    if found.configuration is not None:
        how = "recognised, not declared" if workload is None else "recognised, with what is declared"
        return f"InfoScale: {TITLES[found.configuration]}: {how} ({'; '.join(found.evidence)})."
    possible = [title for name, title in TITLES.items() if found.fits[name] != "no"]
    if not possible:
        return "InfoScale: none of the white paper's five configurations."
    return f"InfoScale: {', or '.join(possible)}. Not known: {'; '.join(found.untold)}."


def _size(size: int) -> str:
    return (
        f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size >> 10} KiB" if size % 1024 == 0 else f"{size} bytes"
    )


def _add(page: Page, one: Recommendation) -> None:
    page.blank()
    page.add(Span(one.profile, "bold"), ": ", Span(one.standing, _STYLES[one.fits]), indent=2, hang=4)
    page.add(one.summary, indent=4)
    rows: list[tuple[str, Sequence[Piece]]] = [
        *_rows("why", [f"{reason.text}{f' ({reason.rule})' if reason.rule else ''}" for reason in one.why]),
    ]
    if one.fits != "no":
        rows += _rows("its cases", [_case(case) for case in one.cases])
        rows += _rows("measured", [f"{each.text} With: {each.workload}. {each.source}" for each in one.measured])
        rows += _rows("hurts when", one.hurts)
        rows += _rows("not known", one.unknown)
    page.labelled(rows, indent=4)
    if one.command:
        page.add(Span("next", "dim"), indent=4)
        page.command(one.command, indent=6)


def _case(case: Case) -> str:
    return f"{case.text}: {_HOLDS[case.holds]}"


def _rows(label: str, texts: Sequence[str]) -> list[tuple[str, Sequence[Piece]]]:
    dash = "- " if len(texts) > 1 else ""
    return [(label if number == 0 else "", (f"{dash}{text}",)) for number, text in enumerate(texts)]
