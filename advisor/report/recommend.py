"""The page and the document of ``advisor recommend``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from advisor.facts.clusters.infoscale_configuration import TITLES, Recognition
from advisor.facts.processors.cpulist import fold_list
from advisor.importers.records import ImportDifference, Imported, ImportedSetting, Said, count_outcomes, shorten_text
from advisor.recommend.records import Recommendation, Standing
from advisor.recommend.verdicts import VERDICTS, JudgedLine, JudgedText, Verdict
from advisor.report.encode import encode_document
from advisor.report.layout import Page, Piece, Span, Style, command_span, counted
from advisor.report.severities import severity_span
from advisor.rules.workload import DeclaredWorkload
from advisor.shell.quote import shell_quote, trial_command

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


# What became of each line of an imported profile, as text and as JSON.

MAX_QUOTED = 240
_OUTCOME_STYLES: Mapping[str, Style] = {"tunable": "green", "ignored": "dim", "manual": "yellow"}


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
        page.add(Span(one.why, _OUTCOME_STYLES[one.outcome]), *_place_pieces(one), indent=6)


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


# The page and the document of ``advisor judge``.

JUDGE_SCHEMA = "advisor.judge/1"
_JUDGE_HEADINGS: Mapping[Verdict, tuple[str, Style]] = {
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
        heading, style = _JUDGE_HEADINGS[verdict]
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
        "schema": JUDGE_SCHEMA,
        "hostname": hostname,
        "source": source,
        "lines": list(found.lines),
        "passed_over": found.passed_over,
        "alike": found.alike,
        "apply": found.apply,
        "prove": found.prove,
    }
