"""How often the whole decision rule errs, in simulated sessions: coin, looks, test, interval, verdict."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from advisor.host import Host
from advisor.proof.covariates import Covariates, stand_out
from advisor.proof.records import Proof
from advisor.proof.session import prove
from advisor.proof.verdict import decide_session, is_settled, judge_claims
from benchmarks.validation_hostile import HOSTILE, Hostile, pressed
from benchmarks.validation_replay import Measured, Replay, block, is_invented, runs_needed
from benchmarks.validation_series import SHIPPED, load_series
from tests.known import known

from .fakes import FakeFio, SpeedToggle
from .sessions import DRIFTS, WORKLOAD, Drift, pair, session, simulated_runs
from .test_protocol import SUBJECT, settings, stealing

SESSIONS = 400


def conclude(source: random.Random, drift: Drift, factor: float = 1.0) -> Proof:
    """A default session as it is conducted: looks at 8, 16 and 24 pairs, ended early once settled."""
    whole = session(simulated_runs(source, drift, 24, factor))
    for look in whole.schedule.looks[:-1]:
        early = msgspec.structs.replace(whole, pairs=whole.pairs[:look])
        if is_settled(early):
            return decide_session(early)
    return decide_session(whole)


def decided_after(source: random.Random, drift: Drift, factor: float) -> int:
    """Pairs at the look at which the claim itself is decided."""
    whole = session(simulated_runs(source, drift, 24, factor))
    for look in whole.schedule.looks:
        if judge_claims(msgspec.structs.replace(whole, pairs=whole.pairs[:look]))[0].verdict in ("gain", "loss"):
            return look
    return 24


@pytest.mark.repeats(2)
@pytest.mark.parametrize("name", DRIFTS)
def test_an_effect_is_rarely_invented(name: str) -> None:
    """Nothing changed: gains and losses together stay near 5 % whatever the load does meanwhile."""
    source = random.Random(f"null {name}")
    verdicts = [conclude(source, DRIFTS[name]).tendency for _ in range(SESSIONS)]
    wrong = sum(verdict in ("gain", "loss", "gain-with-cost") for verdict in verdicts)
    # 1 to 7 %; a true 5 % shows 8 % or more in one of three hundred simulations of this size
    assert 0.01 <= wrong / SESSIONS <= 0.08


@pytest.mark.repeats(1)
@pytest.mark.parametrize("name", ["step", "calm", "linear"])
def test_a_twenty_percent_gain_is_found_early(name: str) -> None:
    source = random.Random(f"gain {name}")
    proofs = [conclude(source, DRIFTS[name], 1.2) for _ in range(60)]
    assert sum(proof.tendency in ("gain", "gain-with-cost") for proof in proofs) / 60 >= 0.93
    # the claim is decided early; what takes longer is to show that it costs nothing
    assert sum(decided_after(random.Random(f"gain {name} {n}"), DRIFTS[name], 1.2) for n in range(60)) / 60 <= 13
    assert sum(proof.workloads[0].pairs for proof in proofs) / 60 <= 23
    assert not any(proof.tendency == "loss" for proof in proofs)


def test_losses_and_equal_arms_are_found_mostly() -> None:
    source = random.Random("loss")
    proofs = [conclude(source, DRIFTS["calm"], 1 / 1.1) for _ in range(60)]
    assert sum(proof.tendency == "loss" for proof in proofs) / 60 >= 0.8
    source = random.Random("equal")
    proofs = [conclude(source, DRIFTS["calm"]) for _ in range(60)]
    assert sum(proof.verdict == "no-difference" for proof in proofs) / 60 >= 0.7


def test_a_difference_of_the_margin_is_rarely_called_none() -> None:
    """TOST keeps its own 5 %: an effect as large as the margin must not pass for nothing."""
    source = random.Random("margin")
    proofs = [conclude(source, DRIFTS["calm"], 1.1) for _ in range(150)]
    assert sum(proof.verdict == "no-difference" for proof in proofs) / 150 <= 0.08


def test_the_interval_of_a_gain_covers_the_true_factor() -> None:
    source = random.Random("cover")
    covered = 0
    for _ in range(150):
        found = decide_session(session(simulated_runs(source, DRIFTS["linear"], 24, 1.1))).workloads[0]
        covered += known(found.ci95)[0] <= 1.1 <= known(found.ci95)[1]
    assert covered / 150 >= 0.90


HOSTILE_SESSIONS = 70


@pytest.mark.repeats(2)
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_a_hostile_series_invents_no_more_than_a_calm_one(hostile: Hostile) -> None:
    source = random.Random(hostile.name)
    wrong = 0
    for _ in range(HOSTILE_SESSIONS):
        streams = hostile.make(source, runs_needed(hostile.mode, repeats=True))
        proof = Replay(streams, hostile.mode, source.getrandbits(32), repeats=hostile.repeats).conclude()
        wrong += is_invented(proof)
    # a true 5 % shows more than 13 % in one of three hundred simulations of this size
    assert wrong / HOSTILE_SESSIONS <= 0.13


def test_pressure_half_of_the_time_makes_few_sessions_invalid() -> None:
    """Whichever run was hit, a pair is judged by both: where others are always at work, that is the usual state."""
    source = random.Random("pressed")
    verdicts = []
    for _ in range(30):
        streams = pressed(0.5)(source, runs_needed("default", repeats=True))
        verdicts.append(Replay(streams, "default", source.getrandbits(32), repeats=True).conclude().verdict)
    assert verdicts.count("invalid") <= 3


def repeated_session(kept: float, superseded: float) -> Proof:
    """16 pairs that count, and 8 that were contaminated and repeated, each group with its own factor."""
    source = random.Random("repeated")
    factors = [kept] * 16 + [superseded] * 8
    pairs = []
    for index, factor in enumerate(factors):
        found = pair(index, 1000, 1000 * factor * source.uniform(0.98, 1.02), order="AB" if index % 2 else "BA")
        pairs.append(msgspec.structs.replace(found, contaminated=index >= 16, superseded=index >= 16))
    return decide_session(session(pairs))


def test_a_gain_must_stand_with_the_repeated_pairs_counted_too() -> None:
    """Which pairs are repeated may depend on the arm; what only that choice has made is no effect."""
    assert repeated_session(1.1, 1.1).verdict == "gain"
    proof = repeated_session(1.1, 0.5)
    assert proof.verdict == "inconclusive"
    assert any("the repeated ones included" in note for note in proof.notes)
    assert proof.workloads[0].pairs == 16


@pytest.mark.thorough
def test_recorded_runs_invent_no_more_than_made_up_ones() -> None:
    """Real runs of a busy host, with each drift on top; contaminated pairs are repeated."""
    recording = load_series(SHIPPED / "a-a.json")
    source = random.Random("recorded")
    wrong = []
    for series in recording.series:
        for drift in DRIFTS.values():
            for _ in range(20):
                runs = block(source, series, recording.seconds, runs_needed("default", repeats=True), drift)
                replay = Replay({series.workload: runs}, "default", source.getrandbits(32), repeats=True)
                wrong.append(is_invented(replay.conclude()))
    assert 0.01 <= sum(wrong) / len(wrong) <= 0.08


def replayed(proof: Proof) -> Proof:
    """A conducted session's runs once more through the replay, with the same seed."""
    found = proof.session
    taken = [*found.warm_up, *(run for each in found.pairs for run in each.runs)]
    streams = {WORKLOAD: [Measured(run.figures, run.covariates) for run in taken]}
    warm_up_runs = len(found.warm_up) // 2
    return Replay(streams, found.schedule.mode, found.seed, repeats=True, warm_up_runs=warm_up_runs).conclude()


