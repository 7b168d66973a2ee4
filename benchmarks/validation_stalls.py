"""Sessions in which runs stall under pressure and are put aside: of arm B alone (a harm), or of both arms (other load).

A run stalls with a probability of its own; it then has a third of its speed and ten times its p99. Each session is
conducted by the product's rules: a contaminated pair is repeated while there is room, and a look may end the session.
"""

from __future__ import annotations

import math
import random

import msgspec

from advisor.proof.records import Pair, Proof
from advisor.proof.schedule import MODES, ModeName
from advisor.proof.verdict import decide_session, is_settled
from tests.proof.sessions import figures, pair, session

STALL_SHARES = (0.0, 0.1, 0.2, 0.33)
STALLED_SPEED, STALLED_TAIL = 0.3, 10.0
GAIN = 1.25
NOISE, TAIL_NOISE = 0.03, 0.03


def conduct_stalling(mode: ModeName, seed: int, on_a: float, on_b: float, *, gain: float = GAIN) -> Proof:
    """The proof of a session in which runs of each arm stall with these probabilities."""
    source = random.Random(seed)
    whole, left = msgspec.structs.replace(session((), mode=mode), judged_by="pair"), MODES[mode].pairs // 2
    for index in range(MODES[mode].pairs):
        is_repeated = True
        while is_repeated:
            one = _make_pair(source, index, on_a, on_b, gain)
            is_repeated, left = one.contaminated and left > 0, left - one.contaminated
            whole = msgspec.structs.replace(
                whole, pairs=(*whole.pairs, msgspec.structs.replace(one, superseded=is_repeated))
            )
        if index + 1 in whole.schedule.looks[:-1] and is_settled(whole):
            return decide_session(msgspec.structs.replace(whole, ended="settled"))
    return decide_session(whole)


def _make_pair(source: random.Random, index: int, on_a: float, on_b: float, gain: float) -> Pair:
    stalled = {"A": source.random() < on_a, "B": source.random() < on_b}
    before, after = (
        figures(
            1000 * factor * math.exp(source.gauss(0, NOISE)) * (STALLED_SPEED if stalled[arm] else 1.0),
            p99_us=500 * math.exp(source.gauss(0, TAIL_NOISE)) * (STALLED_TAIL if stalled[arm] else 1.0),
        )
        for arm, factor in (("A", 1.0), ("B", gain))
    )
    one = pair(index, before, after, order=source.choice(("AB", "BA")), contaminated=any(stalled.values()))
    runs = tuple(
        msgspec.structs.replace(each, lamps=("cpu-pressure",) if stalled[each.arm] else ()) for each in one.runs
    )
    return msgspec.structs.replace(one, runs=runs)


def count_verdicts(mode: ModeName, sessions: int, source: random.Random, on_a: float, on_b: float) -> dict[str, int]:
    """How many sessions end as a plain gain, as a gain that is indicative, and otherwise."""
    found = {"gain": 0, "indicative": 0, "other": 0}
    for _ in range(sessions):
        proof = conduct_stalling(mode, source.getrandbits(32), on_a, on_b)
        found["gain" if proof.is_gain else "indicative" if proof.verdict == "indicative" else "other"] += 1
    return found
