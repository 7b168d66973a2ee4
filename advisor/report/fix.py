"""What fixes findings, as text and as a document: the findings, manual steps, what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from advisor.planning.records import Plan, plan_document
from advisor.recommend.fixes import Fix, LeftOut, ManualStep
from advisor.report.layout import Page, Piece, Span, counted
from advisor.report.plan import add_trial, apply_command
from advisor.rules.remedy import is_alternative
from advisor.shell.quote import shell_quote
from advisor.transaction.journal import Record

_SHOWN = 3


def fix_text(fix: Fix, *, width: int, color: bool, is_live: bool = True) -> str:
    """The findings, what a person has to do about them, and what the plan leaves out; the plan itself follows."""
    page = Page(width, color=color)
    title = f"Fix of {counted(len(fix.findings), 'finding')}" if fix.findings else "Nothing to fix"
    page.add(Span(title, "bold"))
    page.table([(Span(one.id, "bold"), one.title) for one in fix.findings])
    where = "" if is_live else " on the captured host"
    alternatives = [one for one in fix.manual if one.command is None and is_alternative(one.text)]
    if steps := [one for one in fix.manual if one not in alternatives]:
        page.heading(f"Manual steps{where}, in this order")
        _add_steps(page, steps)
    if alternatives:
        page.heading(f"Alternatives{where}, in place of the rest of a fix")
        _add_steps(page, alternatives)
    if fix.left_out:
        page.heading("Left out")
        for names, reason in _group_left(fix.left_out):
            page.bullet(*names, f": {reason}")
    if fix.undecided:
        _add_decisions(page, fix, is_live=is_live)
    elif not fix.asked:
        page.blank()
        if fix.findings:
            page.add("advisor itself has nothing to set.")
        else:
            no_safe = "No finding can be fixed without a decision or an interruption: advisor fix ID fixes one."
            page.add(no_safe if fix.left_out else "This host has no findings.")
    return page.text


def _add_decisions(page: Page, fix: Fix, *, is_live: bool) -> None:
    """What decides the values that ``--yes`` leaves out: a person at a terminal, or a command that names them."""
    asked = " ".join(["advisor fix", *dict.fromkeys(one.finding for one in fix.undecided)])
    applied = " ".join(["advisor apply", *dict.fromkeys(shell_quote(one.what) for one in fix.undecided)])
    page.heading(f"What --yes leaves out, a person decides{'' if is_live else ' on the captured host'}")
    page.bullet("print the plan, and be asked on a terminal:")
    page.command(asked, indent=4)
    page.bullet("set what has been decided:")
    page.command(applied, indent=4)
    if not fix.asked:
        page.blank()
        page.add("Nothing has been changed.")


def _group_left(left: Sequence[LeftOut]) -> Iterator[tuple[list[Piece], str]]:
    """The findings of each reason; what was found where the reason is that of one finding alone."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for one in left:
        by_reason.setdefault(one.reason, {}).setdefault(one.finding, []).append(one.what)
    for reason, found in by_reason.items():
        if len(found) > 1:
            yield [Span(", ".join(found), "bold")], reason
            continue
        ((finding, names),) = found.items()
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield [Span(finding, "bold"), f": {', '.join(names[:_SHOWN])}{more}"], reason


def _add_steps(page: Page, steps: Sequence[ManualStep]) -> None:
    for (finding, text), run in groupby(steps, lambda one: (one.finding, one.text.rstrip("."))):
        page.bullet(Span(finding, "bold"), f": {text}" if text else "")
        for one in run:
            if one.command is not None:
                page.command(one.command, indent=4)
            if one.interrupts:
                page.add(Span(f"interrupts: {one.interrupts}", "yellow"), indent=4)


def waits_for_steps(fix: Fix, plan: Plan) -> bool:
    """Whether lines of other files, which the manual steps are about, are all that keeps the plan from applying."""
    is_overridden = bool(plan.blocking) and all(one.state == "overridden" for one in plan.blocking)
    return is_overridden and any(one.command is not None for one in fix.manual)


def after_steps_text(plan: Plan, *, width: int, color: bool) -> str:
    """Return what to type once the manual steps are done: the values, as the findings may be gone by then."""
    page = Page(width, color=color)
    page.add("Take the manual steps above first, then apply:")
    page.command(apply_command(plan))
    return page.text


def next_text(plan: Plan, record: Record | None, *, width: int, color: bool) -> str:
    """What to type after the fix: verify, and prove that it helped."""
    page = Page(width, color=color)
    if record is not None:
        page.blank()
        page.add("To check that it stays:")
        page.command(f"advisor verify {record.id}")
        add_trial(page, plan, "After a rollback, to keep it only if a gain is measured:")
    return page.text


def fix_document(fix: Fix, plan: Plan | None, record: Record | None) -> dict[str, Any]:
    """``advisor.fix/1``: plan is null where nothing is to be planned, transaction where nothing was applied."""
    return {
        "schema": "advisor.fix/1",
        "findings": [{"id": one.id, "severity": one.severity, "title": one.title} for one in fix.findings],
        "manual": list(fix.manual),
        "left_out": list(fix.left_out),
        "plan": None if plan is None else plan_document(plan),
        "transaction": None if record is None else {"id": record.id, "state": record.state},
    }
