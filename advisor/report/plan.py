"""A plan as text: what would change, read like a diff; what would not, and why; what to type next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from advisor.facts.redaction import for_display
from advisor.host.numbers import is_count
from advisor.planning.records import SATISFIED, Change, FileChange, Plan, Skipped, SkipState
from advisor.report.format import Folded, fold_alike
from advisor.report.layout import (
    Page,
    Piece,
    Span,
    Style,
    columns,
    command_span,
    counted_values,
    listed,
    padded,
    value_words,
    width_of,
)
from advisor.report.severities import severity_span
from advisor.report.terms import (
    EFFECTS,
    RISKS,
    counted_kind,
    human_change,
    kind_of,
    restart_commands,
    short_name,
    unit_word,
    value_text,
)
from advisor.shell.quote import shell_quote, trial_command
from advisor.shell.rollback_script import hand_command

if TYPE_CHECKING:
    from advisor.profiles.requested import WantedValue

FINGERPRINT_DIGITS = 12

# Titles in the order in which they are printed: first what blocks the plan.
_STATES: Mapping[SkipState, tuple[str, Style]] = {
    "blocked": ("Blocked: cannot be done here", "red"),
    "overridden": ("Would be overridden at the next boot", "red"),
    "unknown": ("Unknown: could not be read", "yellow"),
    "would-lower": ("Unchanged: already sufficient", ""),
    "kept": ("Not changed by this profile", ""),
    "by-hand": ("Manual steps", "yellow"),
    "not-applicable": ("Does not apply here", ""),
    "in-place": ("Already set", ""),
}
_COUNTS: Mapping[SkipState, str] = {
    "blocked": "{count} blocked",
    "overridden": "{count} overridden",
    "unknown": "{count} unknown",
    "would-lower": "{count} already sufficient",
    "kept": "{count} not changed by the profile",
    "by-hand": "{count} to do by hand",
    "not-applicable": "{count} not applicable",
    "in-place": "{count} already set",
}


def plan_text(plan: Plan, *, width: int, color: bool, is_live: bool = True, is_asked: bool = False) -> str:
    """The whole plan for a person, in at most ``width`` columns; ends with what to type next, on this host or (not
    ``is_live``) on the one that was captured, or why not. Where a question follows (``is_asked``) the call that
    asks it is not repeated."""
    page = Page(width, color=color)
    title = f"Plan of {listed(plan.profiles)}"
    fingerprint = f"fingerprint {plan.fingerprint[:FINGERPRINT_DIGITS]}"
    gap = page.width - columns(title) - columns(fingerprint)
    if gap < 2:
        page.add(Span(title, "bold"))
        page.add(Span(fingerprint, "dim"))
    else:
        page.row(Span(title, "bold"), " " * gap, Span(fingerprint, "dim"))
    amount = f"{counted_values(len(plan.changes), len(plan.files))} would change"
    parts = ("Nothing would change" if plan.is_empty else amount, skipped_counts(plan.skipped))
    page.add("; ".join(filter(None, parts)) + ("." if plan.is_empty else ". Nothing has been changed."))
    add_plan(page, plan)
    page.blank()
    reason = cannot_apply_reason(plan)
    if reason:
        page.add(Span("Cannot be applied:", "red"), " ", reason, hang=2)
    elif plan.is_empty:
        page.add("Nothing to do: everything is already set.")
    else:
        if not is_asked:
            page.add("To apply it, as root:" if is_live else "To apply it, as root on the captured host:")
            page.command(" ".join((apply_command(plan), *(f"--instead-of {one}" for one in plan.instead_of))))
        add_trial(page, plan)
    return page.text


def add_plan(page: Page, plan: Plan) -> None:
    """What a plan changes and what it leaves, without a title and without what to type next."""
    bounds = _asked_bounds(plan.words)
    for (profile, kind), run in groupby(plan.changes, key=lambda change: (change.profile, kind_of(change.tunable))):
        _add_block(page, profile, kind, tuple(run), bounds)
    if plan.files:
        page.heading("Files")
        for file in plan.files:
            for line, style in file_diff(file):
                page.verbatim(line, style, indent=2)
            for step in file.reload:
                page.add("then", " ", command_span(hand_command(step)), indent=2, hang=2)
            page.blank()
    moving = [one for one in plan.side_effects if not one.keeps and not one.resets]
    if moving:
        page.heading("Possible side effects")
        page.add("The kernel may change these values with the ones above; a rollback restores them too.", indent=2)
        links = fold_alike(moving, lambda one: one.tunable, same=lambda one: one.before)
        page.table([(one.title, f"{one.items[0].before} now") for one in links])
    kept = sorted({one.tunable.split(":")[1] for one in plan.side_effects if one.keeps})
    if kept:
        page.blank()
        page.add(f"Addresses and routes of {listed(kept)} are recorded, and restored if a link loses them.")
    for state, (title, style) in _STATES.items():
        items = [one for one in plan.skipped if one.state == state]
        if items:
            page.blank()
            page.add(Span(title, style or "bold"), f" ({len(items)})" if len(items) > 1 else "")
            by_reason: dict[str, list[Folded[Skipped]]] = {}
            for one in fold_alike(items, lambda one: one.tunable, lambda one: one.reason):
                by_reason.setdefault("" if _is_plain(one.items) else one.detail, []).append(one)
            for reason, folded in by_reason.items():
                # A reason that several have in common stands above them, that of a single one on its line.
                if reason and len(folded) > 1:
                    page.add(f"{reason}:", indent=2)
                    page.table([(_open_name(one), _skipped_values(one.items, bounds)) for one in folded], indent=4)
                else:
                    texts = (
                        (_open_name(one), ": ".join(filter(None, (_skipped_values(one.items, bounds), reason))))
                        for one in folded
                    )
                    page.table(list(texts))
    if plan.foreseen:
        page.heading("A scan would then report")
        page.table([(severity_span(one.severity), Span(one.id, "bold"), one.title) for one in plan.foreseen])
        if plan.warnings:
            page.add("apply --yes is refused because of this; --force passes it.", indent=2)
    page.bulleted("Notes", (note for note in plan.notes))


def skipped_counts(skipped: Iterable[Skipped]) -> str:
    """``2 already set, 200 not applicable``."""
    states = [one.state for one in skipped]
    counts = (words.format(count=states.count(state)) for state, words in _COUNTS.items() if state in states)
    return ", ".join(counts)


_WANTED: Mapping[str, str] = {"=": "wanted {value}", ">=": "wanted at least {value}", "<=": "wanted at most {value}"}


def _asked_bounds(words: Iterable[str]) -> Mapping[str, WantedValue]:
    """What the words of a command line ask for as a bound (``>=``, ``<=``), by its tunable."""
    # Pages of transactions are made without it.
    from advisor.profiles.requested import is_value_word, parse_value

    values = (parse_value(word) for word in words if is_value_word(word))
    return {one.tunable: one for one in values if one.operator != "="}


def _wanted_words(operator: str, value: str) -> str:
    return _WANTED[operator].format(value=value)


def _add_block(
    page: Page, profile: str, kind: str, changes: tuple[Change, ...], bounds: Mapping[str, WantedValue]
) -> None:
    """Changes of one profile and kind: what they have in common once, then each of them."""
    page.heading(profile, f": {counted_kind(kind, len(changes))}")
    why, most = _shared_why(changes), {label: _most_common(changes, words) for label, words in _ATTRIBUTES.items()}
    page.labelled([*_common_rows(changes, most), *([("why", [why])] if why else [])])
    page.blank()
    folded = folded_changes(changes)
    size = max(columns(one.title) for one in folded)
    for one in folded:
        own = [label for label, text in most.items() if text is None]
        _add_change(page, one, size, shared_why=why, own=own, bound=bounds.get(one.title))
    # When it hurts, each text once, with the tunables that it is about unless it is about all.
    texts: dict[str, list[str]] = {}
    for change in changes:
        texts.setdefault(change.hurts_when, []).append(short_name(change.tunable))
    page.blank()
    if len(texts) == 1:
        page.labelled([("hurts when", [next(iter(texts))])])
    else:
        page.add(Span("hurts when", "dim"), indent=2)
        for text, tunables in texts.items():
            page.bullet(f"{', '.join(tunables)}: {text}", indent=4)


def folded_changes(changes: Iterable[Change]) -> list[Folded[Change]]:
    """Interrupts that move alike stand in one line; links and parameters are each a decision of their own."""
    found: list[Folded[Change]] = []
    for kind, run in groupby(changes, key=lambda change: kind_of(change.tunable)):
        if kind == "irq":
            found += fold_alike(
                run,
                lambda change: change.tunable,
                lambda change: change.why,
                same=lambda change: (change.before, change.after),
            )
        else:
            found += [Folded(change.tunable, change.why, (change,)) for change in run]
    return found


def _common_rows(changes: Sequence[Change], most: Mapping[str, str | None]) -> list[tuple[str, list[Piece]]]:
    """Label and text of what most changes have in common, then the exceptions by name."""
    rows: list[tuple[str, list[Piece]]] = []
    for label, common in most.items():
        if common is None:
            continue
        named: dict[str, list[str]] = {common: []}
        for change in changes:
            named.setdefault(_ATTRIBUTES[label](change), []).append(short_name(change.tunable))
        texts = [common] if common else []
        texts += [f"{', '.join(names)}: {text}" for text, names in named.items() if text and text != common]
        rows += [(label if number == 0 else "", [text]) for number, text in enumerate(texts)]
    return rows


def _most_common(changes: Sequence[Change], words: Callable[[Change], str]) -> str | None:
    """The text of more than half of the changes; None where there is none, so that each is printed with its own."""
    text, count = Counter(map(words, changes)).most_common(1)[0]
    return text if 2 * count > len(changes) else None


def _takes_effect(change: Change) -> str:
    commands = restart_commands((change,))
    effect = EFFECTS[change.takes_effect]
    return f"{effect}: {commands[0]}" if commands else effect


def _persistence_words(change: Change) -> str:
    if change.persist:
        return f"in {change.persist}" + (f", but {change.persist_note}" if change.last_word else "")
    return f"no: {change.persist_note or 'a reboot undoes it'}"


def _risk_words(change: Change) -> str:
    return RISKS[change.risk] if RISKS[change.risk] else ""


_ATTRIBUTES: Mapping[str, Callable[[Change], str]] = {
    "takes effect": _takes_effect,
    "persists": _persistence_words,
    "risk": _risk_words,
}


def _shared_why(changes: Sequence[Change]) -> str:
    """The sentences with which every why begins; empty for a single change, or where they have none in common."""
    if len(changes) < 2:
        return ""
    sentences = [change.why.split(". ") for change in changes]
    common: list[str] = []
    for column in zip(*sentences, strict=False):
        if len({part.removesuffix(".") for part in column}) > 1:
            break
        common.append(column[0].removesuffix("."))
    return ". ".join(common) + "." if common else ""


def _add_change(
    page: Page, one: Folded[Change], size: int, *, shared_why: str, own: Sequence[str], bound: WantedValue | None
) -> None:
    """One change, or several alike; ``own`` are the attributes that most of the block do not share."""
    change = one.items[0]
    add_values(page, Span(one.title, "bold"), change, size)
    if bound is not None:
        page.add(Span(_wanted_words(bound.operator, bound.value), "dim"), indent=6, hang=2)
    why = one.detail.removeprefix(shared_why).strip()
    if why:
        page.add(why, indent=6)
    for label in own:
        if text := _ATTRIBUTES[label](change):
            page.add(Span(f"{label}: {text}", "dim"), indent=6, hang=2)


def add_values(page: Page, name: Span, change: Change, size: int) -> None:
    """One line ``name  before → after``; as two lines with - and + where that is too long."""
    values, remark = _value_pieces(change)
    hang = size + 4
    if hang + width_of(values) > page.width:
        page.add(name, indent=2, hang=2)
        page.add(Span(f"- {value_text(change.tunable, change.before)}", "red"), indent=6, hang=2)
        page.add(Span(f"+ {value_text(change.tunable, change.after)}", "green"), indent=6, hang=2)
    elif hang + width_of(values) + 1 + width_of((remark,)) > page.width:
        page.row("  ", padded(name, size + 2), *values)
        page.add(remark, indent=hang)
    else:
        page.row("  ", padded(name, size + 2), *values, " " if remark.text else "", remark)


def _value_pieces(change: Change) -> tuple[list[Piece], Span]:
    """Before and after, and what they are in other words."""
    if change.before == change.after:
        return [Span(value_text(change.tunable, change.after), "green")], Span("is active; the file persists it", "dim")
    human = human_change(change.tunable, change.before, change.after)
    remark = f"({human})" if human else unit_word(change.tunable)
    before, after = (value_text(change.tunable, value) for value in (change.before, change.after))
    return [Span(value_words(before), "red"), " → ", Span(after, "green")], Span(remark, "dim")


def file_diff(file: FileChange) -> list[tuple[str, Style]]:
    """A unified diff of the file (diff(1)), line by line with the style that each is shown in; no password or key."""
    before = _split_lines(for_display(file.path, file.before or b""))
    after = _split_lines(for_display(file.path, file.after))
    names = ("/dev/null" if file.before is None else file.path, file.path)
    import difflib

    diff = difflib.unified_diff(before, after, *names, n=3)
    head: list[tuple[str, Style]] = []
    if file.before is None:
        head.append((f"new file, mode {file.mode:04o}", "dim"))
    found = [(line, _diff_style(line)) for line in diff]
    return head + [part for line, style in found for part in _end_lines(line, style)]


def _split_lines(content: bytes) -> list[str]:
    lines = re.findall(rb"[^\n]*\n|[^\n]+", content)
    return [line.decode("utf-8", "replace").replace("\r", "\N{SYMBOL FOR CARRIAGE RETURN}") for line in lines]


def _end_lines(line: str, style: Style) -> list[tuple[str, Style]]:
    if line.endswith("\n"):
        return [(line[:-1], style)]
    return [(line, style), ("\\ No newline at end of file", "dim")]


def _diff_style(line: str) -> Style:
    if line.startswith(("--- ", "+++ ")):
        return "bold"
    first: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
    return first.get(line[:1], "")


def _open_name(one: Folded[Skipped]) -> str:
    """The name; where a profile's line selected nothing, a star for what it would have selected."""
    return re.sub(r"\{\w+\}", "*", one.title)


