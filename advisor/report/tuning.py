"""The result of a search as text: what was confirmed, what raced with its source, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.proof.budget import write_budget
from advisor.proof.records import ArmSetting
from advisor.proof.tuning_records import PLACEBO, TuneCandidate, Tuned, TuneSession
from advisor.report.format import format_duration
from advisor.report.layout import Page, Span, Style, counted, listed
from advisor.report.proof_words import command_words, verdict_words, write_headlines
from advisor.shell.quote import shell_quote

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
