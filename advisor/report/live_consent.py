"""What a session under live traffic would do, in words, before anybody agrees to it."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.proof.live import LivePlan
from advisor.report.format import clean, format_duration

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
