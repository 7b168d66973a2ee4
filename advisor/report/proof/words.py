"""A proof in sentences: the verdict, why it is not another one, what became of the host. Shared by text and page."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.proof.blocks import kept_values
from advisor.proof.metrics import MetricName
from advisor.proof.own_command import COMMAND_WORKLOAD, LIVE_WORKLOAD, OWN_WORKLOADS, OwnCommand
from advisor.proof.pattern import is_workload_path
from advisor.proof.records import ArmSetting, Ended, Proof, Session, Summary, ToggleClass, Verdict
from advisor.proof.schedule import EQUIVALENCE_PAIRS, MODES
from advisor.proof.series import Series
from advisor.proof.statistics import MINIMUM_PAIRS
from advisor.proof.verdict import CARRY_OVER_DOUBT_LEVEL, CARRY_OVER_LEVEL, MAX_NEEDED_PAIRS, counted_pairs
from advisor.proof.workloads import LIVE_TRAFFIC, THREADS_MAX, WORKLOADS, get_workload, split_threads, with_threads
from advisor.report.format import clean, fold_alike, format_duration
from advisor.report.layout import Piece, Span, Style, counted, listed
from advisor.report.proof.numbers import change_words, format_amount, format_written, interval_words, p_of, p_words
from advisor.shell.quote import shell_quote

VERDICTS: Mapping[Verdict, tuple[str, Style]] = {
    "gain": ("gain", "green"),
    "gain-with-cost": ("gain with a cost", "yellow"),
    "loss": ("loss", "red"),
    "no-difference": ("no difference", "bold"),
    "inconclusive": ("inconclusive", "yellow"),
    "invalid": ("invalid", "red"),
    "indicative": ("indicative, no proof", "yellow"),
}
# Both arms were the same: what else they are called would be a mistake of the measurement.
_SELF_TEST: Mapping[Verdict, tuple[str, Style]] = {
    "gain": ("self-test failed, a false gain", "red"),
    "gain-with-cost": ("self-test failed, a false gain", "red"),
    "loss": ("self-test failed, a false loss", "red"),
    "no-difference": ("self-test passed", "green"),
    "inconclusive": ("self-test passed", "green"),
    "invalid": ("self-test invalid", "red"),
    "indicative": ("self-test indicative, no proof", "yellow"),
}
METRIC_WORDS: Mapping[MetricName, str] = {
    "iops": "IOPS",
    "bandwidth": "bandwidth",
    "latency_mean": "mean latency",
    "latency_p50": "p50 latency",
    "latency_p95": "p95 latency",
    "latency_p99": "p99 latency",
    "latency_p999": "p99.9 latency",
    "cpu_per_io": "CPU per I/O",
    "delivered": "delivered",
}
_ENDED: Mapping[Ended, str] = {
    "complete": "all pairs were run",
    "settled": "early, at a look: every claim was decided",
    "budget": "the time budget was used up",
    "interrupted": "interrupted by a signal",
    "fault": "by a fault",
    "io-pressure": "early: others were waiting for I/O",
    "bytes": "the byte budget was used up",
    "harm": "early: harm was shown, and the change withdrawn",
    "limit": "early: a limit was exceeded, and the change withdrawn",
}
_ARMS = "before: the host as it was, arm A; after: with the profile, arm B"
_CONSTANT = "all runs gave the same figure; does the expression match the right number?"
KEPT = "To prove the values with a gain as a whole, which was not done here:"
AGAIN = "To measure again in the same order:"
_CLASSES: Mapping[ToggleClass, str] = {
    "T0": "acts at once",
    "T1": "acts on new sockets, sessions or mounts",
    "T2": "interrupts links",
    "T3": "takes a reboot or a rebuild",
}
_SCRATCH_LEFT = "the scratch file was not removed"


def verdict_words(proof: Proof) -> tuple[str, Style]:
    """The verdict, and the style that it is set in."""
    words, style = (_SELF_TEST if proof.session.self_test else VERDICTS)[proof.verdict]
    if proof.session.self_test or proof.verdict != "gain":
        return words, style
    if proof.below_margin:
        return "gain, below the margin", "yellow"
    return ("gain, cost undecided", "yellow") if proof.cost == "undecided" else (words, style)


def subject_words(proof: Proof) -> tuple[str, str]:
    """What was put to the test, and where: ``storage``, ``on /srv (xfs on sda)``."""
    session = proof.session
    what = "this host against itself" if session.self_test else proof.profile
    if session.ablation is not None:
        what = f"which value of {proof.profile} has an effect,"
    elif not session.is_paired:
        what = f"{listed(session.arms[1:])} against none,"
    if session.live is not None:
        return what, "under the traffic that was there"
    if session.subject.command is not None:
        return what, f"judged by {command_words(session.subject.command)}"
    return what, f"on {session.target} ({medium_words(session)})"


def command_words(command: OwnCommand) -> str:
    """The user's own command as one line, and as whom it ran."""
    words = clean(command.words)
    return words if command.user is None else f"{words} (as {command.user})"


