"""A proof as text: the verdict in plain words, the figures with their intervals drawn, what became of the host.

Intervals stand on one axis: the logarithm of after over before, turned so that better is always to the right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from advisor.proof.metrics import MetricName
from advisor.proof.progress import duration
from advisor.proof.records import Ended, Proof, Summary, Verdict
from advisor.proof.schedule import MODES
from advisor.proof.statistics import MINIMUM_PAIRS
from advisor.proof.verdict import CARRY_OVER_LEVEL, EQUIVALENCE_PAIRS, MAX_NEEDED_PAIRS, counted_pairs, has_moved
from advisor.proof.workloads import WORKLOADS
from advisor.report.layout import Page, Piece, Span, Style, columns, counted, padded, width_of
from advisor.report.units import binary
from advisor.report.words import clean
from advisor.script import shell_quote

PLOT_MAX: Final = 48
WIDE_PLOT_MIN: Final = 24
"""Columns of a drawn interval. With less than that for it in one line with the figures it goes below them."""

_VERDICTS: Final[Mapping[Verdict, tuple[str, Style]]] = {
    "gain": ("gain", "green"),
    "gain-with-cost": ("gain with a cost", "yellow"),
    "loss": ("loss", "red"),
    "no-difference": ("no difference", "bold"),
    "inconclusive": ("inconclusive", "yellow"),
    "invalid": ("invalid", "red"),
    "indicative": ("indicative, no proof", "yellow"),
}
# Both arms were the same: what else they are called would be a mistake of the measurement.
_SELF_TEST: Final[Mapping[Verdict, tuple[str, Style]]] = {
    "gain": ("self-test failed, a gain out of nothing", "red"),
    "gain-with-cost": ("self-test failed, a gain out of nothing", "red"),
    "loss": ("self-test failed, a loss out of nothing", "red"),
    "no-difference": ("self-test passed", "green"),
    "inconclusive": ("self-test passed", "green"),
    "invalid": ("self-test invalid", "red"),
    "indicative": ("self-test indicative, no proof", "yellow"),
}
METRIC_WORDS: Final[Mapping[MetricName, str]] = {
    "iops": "IOPS",
    "bandwidth": "bandwidth",
    "latency_mean": "mean latency",
    "latency_p50": "p50 latency",
    "latency_p95": "p95 latency",
    "latency_p99": "p99 latency",
    "latency_p999": "p99.9 latency",
    "cpu_per_io": "CPU per I/O",
}
_ENDED: Final[Mapping[Ended, str]] = {
    "complete": "all pairs were run",
    "settled": "early, at a look: every claim was decided",
    "budget": "the time budget was used up",
    "interrupted": "interrupted by a signal",
    "fault": "by a fault",
    "io-pressure": "early: others were waiting for I/O",
    "bytes": "the byte budget was used up",
}
_SCRATCH_LEFT: Final = "the scratch file was not removed"


def proof_text(proof: Proof, *, width: int, color: bool) -> str:
    """The whole result for a person, in at most ``width`` columns; its first word is the verdict."""
    page = Page(width, color=color)
    _add_verdict(page, proof)
    _add_reasons(page, proof)
    _add_figures(page, proof)
    _add_notes(page, proof)
    _add_host(page, proof)
    _add_session(page, proof)
    _add_again(page, proof)
    return page.text


# -- the verdict -----------------------------------------------------------------------------------------------------


def _add_verdict(page: Page, proof: Proof) -> None:
    words, style = (_SELF_TEST if proof.session.self_test else _VERDICTS)[proof.verdict]
    first, *others = _headlines(proof)
    page.add(Span(words, style), f": {first}", hang=2)
    for line in others:
        page.add(line, indent=2, hang=2)
    session = proof.session
    what = "this host against itself" if session.self_test else proof.profile
    device = f" on {session.device}" if session.device else ""
    page.add(Span(what, "bold"), f" on {session.target} ({session.file_system}{device})", hang=2)


def _headlines(proof: Proof) -> list[str]:
    """What the verdict rests on: a line for each claim and each cost, and before them why they are no proof."""
    more = f" (and {len(proof.reasons) - 1} more)" if len(proof.reasons) > 1 else ""
    why = f"{''.join(proof.reasons[:1])}{more}"
    claims = [_claim_words(claim) for claim in _by_weight(proof.workloads)]
    match proof.verdict:
        case "invalid":
            return [f"nothing follows from these figures: {why}"]
        case "indicative":
            return [why, *claims]
        case "inconclusive" | "no-difference" if proof.session.self_test:
            return ["no effect was invented", *claims]
        case "inconclusive":
            return ["nothing is shown either way", *claims]
    costs = [f"at the cost of {_effect_words(item)}" for item in proof.guardrails if item.verdict == "loss"]
    return [*claims, *(costs if proof.verdict == "gain-with-cost" else [])]


def _by_weight(claims: Iterable[Summary]) -> list[Summary]:
    """Claims with an effect first."""
    order: Sequence[Verdict | None] = ("gain", "loss", "no-difference")
    return sorted(claims, key=lambda claim: order.index(claim.verdict) if claim.verdict in order else len(order))


def _claim_words(claim: Summary) -> str:
    """``+38 % bandwidth (+28 % to +51 %) on …, 16 pairs, p = 0.0005``."""
    if claim.ratio is None:
        return f"{_metric(claim)} of {_title(claim)} was not measured"
    if claim.verdict in ("gain", "loss"):
        return f"{_effect_words(claim)}, {counted(claim.pairs, 'pair')}, {p_words(_p_of(claim))}"
    margin = _amount(claim.margin)
    if claim.verdict == "no-difference":
        return f"{_effect_words(claim)} is within ±{margin}, {counted(claim.pairs, 'pair')}"
    seen = _amount(claim.minimum_detectable_effect)
    limit = f"effects below {seen} could hardly be seen" if seen else "too few pairs to see an effect of any size"
    return f"{_effect_words(claim)}: {counted(claim.pairs, 'pair')}, {limit}"


def _effect_words(item: Summary) -> str:
    return f"{_change(item)} {_metric(item)} ({_interval(item)}) on {_title(item)}"


def _title(item: Summary) -> str:
    known = WORKLOADS.get(item.name)
    return known.title if known else item.name


def _metric(item: Summary) -> str:
    return METRIC_WORDS[item.metric]


# -- why ---------------------------------------------------------------------------------------------------------------


def _add_reasons(page: Page, proof: Proof) -> None:
    reasons = list(proof.reasons)
    if proof.reasons and proof.tendency != proof.verdict and counted_pairs(proof.session):
        reasons.append(f"without that the figures would have said: {_VERDICTS[proof.tendency][0]}")
    if proof.verdict != "invalid":
        for claim in proof.workloads:
            reasons += _shortfall(claim) if claim.verdict == "inconclusive" and claim.pairs else []
    if proof.session.self_test and proof.tendency in ("gain", "gain-with-cost", "loss"):
        reasons.append("about one self-test in twenty does this by chance; if another does, do not trust measurements")
    if reasons:
        page.heading("Why")
    for reason in reasons:
        page.bullet(reason)


def _shortfall(claim: Summary) -> list[str]:
    """What could have been seen, and what it would take."""
    found = f"{_metric(claim)} of {claim.name}: "
    if claim.minimum_detectable_effect is None:
        found += f"with {counted(claim.pairs, 'pair')} no effect of any size could be significant"
    else:
        seen = _amount(claim.minimum_detectable_effect)
        found += f"{counted(claim.pairs, 'pair')} find an effect of {seen} in 80 % of cases, a smaller one less often"
    return [f"{found}; {_needed_words(claim)}"]


def _needed_words(claim: Summary) -> str:
    margin = f"±{_amount(claim.margin)}"
    if claim.needed_pairs is None:
        if claim.pairs < MINIMUM_PAIRS:
            return f"how many {margin} takes cannot be told from so few"
        return f"to see {margin} takes more than {MAX_NEEDED_PAIRS:,} pairs: the figures vary too much here"
    if claim.needed_pairs > claim.pairs:
        deep = MODES["deep"].pairs
        how = f" (--deep runs {deep})" if claim.pairs < deep else ""
        return f"to see {margin} takes about {claim.needed_pairs} pairs{how}"
    if claim.pairs < EQUIVALENCE_PAIRS:
        return f"no difference takes at least {EQUIVALENCE_PAIRS} pairs to say"
    return f"the interval leaves both open, an effect and none beyond {margin}"


# -- figures -----------------------------------------------------------------------------------------------------------


class _Drawn(NamedTuple):
    """An interval on the scale of the axis."""

    low: float
    middle: float
    high: float


class _Axis(NamedTuple):
    """Ends on the scale of the axis, and columns."""

    low: float
    high: float
    width: int

    def cell(self, value: float) -> int:
        return round((value - self.low) / (self.high - self.low) * (self.width - 1))


class _Row(NamedTuple):
    """One metric: its summary, what is said of it, and the band that counts as no change (on the axis' scale)."""

    summary: Summary
    says: Span
    band: tuple[float, float] | None = None


class _Group(NamedTuple):
    title: str
    note: str
    rows: tuple[_Row, ...]
    is_judged: bool = True


class _Cells(NamedTuple):
    """A row as text, but for its drawing."""

    metric: str
    values: str
    change: str
    interval: str
    p: str
    pairs: str
    mde: str


_UNMEASURED: Final = Span("not measured", "dim")
_VOID: Final = Span("void", "dim")
_HEAD: Final = _Cells("", "before → after", "change", "interval", "p", "pairs", "MDE")


def _add_figures(page: Page, proof: Proof) -> None:
    groups = [group for group in _groups(proof) if group.rows]
    low, high = _ends(row for group in groups if group.is_judged for row in group.rows)
    sizes = [max(columns(cell) for cell in column) for column in zip(_HEAD, *map(_cells, _rows(groups)), strict=True)]
    says = max(width_of((row.says,)) for row in _rows(groups))
    room = page.width - 4 - sum(sizes) - says - 2 * (len(sizes) + 1)
    if room >= WIDE_PLOT_MIN:
        _add_wide(page, groups, sizes, _Axis(low, high, min(room, PLOT_MAX)))
    else:
        _add_stacked(page, groups, _Axis(low, high, _stacked_width(page, groups)))
    _add_legend(page, proof)


def _rows(groups: Iterable[_Group]) -> list[_Row]:
    return [row for group in groups for row in group.rows]


def _groups(proof: Proof) -> list[_Group]:
    remark = {"invalid": "; void, nothing follows from them", "indicative": "; indicative only"}.get(proof.verdict, "")
    margins = f"margin ±{_amounts(claim.margin for claim in proof.workloads)}"
    limits = f"what must not get worse by more than {_amounts(item.limit for item in proof.guardrails)}"
    return [
        _Group("Claims", margins + remark, tuple(_claim_row(proof, claim) for claim in proof.workloads)),
        _Group("Guardrails", limits, tuple(_guard_row(proof, item) for item in proof.guardrails)),
        _Group("Control", "what the change cannot touch", _control_rows(proof)),
        _Group("Explored", "not judged", _explored_rows(proof), is_judged=False),
    ]


def _claim_row(proof: Proof, claim: Summary) -> _Row:
    return _Row(claim, _claim_says(proof, claim), _band(claim.margin, claim.margin))


def _claim_says(proof: Proof, claim: Summary) -> Span:
    """The verdict on one claim; in brackets where the session as a whole proves nothing."""
    if not claim.pairs:
        return _UNMEASURED
    words, style = _VERDICTS[claim.verdict or "inconclusive"]
    match proof.verdict:
        case "invalid":
            return _VOID
        case "indicative":
            return Span(f"({words})", "yellow")
    return Span(words, style)


def _band(down: float | None, up: float | None) -> tuple[float, float] | None:
    """Fractions in the direction of better, as verdicts compare them: -10 % stands as far from 0 as +10 %."""
    values = [None if value is None or not 0 <= value < math.inf else math.log1p(value) for value in (down, up)]
    return None if values[0] is None or values[1] is None else (-values[0], values[1])


def _guard_row(proof: Proof, item: Summary) -> _Row:
    says = Span("no cost shown")
    if not item.pairs:
        says = _UNMEASURED
    elif proof.verdict == "invalid":
        says = _VOID
    elif item.verdict == "loss":
        says = Span(f"over {_amount(item.limit)} worse", "red")
    return _Row(item, says, _band(item.limit, 0.0))


def _control_rows(proof: Proof) -> tuple[_Row, ...]:
    if proof.control is None:
        return ()
    margin = min((claim.margin for claim in proof.workloads if claim.margin is not None), default=math.inf)
    if not proof.control.pairs:
        says = _UNMEASURED
    elif proof.control.pairs < MINIMUM_PAIRS:
        says = Span("too few pairs")
    else:
        says = Span("moved", "red") if _has_moved(proof.control, margin) else Span("did not move", "green")
    return (_Row(proof.control, says),)


def _has_moved(control: Summary, margin: float) -> bool:
    # A record from a file may hold what no measurement gives.
    return control.effect is not None and control.effect > -1 and has_moved(control, margin)


def _explored_rows(proof: Proof) -> tuple[_Row, ...]:
    return tuple(_Row(item, Span("not judged", "dim")) for item in proof.exploratory)


def _cells(row: _Row) -> _Cells:
    item = row.summary
    return _Cells(
        metric=_metric(item),
        values=f"{_figures(item.before, item.after)} {clean(item.unit)}" if item.pairs else "no figures",
        change=_change(item),
        interval=_interval(item),
        p=_p_figure(_p_of(item)),
        pairs=str(item.pairs),
        mde=_amount(item.minimum_detectable_effect),
    )


def _add_wide(page: Page, groups: Sequence[_Group], sizes: Sequence[int], axis: _Axis) -> None:
    named: set[str] = set()
    page.blank()
    _add_wide_row(page, _HEAD, sizes, [Span(_scale(axis), "dim")], Span(""), "dim")
    for group in groups:
        _add_group(page, group)
        for name, rows in _by_workload(group.rows):
            _add_name(page, name, named)
            for row in rows:
                _add_wide_row(page, _cells(row), sizes, _plot(row, axis), row.says)


def _add_wide_row(
    page: Page, cells: _Cells, sizes: Sequence[int], plot: Sequence[Piece], says: Span, style: Style = ""
) -> None:
    texts = [padded(Span(cell, style), size + 2) for cell, size in zip(cells, sizes, strict=True)]
    page.row("    ", *texts[:4], *plot, "  ", *texts[4:], says)


def _add_stacked(page: Page, groups: Sequence[_Group], axis: _Axis) -> None:
    """Two lines a row: figures and what is said of them, then the drawing; of what is not judged the first only."""
    named: set[str] = set()
    cells = [_cells(row) for row in _rows(groups)]
    sizes = [max(columns(one[at]) for one in cells) for at in range(2)]
    for group in groups:
        _add_group(page, group)
        for name, rows in _by_workload(group.rows):
            _add_name(page, name, named)
            for row in rows:
                _add_stacked_row(page, row, sizes, axis, is_judged=group.is_judged)
        if group.is_judged and any(row.summary.pairs for row in group.rows):
            page.row("    ", Span(_scale(axis), "dim"))


def _stacked_width(page: Page, groups: Iterable[_Group]) -> int:
    """As much as the figures beside a drawing leave; all, where that is too little and they go below."""
    stated = max(columns(_stated(row)) for group in groups if group.is_judged for row in group.rows)
    beside = page.width - 6 - stated
    return min(beside if beside >= WIDE_PLOT_MIN else page.width - 4, PLOT_MAX)


def _stated(row: _Row) -> str:
    item = row.summary
    mde = _amount(item.minimum_detectable_effect)
    parts = (p_words(_p_of(item)), counted(item.pairs, "pair"), f"MDE {mde}" if mde else "")
    return ", ".join(filter(None, parts))


def _add_stacked_row(page: Page, row: _Row, sizes: Sequence[int], axis: _Axis, *, is_judged: bool) -> None:
    cells = _cells(row)
    change = f"{cells.change} ({cells.interval})  " if cells.change else ""
    figures = [padded(cell, size + 2) for cell, size in zip((cells.metric, cells.values), sizes, strict=True)]
    if width_of((*figures, change, row.says)) + 4 <= page.width:
        page.row("    ", *figures, change, row.says)
    else:
        change = change.rstrip(" ")
        page.add(f"{cells.metric} {cells.values}, {change}{', ' if change else ''}", row.says, indent=4, hang=2)
    if is_judged and row.summary.pairs:
        _add_drawing(page, row, axis)


def _add_drawing(page: Page, row: _Row, axis: _Axis) -> None:
    plot, stated = _plot(row, axis), _stated(row)
    if 4 + axis.width + 2 + columns(stated) <= page.width:
        page.row("    ", *plot, f"  {stated}")
    else:
        page.row("    ", *plot)
        page.add(stated, indent=4)


def _add_group(page: Page, group: _Group) -> None:
    page.heading(group.title, Span(f": {group.note}" if group.note else "", "dim"))


def _by_workload(rows: Sequence[_Row]) -> Iterable[tuple[str, list[_Row]]]:
    for name in dict.fromkeys(row.summary.name for row in rows):
        yield name, [row for row in rows if row.summary.name == name]


def _add_name(page: Page, name: str, named: set[str]) -> None:
    """The name of a workload, where it comes for the first time with what it is."""
    known = None if name in named else WORKLOADS.get(name)
    named.add(name)
    page.add(Span(name, "bold"), Span(f": {known.title}" if known else "", "dim"), indent=2, hang=2)


# -- drawing -----------------------------------------------------------------------------------------------------------

# Effects at which the axis may end, so that its labels are round.
_UP: Final = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 9.0)
_DOWN: Final = (-0.1, -0.15, -0.2, -0.25, -0.3, -0.4, -0.5, -0.6, -0.7, -0.8, -0.9, -0.95)


