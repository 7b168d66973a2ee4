"""The result of a search as text: what was confirmed, what raced with its source, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from advisor.proof.arms import ProofCheck
from advisor.proof.live import LivePlan
from advisor.proof.live_source import PROBE_PAIRS
from advisor.proof.records import ArmSetting
from advisor.proof.schedule import Schedule, write_budget
from advisor.proof.scratch import GIB, MIB
from advisor.proof.session_runner import ProgressEvent
from advisor.proof.tuning.records import PLACEBO, TuneCandidate, Tuned, TuneSession
from advisor.report.format import clean, format_duration
from advisor.report.layout import Page, Span, Style, counted, listed
from advisor.report.proof.words import command_words, verdict_words, write_headlines
from advisor.shell.quote import shell_quote

# What a session under live traffic would do, in words, before anybody agrees to it.

BETTER = {"higher": "higher is better", "lower": "lower is better"}


def consent_lines(plan: LivePlan) -> Iterable[str]:
    """Line by line: what is switched, how often, for how long, what is read, and the worst that may happen."""
    back = plan.switchback
    yield "This switches values under the traffic of this host, with no load of its own:"
    for change in plan.changes:
        yield f"  {clean(change.tunable)}: {clean(change.before)} ↔ {clean(change.after)}"
    yield (
        f"at most {plan.periods} times within {format_duration(plan.seconds)}: short periods first, then "
        f"{back.period_seconds:g} s each, in random order."
    )
    names = [
        clean(one.name + (f" [{one.unit}]" if one.unit else "")) + f" ({BETTER[one.better]})" for one in plan.metrics
    ]
    yield f"Judged by: {names[0]}"
    if plan.judged > 1:
        yield f"Must not get worse: {', '.join(names[1 : plan.judged])}"
    if plan.limits:
        yield f"Withdrawn at once if: {', '.join(map(clean, plan.limits))}"
    if plan.metrics[0].kind == "prom":
        yield "Withdrawn for good once harm is shown, after five pairs of periods at the earliest."
    else:
        yield "Withdrawn for good once harm is shown: 30 % in about three minutes under a steady load, else later."
    yield "At worst, until then:"
    for text in dict.fromkeys(clean(change.hurts_when) for change in plan.changes if change.hurts_when):
        yield f"  {text}"
    yield "Afterwards, and after a crash, the values from before are restored."


# Words for a running session: the plan, the stage, the contamination. Never a figure or an effect.

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


_NO_PROOF: Mapping[str, tuple[str, Style]] = {"no-winner": ("no winner", "yellow"), "placebo-ahead": ("invalid", "red")}


def tuned_text(found: Tuned, *, width: int, color: bool) -> str:
    """The whole result in at most ``width`` columns; the first line says what is proven."""
    page = Page(width, color=color)
    words, style = verdict_words(found.confirmation) if found.confirmation else _NO_PROOF[found.verdict]
    page.add(Span(words, style), f": {_headline(found)}", hang=2)
    if found.confirmation is not None:
        for line in write_headlines(found.confirmation):
            page.bullet(line)
    _add_lines(page, "Why", found.reasons)
    _add_confirmation(page, found)
    _add_lines(page, "Which value did it", _ablation_lines(found))
    _add_race(page, found)
    _add_lines(page, "Left out", [f"{one.name}: {one.reason} ({one.source})" for one in found.session.left_out])
    _add_lines(page, "How to read it", _reading_lines(found))
    page.heading("Session")
    page.labelled([(label, (text,)) for label, text in _session_rows(found)])
    if found.confirmation is not None and found.confirmation.saved_to:
        page.heading("The confirmation, with its figures")
        page.command(f"advisor compare {shell_quote(found.confirmation.saved_to)}")
    if found.winner is not None and found.is_gain and not found.kept:
        page.heading("To apply it")
        page.command(" ".join(["advisor apply", *_words_of(found.winner)]))
    if found.winner is not None and len(found.winner.values) > 1 and found.session.ablation is None:
        page.heading("To see which of its values has an effect")
        options = map(shell_quote, found.session.options)
        page.command(" ".join(["advisor prove-values", *_words_of(found.winner), *options]))
    page.heading("To search again")
    page.command(" ".join(_words_again(found.session)))
    return page.text


def _headline(found: Tuned) -> str:
    session = found.session
    raced = f"{counted(len(session.candidates), 'candidate')}, {counted(len(session.blocks), 'block')}"
    if found.winner is not None:
        kept = ", applied" if found.kept else ""
        return f"{found.winner.name} against the state before, confirmed on fresh data after {raced}{kept}"
    if found.verdict == "placebo-ahead":
        return f"the present value itself, raced as a placebo, won the race of {raced}; nothing was confirmed"
    return f"no candidate is shown to be better than the others and the present state; {raced}"


def _add_lines(page: Page, heading: str, lines: Iterable[str]) -> None:
    listed = list(lines)
    if listed:
        page.heading(heading)
        for line in listed:
            page.bullet(line)


def _add_confirmation(page: Page, found: Tuned) -> None:
    registered = found.session.registration
    if found.winner is None or registered is None:
        return
    page.heading("Confirmation")
    again = f"; started {registered.attempts} times, as it was cut off" if registered.attempts > 1 else ""
    page.labelled(
        [
            ("sets", (values_words(found.winner.values),)),
            ("from", (found.winner.source,)),
            ("hurts when", (found.winner.hurts_when,)),
            (
                "registered",
                (
                    f"{registered.registered}, before it started: by {registered.metric}, at most "
                    f"{counted(registered.pairs, 'pair')}, margin {registered.margin:.0%}{again}",
                ),
            ),
        ]
    )


def _ablation_lines(found: Tuned) -> Iterable[str]:
    """What was examined of the winner's values, without figures: they are of the data that chose."""
    done = found.session.ablation
    if done is None:
        return
    if not done.is_examined:
        yield f"not examined: {done.reason}"
        return
    if done.reason:
        yield done.reason
    if done.dropped:
        yield f"kept and confirmed: {listed(done.kept)}"
        yield f"left out, as no effect is shown: {listed(done.dropped)}"
    elif not done.reason:
        yield "each of its values has an effect, or could not be switched singly"
    if done.saved_to:
        yield f"figures: advisor compare {shell_quote(done.saved_to)}"


