"""How often an effect that begins late after each switch gets the wrong sign.

    python -m benchmarks.late [SESSIONS]      200 a row unless said; some minutes of CPU time

Sessions as `advisor prove` makes them, the effect following every switch by a dead time: layout, coin, holds and
judgement are the tool's own, the clock and the figures are simulated. Prints a Markdown table; docs/proof.md holds one
run.
"""

from __future__ import annotations

import math
import random
import sys
from bisect import bisect_right

from msgspec.structs import replace

from advisor.proof.covariates import Covariates
from advisor.proof.records import Arm, Claim, FioRun, Hold, Pair, Proof, ProofSubject, Session, resolve_subject
from advisor.proof.schedule import CONTROL_SECONDS, FIO_OVERHEAD_SECONDS, MODES, make_schedule
from advisor.proof.session import PLACE_SECONDS
from advisor.proof.verdict import decide_session, is_held_back, is_settled
from advisor.proof.workloads import get_workload
from tests.proof.sessions import WORKLOAD, figures

CONTROL = "null.4k"
NOISE = 0.08
_SLICES = 8


class LateHost:
    """A host whose speed follows the arm by ``dead_seconds``."""

    def __init__(self, ratio: float, dead_seconds: float, seed: int) -> None:
        self.now = 0.0
        self._ratio = ratio
        self._dead_seconds = dead_seconds
        self._source = random.Random(seed)
        self._switches: list[tuple[float, Arm]] = [(-math.inf, "A")]

    def place(self, arm: Arm) -> None:
        self.now += PLACE_SECONDS
        self._switches.append((self.now, arm))

    def _share(self, begin: float, end: float) -> float:
        """How much of that time arm B acts."""
        times = [begin + (end - begin) * (at + 0.5) / _SLICES - self._dead_seconds for at in range(_SLICES)]
        starts = [at for at, _ in self._switches]
        return sum(self._switches[bisect_right(starts, at) - 1][1] == "B" for at in times) / _SLICES

    def run(self, arm: Arm, seconds: float, workload: str = WORKLOAD) -> FioRun:
        began = self.now
        self.now += seconds + FIO_OVERHEAD_SECONDS
        effect, noise = math.log(self._ratio) * self._share(began, began + seconds), NOISE
        if workload == CONTROL:
            effect, noise = 0.0, 0.002
        speed = 1000 * math.exp(effect + self._source.gauss(0, noise))
        return FioRun(0, arm, workload, began, figures(speed), Covariates(seconds))


def simulate_session(ratio: float, dead_seconds: float, seed: int) -> Proof:
    """A default session of one claim."""
    mode, coin, host = MODES["default"], random.Random(f"coin {seed}"), LateHost(ratio, dead_seconds, seed)
    schedule = make_schedule(mode, [get_workload(WORKLOAD)], free_bytes=1 << 50, place_seconds=PLACE_SECONDS)
    session = Session(
        subject=resolve_subject(ProofSubject("late", (Claim(WORKLOAD),)), mode),
        schedule=schedule,
        toggle_class="T0",
        seed=seed,
        target="/srv",
        file_system="xfs",
        device=None,
        fio_version="",
        started="2026-11-29T12:00:00+00:00",
        judged_by="pair",
    )
    for index in range(schedule.pairs):
        order = "AB" if coin.getrandbits(1) else "BA"
        runs, controls = [], []
        for arm in order:
            host.place(arm)
            runs.append(host.run(arm, mode.seconds))
            controls.append(host.run(arm, CONTROL_SECONDS, CONTROL))
        session = replace(session, pairs=(*session.pairs, Pair(index, 0, order, tuple(runs), tuple(controls))))
        if index + 1 in schedule.looks[:-1] and is_settled(session):
            break
    is_called = decide_session(session).tendency != "inconclusive"
    session = replace(session, wants_hold=True, holds_all=True)
    for _ in range(2 if is_called else 0):
        for arm in coin.sample(("A", "B"), 2):
            host.place(arm)
            began, runs = host.now, []
            for number in range(schedule.hold_runs):
                host.now = max(host.now, began + number * schedule.hold_seconds / schedule.hold_runs)
                runs.append(host.run(arm, mode.seconds))
            session = replace(session, holds=(*session.holds, Hold(arm, tuple(runs))))
        if not is_held_back(session):
            break
    return decide_session(session)


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| effect | dead time | right sign | wrong sign | no difference |", "|---|---|---|---|---|", sep="\n")
    for ratio in (1.5, 1 / 1.5, 1.1):
        right, wrong = ("gain", "loss") if ratio > 1 else ("loss", "gain")
        for dead in (0, 1, 2, 4, 5, 6, 7.5, 10, 15, 20, 25, 30):
            found = [simulate_session(ratio, dead, seed).verdict for seed in range(sessions)]
            shares = [sum(one.startswith(word) for one in found) / sessions for word in (right, wrong, "no-")]
            print(f"| {ratio - 1:+.0%} | {dead:g} s | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