def _drawn(item: Summary) -> _Drawn | None:
    if item.ratio is None or item.ci95 is None:
        return None
    values = (item.ci95[0], item.ratio, item.ci95[1])
    if not all(0 < value < math.inf for value in values):
        return None
    sign = 1 if item.better == "higher" else -1
    return _Drawn(*sorted(sign * math.log(value) for value in values))


def _ends(rows: Iterable[_Row]) -> tuple[float, float]:
    """The axis from the first to the last round effect around all that is drawn."""
    reach = [0.0]
    for row in rows:
        reach += [*(row.band or ()), *(_drawn(row.summary) or ())]
    low, high = min(reach), max(reach)
    return (
        next((end for end in map(math.log1p, _DOWN) if end <= low), low),
        next((end for end in map(math.log1p, _UP) if end >= high), high),
    )


def _scale(axis: _Axis) -> str:
    """The labels of the axis: both ends, and 0 where it stands."""
    left, right = (percent(_expm1(end)) for end in (axis.low, axis.high))
    line = f"{left}{right.rjust(axis.width - len(left))}"
    zero = axis.cell(0.0)
    if line[zero - 1 : zero + 2] != "   ":
        return line
    return f"{line[:zero]}0{line[zero + 1 :]}"


def _expm1(value: float) -> float:
    try:
        return math.expm1(value)
    except OverflowError:
        return math.inf


