"""Several arms in randomised blocks, judged as pairs of each arm with the first one, ``none``. Pure.

A block holds every arm once, in an order that was drawn. Each arm is compared with ``none`` of the same block, workload
by workload, by the rules of a session of two arms; the level of a comparison is the one at which Holm's procedure tests
it among all comparisons of the session (Holm, Scand. J. Statist. 6, 1979).
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

import msgspec

from advisor.errors import RefusedError, UsageError
from advisor.facts.settings import SETTINGS
from advisor.host.numbers import count_noun
from advisor.host.patterns import lazy_regex
from advisor.planning.records import Change
from advisor.proof.records import NONE, PAIRED, FioRun, Proof, Session, Summary, UnswitchedTunable, Verdict
from advisor.proof.relevance import class_of
from advisor.proof.schedule import SESSION_LEVEL
from advisor.proof.statistics import hodges_lehmann, signed_rank, step_down
from advisor.proof.verdict import counted_pairs, decide_session, is_held_back, make_sample
from advisor.tunables.sysctl_group import can_move

# Which value of a profile did it: what is switched as one, and which combinations each block measures. Pure.

MAX_UNITS = 16
LINKS = "links"
"""The unit of all that interrupts a link: it is switched at once, so that a block interrupts as rarely as it can."""
_OF_DEVICE = lazy_regex(r"(block|md|link|irq|mount|nfs|iscsi|multipath):[^:]+:([^:]+)")
_RESET_BY_SCHEDULER = lazy_regex(r"block:[^:]+:(?!read_ahead_kb$|scheduler$)[^:]+")
_DIRTY = frozenset(f"sysctl:{one.key}" for one in SETTINGS.values() if one.twin and one.is_slow)


def design_words(count: int) -> tuple[int, ...]:
    """The column of each of ``count`` values, as bits over the base columns. Raises UsageError for too many."""
    if count > MAX_UNITS:
        raise UsageError(
            f"{count} values; expected at most {MAX_UNITS}",
            hint="a profile file of your own with some of them, or values by name",
        )
    if count <= 3:
        return tuple(1 << bit for bit in range(count))
    base = 3 if count == 4 else 4 if count <= 8 else 5
    singles = [1 << bit for bit in range(base)]
    if count == 5:
        return (*singles, 0b1111)
    # Words of an odd number of letters: the product of two is even, so that no pair shares a column with a value.
    others = sorted(
        (word for word in range(1 << base) if word.bit_count() % 2 and word not in singles), key=int.bit_count
    )
    return (*singles, *others)[:count]


def run_count(words: Sequence[int]) -> int:
    """How many combinations a block has."""
    return 1 << max(words).bit_length()


def draw_combinations(names: Sequence[str], words: Sequence[int], coin: random.Random) -> list[tuple[str, ...]]:
    """The values that are active in each run of a block, in the order of the runs."""
    flips = [coin.getrandbits(1) for _ in names]
    runs = [
        tuple(
            name for name, word, flip in zip(names, words, flips, strict=True) if ((row & word).bit_count() + flip) % 2
        )
        for row in range(run_count(words))
    ]
    return coin.sample(runs, len(runs))


def combination_digits(names: Sequence[str], active: Collection[str]) -> str:
    """``none``, or a digit for each value: ``0110``."""
    return "".join("01"[name in active] for name in names) if active else NONE


# -- what is switched as one -------------------------------------------------------------------------------------------


def group_changes(
    changes: Sequence[Change], hidden: Mapping[str, str] = {}
) -> tuple[dict[str, tuple[str, ...]], tuple[UnswitchedTunable, ...]]:
    """The tunables that are switched as one value, by its name, and what cannot be switched, with the reason.

    One setting of several devices is one value; so is what the kernel changes together, what has to be in an order,
    and all that interrupts a link. ``hidden`` are tunables whose effect cannot show, with the reason. Raises
    RefusedError where fewer than two are left.
    """
    rebooting = {one.tunable: "it needs a reboot or a rebuild" for one in changes if class_of(one) == "T3"}
    reasons = {**hidden, **rebooting}
    left_out = [UnswitchedTunable(one.tunable, reasons[one.tunable]) for one in changes if one.tunable in reasons]
    live = [one for one in changes if one.tunable not in reasons]
    units: dict[str, list[str]] = {}
    schedulers = {one.tunable.split(":")[1] for one in live if one.tunable.endswith(":scheduler")}
    for one in live:
        units.setdefault(_unit_key(one, schedulers), []).append(one.tunable)
    _join_coupled(units)
    if len(units) < 2:
        names = ", ".join(units) or ", ".join(one.tunable for one in left_out)
        raise RefusedError(
            f"expected two values or more that can be switched singly, found {names}",
            hint="advisor prove PROFILE judges the whole",
        )
    # One that is a tunable alone has its name.
    named = {tunables[0] if len(tunables) == 1 else name: tuple(tunables) for name, tunables in units.items()}
    return named, tuple(left_out)


def _unit_key(change: Change, schedulers: Iterable[str]) -> str:
    tunable = change.tunable
    if class_of(change) == "T2":
        return LINKS
    device = _OF_DEVICE.fullmatch(tunable)
    if device is None:
        return tunable
    # A new scheduler resets nr_requests and what else is its own.
    if _RESET_BY_SCHEDULER.fullmatch(tunable) and tunable.split(":")[1] in schedulers:
        return "block:*:scheduler"
    return f"{device[1]}:*:{device[2]}"


def _join_coupled(units: dict[str, list[str]]) -> None:
    """Join units of which setting one can change the other, or which have to be in an order."""
    for one, other in combinations(list(units), 2):
        if one in units and other in units and _are_coupled(units[one], units[other]):
            units[other] = [*units.pop(one), *units[other]]


def _are_coupled(first: Iterable[str], second: Iterable[str]) -> bool:
    return any(
        can_move(one, other) or can_move(other, one) or {one, other} <= _DIRTY for one in first for other in second
    )


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