def values_words(values: Iterable[ArmSetting]) -> str:
    """What a candidate sets, each with its value before."""
    return "; ".join(f"{one.tunable} {one.before} → {one.after}" for one in values)


def _add_race(page: Page, found: Tuned) -> None:
    page.heading("Race")
    for one in found.session.candidates:
        words, style = _outcome_words(found.session, one)
        page.add(Span(one.name, "bold"), ": ", Span(words, style), indent=2, hang=2)
        page.add(Span(f"{values_words(one.values)} ({one.source})", "dim"), indent=4, hang=2)


def _outcome_words(session: TuneSession, one: TuneCandidate) -> tuple[str, Style]:
    number = session.arms.index(one.name)
    if session.winner == number:
        return "won the race", "green"
    after = next((block.index + 1 for block in session.blocks if number in block.dropped), None)
    return (f"dropped after block {after}", "dim") if after is not None else ("raced to the end", "")


def _reading_lines(found: Tuned) -> Iterable[str]:
    yield (
        "The race chooses and proves nothing: the best of many looks better than it is, so its figures are not printed."
        " What is proven is the confirmation, on data of its own."
    )
    placebos = found.session.arms.count(PLACEBO)
    yield (
        f"The present value raced as {counted(placebos, 'placebo')} as well, unnamed. Where no candidate does anything,"
        " any arm wins the race in 5 % at most, and a gain is confirmed in fewer."
    )
    if found.winner is not None and len(found.winner.values) > 1 and found.session.ablation is None:
        yield f"Which of the {len(found.winner.values)} values of {found.winner.name} did it was not examined."


def _words_of(one: TuneCandidate) -> Iterable[str]:
    """What applies a candidate, after the command."""
    yield from map(shell_quote, one.words)
    yield from (f"--set {shell_quote(f'{name}={value}')}" for name, value in one.settings)


def _session_rows(found: Tuned) -> Iterable[tuple[str, str]]:
    session = found.session
    yield "host", session.host.name if session.host is not None and session.host.name else "this host"
    yield "judged by", _load_words(session)
    yield "took", f"{format_duration(session.seconds)} of {format_duration(session.budget_seconds)}"
    yield "runs", f"{session.run_seconds:.1f} s each at first, seed {session.seed}"
    yield "search", session.id


def _load_words(session: TuneSession) -> str:
    pattern = session.pattern
    if pattern is not None:
        return f"{pattern.metric.name} of {pattern.workload} below {pattern.target}"
    return command_words(session.command) if session.command is not None else ""


def _words_again(session: TuneSession) -> Iterable[str]:
    yield from ("advisor", "tune")
    for word in session.asked:
        is_range = ".." in word.partition("=")[2]
        yield f"--{'range' if is_range else 'candidates'}={shell_quote(word)}"
    if not session.is_ablating:
        yield "--no-ablation"
    yield f"--budget={write_budget(session.budget_seconds)}"
    yield from map(shell_quote, session.options)
    yield f"--seed={session.seed}"
