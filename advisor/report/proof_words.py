"""A proof in sentences: the verdict, why it is not another one, what became of the host. Shared by text and page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from advisor.proof.metrics import MetricName
from advisor.proof.progress import duration
from advisor.proof.records import Ended, Proof, Session, Summary, ToggleClass, Verdict
from advisor.proof.schedule import MODES
from advisor.proof.series import Series
from advisor.proof.statistics import MINIMUM_PAIRS
from advisor.proof.verdict import CARRY_OVER_LEVEL, EQUIVALENCE_PAIRS, MAX_NEEDED_PAIRS, counted_pairs
from advisor.proof.workloads import WORKLOADS
from advisor.report.folding import fold
from advisor.report.layout import Piece, Span, Style, counted
from advisor.report.proof_numbers import amount, change_words, interval_words, p_of, p_words, written
from advisor.script import shell_quote

VERDICTS: Final[Mapping[Verdict, tuple[str, Style]]] = {
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
    "delivered": "delivered",
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
_ARMS: Final = "before: the host as it was, arm A; after: with the profile, arm B"
AGAIN: Final = "To measure again in the same order (as root, with the same --set, --budget or --reconnect if any):"
_CLASSES: Final[Mapping[ToggleClass, str]] = {
    "T0": "acts at once",
    "T1": "acts on new sockets, sessions or mounts",
    "T2": "interrupts links",
    "T3": "takes a reboot or a rebuild",
}
_SCRATCH_LEFT: Final = "the scratch file was not removed"


def verdict_words(proof: Proof) -> tuple[str, Style]:
    """The verdict, and the style that it is set in."""
    return (_SELF_TEST if proof.session.self_test else VERDICTS)[proof.verdict]


def subject_words(proof: Proof) -> tuple[str, str]:
    """What was put to the test, and where: ``storage``, ``on /srv (xfs on sda)``."""
    session = proof.session
    device = f" on {session.device}" if session.device else ""
    what = "this host against itself" if session.self_test else proof.profile
    return what, f"on {session.target} ({session.file_system}{device})"


def headlines(proof: Proof) -> list[str]:
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
        return f"{metric_words(claim)} of {_title(claim)} was not measured"
    if claim.verdict in ("gain", "loss"):
        return f"{_effect_words(claim)}, {counted(claim.pairs, 'pair')}, {p_words(p_of(claim))}"
    margin = amount(claim.margin)
    if claim.verdict == "no-difference":
        return f"{_effect_words(claim)} is within ±{margin}, {counted(claim.pairs, 'pair')}"
    seen = amount(claim.minimum_detectable_effect)
    limit = f"effects below {seen} could hardly be seen" if seen else "too few pairs to see an effect of any size"
    return f"{_effect_words(claim)}: {counted(claim.pairs, 'pair')}, {limit}"


def _effect_words(item: Summary) -> str:
    return f"{change_words(item)} {metric_words(item)} ({interval_words(item)}) on {_title(item)}"


def _title(item: Summary) -> str:
    return workload_title(item.name) or item.name


def workload_title(name: str) -> str | None:
    """What a workload of the library is; None for one that is not in it."""
    known = WORKLOADS.get(name)
    return known.title if known else None


def metric_words(item: Summary) -> str:
    return METRIC_WORDS[item.metric]


def reasons_of(proof: Proof) -> list[str]:
    """Why the verdict is not another one, and what it would take."""
    reasons = list(proof.reasons)
    if proof.reasons and proof.tendency != proof.verdict and counted_pairs(proof.session):
        reasons.append(f"without that the figures would have said: {VERDICTS[proof.tendency][0]}")
    if proof.verdict != "invalid":
        for claim in proof.workloads:
            reasons += _shortfall(claim) if claim.verdict == "inconclusive" and claim.pairs else []
    if proof.session.self_test and proof.tendency in ("gain", "gain-with-cost", "loss"):
        reasons.append("about one self-test in twenty does this by chance; if another does, do not trust measurements")
    return reasons


def _shortfall(claim: Summary) -> list[str]:
    """What could have been seen, and what it would take."""
    found = f"{metric_words(claim)} of {claim.name}: "
    if claim.minimum_detectable_effect is None:
        found += f"with {counted(claim.pairs, 'pair')} no effect of any size could be significant"
    else:
        seen = amount(claim.minimum_detectable_effect)
        found += f"{counted(claim.pairs, 'pair')} find an effect of {seen} in 80 % of cases, a smaller one less often"
    return [f"{found}; {_needed_words(claim)}"]


def _needed_words(claim: Summary) -> str:
    margin = f"±{amount(claim.margin)}"
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


def arms_words(proof: Proof) -> str:
    """What *before* and *after* were, and how the change comes of them."""
    arms = "before and after: the host as it is" if proof.session.self_test else _ARMS
    return f"{arms}. Medians of the runs; the change is estimated from the pairs."


def level_words(proof: Proof) -> str:
    """Up to which p a change is significant, and what the MDE is."""
    several = len(proof.workloads) > 1 or len(proof.guardrails) > 1
    adjusted = " (adjusted for the number of claims or guardrails)" if several else ""
    return (
        f"p{adjusted} is significant up to {proof.alpha:g}. "
        "MDE: the smallest effect that these pairs find in 80 % of cases."
    )


def notes_of(proof: Proof) -> list[str]:
    """What a reader has to know beside the figures, the gate included."""
    notes = [*proof.notes, *_coverage(proof), *(f"could not be told: {what}" for what in proof.gate.unknown)]
    if proof.session.forced:
        notes += [f"the host was busy: {what}" for what in proof.gate.busy]
    return notes


def _coverage(proof: Proof) -> Iterable[str]:
    """Where so few pairs allow no 95 % interval: what it is then."""
    items = (*proof.workloads, *proof.guardrails, *proof.exploratory, *((proof.control,) if proof.control else ()))
    weak = {item.pairs: item.confidence for item in items if item.confidence is not None and item.confidence < 0.95}
    for pairs, confidence in sorted(weak.items()):
        yield f"the interval of {counted(pairs, 'pair')} is no 95 % interval but one of {_floored(confidence)}"


def _floored(share: float) -> str:
    """Never rounded up to what it does not reach."""
    return f"{math.floor(share * 1000) / 10:g} %"


def host_rows(proof: Proof) -> list[tuple[str, tuple[Piece, ...]]]:
    """What became of the host, each with its label."""
    session = proof.session
    return [
        ("in force", _in_force(proof)),
        ("kept", ("yes" if proof.kept else "no",)),
        ("scratch", (_scratch(proof),)),
        ("written", (written(session.bytes_written, session.schedule.byte_budget),)),
    ]


def session_rows(proof: Proof) -> list[tuple[str, tuple[Piece, ...]]]:
    """How the session went, each with its label."""
    session, schedule = proof.session, proof.session.schedule
    return [
        ("pairs", (f"{len(counted_pairs(session))} of at most {schedule.pairs}{_contamination(proof)}",)),
        ("ended", (_ENDED[session.ended],)),
        ("order", (_order(proof),)),
        ("seed", (str(proof.seed),)),
        ("fio", (f"{session.fio_version}, runs of {schedule.seconds_per_run:g} s",)),
        ("begun", (f"{session.started}, took {duration(session.seconds)}",)),
    ]


def value_rows(proof: Proof) -> list[tuple[str, str]]:
    """What told the arms apart: a tunable, or many alike ones folded, and its values in arm A and in arm B."""
    folded = fold(proof.values or (), lambda one: one.tunable, same=lambda one: (one.before, one.after))
    return [(one.title, f"{one.items[0].before} → {one.items[0].after}") for one in folded]


def gate_words(proof: Proof) -> str:
    """What the look at the host before the session found."""
    gate = proof.gate
    found = [f"busy, and measured all the same by --force: {what}" for what in gate.busy]
    found += [f"could not be told: {what}" for what in gate.unknown]
    return "; ".join(found) or "nothing else was seen to run"


def class_words(proof: Proof) -> str:
    """How the change could be put in force and taken back: ``T0, acts at once``."""
    return f"{proof.session.toggle_class}, {_CLASSES[proof.session.toggle_class]}"


def looks_words(proof: Proof) -> str:
    """After how many pairs the figures might be looked at, and at which level of p."""
    *early, last = map(str, proof.session.schedule.looks)
    when = f"after {', '.join(early)} and {last} pairs" if early else f"once, after {last} pairs"
    return f"{when}; each judged at {proof.alpha:g}"


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
    return scratch_words(proof.session)


def scratch_words(of: Session | Series) -> str:
    """What became of the scratch file; of a disk that was measured itself, what was done to it."""
    if of.raw_device is not None and of.schedule.device_bytes:
        done = "was written to: what it held is gone" if of.raw_device.may_write else "was read only"
        return f"no file; {of.raw_device.path} itself {done}"
    return "file removed" if of.schedule.scratch_bytes else "none was needed"


def place_options(of: Session | Series) -> Iterable[str]:
    """The options that name what was measured."""
    if of.raw_device is None:
        yield f"--target={shell_quote(of.target)}"
        return
    yield f"--raw-device={shell_quote(of.raw_device.path)}"
    yield f"--confirm-serial={shell_quote(of.raw_device.serial)}"
    if of.raw_device.may_write:
        yield "--allow-raw-writes"


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


def command_again(proof: Proof) -> str:
    """The call that measures in the same order again."""
    return " ".join(_words_of_command(proof))


def _words_of_command(proof: Proof) -> Iterable[str]:
    session = proof.session
    yield from ("advisor", "prove", "--self-test" if session.self_test else shell_quote(proof.profile))
    if session.peer_ssh is None or session.schedule.area_bytes:
        yield from place_options(session)
    if session.peer_ssh is not None:
        yield f"--peer-ssh={shell_quote(session.peer_ssh)}"
        yield f"--peer-address={shell_quote(session.peer_address or '')}"
    for name in dict.fromkeys(claim.name for claim in proof.workloads):
        yield f"--workload={shell_quote(name)}"
    if session.schedule.mode != "default":
        yield f"--{session.schedule.mode}"
    if session.toggle_class == "T2":
        yield "--allow-link-flap"
    yield f"--seed={proof.seed}"
