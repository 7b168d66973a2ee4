"""A session of several arms, profiles or values of one, as text, as an SVG picture and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from advisor.proof.ablation import run_count
from advisor.proof.blocks import ArmsProof, Call, Effect, Quality, counted_blocks, kept_values
from advisor.proof.records import Summary
from advisor.report.charts.changes import CHART_WIDTH, chart_svg, forest_of
from advisor.report.format import format_duration
from advisor.report.html import render_page
from advisor.report.layout import Cell, Page, Span, Style, counted, listed
from advisor.report.proof_numbers import figures_words, format_percent, format_written, p_figure
from advisor.report.proof_rows import MetricRow, RowGroup
from advisor.report.proof_words import command_words, workload_title
from advisor.report.svg import MIN_WIDTH, Picture
from advisor.shell.quote import shell_quote

_QUALITY: Mapping[Quality, tuple[str, Style]] = {
    "sound": ("measured", "green"),
    "indicative": ("indicative only", "yellow"),
    "invalid": ("invalid", "red"),
}
_CALLS: Mapping[Call, tuple[str, Style]] = {
    "gain": ("gain", "green"),
    "loss": ("loss", "red"),
    "no-difference": ("no difference", ""),
    "inconclusive": ("no effect shown", "dim"),
}
_LEVEL_WORDS = (
    "An interval has the level at which Holm's procedure tested that comparison, so it excludes no change exactly where"
    " a gain or a loss is called."
)
_DESCRIPTION = (
    "For each arm the change of the metric and its interval, on one axis of changes, logarithmic; what excludes no "
    "change is a gain or a loss. All figures are in the table."
)


class _Words(NamedTuple):
    """What differs between profiles as arms and values of one profile."""

    title: str
    headline: str
    kind: str
    column: str
    against: str
    level: str


def _words_of(result: ArmsProof) -> _Words:
    blocks = counted(len(counted_blocks(result.session)), "block")
    ablation = result.session.ablation
    if ablation is None:
        title = f"{listed(result.arms[1:])} against none"
        return _Words(
            title,
            f"{title}, {blocks}, {counted(result.comparisons, 'comparison')}",
            "Arms in randomised blocks",
            "arm",
            "none → arm",
            f"{_LEVEL_WORDS} The arms are compared with none, not with each other.",
        )
    values = counted(len(ablation.units), "value")
    return _Words(
        f"Which value of {ablation.profile} has an effect",
        f"{values} of {ablation.profile}, {blocks} of {run_count(ablation.words)} combinations",
        "Combinations of values in randomised blocks",
        "value",
        "without → with",
        "A change is that of the metric with the value against without it, over runs in which the other values were on"
        f" and off in turn. {_LEVEL_WORDS}",
    )


def arms_text(result: ArmsProof, *, width: int, color: bool) -> str:
    """Return the whole result in at most ``width`` columns; the first line says how far it can be relied on."""
    page = Page(width, color=color)
    words, (quality, style) = _words_of(result), _QUALITY[result.quality]
    page.add(Span(quality, style), f": {words.headline}", hang=2)
    for line in finding_lines(result):
        page.bullet(line)
    page.bulleted("Why", result.reasons)
    for name, effects in _by_workload(result):
        title = workload_title(name)
        page.heading(name, Span(f": {title}" if title else "", "dim"))
        # Without p, which the page and JSON have, a row of the usual names fits 80 columns.
        rows: list[list[Cell]] = [[words.column, words.against, "change", "interval", "result"]]
        rows += [[*_cells_of(one)[:-1], Span(*call_words(one))] for one in effects]
        page.table(rows)
    for heading, lines in _sections(result):
        page.bulleted(heading, lines)
    page.heading("How to read it")
    page.add(f"{words.level} {_controls_words(result)}", indent=2)
    page.bulleted("Notes", result.notes)
    page.heading("Session")
    page.labelled([(label, (text,)) for label, text in _session_rows(result)])
    kept = kept_values(result) if result.session.ablation is not None else ()
    if kept and len(kept) < len(result.arms) - 1:
        page.heading("To prove the values with a gain as a whole, which was not done here")
        page.command(_kept_command(result, kept))
    page.heading("To measure again")
    page.command(command_again(result))
    return page.text


def finding_lines(result: ArmsProof) -> list[str]:
    """Return what each workload shows, in sentences: arms with an effect, and how large one of the others can be."""
    found = []
    for name, effects in _by_workload(result):
        shown = [one for one in effects if one.call in ("gain", "loss") or one.cost == "shown"]
        found += [
            f"{name}: {one.arm} {_change_words(one)} ({_interval_words(one)}), {call_words(one)[0]}" for one in shown
        ]
        others = [one for one in effects if one not in shown]
        bound = max((abs(end - 1) for one in others for end in one.interval or ()), default=None)
        if bound is not None:
            found.append(
                f"{name}: no effect larger than {format_percent(bound).removeprefix('+')} was seen of"
                f" {listed([one.arm for one in others])}"
            )
    return found or ["nothing was measured"]


def _by_workload(result: ArmsProof) -> Iterable[tuple[str, list[Effect]]]:
    for name in result.session.workloads:
        yield name, [one for one in result.effects if one.workload == name]


def call_words(one: Effect) -> tuple[str, Style]:
    """Return the call with what its guardrails and the margin make of it, such as ``gain with a cost``."""
    if one.before is None:
        return "no block has both", "yellow"
    words, style = _CALLS[one.call]
    if one.cost == "shown":
        worse = [("p99 latency", one.latency_p99_ratio), ("CPU per I/O", one.cpu_ratio)]
        names = ", ".join(
            f"{name} {format_percent(ratio - 1)}" for name, ratio in worse if ratio is not None and ratio > 1
        )
        return f"{words} with a cost{f' ({names})' if names else ''}", "yellow"
    if one.call != "gain" or one.is_plain_gain:
        return words, style
    return ("gain, below the margin" if one.below_margin else "gain, cost undecided"), "yellow"


def _cells_of(one: Effect) -> tuple[str, ...]:
    if one.before is None:
        return (one.arm, "", "", "", "")
    values = f"{figures_words(one.before, one.after)} {one.unit}"
    return (one.arm, values, _change_words(one), _interval_words(one), p_figure(one.p_holm))


def _change_words(one: Effect) -> str:
    return format_percent((one.ratio or 1.0) - 1)


def _interval_words(one: Effect) -> str:
    return " to ".join(format_percent(bound - 1) for bound in one.interval or ())


def _controls_words(result: ArmsProof) -> str:
    if result.session.command is not None:
        return ""
    figures = ", ".join(
        f"{one.arm} {format_percent(one.ratio - 1)} (p = {p_figure(one.p_holm)})"
        for one in result.controls
        if one.ratio is not None
    )
    return f"Negative control (fio's null engine, which no profile can move): {figures or 'not measured'}."


def _sections(result: ArmsProof) -> Iterable[tuple[str, list[str]]]:
    """Yield what each arm sets and, of values, what was not switched."""
    values, ablation = result.session.values, result.session.ablation
    yield (
        "Values: before and after",
        [
            ("" if ablation else f"{name}: ") + "; ".join(f"{one.tunable} {one.before} → {one.after}" for one in found)
            for name in result.arms[1:]
            if (found := values.get(name))
        ],
    )
    if ablation is not None:
        yield "Not switched", [f"{one.tunable}: {one.reason}" for one in ablation.left_out]


def _session_rows(result: ArmsProof) -> list[tuple[str, str]]:
    """Return where, how long and how much."""
    session, schedule = result.session, result.session.schedule
    device = f" on {session.device}" if session.device else ""
    place = ("target", f"{session.target} ({session.file_system}{device})")
    runs = f"{schedule.seconds_per_run:.3g} s each, {session.fio_version}, seed {session.seed}"
    if session.command is not None:
        place = ("command", command_words(session.command))
        runs = f"{schedule.seconds_per_run:.2g} s each, seed {session.seed}"
    return [
        ("host", session.host.name if session.host is not None and session.host.name else "this host"),
        place,
        ("runs", runs),
        ("took", f"{format_duration(session.seconds)}; ended: {session.ended}"),
        ("written", format_written(session.bytes_written, schedule.byte_budget)),
    ]


def command_again(result: ArmsProof) -> str:
    """Return the call that measures in the same order again."""
    ablation = result.session.ablation
    own = ("--arms=" + ",".join(result.arms),) if ablation is None else (*map(shell_quote, ablation.asked), "--ablate")
    return " ".join(["advisor prove", *own, *_options(result), f"--seed={result.seed}"])


def _kept_command(result: ArmsProof, kept: Sequence[str]) -> str:
    # On fresh data: with an order of its own.
    words = [f"{one.tunable}={one.after}" for name in kept for one in result.session.values.get(name, ())]
    return " ".join(["advisor prove", *map(shell_quote, words), *_options(result)])


def _options(result: ArmsProof) -> Iterable[str]:
    session = result.session
    if session.command is None:
        yield f"--target={shell_quote(session.target)}"
    if session.peer_address is not None:
        yield f"--peer={shell_quote(session.peer_address)}"
    for name in session.workloads if session.command is None else ():
        yield f"--workload={shell_quote(name)}"
    if session.schedule.mode != "default":
        yield f"--{session.schedule.mode}"
    if session.toggle_class == "T2":
        yield "--allow-link-flap"
    yield from map(shell_quote, session.options)


# -- the picture and the page ------------------------------------------------------------------------------------------


def _draw_effects(result: ArmsProof, *, width: float = MIN_WIDTH) -> Picture:
    """Draw estimate and interval of every arm, workload by workload, for ``width`` pixels or more."""
    groups = [
        RowGroup(
            name,
            "",
            tuple(MetricRow(_summary_of(one), Span(*call_words(one))) for one in effects if one.before is not None),
        )
        for name, effects in _by_workload(result)
    ]
    return forest_of([one for one in groups if one.rows], _DESCRIPTION, width=width)


def _summary_of(one: Effect) -> Summary:
    return Summary(
        one.arm, one.metric, one.unit, one.better, one.before, one.after, one.ratio, one.interval, pairs=one.blocks
    )


def arms_svg(result: ArmsProof) -> str:
    """Return the picture as a file of its own: what was compared, and how far it can be relied on."""
    words, session, (quality, style) = _words_of(result), result.session, _QUALITY[result.quality]
    place = f"{words.headline}; {session.target} ({session.file_system}), {session.started[:10]}"
    doubt = "" if result.quality == "sound" else f"{quality}: {'; '.join(result.reasons)}"
    drawn = _draw_effects(result, width=CHART_WIDTH)
    return chart_svg(drawn, words.title, [place, *finding_lines(result)], doubt, style)


def arms_page(result: ArmsProof) -> str:
    """Return the whole page, without script and with nothing from outside. All text is escaped."""
    words, (quality, look) = _words_of(result), _QUALITY[result.quality]
    return render_page(
        "arms",
        title=words.title,
        kind=words.kind,
        verdict=quality,
        verdict_style=look,
        headlines=(words.headline, *finding_lines(result)),
        reasons=result.reasons,
        picture_of=_draw_effects(result),
        columns=(words.column, words.against, "change", "interval", "p (Holm)", "result"),
        workloads=[
            {"name": name, "title": workload_title(name), "rows": [_row_dict(one) for one in effects]}
            for name, effects in _by_workload(result)
        ],
        level=words.level,
        control=_controls_words(result),
        sections=_sections(result),
        notes=result.notes,
        session=_session_rows(result),
        command=command_again(result),
    )


def _row_dict(one: Effect) -> dict[str, object]:
    says, style = call_words(one)
    return {"cells": _cells_of(one), "says": says, "style": style}