def medium_words(of: Session | Series) -> str:
    """``xfs on sda``; of a file system on no device that is known, its kind."""
    if not of.device:
        return of.file_system
    return f"{of.file_system} on {of.device}"


def write_headlines(proof: Proof) -> list[str]:
    """What the verdict rests on: a line for each claim and each cost, and before them why they are no proof; last
    that the control is not judged, unless the reasons name it."""
    lines = _verdict_lines(proof)
    control = unjudged_control(proof)
    is_named = any(reason.startswith("control not judged") for reason in proof.reasons[:1])
    return lines if control is None or is_named else [*lines, control]


def unjudged_control(proof: Proof) -> str | None:
    """``control not judged (2 of 6)``; None where it was judged, or not measured at all."""
    if proof.control is None or not 0 < proof.control.pairs < MINIMUM_PAIRS:
        return None
    return f"control not judged ({proof.control.pairs} of {MINIMUM_PAIRS})"


def _arm_lines(proof: Proof) -> list[str]:
    """What each workload shows: arms with an effect, and how large one of the others can be."""
    found = []
    for name in dict.fromkeys(one.name for one in proof.workloads):
        arms = [one for one in proof.workloads if one.name == name]
        shown = [one for one in arms if one.verdict in ("gain", "loss") or one.cost == "shown"]
        found += [f"{name}: {one.arm} {_change_words(one)}, {arm_words(proof, one)[0]}" for one in shown]
        others = [one for one in arms if one not in shown]
        bound = max((abs(end - 1) for one in others for end in one.ci95 or ()), default=None)
        if bound is not None:
            names = listed([one.arm for one in others])
            found.append(f"{name}: no effect larger than {format_amount(bound)} was seen of {names}")
    return found or ["nothing was measured"]


def arm_words(proof: Proof, one: Summary) -> tuple[str, Style]:
    """What is said of an arm, with what its guardrails and the margin make of it, such as ``gain with a cost``."""
    if not one.pairs:
        return "no block has both", "yellow"
    words, style = VERDICTS[one.verdict or "inconclusive"]
    if one.verdict == "inconclusive":
        words, style = "no effect shown", "dim"
    if one.cost == "shown":
        own = [item for item in proof.guardrails if (item.arm, item.name) == (one.arm, one.name)]
        costs = [item for item in own if item.status == "broken"]
        names = ", ".join(f"{name_metric(item.metric)} {change_words(item)}" for item in costs)
        return f"{words} with a cost ({names})", "yellow"
    if one.verdict != "gain" or one.is_plain_gain:
        return words, style
    return ("gain, below the margin" if one.below_margin else "gain, cost undecided"), "yellow"


def _change_words(item: Summary) -> str:
    return f"{change_words(item)} ({interval_words(item)})"


