"""Proofs under live traffic: a tree whose counters follow a law, and a clock that no test waits for."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from advisor.errors import AdvisorError, NotRestoredError, RefusedError, UsageError
from advisor.operations.measure import parse_budget
from advisor.proof import live
from advisor.proof.archive import load_proof, reanalyse_proof
from advisor.proof.live import LivePlan
from advisor.proof.live_source import (
    HARM_BET,
    HARM_LEVEL,
    ONE_SIDED,
    PROBE_PAIRS,
    HarmTest,
    PeriodSeries,
    compare_figures,
    discard_for,
    estimate_tau,
    estimated_share,
    shown_share,
)
from advisor.proof.records import Proof
from advisor.proof.session_runner import InterruptedSessionError, Settings
from advisor.report.proof.page import proof_page
from advisor.report.proof.result import proof_text
from advisor.report.proof.tuning import consent_lines
from advisor.report.proof.words import command_again
from tests.cases import read_cases
from tests.known import known
from tests.report.pasted import lines_too_wide
from tests.transaction.killing import in_child
from tests.trees import make_command

from .live_world import AFTER, BEFORE, NAME, World, noisy_law
from .test_prometheus import Server, server

__all__ = ["server"]

DATA = read_cases(__file__)

PERIOD = 12.0
"""Long enough for the short pairs' law, and soon over."""


def text_of(proof: Proof, width: int = 80) -> str:
    return proof_text(proof, width=width, color=False)


def world_of(where: Path, effect: float, *, tau: float = 0.0, noise: float = 0.05, seed: int = 1) -> World:
    return World(where, noisy_law(seed, effect, tau=tau, noise=noise))


# -- what a period shows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tau", "period", "discard"), [(3.0, 40.0, 9.0), (10.0, 40.0, 5.0), (20.0, 60.0, 0.0)])
def test_the_share_of_an_effect_is_what_a_simulated_lag_shows(tau: float, period: float, discard: float) -> None:
    steps = 2000
    shown = [1 - math.exp(-(discard + (period - discard) * (step + 0.5) / steps) / tau) for step in range(steps)]
    assert shown_share(tau, period, discard) == pytest.approx(sum(shown) / steps, abs=1e-4)


def test_what_pairs_hold_of_an_effect_and_what_is_discarded() -> None:
    # 30 s after every switch: the figures of the simulation that the design rests on
    assert estimated_share(shown_share(0.0, 60.0, 30.0)) == 1
    shown = shown_share(10.0, 60.0, 0.0)
    # second of a pair: after the other arm always; first: half the time
    second, first = shown, (1 + shown) / 2
    assert estimated_share(shown) == pytest.approx((second + first) / 2 - ((1 - second) + (1 - first)) / 2)
    assert [discard_for(tau) for tau in (0.0, 1.0, 3.0, 5.5)] == [3, 3, 9, 17]


@pytest.mark.parametrize("tau", [0.0, 2.0, 5.0])
def test_the_relaxation_is_read_off_the_first_switches(tau: float) -> None:
    law = noisy_law(3, 0.3, tau=tau, noise=0.03)
    pairs = [
        [PeriodSeries(changed, [math.exp(law(0, changed)) for _ in range(8)]) for changed in order]
        for order in ([False, True], [True, False], [True, False], [False, True]) * 3
    ]
    found = known(estimate_tau(pairs))
    assert found == pytest.approx(tau, abs=0.2 * tau + 0.5)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("effect", [0.3, -0.3, 1.5e-9])
def test_four_pairs_show_a_relaxation_and_three_do_not(tau: float, effect: float) -> None:
    law = noisy_law(3, effect, tau=tau, noise=0.0)

    def pair_of(scale: float, *order: bool) -> list[PeriodSeries]:
        return [PeriodSeries(changed, [scale * math.exp(law(0, changed)) for _ in range(8)]) for changed in order]

    pairs = [pair_of(0.5, False, True), pair_of(0.1, True, False)]
    # a pair in which nothing was completed says nothing, but its time passes
    pair_of(1.0, True)
    pairs.append([PeriodSeries(True, [None, 0.0] * 4)])
    pairs.append(pair_of(0.5, True, False))
    assert estimate_tau(pairs) is None
    pairs.append(pair_of(1.5, False, True))
    assert estimate_tau(pairs) == tau