def _plot(row: _Row, axis: _Axis) -> list[Span]:
    """The track, the band, 0, and on them the interval with its estimate."""
    zero = axis.cell(0.0)
    signs = [Span("·", "dim")] * axis.width
    if row.band is not None:
        for at in range(axis.cell(row.band[0]), axis.cell(row.band[1]) + 1):
            signs[at] = Span("░", "dim")
    signs[zero] = Span("│")
    drawn = _drawn(row.summary)
    if drawn is not None:
        _draw(signs, drawn, axis, row.says.style)
    return signs


def _draw(signs: list[Span], drawn: _Drawn, axis: _Axis, style: Style) -> None:
    zero = axis.cell(0.0)
    low, middle, high = (_beside(axis.cell(value), zero, drawn, axis) for value in drawn)
    for at in range(low, high + 1):
        signs[at] = Span("┼" if at == zero else "─", style)
    signs[low] = Span("<" if drawn.low < axis.low else "├", style)
    signs[high] = Span(">" if drawn.high > axis.high else "┤", style)
    signs[middle] = Span("●", style)


def _beside(cell: int, zero: int, drawn: _Drawn, axis: _Axis) -> int:
    """The cell, moved off 0 where the interval lies wholly on one side of it: rounding must not say otherwise."""
    if drawn.low > 0:
        cell = max(cell, zero + 1)
    if drawn.high < 0:
        cell = min(cell, zero - 1)
    return min(max(cell, 0), axis.width - 1)


