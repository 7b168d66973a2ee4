"""Findings on a page: what, why, evidence, what to do, commands, when it would hurt, and who says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from msgspec.structs import replace

from advisor.host.patterns import lazy_regex
from advisor.report.format import clean, ranked, runs
from advisor.report.layout import (
    COMMAND,
    QUIET,
    Cell,
    Page,
    Piece,
    Span,
    columns,
    command_span,
    counted,
    join_parts,
    padded,
    value_words,
    width_of,
)
from advisor.report.severities import count_severities, count_spans, severity_span
from advisor.rules.judged import NAME, Judged, NumberedFindings, number_findings, title_template
from advisor.rules.rule import Finding, PlanProfile, SetTunable, finding_devices

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


# Findings as one line each: a number, the severity, what was found, and what to do about it.

NAMES_SHOWN = 3
"""Names and ranges that stand for the devices of a line before the rest is counted."""
_GAP = 2
NARROW = 60
"""Columns of a window below which a text goes on below its line: a few words of it would not say what was found."""
_LEAST_TEXT = 24
_MOST_COMMAND = 30
_USUAL_COMMAND = len("advisor fix 1000")
# A verb after several names in place of one: the findings of a rule are sentences about one device each.
_PLURALS: Mapping[str, str] = {"has": "have", "is": "are", "was": "were", "does": "do", "lists": "list"}
_VERB = lazy_regex(r"(?<= )(has|is|was|does|lists)(?= )")


def counts_text(numbered: Iterable[NumberedFindings], judged: Judged, muted: int = 0, *, folded: int = 0) -> str:
    """``1 critical, 3 warnings, 4 info · 2 findings muted``: lines of the list, not devices; what is muted has no
    line and is counted one by one, as in ``scan --muted``, and ``folded`` are those worth knowing, which share a line.
    Without findings, how many rules could be judged."""
    counts = [text for _severity, text in count_severities(one.severity for one in numbered)]
    text = ", ".join(counts) if counts else f"no findings: {judged_words(judged)}"
    text += f" · {folded} worth knowing" if folded else ""
    return f"{text} · {counted(muted, 'finding')} muted" if muted else text


def judged_words(judged: Judged) -> str:
    """``231 of 240 rules could be judged; links, disks.health were not read``."""
    words = f"{judged.rules} of {judged.of} rules could be judged"
    if not judged.unread:
        return words
    more = len(judged.unread) - NAMES_SHOWN
    shown = judged.unread if more == 1 else judged.unread[:NAMES_SHOWN]
    rest = f" and {more} more" if more > 1 else ""
    return f"{words}; unknown: {', '.join(shown)}{rest}"


def finding_text(group: NumberedFindings, size: int | None = None) -> str:
    """What was found, in one sentence for all devices: ``md42, md5 have lost redundancy``.

    Devices that the sentence does not name itself follow it, where that is no wider than ``size`` columns.
    """
    sentence, devices = _sentence(group)
    text = f"{sentence}: {short_names(devices)}" if devices else sentence
    return text if size is None or columns(clean(text)) <= size else sentence


def _sentence(group: NumberedFindings) -> tuple[str, frozenset[str]]:
    """The sentence, and the devices that it is about and does not name."""
    first, *others = group.findings
    templates = {title_template(one) for one in group.findings}
    if len(templates) > 1:
        # The sentences differ in figures: the first stands for all.
        return f"{first.title}, and {len(others)} more like it", frozenset()
    template = templates.pop()
    devices = frozenset(name for one in group.findings for name in finding_devices(one))
    if NAME in template and others:
        named = {name for one in group.findings for name in finding_devices(one) if name in one.title}
        plural = _VERB.sub(lambda verb: _PLURALS[verb[0]], template)
        return plural.replace(NAME, short_names(named)), frozenset()
    return first.title, frozenset() if any(name in first.title for name in devices) else devices


def short_names(names: Iterable[str]) -> str:
    """``md0 … md7``; ``sda, sdd1, sde1 and 5 more``."""
    unique = set(names)
    parts = runs(unique, ranked(unique)).split(", ")
    # The sign of one more is no shorter than its name.
    if len(parts) <= NAMES_SHOWN or len(unique) == NAMES_SHOWN + 1:
        return ", ".join(parts)
    shown = parts[:NAMES_SHOWN]
    rest = len(unique) - sum(_count_of(part, unique) for part in shown)
    return f"{', '.join(shown)} and {rest} more"


def _count_of(part: str, names: set[str]) -> int:
    first, _dots, last = part.partition(" … ")
    if not last:
        return 1
    places = ranked(names)
    return places[last] - places[first] + 1


def command_of(group: NumberedFindings) -> str:
    """One command that shows or mends what was found; empty where there is none."""
    given = list(dict.fromkeys(one.commands[0] for one in group.findings if one.commands))
    if is_settable(group):
        return f"advisor fix {group.number}"
    if len(given) == 1 or (given and len({command.partition(" ")[0] for command in given}) == 1):
        return given[0]
    return ""


def is_settable(group: NumberedFindings) -> bool:
    """Whether advisor itself can set what was found, all of it or a part: ``advisor fix N``."""
    steps = (step for one in group.findings for step in one.remedy)
    return any(one.profile for one in group.findings) or any(
        isinstance(step, SetTunable | PlanProfile) for step in steps
    )


def finding_lines(
    numbered: Sequence[NumberedFindings], width: int, *, spare: int | None = None
) -> Iterator[Sequence[Span]]:
    """Each in lines no wider than ``width`` columns; what has no room goes on below, as far as ``spare`` lines are
    left. Beyond them a text is cut at a word, and marked ``…``.

    A command that has no room on the line of its text is on one of its own below it, which counts as well: the first
    findings come first. Without ``spare`` there may be any number of such lines.
    """
    if not numbered:
        return
    spare = None if width < NARROW else spare
    digits = len(str(numbered[-1].number))
    word_size = max(len(one.severity) for one in numbered)
    room = max(width - digits - word_size - 2 - _GAP - 1, 1)
    most = max(_MOST_COMMAND, room * 2 // 5)
    rows = [(one, clean(finding_text(one)), clean(command_of(one))) for one in numbered]
    usual = max((columns(command) for *_rest, command in rows if columns(command) <= _USUAL_COMMAND), default=0)
    widest = max((columns(text) for _one, text, command in rows if command), default=0)
    # Commands begin in one column, as far to the left as the texts allow; a longer one ends where the window does.
    column = min(widest, room - usual - _GAP)
    for one, text, command in rows:
        rest = room - columns(command) - _GAP
        # A text that is cut for its command has its rest in `advisor explain`.
        has_room = bool(command) and columns(command) <= most and rest >= min(_LEAST_TEXT, columns(text))
        if one.severity in ("critical", "warning") and spare != 0 and not command.startswith("advisor fix "):
            # What is grave is said whole; a command of `advisor fix` is in the column of the others.
            has_room = has_room and columns(clean(finding_text(one, min(column, rest)))) <= min(column, rest)
        line = [Span(f"  {one.number:>{digits}} "), padded(severity_span(one.severity), word_size), Span(" " * _GAP)]
        size = min(column, rest) if has_room else room
        text = finding_text(one, size)
        if has_room and columns(clean(text)) > size and spare != 0:
            # There is a line left on which a text that would be cut can leave its command to the next one.
            has_room, size, text = False, room, finding_text(one, room)
        if not has_room:
            first, *more = wrapped(text, size)
            if spare is not None and len(more) > spare:
                first, more = shortened(text, size), []
            spare = None if spare is None else spare - len(more)
            yield [*line, Span(first)]
            yield from ([Span(" " * (width - room)), Span(part)] for part in more)
            if command and columns(command) <= room and spare != 0:
                before = column + _GAP if columns(command) + column + _GAP <= room else 0
                yield [Span(" " * (width - room + before)), Span(command, COMMAND)]
                spare = None if spare is None else spare - 1
            continue
        yield [*line, Span(_padded(shortened(text, size), size + _GAP)), Span(command, COMMAND)]


def _padded(text: str, size: int) -> str:
    return text + " " * (size - columns(text))


def fitted(text: str, width: int) -> list[str]:
    """Return the text as one line that is cut where it has no room; as several in a narrow window."""
    return wrapped(text, width) if width < NARROW else [shortened(text, width)]


def wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines of ``width`` columns; one with wide characters in one line that is cut."""
    text = clean(text)
    is_plain = columns(text) == len(text)
    return wrap(text, max(width, 1), break_on_hyphens=False) or [""] if is_plain else [shortened(text, width)]


def shortened(text: str, size: int) -> str:
    """The text, or as many whole words of it as fit into ``size`` columns with ``…``."""
    text = clean(text)
    if columns(text) <= size:
        return text
    kept = ""
    for word in text.split(" "):
        longer = f"{kept} {word}".strip()
        if columns(longer) + 2 > size:
            break
        kept = longer
    if kept:
        return f"{kept.rstrip(',;:')} …"
    # One word that is wider than the window: a hostile name.
    while text and columns(text) + 1 > size:
        text = text[:-1]
    return f"{text}…"
