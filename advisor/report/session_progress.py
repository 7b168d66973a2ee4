"""Words for a running session: the plan, the stage, the contamination. Never a figure or an effect."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.proof.obstacles import ProofCheck
from advisor.proof.schedule import Schedule
from advisor.proof.scratch import GIB, MIB
from advisor.proof.session_runner import ProgressEvent
from advisor.proof.switchback import PROBE_PAIRS
from advisor.report.format import format_duration
from advisor.report.layout import Page, Span

SEQUENCE = ("A", "B", "A again")
"""The blocks of a change that cannot be toggled freely."""


def plan_lines(event: ProgressEvent) -> tuple[str, ...]:
    """What the session will do at most, before it does it: pairs, looks, seconds, bytes."""
    plan = event.schedule
    if plan is None:
        return (f"Plan: at most {event.pairs} pairs, about {format_duration(event.seconds_left)}.",)
    return (
        _plan_line(event, plan),
        f"Time: about {format_duration(plan.predicted_seconds)}; repeats of contaminated"
        f" {_unit_noun(plan)}s come on top.",
        _bytes_line(plan),
        "No figure is shown before the end, so that nobody stops at a lucky moment.",
    )


def check_text(check: ProofCheck, *, width: int, color: bool) -> str:
    """What a session would do, where nothing stands in the way of it."""
    page = Page(width, color=color)
    page.add(Span("nothing stands in the way", "green"), f" of proving {check.profile} on {check.target}", hang=2)
    event = ProgressEvent("plan", 0, check.layout.pairs, 0.0, schedule=check.layout, workloads=len(check.workloads))
    for line in plan_lines(event if check.layout.arms > 2 else replace(event, workloads=0))[:-1]:
        page.bullet(line)
    for reason in check.gate.busy:
        page.bullet(f"The host is busy: {reason}. Other load takes more pairs, and makes no verdict wrong.")
    page.bulleted("Notes", check.notes)
    return page.text


def _plan_line(event: ProgressEvent, plan: Schedule) -> str:
    if plan.arms == 1:
        each = f"{_counted_noun(event.workloads, 'workload')}, in random order"
        return f"Plan: {_counted_noun(plan.pairs, 'round')} of {plan.seconds_per_run:.3g} s runs of {each}."
    if plan.arms > 2 or event.workloads:
        what = "combinations of values" if event.are_combined else "arms"
        each = f"{plan.arms} {what}, each with {_counted_noun(event.workloads, 'workload')}"
        blocks = _counted_noun(plan.pairs, "block")
        return f"Plan: {blocks} of {each}, {plan.seconds_per_run:.3g} s a run, judged at the end."
    pairs = _counted_noun(plan.pairs, "pair")
    return f"Plan: at most {pairs} of {plan.seconds_per_run:.3g} s runs, {_looks_text(plan.looks)}."


def _unit_noun(plan: Schedule) -> str:
    return {1: "round", 2: "pair"}.get(plan.arms, "block")


def _counted_noun(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _looks_text(looks: tuple[int, ...]) -> str:
    if len(looks) == 1:
        return "judged once, at the end"
    return f"judged after {', '.join(map(str, looks[:-1]))} and {looks[-1]}"


def _bytes_line(plan: Schedule) -> str:
    if not plan.predicted_bytes:
        return "Bytes: none will be written."
    filling = f" (scratch file {_format_size(plan.scratch_bytes)})" if plan.scratch_bytes else ""
    return (
        f"Bytes: at most {_format_size(plan.predicted_bytes)} written{filling}, limit {_format_size(plan.byte_budget)}."
    )


def _format_size(count: int) -> str:
    value, unit = (count / GIB, "GiB") if count >= GIB else (count / MIB, "MiB")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def stage_words(event: ProgressEvent, before: ProgressEvent | None = None, block: int = 0) -> str:
    """Return the stage of the session in words. ``before`` is the event before, as a pair that comes twice is a repeat;
    ``block`` is the number of the block in a sequence, whose pairs are not numbered."""
    match event.stage:
        case "scratch":
            return "filling the scratch file"
        case "warm-up":
            return "warming up"
        case "probe":
            return f"short pair {event.pair} of {PROBE_PAIRS}"
        case "hold":
            return "holding each arm to see whether an effect comes late"
        case "restore":
            return "restoring the host"
        case "pair" if not event.pair:
            arm = SEQUENCE[min(block, len(SEQUENCE)) - 1]
            return f"block {block} of {len(SEQUENCE)} (arm {arm})"
    again = " again" if before is not None and (before.stage, before.pair) == (event.stage, event.pair) else ""
    notes = [f"the last one was contaminated: {', '.join(event.lamps)}"] if event.lamps else []
    notes += [event.standing] if event.standing else []
    return f"{event.stage} {event.pair} of {event.pairs}{again}" + (f" ({'; '.join(notes)})" if notes else "")
