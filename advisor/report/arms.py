"""A comparison of several arms as text, as an SVG picture and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from advisor.proof.blocks import NONE, ArmsProof, Call, Effect, Quality, counted_blocks
from advisor.report.charts.changes import CHART_WIDTH, chart_svg, draw_bars
from advisor.report.format import format_duration
from advisor.report.html import render_page
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, listed, padded
from advisor.report.proof_numbers import format_figure, format_percent, format_written, p_figure
from advisor.report.proof_words import command_words, workload_title
from advisor.shell.quote import shell_quote

QUALITY: Final[Mapping[Quality, tuple[str, Style]]] = {
    "sound": ("measured", "green"),
    "indicative": ("indicative only", "yellow"),
    "invalid": ("invalid", "red"),
}
_CALLS: Final[Mapping[Call, tuple[str, Style]]] = {
    "gain": ("gain", "green"),
    "loss": ("loss", "red"),
    "no-difference": ("no difference", ""),
    "inconclusive": ("inconclusive", "dim"),
}
_BAR_WIDTH: Final = 16
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
LEVEL_WORDS: Final = (
    "An interval has the level at which Holm's procedure tested that comparison, so it excludes no change exactly where"
    " a gain or a loss is called. The arms are compared with none, not with each other."
)


def arms_text(result: ArmsProof, *, width: int, color: bool) -> str:
    """The whole result in at most ``width`` columns; the first line says how far it can be relied on."""
    page = Page(width, color=color)
    words, style = QUALITY[result.quality]
    page.add(Span(words, style), f": {write_headline(result)}", hang=2)
    for line in best_lines(result):
        page.bullet(line)
    page.bulleted("Why", result.reasons)
    for workload in result.session.workloads:
        _add_workload(page, workload, [one for one in result.effects if one.workload == workload])
    page.heading("How to read it")
    page.add(LEVEL_WORDS, indent=2)
    page.add(controls_words(result), indent=2)
    page.bulleted("Notes", result.notes)
    page.heading("Session")
    page.labelled([(label, (text,)) for label, text in session_rows(result)])
    page.heading("To measure again")
    page.command(command_again(result))
    return page.text


def write_headline(result: ArmsProof) -> str:
    """What was compared, and how often."""
    blocks = counted(len(counted_blocks(result.session)), "block")
    return f"{listed(result.arms[1:])} against none, {blocks}, {counted(result.comparisons, 'comparison')}"


def best_lines(result: ArmsProof) -> list[str]:
    """What is proven, in sentences; one that says so where nothing is."""
    gains = [one for one in result.effects if one.call == "gain"]
    losses = [one for one in result.effects if one.call == "loss"]
    costs = [one for one in result.effects if one.cost == "shown" and one.call not in ("gain", "loss")]
    found = [f"{one.workload}: {one.arm} {_change_words(one)}" for one in (*gains, *losses, *costs)]
    if found and result.quality == "sound":
        return found
    return found or ["no gain and no loss is shown"]


def _change_words(one: Effect) -> str:
    return f"{format_percent((one.ratio or 1.0) - 1)} ({interval_words(one)}), {call_words(one)[0]}"


def call_words(one: Effect) -> tuple[str, Style]:
    """``gain with a cost``: the call with what its guardrails and the margin make of it."""
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


def interval_words(one: Effect) -> str:
    """``+9.1 % to +20 %``; empty where it was not measured."""
    if one.interval is None:
        return ""
    low, high = (format_percent(bound - 1) for bound in one.interval)
    return f"{low} to {high}"


def _add_workload(page: Page, workload: str, effects: Sequence[Effect]) -> None:
    title = workload_title(workload)
    page.heading(workload, Span(f": {title}" if title else "", "dim"))
    measured = [one for one in effects if one.before is not None]
    if not measured:
        page.add(Span("no block has both arms", "yellow"), indent=2)
        return
    base = measured[0].before or 0.0
    highest = max(base, *(one.after or 0.0 for one in measured))
    size = max(columns(name) for name in (NONE, *(one.arm for one in measured)))
    _add_row(page, NONE, base, highest, size, (Span(measured[0].unit, "dim"),))
    for one in measured:
        call, style = call_words(one)
        words = (
            f"{format_percent((one.ratio or 1.0) - 1)}",
            Span(f" ({interval_words(one)}) ", "dim"),
            Span(call, style),
        )
        _add_row(page, one.arm, one.after or 0.0, highest, size, words)


def _add_row(page: Page, name: str, value: float, highest: float, size: int, words: Sequence[Piece]) -> None:
    bar = bar_words(value, highest, _BAR_WIDTH)
    page.add_cells(
        (padded(name, size + 1), padded(f"{format_figure(value):>9}", 10), padded(bar, _BAR_WIDTH + 1)), words
    )


def bar_words(value: float, highest: float, width: int) -> str:
    """A bar of block characters in eighths of a column, ``width`` columns for ``highest``."""
    eighths = round(8 * width * value / highest) if highest > 0 else 0
    whole, rest = divmod(max(0, min(eighths, 8 * width)), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def controls_words(result: ArmsProof) -> str:
    """What the negative control shows of each arm."""
    shown = [one for one in result.controls if one.ratio is not None]
    if not shown:
        return "The negative control was not measured."
    figures = ", ".join(
        f"{one.arm} {format_percent((one.ratio or 1.0) - 1)} (p = {p_figure(one.p_holm)})" for one in shown
    )
    return f"Negative control (fio's null engine, which no profile can move): {figures}."


def session_rows(result: ArmsProof) -> list[tuple[str, str]]:
    """Where, how long and how much."""
    session, schedule = result.session, result.session.schedule
    device = f" on {session.device}" if session.device else ""
    rows = [("host", session.host.name if session.host is not None and session.host.name else "this host")]
    if session.command is not None:
        rows += [
            ("command", command_words(session.command)),
            ("runs", f"{schedule.seconds_per_run:.2g} s each, seed {session.seed}"),
        ]
    else:
        rows += [
            ("target", f"{session.target} ({session.file_system}{device})"),
            ("runs", f"{schedule.seconds_per_run:g} s each, {session.fio_version}, seed {session.seed}"),
        ]
    rows += [
        ("took", f"{format_duration(session.seconds)}; ended: {session.ended}"),
        ("written", format_written(session.bytes_written, schedule.byte_budget)),
    ]
    rows += [(name, values_words(result, name)) for name in result.arms[1:]]
    return rows


def values_words(result: ArmsProof, arm: str) -> str:
    """What an arm sets."""
    values = result.session.values.get(arm, ())
    return "; ".join(f"{one.tunable} {one.before} → {one.after}" for one in values) or "nothing is recorded"


def command_again(result: ArmsProof) -> str:
    """The call that measures in the same order again."""
    return " ".join(_words_again(result))


def _words_again(result: ArmsProof) -> Iterable[str]:
    session = result.session
    if session.ablation is not None:
        yield from ("advisor", "prove", *map(shell_quote, session.ablation.asked), "--ablate")
    else:
        yield from ("advisor", "prove", f"--arms={','.join(result.arms)}")
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
    yield f"--seed={result.seed}"


def arms_svg(result: ArmsProof) -> str:
    """The chart as a file of its own, which says by itself what was compared and how far it can be relied on."""
    counts = f"{counted(len(counted_blocks(result.session)), 'block')}, {counted(result.comparisons, 'comparison')}"
    title = f"{listed(result.arms[1:])} against none"
    return chart_svg(
        draw_bars(result, width=CHART_WIDTH), title, [f"{counts}; {place_words(result)}"], *doubt_words(result)
    )


def place_words(result: ArmsProof) -> str:
    """Where and when it was measured."""
    session = result.session
    return f"{session.target} ({session.file_system}), {session.started[:10]}"


def doubt_words(result: ArmsProof) -> tuple[str, Style]:
    """Why it is no proof; empty for one."""
    words, style = QUALITY[result.quality]
    return ("" if result.quality == "sound" else f"{words}: {'; '.join(result.reasons)}"), style


def arms_page(result: ArmsProof) -> str:
    """The whole page, without script and with nothing from outside. All text is escaped."""
    words, look = QUALITY[result.quality]
    return render_page(
        "arms",
        title=f"{listed(result.arms[1:])} against none",
        verdict=words,
        verdict_style=look,
        headlines=(write_headline(result), *best_lines(result)),
        reasons=result.reasons,
        kind="Arms in randomised blocks",
        picture_of=draw_bars(result),
        sections=(),
        columns=("arm", "none → arm", "change", "interval", "p (Holm)", "p99", "CPU per I/O", "result"),
        workloads=[_arm_table_dict(result, name) for name in result.session.workloads],
        level=LEVEL_WORDS,
        control=controls_words(result),
        notes=result.notes,
        session=session_rows(result),
        command=command_again(result),
    )


def _arm_table_dict(result: ArmsProof, workload: str) -> dict[str, object]:
    rows = [_change_cells(one) for one in result.effects if one.workload == workload and one.before is not None]
    return {"name": workload, "title": workload_title(workload), "rows": rows}


def _change_cells(one: Effect) -> dict[str, object]:
    call, style = call_words(one)
    cells = (
        one.arm,
        f"{format_figure(one.before or 0.0)} → {format_figure(one.after or 0.0)} {one.unit}",
        format_percent((one.ratio or 1.0) - 1),
        interval_words(one),
        p_figure(one.p_holm),
        _ratio_words(one.latency_p99_ratio),
        _ratio_words(one.cpu_ratio),
    )
    return {"cells": cells, "says": call, "style": style}


def _ratio_words(ratio: float | None) -> str:
    return "" if ratio is None else format_percent(ratio - 1)