_ARMS: Final = "before: the host as it was, arm A; after: with the profile, arm B"


def _add_legend(page: Page, proof: Proof) -> None:
    arms = "before and after: the host as it is" if proof.session.self_test else _ARMS
    several = len(proof.workloads) > 1 or len(proof.guardrails) > 1
    adjusted = " (adjusted for the number of claims or guardrails)" if several else ""
    page.blank()
    for text in (
        f"{arms}. Medians of the runs; the change is estimated from the pairs.",
        "├──●──┤ estimate and 95 % interval, │ no change, ░ within the margin (guardrail: the cost allowed); "
        "better is to the right, for latency and CPU too.",
        f"p{adjusted} is significant up to {proof.alpha:g}. "
        "MDE: the smallest effect that these pairs find in 80 % of cases.",
    ):
        page.add(Span(text, "dim"))


# -- notes, host, session ----------------------------------------------------------------------------------------------


def _add_notes(page: Page, proof: Proof) -> None:
    notes = [*proof.notes, *_coverage(proof), *(f"could not be told: {what}" for what in proof.gate.unknown)]
    if proof.session.forced:
        notes += [f"the host was busy: {what}" for what in proof.gate.busy]
    if notes:
        page.heading("Notes")
    for note in notes:
        page.bullet(note)