def _is_plain(items: Sequence[Skipped]) -> bool:
    """Whether the title and the value say the reason: for what is satisfied, unless something else than the value makes
    it so."""
    state, differs = items[0].state, any(one.before != one.wanted for one in items)
    return state in SATISFIED and not (state == "in-place" and differs and items[0].reason != "already set")


def _skipped_values(items: Sequence[Skipped], bounds: Mapping[str, WantedValue]) -> str:
    """What is there and what was wanted, where that is the same for all."""
    before = {one.before for one in items}
    wanted = {one.wanted for one in items}
    if len(before) > 1 or len(wanted) > 1:
        return ""
    is_there, asked = before.pop(), wanted.pop()
    bound = bounds.get(items[0].tunable)
    if items[0].state in ("in-place", "kept") and bound is None:
        return (is_there or "") if _is_plain(items) else ""
    there = [] if is_there is None else [f"is {is_there}"]
    if bound is not None:
        return ", ".join([*there, _wanted_words(bound.operator, bound.value)])
    # A number that is left because it is higher is wanted as at least.
    is_least = items[0].state == "would-lower" and asked is not None and is_count(asked)
    return ", ".join([*there, *([] if asked is None else [_wanted_words(">=" if is_least else "=", asked)])])


def cannot_apply_reason(plan: Plan) -> str | None:
    """Why this plan cannot be applied; None where it can, or where there is nothing left to do. English: it is data."""
    if plan.blocking:
        first = plan.blocking[0]
        said, more = f"{first.tunable}: {first.reason}", len(plan.blocking) - 1
        return f"{said} (and {more} more)" if more else said
    return "nothing of it fits this host" if plan.cannot_apply else None


def _asked_words(plan: Plan) -> list[str]:
    given = (word for name, value in plan.settings for word in ("--set", f"{name}={value}"))
    return [*(plan.words or plan.profiles), *given]


def apply_command(plan: Plan) -> str:
    """The command that asks for this plan again."""
    words = [*_asked_words(plan), *(("--runtime-only",) if plan.runtime_only else ())]
    return " ".join(("advisor apply", *map(shell_quote, words)))


def add_trial(page: Page, plan: Plan, text: str = "To keep it only if a gain is measured:") -> None:
    """Offer to measure the plan, and to keep it only if it helps; nothing if it needs a reboot, or sets no value."""
    if any(one.takes_effect != "reboot" for one in plan.changes):
        page.add(text)
        page.command(trial_command(*_asked_words(plan)))