def test_no_relaxation_is_claimed_without_an_effect() -> None:
    law = noisy_law(3, 0.0)
    pairs = [[PeriodSeries(changed, [math.exp(law(0, changed))] * 8) for changed in (False, True)] for _ in range(10)]
    assert estimate_tau(pairs) is None
    assert estimate_tau([]) is None
    pairs = [[PeriodSeries(changed, [100.0] * 8) for changed in (False, True)] for _ in range(10)]
    assert estimate_tau(pairs) is None


@pytest.mark.parametrize(
    ("before", "after", "sign", "effect"),
    [
        (2.0, 1.0, -1, math.log(2)),
        (None, None, 1, None),
        (0.0, 0.0, 1, None),
        (1.0, None, -1, -ONE_SIDED),
        (0.0, None, -1, -ONE_SIDED),
        (None, 1.0, -1, ONE_SIDED),
        (1.0, 0.0, 1, -ONE_SIDED),
        (1.0, 0.0, -1, ONE_SIDED),
        (0.0, 1.0, -1, -ONE_SIDED),
        (0.0, 1.0, 1, ONE_SIDED),
    ],
)
def test_an_arm_without_a_figure_is_the_worse_one(
    before: float | None, after: float | None, sign: int, effect: float | None
) -> None:
    assert compare_figures(before, after, sign) == effect


def test_harm_is_a_product_over_the_pairs() -> None:
    test = HarmTest()
    test.add_pair(-0.2)
    assert test.evidence == pytest.approx(1 + HARM_BET)
    # the smaller of two: half way between 1 and its relative rank of 1/2
    test.add_pair(-0.1)
    assert test.evidence == pytest.approx((1 + HARM_BET) * (1 + HARM_BET * 0.75))
    before = test.evidence
    assert test.look_ahead(0.3) == pytest.approx(before * (1 - HARM_BET))
    assert test.evidence == before
    test.add_pair(0.0)
    assert test.evidence == before


@pytest.mark.parametrize("size", [1e-6, 0.05, 0.1, 0.26, 0.5, 1.5, ONE_SIDED])
def test_a_bet_on_harm_is_fair(size: float) -> None:
    """Whatever the size, both signs together win nothing: that alone makes 20 a level of 5 %."""
    test = HarmTest()
    for effect in (-0.3, 0.1, -0.2):
        test.add_pair(effect)
    after = [test.look_ahead(sign * size) for sign in (-1, 1)]
    assert sum(after) / 2 == pytest.approx(test.evidence)
    assert min(after) > 0


# -- a session ---------------------------------------------------------------------------------------------------------


def test_a_gain_is_found_and_the_host_is_as_before(tmp_path: Path) -> None:
    world = world_of(tmp_path, -0.2, tau=1.0)
    kept = tmp_path / "kept.gz"
    proof = world.prove(period_seconds=PERIOD, settings=Settings(seed=7, save_to=str(kept)))
    assert (proof.verdict, world.value) == ("gain", BEFORE)
    (claim,) = proof.workloads
    assert claim.effect == pytest.approx(math.expm1(0.2), abs=0.06)
    found = known(proof.session.live)
    assert (found.tau_from, len(found.probes)) == ("measured", PROBE_PAIRS)
    assert 0 < found.tau_seconds <= 2
    # it replays: the same verdict from the saved figures alone
    again = reanalyse_proof(load_proof(kept))
    assert msgspec.structs.replace(again, saved_to=None) == msgspec.structs.replace(proof, saved_to=None)
    assert msgspec.json.decode(msgspec.json.encode(proof))["session"]["live"]["period_seconds"] == PERIOD
    for width in (80, 160):
        said = text_of(proof, width)
        assert "under the traffic that was there" in said
        assert lines_too_wide(said, width) == []
    assert "disk-wait" in proof_page(proof)
    assert command_again(proof).startswith("advisor prove-live ")


def test_no_difference_is_said_where_there_is_none(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)
    proof = world.prove(period_seconds=PERIOD)
    assert (proof.verdict, world.value) == ("no-difference", BEFORE)
    assert "3 s is assumed" in " ".join(proof.notes)


