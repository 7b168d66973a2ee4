"""Which values of a profile have an effect, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from advisor.proof.ablation import list_aliases, run_count
from advisor.proof.blocks import Ablation, ArmsProof, Effect, counted_blocks, kept_values
from advisor.proof.records import Summary
from advisor.report.arms import (
    QUALITY,
    call_words,
    command_again,
    controls_words,
    doubt_words,
    interval_words,
    place_words,
    session_rows,
)
from advisor.report.charts.changes import CHART_WIDTH, chart_svg, forest_of
from advisor.report.html import render_page
from advisor.report.layout import Page, Span, Style, counted, listed
from advisor.report.proof_numbers import format_figure, format_percent, p_figure
from advisor.report.proof_rows import MetricRow, RowGroup
from advisor.report.proof_words import workload_title
from advisor.report.svg import MIN_WIDTH, Picture
from advisor.shell.quote import shell_quote

LEVEL_WORDS = (
    "A change is that of the metric with the value against without it, over runs in which the other values were on and"
    " off in turn. An interval has the level at which Holm's procedure tested that value, so it excludes no change"
    " exactly where a gain or a loss is called."
)


def ablation_text(result: ArmsProof, *, width: int, color: bool) -> str:
    """The whole result in at most ``width`` columns; the first line says how far it can be relied on."""
    ablation = result.session.ablation
    assert ablation is not None
    page = Page(width, color=color)
    words, style = QUALITY[result.quality]
    page.add(Span(words, style), f": {_headline(result, ablation)}", hang=2)
    for line in finding_lines(result):
        page.bullet(line)
    if result.reasons:
        page.heading("Why")
        for reason in result.reasons:
            page.bullet(reason)
    for workload in result.session.workloads:
        title = workload_title(workload)
        page.heading(workload, Span(f": {title}" if title else "", "dim"))
        _add_effects(page, [one for one in result.effects if one.workload == workload])
    page.heading("Values", Span(": before and after", "dim"))
    for line in _value_lines(result, ablation):
        page.bullet(line)
    page.heading("How to read it")
    page.add(LEVEL_WORDS, indent=2)
    for line in _pair_lines(result, ablation):
        page.add(line, indent=2)
    if result.session.command is None:
        page.add(controls_words(result), indent=2)
    if result.notes:
        page.heading("Notes")
        for note in result.notes:
            page.bullet(note)
    page.heading("Session")
    page.labelled([(label, (text,)) for label, text in _session_rows(result)])
    kept = kept_values(result)
    if kept and len(kept) < len(result.arms) - 1:
        page.heading("To prove the values with a gain as a whole, which was not done here")
        page.command(_kept_command(result, kept))
    page.heading("To measure again")
    page.command(command_again(result))
    return page.text


def _headline(result: ArmsProof, ablation: Ablation) -> str:
    blocks = counted(len(counted_blocks(result.session)), "block")
    values = counted(len(ablation.units), "value")
    return f"{values} of {ablation.profile}, {blocks} of {run_count(ablation.words)} combinations"


def finding_lines(result: ArmsProof) -> list[str]:
    """What each workload shows, in sentences: the values with an effect, and how large one of the others can be."""
    found = []
    for workload in result.session.workloads:
        effects = [one for one in result.effects if one.workload == workload]
        shown = [one for one in effects if one.call in ("gain", "loss")]
        found += [
            f"{workload}: {one.arm} {format_percent((one.ratio or 1.0) - 1)} ({interval_words(one)}),"
            f" {call_words(one)[0]}"
            for one in shown
        ]
        others = [one for one in effects if one not in shown]
        bound = max((_largest_effect(one) for one in others if one.interval is not None), default=None)
        if others and bound is not None:
            found.append(
                f"{workload}: {len(others)} of {counted(len(effects), 'value')}: no effect larger than"
                f" {format_percent(bound).removeprefix('+')} was seen ({listed([one.arm for one in others])})"
            )
    return found or ["nothing was measured"]


def _largest_effect(one: Effect) -> float:
    """The largest change that its interval has."""
    return max((abs(bound - 1) for bound in one.interval or ()), default=0.0)


def _add_effects(page: Page, effects: Sequence[Effect]) -> None:
    rows: list[tuple[str | Span, ...]] = [("value", "change", "interval", "p (Holm)", "result")]
    for one in effects:
        if one.before is None:
            rows.append((one.arm, "", "", "", Span("no block has it on and off", "yellow")))
            continue
        change = format_percent((one.ratio or 1.0) - 1)
        rows.append((one.arm, change, interval_words(one), p_figure(one.p_holm), Span(*_effect_words(one))))
    page.table(rows)


def _effect_words(one: Effect) -> tuple[str, Style]:
    call, style = call_words(one)
    return {"inconclusive": "no effect shown"}.get(call, call), style


def _value_lines(result: ArmsProof, ablation: Ablation) -> Iterable[str]:
    """Each value before and after, and what was not switched."""
    for name in result.arms[1:]:
        settings = result.session.values.get(name, ())
        yield "; ".join(f"{one.tunable} {one.before} → {one.after}" for one in settings) or name
    for left in ablation.left_out:
        yield f"{left.tunable} was not switched: {left.reason}"


def _session_rows(result: ArmsProof) -> list[tuple[str, str]]:
    # The values are listed by themselves.
    return [row for row in session_rows(result) if row[0] not in result.arms]


def _pair_lines(result: ArmsProof, ablation: Ablation) -> Iterable[str]:
    """What is known of values that act on each other."""
    for one in result.interactions:
        yield (
            f"{one.workload}: {' and '.join(one.pair)} act on each other: both together do × {one.ratio:.3g} of what"
            f" the two do singly (p = {p_figure(one.p_holm)} after Holm)."
        )
    if not result.interactions:
        yield "No two values are shown to act on each other."
    names = result.arms[1:]
    aliases = list_aliases(names, ablation.words)
    if aliases:
        letters = dict(zip(names, "ABCDEFGHIJKLMNOP", strict=False))
        groups = "; ".join(" = ".join(f"{letters[one]}{letters[other]}" for one, other in group) for group in aliases)
        key = ", ".join(f"{letter} {name}" for name, letter in letters.items())
        yield (
            f"Within one block these pairs cannot be distinguished ({groups}; {key}). A coin gives them other signs in"
            " each block, so that they cancel out in each other's figure; no value shares a figure with a pair."
        )


def _kept_command(result: ArmsProof, kept: Sequence[str]) -> str:
    words = [f"{one.tunable}={one.after}" for name in kept for one in result.session.values.get(name, ())]
    # On fresh data: with an order of its own.
    own = command_again(result).split(" --ablate", 1)[1].rsplit(" --seed=", 1)[0].strip()
    return " ".join(["advisor prove", *map(shell_quote, words), own])


# -- the picture and the page ------------------------------------------------------------------------------------------


_DESCRIPTION: Final = (
    "For each value the change of the metric with it against without it, with its interval, on one axis of changes, "
    "logarithmic; what excludes no change is a gain or a loss. Pairs of values are not drawn."
)


def draw_values(result: ArmsProof, *, width: float = MIN_WIDTH) -> Picture:
    """The estimate and interval of every value, workload by workload, for ``width`` pixels or more."""
    groups = []
    for workload in result.session.workloads:
        effects = [one for one in result.effects if one.workload == workload and one.before is not None]
        rows = tuple(MetricRow(_summary_of(one), Span(*_effect_words(one))) for one in effects)
        groups.append(RowGroup(workload, "", rows))
    return forest_of([one for one in groups if one.rows], _DESCRIPTION, width=width)


def _summary_of(one: Effect) -> Summary:
    return Summary(
        one.arm, one.metric, one.unit, one.better, one.before, one.after, one.ratio, one.interval, pairs=one.blocks
    )


def ablation_svg(result: ArmsProof) -> str:
    """The picture as a file of its own, which says by itself what was measured and how far it can be relied on."""
    ablation = result.session.ablation
    assert ablation is not None
    said = [f"{_headline(result, ablation)}; {place_words(result)}", *finding_lines(result)]
    return chart_svg(draw_values(result, width=CHART_WIDTH), "Which value has an effect", said, *doubt_words(result))


def ablation_page(result: ArmsProof) -> str:
    """The whole page, without script and with nothing from outside. All text is escaped."""
    ablation = result.session.ablation
    assert ablation is not None
    words, look = QUALITY[result.quality]
    is_shown = result.session.command is None
    return render_page(
        "arms",
        title=f"Which value of {ablation.profile} has an effect",
        kind="Combinations of values in randomised blocks",
        verdict=words,
        verdict_style=look,
        headlines=(_headline(result, ablation), *finding_lines(result)),
        reasons=result.reasons,
        picture_of=draw_values(result),
        columns=("value", "without → with", "change", "interval", "p (Holm)", "result"),
        workloads=[
            {
                "name": name,
                "title": workload_title(name),
                "rows": [
                    _effect_cells(one) for one in result.effects if one.workload == name and one.before is not None
                ],
            }
            for name in result.session.workloads
        ],
        level=LEVEL_WORDS,
        control=controls_words(result) if is_shown else "",
        sections=(
            ("Values: before and after", list(_value_lines(result, ablation))),
            ("Pairs of values", list(_pair_lines(result, ablation))),
        ),
        notes=result.notes,
        session=_session_rows(result),
        command=command_again(result),
    )


def _effect_cells(one: Effect) -> dict[str, object]:
    says, style = _effect_words(one)
    cells = (
        one.arm,
        f"{format_figure(one.before or 0.0)} → {format_figure(one.after or 0.0)} {one.unit}",
        format_percent((one.ratio or 1.0) - 1),
        interval_words(one),
        p_figure(one.p_holm),
    )
    return {"cells": cells, "says": says, "style": style}
