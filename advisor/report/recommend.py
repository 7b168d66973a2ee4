"""The page and the document of ``advisor recommend``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from advisor.facts.infoscale_configuration import TITLES, Recognition
from advisor.recommend.records import Recommendation, Standing
from advisor.report.encode import encode_document
from advisor.report.layout import Page, Piece, Span, Style, command_span, counted
from advisor.rules.workload import DeclaredWorkload
from advisor.shell.quote import trial_command

SCHEMA = "advisor.recommendation/1"
_HEADINGS = {"yes": "Fits", "perhaps": "May fit", "no": "Does not fit"}
_STYLES: dict[str, Style] = {"yes": "green", "perhaps": "yellow", "no": "dim"}
_STANDINGS: Mapping[Standing, str] = {
    "symptom": "symptom",
    "workload": "workload",
    "intent": "intent",
    "in-force": "already set",
    "not-applicable": "not-applicable",
    "blocked": "blocked",
    "unfit": "unfit",
    "unknown": "unknown",
    "broken": "broken",
}
_IDLE: Mapping[Standing, str] = {"in-force": "Already set", "not-applicable": "Do not apply", "unfit": "Do not fit"}
"""What nobody has to act on: a line each."""
_NAMES_SHOWN = 4
_HOLDS = {True: "yes", False: "no", None: "not declared"}


def recommendation_document(
    workload: DeclaredWorkload | None, found: Sequence[Recommendation], recognised: Recognition | None = None
) -> bytes:
    """``advisor.recommendation/1``: the declared workload, what was recognised, and the judgement on each profile."""
    document = {"schema": SCHEMA, "workload": workload, "recognised": recognised, "recommendations": tuple(found)}
    return encode_document(document)


def recommendation_text(
    workload: DeclaredWorkload | None,
    found: Sequence[Recommendation],
    recognised: Recognition | None = None,
    *,
    width: int,
    color: bool,
    findings: int = 0,
    is_live: bool = True,
    everything: bool = False,
) -> str:
    """The judgements for a person, in at most ``width`` columns.

    Of a profile that fits, what speaks for it, when it hurts and the next command, each in a sentence; the others by
    name: a common host takes a screen. Everything of all of them with ``everything``. ``findings`` are those of a
    scan, advice or more, that name no profile. Unless ``is_live``, the commands are for another host.
    """
    page = Page(width, color=color)
    page.add(Span(_headline_words(found, findings), "bold"))
    page.add(_workload_words(workload))
    if not is_live:
        page.add("Captured host: the commands below are to be run there.")
    if recognised is not None:
        page.add(_recognised_words(recognised, workload, everything=everything), hang=2)
    for fits, heading in _HEADINGS.items():
        chosen = [one for one in found if one.fits == fits and (everything or one.standing not in _IDLE)]
        if chosen:
            page.heading(heading)
        if not everything and fits != "yes":
            _add_alike(page, chosen, _STYLES[fits])
            continue
        for one in chosen:
            basis = Span(_STANDINGS[one.standing], _STYLES[fits])
            if not everything:
                _add_short(page, one, basis)
                continue
            page.blank()
            page.add(Span(one.profile, "bold"), ": ", basis, indent=2, hang=4)
            page.add(one.summary, indent=4)
            why = () if one.standing == "not-applicable" else one.why
            rows: list[tuple[str, Sequence[Piece]]] = [
                *_label_rows("why", [f"{reason.text}{f' ({reason.rule})' if reason.rule else ''}" for reason in why])
            ]
            if one.fits != "no":
                rows += _label_rows("its cases", [(f"{case.text}: {_HOLDS[case.holds]}") for case in one.cases])
                rows += _label_rows(
                    "measured", [f"{each.text} With: {each.workload}. {each.source}" for each in one.measured]
                )
                rows += _label_rows("hurts when", one.hurts)
                rows += _label_rows("unknown", one.unknown)
            page.labelled(rows, indent=4)
            if one.command:
                page.add(Span("next", "dim"), indent=4)
                page.command(one.command, indent=6)
    for standing, words in () if everything else _IDLE.items():
        idle = [one.profile for one in found if one.standing == standing]
        if idle:
            page.add(Span(f"{words}: ", "dim"), _named(idle), hang=2)
    if not everything and found:
        page.add(Span("Each with its reasons, figures and sources: ", "dim"), command_span("advisor recommend --all"))
    if any(one.command for one in found):
        page.add(Span("Only if a gain is measured: ", "dim"), command_span(trial_command()))
    return page.text


def _add_short(page: Page, one: Recommendation, basis: Span) -> None:
    page.add(
        Span(one.profile, "bold"),
        ": ",
        basis,
        f". {_sentence(one.why[0].text if one.why else one.summary)}",
        indent=2,
        hang=2,
    )
    if one.hurts:
        page.add(Span("hurts when: ", "dim"), _sentence(one.hurts[-1]), indent=4, hang=2)
    if one.command:
        page.command(one.command, indent=4)


def _add_alike(page: Page, chosen: Sequence[Recommendation], style: Style) -> None:
    """Profiles of one standing in a line, with the reason where they share it."""
    for standing in dict.fromkeys(one.standing for one in chosen):
        alike = [one for one in chosen if one.standing == standing]
        summaries = {one.summary for one in alike}
        why = f". {_sentence(summaries.pop())}" if len(summaries) == 1 else ""
        page.add(
            Span(_STANDINGS[standing], style), f": {_named([one.profile for one in alike])}{why}", indent=2, hang=2
        )


def _sentence(text: str) -> str:
    """The first sentence, or what of it a semicolon ends."""
    return text.partition(". ")[0].partition(";")[0].removesuffix(".") + "."


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names) if more < 2 else f"{', '.join(names[:_NAMES_SHOWN])} and {more} more"


def _headline_words(found: Sequence[Recommendation], findings: int) -> str:
    fitting = [one for one in found if one.fits == "yes" and one.standing != "in-force"]
    in_force = sum(one.standing == "in-force" for one in found)
    tail = f" {counted(in_force, 'profile')} {'is' if in_force == 1 else 'are'} already set." if in_force else ""
    if not fitting and findings:
        ask = f"{counted(findings, 'finding')} {'asks' if findings == 1 else 'ask'}"
        return f"No profile fits, and {ask} for something else: advisor scan.{tail}"
    if not fitting:
        return "Nothing to recommend." + tail
    names = ", ".join(one.profile for one in fitting)
    return f"{counted(len(fitting), 'profile')} to consider: {names}.{tail}"


def _workload_words(workload: DeclaredWorkload | None) -> str:
    if workload is None:
        return "No workload is declared (--workload): only what this host shows is judged."
    said = [
        _given_words("blocks of {value}", workload.block_bytes, lambda size: _size_words(int(size))),
        _given_words("{value} % writes", workload.write_share, lambda share: f"{100 * share:g}"),
        workload.access or "",
        "" if workload.transport is None else f"over {workload.transport}",
        _given_words("round trip {value} ms", workload.rtt_seconds, lambda seconds: f"{seconds * 1e3:g}"),
        "" if workload.replication is None else f"replication {workload.replication}",
        _given_words("threads: {value}", workload.threads, lambda count: f"{count:,}"),
    ]
    words = ", ".join(word for word in said if word)
    return f"Workload: {': '.join(word for word in (workload.name, words) if word)}"


def _given_words(words: str, value: float | None, shown: Callable[[float], str]) -> str:
    return "" if value is None else words.format(value=shown(value))


def _recognised_words(found: Recognition, workload: DeclaredWorkload | None, *, everything: bool) -> str:
    if found.configuration is not None:
        how = "recognised, not declared" if workload is None else "recognised, with what is declared"
        return f"InfoScale: {TITLES[found.configuration]}: {how} ({'; '.join(found.evidence)})."
    possible = [title for name, title in TITLES.items() if found.fits[name] != "no"]
    if not possible:
        return "InfoScale: none of the white paper's five configurations."
    if everything:
        return f"InfoScale: {', or '.join(possible)}. Unknown: {'; '.join(found.untold)}."
    # How each is learnt stands behind its colon.
    untold = "; ".join(fact.partition(": ")[0] for fact in found.untold)
    return f"InfoScale: {counted(len(possible), 'configuration')} possible. Unknown: {untold}."


def _size_words(size: int) -> str:
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} bytes"


def _label_rows(label: str, texts: Sequence[str]) -> list[tuple[str, Sequence[Piece]]]:
    dash = "- " if len(texts) > 1 else ""
    return [(label if number == 0 else "", (f"{dash}{text}",)) for number, text in enumerate(texts)]