def test_harm_is_withdrawn_within_three_minutes_and_for_good(tmp_path: Path) -> None:
    world = world_of(tmp_path, math.log(1.3), noise=0.15)
    switched: list[str] = []
    world.events.append(lambda _at: switched.append(world.value))
    proof = world.prove()
    assert world.value == BEFORE
    assert world.seconds <= 180
    assert (proof.verdict, proof.session.ended, proof.session.restored) == ("loss", "harm", True)
    assert AFTER in switched
    assert known(proof.session.live).harm >= HARM_LEVEL
    assert "withdrawn for good" in text_of(proof)
    assert reanalyse_proof(proof).verdict == "loss"


def test_an_outage_is_harm(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)

    def stop_service(_at: float) -> None:
        world.requests = 0 if world.value == AFTER else 100

    world.events.append(stop_service)
    proof = world.prove()
    assert (proof.verdict, proof.session.ended, world.value) == ("loss", "harm", BEFORE)
    assert world.seconds <= 180
    assert "disk-wait was worse in arm B in 5 of 5 pairs, an outage in the middle one" in proof.reasons[0]


def test_a_gain_of_which_a_pair_has_one_arm_only_is_indicative(tmp_path: Path) -> None:
    world = world_of(tmp_path, -0.2)

    def stop_service(at: float) -> None:
        # of one period after the short pairs
        world.requests = 0 if 181 <= at < 194 and world.value == AFTER else 100

    world.events.append(stop_service)
    proof = world.prove(period_seconds=PERIOD)
    assert (proof.verdict, proof.tendency) == ("indicative", "gain")
    assert "disk-wait has a figure above 0 in one arm only in 1 of" in proof.reasons[0]
    assert "disk-wait has a figure" in text_of(proof)


def test_a_limit_ends_the_session_within_a_second(tmp_path: Path) -> None:
    world = World(tmp_path, lambda at, is_changed: math.log(5.0) if is_changed and at > 60 else 0.0)
    when: list[float] = []
    world.events.append(lambda at: when.append(at) if world.value == AFTER and at > 61 else None)
    proof = world.prove(limits=("disk-wait > 30",))
    assert world.value == BEFORE
    assert (proof.verdict, proof.session.ended) == ("indicative", "limit")
    assert "disk-wait > 30 was found" in proof.reasons[0]
    assert len(when) <= 1


def test_a_limit_that_is_exceeded_before_anything_is_changed_is_refused(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)
    with pytest.raises(RefusedError, match="already, with nothing changed"):
        world.prove(limits=("disk-wait > 1",))
    assert world.value == BEFORE
    assert world.store.read_records() == ()


@pytest.mark.parametrize("at", [5.0, 70.0, 250.0])
def test_a_foreign_change_ends_the_session_and_is_kept(tmp_path: Path, at: float) -> None:
    world = world_of(tmp_path, 0.0)
    world.events.append(lambda now: world.set_value("777") if now == at else None)
    with pytest.raises(NotRestoredError) as stopped:
        world.prove(period_seconds=PERIOD)
    assert "777" in str(stopped.value) + "".join(f"{item}" for item in stopped.value.items)
    assert world.value == "777"


def counters_reset(world: World) -> None:
    world.reads = world.waited_ms = 0


def disk_is_gone(world: World) -> None:
    (world.root / "proc/diskstats").write_text("")


@pytest.mark.parametrize(
    ("event", "words"), [(counters_reset, "the counter was reset"), (disk_is_gone, "sda is no longer in")]
)
def test_a_counter_that_resets_or_goes_ends_the_session(
    tmp_path: Path, event: Callable[[World], None], words: str
) -> None:
    world = world_of(tmp_path, 0.0)
    real = world.count

    def count() -> None:
        if 200 <= world.seconds < 202:
            if event is counters_reset:
                event(world)
            real()
            if event is disk_is_gone:
                event(world)
        else:
            real()

    world.count = count  # type: ignore[method-assign]
    proof = world.prove(period_seconds=PERIOD)
    assert (proof.verdict, world.value) == ("invalid", BEFORE)
    assert words in proof.reasons[0]