def _coverage(proof: Proof) -> Iterable[str]:
    """Where so few pairs allow no 95 % interval: what it is then."""
    items = (*proof.workloads, *proof.guardrails, *proof.exploratory, *((proof.control,) if proof.control else ()))
    weak = {item.pairs: item.confidence for item in items if item.confidence is not None and item.confidence < 0.95}
    for pairs, confidence in sorted(weak.items()):
        yield f"the interval of {counted(pairs, 'pair')} is no 95 % interval but one of {_floored(confidence)}"


def _floored(share: float) -> str:
    """Never rounded up to what it does not reach."""
    return f"{math.floor(share * 1000) / 10:g} %"


def _add_host(page: Page, proof: Proof) -> None:
    session = proof.session
    page.heading("Host")
    page.labelled(
        [
            ("in force", _in_force(proof)),
            ("kept", ("yes" if proof.kept else "no",)),
            ("scratch", (_scratch(proof),)),
            ("written", (_written(session.bytes_written, session.schedule.byte_budget),)),
        ]
    )


def _in_force(proof: Proof) -> tuple[Piece, ...]:
    if not proof.session.restored:
        return (Span("unknown: arm A could NOT be put back", "red"), ", see advisor status, then advisor rollback")
    if proof.kept:
        return (Span("arm B", "bold"), ", the profile: a gain was to be kept")
    if proof.session.self_test:
        return ("the host as it was; nothing was changed",)
    return (Span("arm A", "bold"), " is back, the host as it was")


