"""A trial with hosts as units: who is compared with whom, and what was found, as pages and as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from advisor.fleet.runs.host_trial import TrialResult
from advisor.fleet.runs.journal import RunRecord
from advisor.fleet.runs.trial_records import MetricEffect, TrialJudged, TrialTerms, TrialVerdict
from advisor.proof.host_units import LEVEL, Design
from advisor.report.encode import encode_document
from advisor.report.format import ranked, runs
from advisor.report.layout import Page, Piece, Span, Style, counted, listed

SCHEMA: Final = "advisor.fleet-trial/1"
_VERDICTS: Final[Mapping[TrialVerdict, Style]] = {
    "gain": "green",
    "gain-with-cost": "yellow",
    "loss": "red",
    "no-difference": "",
    "inconclusive": "yellow",
}


def fleet_trial_document(result: TrialResult) -> bytes:
    """``advisor.fleet-trial/1``: the design, the toss, the figures of each host, and the verdict; null before it."""
    run, judged = result.record, None if result.record is None else result.record.judged
    assigned = None if run is None else run.assigned
    blocks = assigned.blocks if assigned is not None else result.design.blocks if result.design is not None else ()
    design = Design(blocks)
    treated = frozenset(assigned.treated) if assigned is not None else frozenset()
    return encode_document(
        {
            "schema": SCHEMA,
            "id": None if run is None else run.id,
            "state": "planned" if run is None else run.state,
            "code": result.code,
            "message": run.ended.message if run is not None and run.ended is not None else "",
            "profiles": list(result.plan.profiles if result.plan else run.asked.profiles if run else ()),
            "blocks": [list(block) for block in blocks],
            "assignments": design.assignments,
            "smallest_p": design.smallest_p,
            "seed": None if assigned is None else assigned.seed,
            "detectable": None if assigned is None else assigned.detectable,
            "verdict": None if judged is None else judged.verdict,
            "reasons": [] if judged is None else list(judged.reasons),
            "effects": [] if judged is None else [msgspec.to_builtins(one) for one in judged.effects],
            "missing": [] if judged is None else list(judged.missing),
            "hosts": [_host_document(name, name in treated, run) for name in design.hosts],
        }
    )


def _host_document(name: str, is_treated: bool, run: RunRecord | None) -> dict[str, object]:
    done = None if run is None else run.hosts.get(name)
    figures = {} if run is None else {phase: _figures_of(one.figures, name) for phase, one in run.phases.items()}
    return {
        "name": name,
        "is_treated": is_treated,
        "state": None if done is None else done.state,
        "by_hand": None if done is None else done.by_hand,
        "before": figures.get("before", {}),
        "after": figures.get("after", {}),
    }


def _figures_of(figures: Mapping[str, Mapping[str, tuple[float | None, ...]]], name: str) -> dict[str, object]:
    return {metric: list(hosts.get(name, ())) for metric, hosts in figures.items()}


def trial_design_text(design: Design, terms: TrialTerms, *, width: int, color: bool) -> str:
    """Who is compared with whom, how small a p can be, how long it takes, and what is done to the hosts."""
    page = Page(width, color=color)
    treated, total = design.treated_count, len(design.hosts)
    page.add(Span(f"Trial with {counted(total, 'host')} as units", "bold"), f": {treated} treated by a toss.")
    order = ranked(design.hosts)
    for number, block in enumerate(design.blocks if len(design.blocks) > 1 else (), 1):
        page.add(f"block {number}: {len(block) // 2} of {runs(block, order)}", indent=2, hang=4)
    page.add(f"{design.assignments:,} assignments; the smallest p is {design.smallest_p:.3g} (a claim: {LEVEL:g}).")
    claim, *others = terms.metrics
    page.add(f"Claim: {claim.name} ({claim.better} is better).", indent=2, hang=4)
    if others:
        page.add(f"Guardrails: {listed([one.name for one in others])}.", indent=2, hang=4)
    page.add(
        f"Each host is measured for {terms.period_seconds:g} s before and {terms.period_seconds:g} s after, by "
        f"{counted(terms.rounds, 'reading')}. The treated hosts roll back at the end"
        f"{' unless a gain is proven' if terms.keeps_gain else ''}, and automatically if this machine dies."
    )
    return page.text


def fleet_trial_text(result: TrialResult, *, width: int, color: bool) -> str:
    """The verdict with its interval, each host, and what is active now."""
    page = Page(width, color=color)
    run = result.record
    if run is None:
        page.add("Nothing was begun.")
        return page.text
    judged, assigned = run.judged, run.assigned
    profiles = listed(run.asked.profiles)
    if judged is None or assigned is None:
        page.add(Span(f"Trial {run.id}", "bold"), f" ({profiles}): ", Span("stopped", "red"), ".")
        if run.ended is not None and run.ended.message:
            page.add(f"{run.ended.message}.", indent=2, hang=2)
    else:
        words = judged.verdict.replace("-", " ")
        page.add(Span(f"Trial {run.id}", "bold"), f" ({profiles}): ", Span(words, _VERDICTS[judged.verdict]), ".")
        _add_effects(page, judged)
        for reason in judged.reasons:
            page.bullet(reason)
        _add_hosts(page, judged, assigned.treated)
        exact = "all" if judged.is_exact else "drawn"
        page.blank()
        page.add(f"Randomisation test over {judged.assignments:,} assignments ({exact}), seed {assigned.seed}.")
        if assigned.detectable is not None:
            page.add(f"By the baseline, an effect of {assigned.detectable:.1%} is found in about 80 % of such trials.")
    _add_standing(page, run)
    return page.text


def _add_effects(page: Page, judged: TrialJudged) -> None:
    page.blank()
    rows: list[Sequence[Piece]] = []
    for one in judged.effects:
        rows.append([one.name, f"{one.effect:+.1%}", _interval_words(one), _p_words(one, judged.missing)])
    page.table(rows)
    page.blank()


def _interval_words(one: MetricEffect) -> str:
    if one.low is None or one.high is None:
        return "no interval"
    return f"95 % interval {one.low:+.1%} to {one.high:+.1%}"


def _p_words(one: MetricEffect, missing: Sequence[str]) -> str:
    text = f"p {'at most ' if missing and not one.is_guardrail else ''}{one.p_value:.3g}"
    return f"{text}, guardrail" if one.is_guardrail else text


def _add_hosts(page: Page, judged: TrialJudged, treated: Sequence[str]) -> None:
    claim = judged.effects[0]
    page.heading(f"{claim.name} after, against before")
    order = sorted(claim.changes, key=lambda name: (name not in treated, -(claim.changes[name] or 0.0)))
    rows: list[Sequence[Piece]] = []
    for name in order:
        change = claim.changes[name]
        kind = Span("treated", "cyan") if name in treated else Span("", "")
        rows.append([name, kind, "no figure" if change is None else f"{change:+.1%}"])
    page.table(rows)


def _add_standing(page: Page, run: RunRecord) -> None:
    kept = [one.host for one in run.hosts.values() if one.state == "applied"]
    unknown = [one for one in run.hosts.values() if one.state in ("unknown", "awaiting-confirmation")]
    order = ranked(run.hosts)
    page.blank()
    if kept:
        page.add(f"Kept on {runs(kept, order)}. To roll it back:")
        page.command(f"advisor fleet rollback {run.id}")
    elif run.hosts and not unknown:
        page.add("Rolled back on every treated host.")
    if unknown:
        page.heading("Not known to be back")
        page.add("Each rolls back by its own watchdog. When a host can be reached again:", indent=2)
        for one in unknown:
            page.command(one.by_hand or f"advisor fleet rollback {run.id}", indent=4)
    elif run.state in ("interrupted", "stopped"):
        page.add("To resume it, with the same toss:")
        page.command(f"advisor fleet prove --resume {run.id}")