def decline(_plan: LivePlan) -> None:
    raise RefusedError("cancelled; nothing was changed")


def test_a_server_is_asked_once_for_each_period(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PROBE_PAIRS", 1)
    world = world_of(tmp_path, 0.0)

    def answer(_asked: dict[str, str]) -> tuple[int, bytes]:
        value = 120 if world.value == AFTER else 100
        found = {
            "resultType": "vector",
            "result": [{"metric": {}, "value": [time.time(), str(value + len(server.asked) % 3)]}],
        }
        return 200, json.dumps({"status": "success", "data": found}).encode()

    server.answer = answer
    proof = world.prove(
        settings=Settings(seed=7, mode="quick"),
        period_seconds=10.0,
        metrics=(f"rate=prom:{server.url}:rate(requests_total[$span]):higher",),
    )
    assert (proof.verdict, world.value) == ("gain", BEFORE)
    assert proof.workloads[0].effect == pytest.approx(0.2, abs=0.03)
    # one before anything is changed, and one for each period that counts
    assert len(server.asked) == 1 + 16
    assert "after five pairs of periods at the earliest" in "\n".join(consent_lines(world.asked[0]))


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("command", "sleep 60", "s and was killed with all that it started"),
        ("command", "exit 7", "returned 7"),
        ("command", "echo gone", "'gone' is no number"),
        ("counter", "echo 5", "its counter was reset, or the service restarted"),
    ],
)
def test_a_service_that_dies_hangs_or_restarts_ends_the_session(
    tmp_path: Path, kind: str, text: str, words: str
) -> None:
    world = world_of(tmp_path, 0.0)
    # On a busy machine a shell alone takes a second.
    patience = 2.0 if "sleep" in text else 30.0
    count = tmp_path / "count"
    count.write_text("0")
    # It answers at first: only once something is switched does it fail.
    own = make_command(
        tmp_path,
        "figure",
        f"n=$(($(cat {count}) + 1)); echo $n > {count}; [ $n -gt 12 ] && {{ {text}; exit; }}; echo 1$n",
    )
    proof = world.prove(period_seconds=PERIOD, metrics=(f"p99={kind}:{own}:lower",), metric_timeout=patience)
    assert (proof.verdict, world.value) == ("invalid", BEFORE)
    assert words in proof.reasons[0]
    assert proof.session.restored


def test_a_signal_ends_it_with_the_values_from_before(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)

    def interrupt(at: float) -> None:
        if at >= 300 and world.value == AFTER:
            os.kill(os.getpid(), signal.SIGTERM)

    world.events.append(interrupt)
    with pytest.raises(InterruptedSessionError) as stopped:
        world.prove(period_seconds=PERIOD)
    assert world.value == BEFORE
    assert stopped.value.result.session.ended == "interrupted"
    assert "the host is as before" in stopped.value.message


@pytest.mark.parametrize("at", [2.0, 30.0, 170.0, 240.0])
def test_what_was_killed_is_restored_by_the_next_run(tmp_path: Path, at: float) -> None:
    world = world_of(tmp_path, 0.0)

    def die(now: float) -> None:
        if now >= at and world.value == AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    world.events.append(die)
    assert in_child(lambda: world.prove(period_seconds=PERIOD))
    assert world.value == AFTER
    world.events.clear()
    world.count()
    # The next session restores it before it begins; this one goes no further than the question.
    world.consent = decline
    with pytest.raises(RefusedError, match="cancelled"):
        world.prove()
    assert world.value == BEFORE


def test_an_unforeseen_fault_restores_the_host_too(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)

    def fail(at: float) -> None:
        if at > 100 and world.value == AFTER:
            raise ZeroDivisionError

    world.events.append(fail)
    with pytest.raises(ZeroDivisionError):
        world.prove(period_seconds=PERIOD)
    assert world.value == BEFORE


@pytest.mark.parametrize(("requests", "words"), [(0, "no figure above 0 in any second"), (100, "it was 10 in every")])
def test_a_figure_that_never_moves_ends_the_session(tmp_path: Path, requests: int, words: str) -> None:
    world = World(tmp_path, lambda _at, _is_changed: 0.0, requests=requests)
    proof = world.prove()
    assert (proof.verdict, proof.session.ended, world.value) == ("invalid", "fault", BEFORE)
    assert words in proof.reasons[0]
    assert world.seconds <= 200