def _verdict_lines(proof: Proof) -> list[str]:
    if not proof.session.is_paired:
        return _arm_lines(proof)
    more = " " + f"(and {len(proof.reasons) - 1} more)" if len(proof.reasons) > 1 else ""
    why = f"{''.join(proof.reasons[:1])}{more}"
    is_withdrawn = proof.session.ended in ("harm", "limit")
    claims = [_claim_words(claim, is_withdrawn=is_withdrawn) for claim in _by_weight(proof.workloads)]
    # Where nothing was changed there is no cost either.
    cost = "a false difference:" if proof.session.self_test else "at the cost of"
    costs = [f"{cost} {_effect_words(item)}" for item in proof.guardrails if item.verdict == "loss"]
    match proof.verdict:
        case "loss" if proof.session.ended == "harm":
            return [
                why,
                *costs,
                *(claim for one, claim in zip(_by_weight(proof.workloads), claims, strict=True) if one.pairs),
            ]
        case "invalid":
            return [f"nothing follows from these figures: {why}"]
        case "indicative":
            return [why, *costs, *claims]
        case "inconclusive" | "no-difference" if proof.session.self_test:
            return [*(costs or ["no effect was invented"]), *claims]
        case "inconclusive":
            return [*costs, "nothing is shown either way", *claims]
        case "no-difference" | "loss":
            return [*costs, *claims]
    margins: list[str] = []
    for claim in proof.workloads:
        if claim.below_margin:
            asked = f"the margin of {format_amount(claim.margin)} that was asked for"
            margins.append(f"sure, but smaller than {asked}: {_effect_words(claim)}")
    undecided = (_effect_words(one) for one in proof.guardrails if one.status == "undecided")
    open_ones = [f"not shown to stay within its limit: {words}" for words in undecided]
    return [*claims, *margins, *costs, *(open_ones if proof.cost == "undecided" else [])]


def _by_weight(claims: Iterable[Summary]) -> list[Summary]:
    """Claims with an effect first."""
    order: Sequence[Verdict | None] = ("gain", "loss", "no-difference")
    return sorted(claims, key=lambda claim: order.index(claim.verdict) if claim.verdict in order else len(order))


def _claim_words(claim: Summary, *, is_withdrawn: bool = False) -> str:
    """``+38 % bandwidth (+28 % to +51 %) on …, 16 pairs, p = 0.0005``."""
    if claim.ratio is None and is_withdrawn:
        return (
            f"{metric_words(claim)} of {_claim_title(claim)} is not compared: the change was withdrawn before a "
            "whole pair"
        )
    if claim.ratio is None:
        return f"{metric_words(claim)} of {_claim_title(claim)} was not measured"
    if claim.is_constant:
        return f"{metric_words(claim)}: {_CONSTANT}"
    if claim.verdict in ("gain", "loss"):
        return ", ".join((_effect_words(claim), counted(claim.pairs, "pair"), p_words(p_of(claim))))
    if claim.verdict == "no-difference":
        within = f"{_effect_words(claim)} is within ±{format_amount(claim.margin)}"
        return ", ".join((within, counted(claim.pairs, "pair")))
    seen = format_amount(claim.minimum_detectable_effect)
    limit = f"effects below {seen} could hardly be seen" if seen else "too few pairs to see an effect of any size"
    return f"{_effect_words(claim)}: {counted(claim.pairs, 'pair')}, {limit}"


def _effect_words(item: Summary) -> str:
    effect = f"{change_words(item)} {metric_words(item)} ({interval_words(item)})"
    return f"{effect} on {_claim_title(item)}"


def _claim_title(item: Summary) -> str:
    if item.name == COMMAND_WORKLOAD:
        return "the command"
    if item.name == LIVE_WORKLOAD:
        return "the live traffic"
    base = split_threads(item.name)[0]
    # The title of a twin is a line of figures, which stands below with its path.
    return Path(base).name if is_workload_path(base) else workload_title(item.name) or item.name


def workload_title(name: str) -> str | None:
    """What a workload of the library or of a file is; None for one that is not there."""
    base, threads = split_threads(name)
    known = LIVE_TRAFFIC if base == LIVE_WORKLOAD else WORKLOADS.get(base)
    if is_workload_path(base):
        with contextlib.suppress(AdvisorError):
            known = get_workload(base)
    if known is None or threads is None or not known.needs_scratch or not 1 <= threads <= THREADS_MAX:
        return known.title if known and threads is None else None
    return with_threads(known, threads).title