def test_the_replay_is_what_a_session_does(fake_fio: FakeFio, host: Host, disk: Path, tmp_path: Path) -> None:
    """Coin, looks, repeats and verdict: otherwise the rates above say nothing about a real session."""
    stolen, toggle = stealing(fake_fio, tmp_path, {7, 9})
    spoiled = prove(stolen, SUBJECT, toggle, settings(disk), runner=fake_fio.runner)
    fake_fio.plan(noise=0.02)
    early = prove(host, SUBJECT, SpeedToggle(fake_fio, 1.3), settings(disk, mode="default"), runner=fake_fio.runner)
    for conducted in (spoiled, early):
        again = replayed(conducted)
        assert again.order == conducted.order
        assert again.workloads == conducted.workloads
        assert (again.tendency, again.carry_over_p) == (conducted.tendency, conducted.carry_over_p)
        assert [each.superseded for each in again.session.pairs] == [
            each.superseded for each in conducted.session.pairs
        ]
    assert any(each.superseded for each in spoiled.session.pairs)
    assert early.session.ended == "settled"


def test_a_pair_stands_out_whichever_arm_was_hit() -> None:
    calm, hit = Covariates(1.0, psi_cpu_share=0.1), Covariates(1.0, psi_cpu_share=0.5)
    assert stand_out([(calm, calm), (hit, calm), (calm, calm), (calm, hit), (calm, calm)]) == [0, 1, 0, 1, 0]
    # where half of the runs are hit, one hit in a pair is nothing special
    assert stand_out([(hit, calm), (calm, hit), (hit, calm), (hit, hit)]) == [False, False, False, True]
    assert stand_out([(Covariates(1.0), calm), (calm, calm)]) == [False, False]