def test_a_suspended_period_is_measured_again(tmp_path: Path) -> None:
    """The machine slept, or advisor was stopped: nothing was checked meanwhile."""
    world = world_of(tmp_path, -0.2)
    slept: list[float] = []

    def sleep_once(at: float) -> None:
        if at >= 250 and not slept:
            slept.append(at)
            world.seconds += 30
            world.reads += 10
            world.waited_ms += 100_000

    world.events.append(sleep_once)
    proof = world.prove(period_seconds=PERIOD)
    assert proof.verdict == "gain"
    (put_aside,) = [pair for pair in proof.session.pairs if pair.superseded]
    assert [run.lamps for run in put_aside.runs if run.lamps] == [("suspended",)]
    assert proof.workloads[0].effect == pytest.approx(math.expm1(0.2), abs=0.06)
    assert known(proof.session.live).harm < HARM_LEVEL


# -- before it starts --------------------------------------------------------------------------------------------------


def test_consent_says_what_is_switched_how_often_and_the_worst(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)

    def note_and_decline(plan: LivePlan) -> None:
        world.asked.append(plan)
        decline(plan)

    world.consent = note_and_decline
    with pytest.raises(RefusedError, match="cancelled"):
        world.prove(limits=("disk-wait > 30",))
    assert (world.value, world.store.read_records()) == (BEFORE, ())
    said = "\n".join(consent_lines(world.asked[0]))
    for words in (f"sysctl:{NAME}: {BEFORE} ↔ {AFTER}", "at most 68 times within 35 min 3 s", "disk-wait > 30"):
        assert words in said
    assert world.asked[0].changes[0].hurts_when in said


@pytest.mark.parametrize(
    ("words", "options", "message"), DATA["what_cannot_be_measured_is_refused_before_anything_is_changed"]
)
def test_what_cannot_be_measured_is_refused_before_anything_is_changed(
    tmp_path: Path, words: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    world = world_of(tmp_path, 0.0)
    for name, value in (("net/core/rmem_default", "212992"), ("vm/swappiness", "60")):
        path = world.root / "proc/sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    with pytest.raises(AdvisorError) as refused:
        world.prove(settings=None, words=words, **options)
    assert isinstance(refused.value, RefusedError | UsageError)
    assert message in refused.value.message
    assert (world.value, world.asked, world.store.read_records()) == (BEFORE, [], ())


def test_an_effect_that_takes_longer_than_a_period_ends_the_session(tmp_path: Path) -> None:
    """Values have been switched by then, so that it is no refusal."""
    world = world_of(tmp_path, -1.5, tau=40.0, noise=0.01)
    proof = world.prove(period_seconds=PERIOD)
    assert (proof.verdict, proof.session.ended, world.value) == ("invalid", "fault", BEFORE)
    assert "too long for periods of 12 s; --period " in proof.reasons[0]
    assert len(proof.session.live.probes if proof.session.live else ()) == PROBE_PAIRS
    assert "arm A is back, the host as it was" in " ".join(text_of(proof).split())


def test_a_budget_bounds_the_pairs(tmp_path: Path) -> None:
    world = world_of(tmp_path, 0.0)
    proof = world.prove(settings=Settings(seed=7, budget_seconds=190 + 80))
    assert proof.session.schedule.pairs == 1
    with pytest.raises(RefusedError, match="has no room for one pair"):
        world.prove(settings=Settings(budget_seconds=100))


@pytest.mark.parametrize("period", [40.0, 600.0])
def test_the_budget_that_a_refusal_names_is_accepted(tmp_path: Path, period: float) -> None:
    world = world_of(tmp_path, 0.0)
    options: dict[str, Any] = {"period_seconds": period}
    with pytest.raises(RefusedError, match="has no room for one pair") as refused:
        world.prove(settings=Settings(budget_seconds=100), **options)
    (text, _) = re.findall(r"--budget (\S+) has room", str(refused.value.hint))
    assert world.prove(settings=Settings(seed=7, budget_seconds=parse_budget(text)), **options).session.pairs