def metric_words(item: Summary) -> str:
    """The metric, or of several arms which one it is."""
    return name_metric(item.metric) if item.cost is None else item.arm


def name_metric(metric: str) -> str:
    """One of fio's in the reader's words, another as the user named it."""
    return METRIC_WORDS[metric] if metric in METRIC_WORDS else clean(metric)


def reasons_of(proof: Proof) -> list[str]:
    """Why the verdict is not another one, and what it would take."""
    reasons = list(proof.reasons)
    if proof.reasons and proof.tendency != proof.verdict and counted_pairs(proof.session):
        reasons.append(f"without that the figures would have said: {VERDICTS[proof.tendency][0]}")
    if proof.verdict != "invalid" and proof.session.is_paired:
        for claim in proof.workloads:
            reasons += _shortfall_words(claim) if claim.verdict == "inconclusive" and claim.pairs else []
    if proof.session.self_test and proof.tendency in ("gain", "gain-with-cost", "loss"):
        reasons.append("about one self-test in twenty does this by chance; if another does, do not trust measurements")
    return reasons


def _shortfall_words(claim: Summary) -> list[str]:
    """What could have been seen, and what it would take."""
    found = f"{metric_words(claim)} of {claim.name}: "
    if claim.is_constant:
        return [f"{found}{_CONSTANT}"]
    if claim.minimum_detectable_effect is None:
        found += f"with {counted(claim.pairs, 'pair')} no effect of any size could be significant"
    else:
        seen = format_amount(claim.minimum_detectable_effect)
        found += f"{counted(claim.pairs, 'pair')} find an effect of {seen} in 80 % of cases, a smaller one less often"
    return [f"{found}; {_needed_words(claim)}"]


def _needed_words(claim: Summary) -> str:
    margin = f"±{format_amount(claim.margin)}"
    if claim.needed_pairs is None:
        if claim.pairs < MINIMUM_PAIRS:
            return f"how many {margin} takes is unknown with so few"
        return f"to see {margin} takes more than {MAX_NEEDED_PAIRS:,} pairs: the figures vary too much here"
    if claim.needed_pairs > claim.pairs:
        deep = MODES["deep"].pairs
        how = f" (--deep runs {deep})" if claim.pairs < deep else ""
        return f"to see {margin} takes about {claim.needed_pairs} pairs{how}"
    if claim.pairs < EQUIVALENCE_PAIRS:
        return f"no difference takes at least {EQUIVALENCE_PAIRS} pairs to say"
    return f"the interval leaves both open, an effect and none beyond {margin}"


def arms_words(proof: Proof) -> str:
    """What *before* and *after* were, and how the change comes of them."""
    arms = "before and after: the host as it is" if proof.session.self_test else _ARMS
    if proof.session.ablation is not None:
        arms = "before: without the value, after: with it, over runs in which the others were on and off in turn"
    elif not proof.session.is_paired:
        arms = "before: none, the host as it was; after: the arm. The arms are not compared with each other"
    return f"{arms}. Medians of the runs; the change is estimated from the pairs."


def level_words(proof: Proof) -> str:
    """Up to which p a change is significant, and what the MDE is."""
    several = len(proof.workloads) > 1 or len(proof.guardrails) > 1
    adjusted = " " + "(adjusted for the number of claims)" if several else ""
    return (
        f"p{adjusted} is significant up to {proof.alpha:g}. MDE: the smallest effect that these pairs find in 80 "
        "% of cases."
    )


def notes_of(proof: Proof) -> list[str]:
    """What a reader has to know in addition to the figures, the gate included."""
    left_out = proof.session.ablation.left_out if proof.session.ablation is not None else ()
    notes = [f"not switched: {one.tunable}: {one.reason}" for one in left_out]
    notes += [*proof.notes, *_coverage_notes(proof), *(f"unknown: {what}" for what in proof.gate.unknown)]
    if proof.session.forced:
        notes += [f"the host was busy: {what}" for what in proof.gate.busy]
    return notes