def _scratch(proof: Proof) -> Piece:
    left = next((note for note in proof.session.notes if note.startswith(_SCRATCH_LEFT)), None)
    if left is not None:
        return Span(left, "red")
    return "file removed" if proof.session.schedule.scratch_bytes else "none was needed"


def _written(count: int, budget: int) -> str:
    if not count:
        return "nothing"
    exact = f" ({counted_bytes(count)})" if count >= 1024 else ""
    return f"{binary(count)}{exact}; {binary(budget)} were allowed"


def counted_bytes(count: int) -> str:
    """``1,234 bytes``."""
    return f"{count:,} {'byte' if count == 1 else 'bytes'}"


def _add_session(page: Page, proof: Proof) -> None:
    session, schedule = proof.session, proof.session.schedule
    page.heading("Session")
    page.labelled(
        [
            ("pairs", (f"{len(counted_pairs(session))} of at most {schedule.pairs}{_contamination(proof)}",)),
            ("ended", (_ENDED[session.ended],)),
            ("order", (_order(proof),)),
            ("seed", (str(proof.seed),)),
            ("fio", (f"{session.fio_version}, runs of {schedule.seconds_per_run:g} s",)),
            ("begun", (f"{session.started}, took {duration(session.seconds)}",)),
        ]
    )


