"""What a session under live traffic would do, in words, before anybody agrees to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from advisor.i18n import N_, _
from advisor.proof.live import LivePlan
from advisor.report.format import clean
from advisor.report.session_progress import format_duration

BETTER: Final = {"higher": N_("higher is better"), "lower": N_("lower is better")}


def consent_lines(plan: LivePlan) -> Iterable[str]:
    """Line by line: what is switched, how often, for how long, what is read, and the worst that may happen."""
    back = plan.switchback
    yield _("This switches values under the traffic of this host, with no load of its own:")
    for change in plan.changes:
        yield f"  {clean(change.tunable)}: {clean(change.before)} ↔ {clean(change.after)}"
    yield _(
        "at most {count} times within {duration}: short periods first, then {seconds} s each, in random order."
    ).format(count=plan.periods, duration=format_duration(plan.seconds), seconds=f"{back.period_seconds:g}")
    if plan.baseline_seconds:
        yield _("Before that the traffic is only watched, for {duration}.").format(
            duration=format_duration(plan.baseline_seconds)
        )
    if plan.may_stretch:
        yield _("If it repeats, periods become whole cycles of it, and all may take half as long again.")
    names = [
        clean(one.name + (f" [{one.unit}]" if one.unit else "")) + f" ({_(BETTER[one.better])})" for one in plan.metrics
    ]
    yield _("Judged by: {name}").format(name=names[0])
    if plan.judged > 1:
        yield _("Must not get worse: {names}").format(names=", ".join(names[1 : plan.judged]))
    if plan.limits:
        yield _("Withdrawn at once if: {limits}").format(limits=", ".join(map(clean, plan.limits)))
    if plan.metrics[0].kind == "prom":
        yield _("Withdrawn for good once harm is shown, after five pairs of periods at the earliest.")
    else:
        yield _("Withdrawn for good once harm is shown: 30 % in about three minutes under a steady load, else later.")
    yield _("At worst, until then:")
    for text in dict.fromkeys(clean(change.hurts_when) for change in plan.changes if change.hurts_when):
        yield f"  {text}"
    yield _("Afterwards, and after a crash, the values from before are restored.")