def _coverage_notes(proof: Proof) -> Iterable[str]:
    """Where so few pairs allow no 95 % interval: what it is then."""
    items = [*proof.workloads]
    if proof.session.is_paired:
        items += [*proof.guardrails, *proof.exploratory, *((proof.control,) if proof.control else ())]
    weak = {item.pairs: item.confidence for item in items if item.confidence is not None and item.confidence < 0.95}
    for pairs, confidence in sorted(weak.items()):
        yield f"the interval of {counted(pairs, 'pair')} is no 95 % interval but one of {_floor_share(confidence)}"


def _floor_share(share: float) -> str:
    """Never rounded up to what it does not reach."""
    return f"{math.floor(share * 1000) / 10:g} %"


def host_rows(proof: Proof) -> list[tuple[str, tuple[Piece, ...]]]:
    """What became of the host, each with its label."""
    session = proof.session
    rows: list[tuple[str, tuple[Piece, ...]]] = [
        ("active", _active_arm(proof)),
        ("kept", ("yes" if proof.kept else "no",)),
    ]
    if session.subject.command is not None:
        return rows
    left = next((note for note in proof.session.notes if note.startswith(_SCRATCH_LEFT)), None)
    scratch_piece = Span(left, "red") if left is not None else scratch_words(proof.session)
    return [
        *rows,
        ("scratch", (scratch_piece,)),
        ("written", (format_written(session.bytes_written, session.schedule.byte_budget),)),
    ]


def session_rows(proof: Proof) -> list[tuple[str, tuple[Piece, ...]]]:
    """How the session went, each with its label."""
    session = proof.session
    count, most = len(counted_pairs(proof.session)), proof.session.schedule.pairs
    command, seconds = session.subject.command, session.schedule.seconds_per_run
    if session.live is not None:
        live = session.live
        words = f"{live.period_seconds:g} s, the first {live.discard_seconds:g} s not counted"
        tool_row: tuple[str, tuple[Piece, ...]] = ("periods", (words,))
    elif command is None:
        tool_row = "fio", (fio_words(session.fio_version, seconds),)
    else:
        tool_row = ("command", (f"{command_words(command)}, runs of {seconds:.2g} s",))
    contaminated = [pair for pair in proof.session.pairs if pair.contaminated]
    if not contaminated:
        contamination_words = "; " + "none was contaminated"
    else:
        lamps = dict.fromkeys(lamp for pair in contaminated for run in pair.runs for lamp in run.lamps)
        by = f" by {', '.join(lamps)}" if lamps else ""
        repeated = sum(pair.superseded for pair in contaminated)
        contamination_words = f"; {len(contaminated)} contaminated{by}, {repeated} of them repeated"
    return [
        ("pairs" if session.is_paired else "blocks", (f"{count} of at most {most}" + contamination_words,)),
        ("ended", (_ENDED[session.ended],)),
        *([("order", (_order_words(proof),))] if session.is_paired else []),
        ("seed", (str(proof.seed),)),
        tool_row,
        ("begun", (begun_words(session.started, session.seconds),)),
    ]


def fio_words(version: str, seconds: float) -> str:
    """The version, and how long each run takes."""
    return f"{version}, runs of {seconds:g} s"


def begun_words(started: str, seconds: float) -> str:
    """When it began, and how long it took."""
    return f"{started}, took {format_duration(seconds)}"


def value_rows(proof: Proof) -> list[tuple[str, str]]:
    """What distinguishes the arms: a tunable, or many alike ones folded, and its values in arm A and in arm B."""
    folded = fold_alike(values_of(proof) or (), lambda one: one.tunable, same=lambda one: (one.before, one.after))
    return [(one.title, f"{one.items[0].before} → {one.items[0].after}") for one in folded]


def values_of(proof: Proof) -> tuple[ArmSetting, ...] | None:
    """What distinguishes the arms; of several profiles each value with the name of its own."""
    session = proof.session
    if session.is_paired or session.ablation is not None:
        return proof.values
    return tuple(
        ArmSetting(f"{arm}: {one.tunable}", one.before, one.after, one.why)
        for arm, found in session.arm_values.items()
        for one in found
    )


