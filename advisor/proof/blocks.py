"""Several arms in randomised blocks, judged as pairs of each arm with the first one, ``none``. Pure.

A block holds every arm once, in an order that was drawn. Each arm is compared with ``none`` of the same block, workload
by workload, by the rules of a session of two arms; the level of a comparison is the one at which Holm's procedure tests
it among all comparisons of the session (Holm, Scand. J. Statist. 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from advisor.host.numbers import count_noun
from advisor.proof.records import NONE, PAIRED, FioRun, Proof, Session, Summary, Verdict
from advisor.proof.schedule import SESSION_LEVEL
from advisor.proof.statistics import hodges_lehmann, signed_rank, step_down
from advisor.proof.verdict import counted_pairs, decide_session, is_held_back, make_sample

SINGLE_CONFIDENCE = 0.95


def conclude_session(session: Session) -> Proof:
    """Return what follows from a session; the same session gives the same result."""
    return decide_session(session) if session.is_paired else _decide_arms(session)


def is_withheld(session: Session) -> bool:
    """Return whether a difference is withheld because the held arms do not show it."""
    if session.is_paired:
        return is_held_back(session)
    claims = session.subject.claims
    return any(is_held_back(pairs_of(session, arm, claim.workload)) for arm in session.arms[1:] for claim in claims)


def smallest_blocks(comparisons: int, alpha: float = SESSION_LEVEL) -> int:
    """Return the blocks below which no outcome could be significant after Holm: the smallest exact p is 2 / 2**n."""
    return math.ceil(1 + math.log2(comparisons / alpha))


def kept_values(proof: Proof) -> tuple[str, ...]:
    """Return those of single values with a gain in any workload; none of an invalid session. Two that gain together
    alone each show half of that gain."""
    gains = {one.arm for one in proof.workloads if one.verdict == "gain"} if proof.verdict != "invalid" else ()
    return tuple(name for name in proof.session.arms[1:] if name in gains)


def pairs_of(session: Session, arm: str, workload: str) -> Session:
    """Return an arm and ``none`` of the same blocks as a session of two arms with one claim: A is without the arm, B
    with it."""

    def sided(runs: Iterable[FioRun]) -> tuple[FioRun, ...]:
        sides = [(session.is_under(arm, run.arm), run) for run in runs]
        return tuple(msgspec.structs.replace(run, arm=PAIRED[side]) for side, run in sides if side is not None)

    pairs = [
        msgspec.structs.replace(one, order="AB", runs=sided(one.runs), control_runs=sided(one.control_runs))
        for one in session.pairs
    ]
    subject = session.subject
    return msgspec.structs.replace(
        session,
        subject=msgspec.structs.replace(
            subject,
            profile=arm,
            claims=tuple(one for one in subject.claims if one.workload == workload),
            guardrails=tuple(one for one in subject.guardrails if one.workload == workload),
            control=subject.control if any(one.control_runs for one in pairs) else None,
        ),
        pairs=tuple(one for one in pairs if {run.arm for run in one.runs} == set(PAIRED)),
        holds=tuple(
            msgspec.structs.replace(one, arm=PAIRED[side])
            for one in session.holds
            if (side := session.is_under(arm, one.arm)) is not None
        ),
        arms=PAIRED,
        notes=(),
        faults=(),
    )


def _decide_arms(session: Session) -> Proof:
    claims = session.subject.claims
    named = [(arm, claim) for arm in session.arms[1:] for claim in claims]
    views = [pairs_of(session, arm, claim.workload) for arm, claim in named]
    samples = [
        make_sample(counted_pairs(view), claim.workload, session.subject.metric_of(claim)).effects
        for view, (_, claim) in zip(views, named, strict=True)
    ]
    levels = step_down([signed_rank(one).p_value for one in samples], session.schedule.alpha)
    parts = []
    for view, (arm, _), sample, level in zip(views, named, samples, levels, strict=True):
        schedule = msgspec.structs.replace(view.schedule, alpha=level.level)
        part = decide_session(msgspec.structs.replace(view, schedule=schedule))
        (claim,) = part.workloads
        claim = msgspec.structs.replace(claim, arm=arm, p_holm=level.p_holm, cost=part.cost)
        if sample:
            (alone,) = hodges_lehmann(sample, SINGLE_CONFIDENCE)
            bounds = sorted(math.exp(claim.described.sign * bound) for bound in (alone.low, alone.high))
            claim = msgspec.structs.replace(claim, interval95=(bounds[0], bounds[1]))
        parts.append(msgspec.structs.replace(part, workloads=(claim,)))
    found = [part.workloads[0] for part in parts]
    invalid = [*session.faults, *_reasons_of(parts, "invalid")]
    indicative = _reasons_of(parts, "indicative")
    count, needed = len(counted_pairs(session)), smallest_blocks(len(named))
    if count < needed:
        indicative.append(
            f"{count_noun(count, 'block')}: with {count_noun(len(named), 'comparison')} no result of fewer than"
            f" {needed} blocks can be significant"
        )
    plain = [one for one in found if one.is_plain_gain]
    gains = [one for one in found if one.verdict == "gain"]
    tendency = _tendency(found)
    return msgspec.structs.replace(
        parts[0],
        profile=session.subject.profile,
        verdict="invalid" if invalid else "indicative" if indicative else tendency,
        workloads=tuple(found),
        tendency=tendency,
        reasons=(*invalid, *indicative, *(_reasons_of(parts, "inconclusive"))),
        notes=(*session.notes, *_said_of(parts, [part.notes for part in parts])),
        guardrails=tuple(
            msgspec.structs.replace(one, arm=part.workloads[0].arm) for part in parts for one in part.guardrails
        ),
        exploratory=(),
        control=None,
        controls=tuple(
            msgspec.structs.replace(part.control, arm=part.workloads[0].arm)
            for part in parts[:: len(claims)]
            if part.control is not None
        ),
        best={claim.workload: _best_arm([one for one in plain if one.name == claim.workload]) for claim in claims},
        alpha=session.schedule.alpha,
        order=(),
        session=session,
        cost="none" if plain else "shown" if any(one.cost == "shown" for one in gains) else "undecided",
        below_margin=bool(gains) and all(one.below_margin for one in gains),
    )


def _reasons_of(parts: Sequence[Proof], verdict: Verdict) -> list[str]:
    return _said_of(parts, [part.reasons if part.verdict == verdict else () for part in parts])


def _said_of(parts: Sequence[Proof], texts: Sequence[Sequence[str]]) -> list[str]:
    """Return each text once: what holds for every comparison as it is, else with the names of its arm."""
    found: dict[str, None] = {}
    for part, lines in zip(parts, texts, strict=True):
        arm = part.workloads[0].arm
        for line in lines:
            named = line.replace("arm B", arm).replace("arm A", NONE)
            if named == line and not all(line in other for other in texts):
                named = f"{arm}: {line}"
            found[named] = None
    return list(found)


def _tendency(found: Sequence[Summary]) -> Verdict:
    """Return what the arms together show: a gain of any, else a loss, else whether none has an effect."""
    verdicts = [one.verdict for one in found]
    if "gain" in verdicts:
        is_costly = all(one.cost == "shown" for one in found if one.verdict == "gain")
        return "gain-with-cost" if is_costly else "gain"
    if "loss" in verdicts:
        return "loss"
    return "no-difference" if set(verdicts) == {"no-difference"} else "inconclusive"


def _best_arm(gains: Sequence[Summary]) -> str | None:
    return max(gains, key=lambda one: one.effect or 0.0).arm if gains else None