def _contamination(proof: Proof) -> str:
    contaminated = [pair for pair in proof.session.pairs if pair.contaminated]
    if not contaminated:
        return "; none was contaminated"
    lamps = dict.fromkeys(lamp for pair in contaminated for run in pair.runs for lamp in run.lamps)
    by = f" by {', '.join(lamps)}" if lamps else ""
    repeated = sum(pair.superseded for pair in contaminated)
    return f"; {len(contaminated)} contaminated{by}, {repeated} of them repeated"


def _order(proof: Proof) -> str:
    counts = ", ".join(f"{proof.order.count(order)} {order}" for order in dict.fromkeys(sorted(proof.order)))
    if proof.carry_over_p is None:
        return counts or "no pairs"
    sign = "it matters" if proof.carry_over_p < CARRY_OVER_LEVEL else "not shown to matter"
    return f"{counts}; {sign} ({p_words(proof.carry_over_p)})"


def _add_again(page: Page, proof: Proof) -> None:
    page.blank()
    page.add("To measure again in the same order (as root, with the same --set, --budget or --reconnect if any):")
    page.command(" ".join(_command(proof)))


def _command(proof: Proof) -> Iterable[str]:
    session = proof.session
    yield from ("advisor", "prove", "--self-test" if session.self_test else shell_quote(proof.profile))
    yield f"--target={shell_quote(session.target)}"
    for name in dict.fromkeys(claim.name for claim in proof.workloads):
        yield f"--workload={shell_quote(name)}"
    if session.schedule.mode != "default":
        yield f"--{session.schedule.mode}"
    if session.toggle_class == "T2":
        yield "--allow-link-flap"
    yield f"--seed={proof.seed}"


# -- numbers -----------------------------------------------------------------------------------------------------------


def percent(fraction: float) -> str:
    """A change: ``+38 %``, ``-2.3 %``; as a factor, ``×12``, where percents are hard to read."""
    if not math.isfinite(fraction):
        return "?"
    if fraction >= 9 or fraction <= -0.99:
        return f"×{1 + fraction:,.0f}" if 99 <= fraction < 1e6 else f"×{1 + fraction:.2g}"
    if abs(fraction) < 0.00005:
        return "0 %"
    return f"{100 * fraction:+.{_decimals(fraction)}f} %"


def _amount(fraction: float | None) -> str:
    """A size without a sign: ``12 %``; empty where it is unknown."""
    if fraction is None or not math.isfinite(fraction):
        return ""
    return percent(fraction).removeprefix("+").replace(".0 %", " %")


def _amounts(fractions: Iterable[float | None]) -> str:
    return ", ".join(dict.fromkeys(filter(None, map(_amount, fractions))))


def _decimals(fraction: float) -> int:
    return 0 if abs(fraction) >= 0.0995 else 1 if abs(fraction) >= 0.0005 else 2


def _change(item: Summary) -> str:
    return "" if item.ratio is None else percent(item.ratio - 1)


def _interval(item: Summary) -> str:
    return "" if item.ci95 is None else " to ".join(percent(bound - 1) for bound in item.ci95)


def _figures(before: float | None, after: float | None) -> str:
    """``970 → 1,464``, both counted in millions where one of them is large."""
    if before is None or after is None or not (math.isfinite(before) and math.isfinite(after)):
        return "? → ?"
    if min(before, after) >= 1e4 and 1e6 <= max(before, after) < 1e9:
        return f"{before / 1e6:.2f}M → {after / 1e6:.2f}M"
    return f"{_figure(before)} → {_figure(after)}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"


def _p_of(item: Summary) -> float | None:
    return item.p_value if item.p_holm is None else item.p_holm


def _p_figure(p: float | None) -> str:
    """As many digits as tell it from the levels that it is compared with."""
    if p is None:
        return ""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def p_words(p: float | None) -> str:
    """``p = 0.0005``, ``p < 0.0001``; empty where there is none."""
    figure = _p_figure(p)
    return f"p < {figure[1:]}" if figure.startswith("<") else f"p = {figure}" if figure else ""