def gate_words(proof: Proof) -> str:
    """What the look at the host before the session found."""
    gate = proof.gate
    found = [f"busy: {what}" for what in gate.busy]
    found += [f"unknown: {what}" for what in gate.unknown]
    return "; ".join(found) or "nothing else was seen to run"


def class_words(proof: Proof) -> str:
    """How the change could be applied and rolled back: ``T0, acts at once``."""
    return f"{proof.session.toggle_class}, {_CLASSES[proof.session.toggle_class]}"


def looks_words(proof: Proof) -> str:
    """After how many pairs the figures might be looked at, and at which level of p."""
    *early, last = map(str, proof.session.schedule.looks)
    when = f"after {', '.join(early)} and {last} pairs" if early else f"once, after {last} pairs"
    return f"{when}; each judged at {proof.alpha:g}"


def _active_arm(proof: Proof) -> tuple[Piece, ...]:
    if not proof.session.restored:
        lost = Span("unknown: arm A could not be restored", "red")
        return (lost, ", ", "see advisor status, then advisor rollback")
    if proof.kept:
        return (Span("arm B", "bold"), ", ", "the profile: a gain was to be kept")
    if proof.session.self_test:
        return ("the host as it was; nothing was changed",)
    return (Span(f"arm {proof.session.arms[0]}", "bold"), " ", "is back, the host as it was")


def scratch_words(of: Session | Series) -> str:
    """Return what became of the scratch file."""
    return "file removed" if of.schedule.scratch_bytes else "none was needed"


def place_options(of: Session | Series) -> Iterable[str]:
    """Yield the options that name what was measured."""
    yield f"--target={shell_quote(of.target)}"


def _order_words(proof: Proof) -> str:
    counts = ", ".join(f"{proof.order.count(order)} {order}" for order in dict.fromkeys(sorted(proof.order)))
    if proof.carry_over_p is None:
        return counts or "no pairs"
    if proof.carry_over_p < CARRY_OVER_LEVEL:
        sign = "it matters"
    else:
        sign = "it may matter" if proof.carry_over_p <= CARRY_OVER_DOUBT_LEVEL else "not shown to matter"
    return f"{counts}; {sign} ({p_words(proof.carry_over_p)})"


def command_again(proof: Proof) -> str:
    """The call that measures in the same order again."""
    return " ".join(_words_of_command(proof))


def _words_of_command(proof: Proof) -> Iterable[str]:
    session = proof.session
    if session.ablation is not None:
        yield from ("advisor prove-values", *map(shell_quote, session.ablation.asked))
    elif not session.is_paired:
        yield from ("advisor prove-arms", *map(shell_quote, session.arms[1:]))
    else:
        yield "advisor prove" if session.live is None else "advisor prove-live"
        yield from ("--self-test",) if session.self_test else map(shell_quote, proof.words or (proof.profile,))
    yield from _repeated_options(proof)
    yield f"--seed={proof.seed}"


def command_kept(proof: Proof) -> str | None:
    """The call that proves the single values with a gain as a whole, on fresh data; None where there is nothing more to
    prove."""
    kept = kept_values(proof) if proof.session.ablation is not None else ()
    if not 0 < len(kept) < len(proof.session.arms) - 1:
        return None
    values = [one for name in kept for one in proof.session.arm_values.get(name, ())]
    words = [shell_quote(f"{one.tunable}={one.after}") for one in values]
    return " ".join(["advisor prove", *words, *_repeated_options(proof)])


def _repeated_options(proof: Proof) -> Iterable[str]:
    session = proof.session
    if session.subject.command is None:
        yield from place_options(session)
    if session.peer_address is not None:
        yield f"--peer={shell_quote(session.peer_address)}"
    for name in dict.fromkeys(claim.name for claim in proof.workloads):
        if name not in OWN_WORKLOADS:
            yield f"--workload={shell_quote(name)}"
    if session.schedule.mode != "default":
        yield f"--{session.schedule.mode}"
    if session.toggle_class == "T2":
        yield "--allow-link-flap"
    yield from map(shell_quote, session.options)
