"""What a sceptic tries: truths that are known beforehand, made up so that a naive rule would call a gain."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec
import pytest
from scipy import stats

from advisor.cli.measuring import exit_code
from advisor.proof.blocks import conclude_session
from advisor.proof.records import NONE, Claim, FioRun, Hold, Pair, Proof, Session
from advisor.proof.statistics import hodges_lehmann, level_ties, sign_test, signed_rank, step_down
from advisor.proof.verdict import decide_session, is_settled
from advisor.report.proof.result import proof_text
from advisor.report.proof.words import verdict_words, write_headlines
from tests.known import known

from .sessions import WORKLOAD, figures, pair, run, session
from .test_arms import empty
from .test_verdict import OTHER, noisy_pairs

replace = msgspec.structs.replace
NULL = "null.4k"


def with_control(
    pairs: list[Pair], factor: float, *, every: int = 1, noise: float = 0.005, seed: int = 5
) -> list[Pair]:
    source = random.Random(seed)
    found = []
    for one in pairs:
        runs = tuple(
            run(arm, 1e6 * (factor if arm == "B" else 1.0) * math.exp(source.gauss(0, noise)), NULL)
            for arm in ("A", "B")
        )
        found.append(replace(one, control_runs=runs if one.index % every == every - 1 else ()))
    return found


def conducted(make: Callable[[int], list[Pair]], **changes: object) -> Proof:
    """The proof at the look at which the session would end."""
    whole = session(make(24), control=changes.pop("control", None))  # type: ignore[arg-type]
    for look in whole.schedule.looks[:-1]:
        early = replace(whole, pairs=whole.pairs[:look])
        if is_settled(early):
            return decide_session(replace(early, ended="settled"))
    return decide_session(whole)


def text(proof: Proof) -> str:
    return " ".join(proof_text(proof, width=200, color=False).split())


# -- 1: the control ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("count", [8, 16, 24])
def test_a_control_that_moves_with_the_claim_never_leaves_a_gain(count: int, every: int) -> None:
    pairs = with_control(noisy_pairs(1.25, count), 1.25, every=every)
    proof = decide_session(session(pairs, control=NULL))
    assert proof.verdict in ("invalid", "indicative")
    assert not proof.is_gain


def test_a_session_does_not_end_before_the_control_can_be_judged() -> None:
    early = session(with_control(noisy_pairs(1.25, 8), 1.0, every=4), control=NULL)
    assert not is_settled(early)
    assert is_settled(session(with_control(noisy_pairs(1.25, 8), 1.0), control=NULL))


def test_gains_and_losses_must_exceed_what_the_control_shows() -> None:
    """The control surely moved, by less than half the margin: a claim of that size is no effect of the change."""
    small = with_control(noisy_pairs(1.035, noise=0.01), 1.035, noise=0.002)
    proof = decide_session(session(small, control=NULL))
    assert proof.verdict == "indicative"
    assert "not shown to be larger than what the negative control shows" in proof.reasons[0]
    large = with_control(noisy_pairs(1.3, noise=0.01), 1.035, noise=0.002)
    assert decide_session(session(large, control=NULL)).verdict == "gain"
    proof = decide_session(
        session(with_control(noisy_pairs(1 / 1.035, noise=0.01), 1 / 1.035, noise=0.002), control=NULL)
    )
    assert proof.verdict == "indicative"
    assert "the loss is not shown" in proof.reasons[0]
    alone = with_control(noisy_pairs(1 / 1.2, noise=0.01), 1.0, noise=0.002)
    assert decide_session(session(alone, control=NULL)).verdict == "loss"


# -- 2 and 5: costs ----------------------------------------------------------------------------------------------------


def scattered(p99: float, scatter: float, factor: float, seed: int) -> Callable[[int], list[Pair]]:
    def make(count: int) -> list[Pair]:
        source = random.Random(seed)
        return [
            pair(
                index,
                figures(1000 * math.exp(source.gauss(0, 0.04)), p99_us=500 * math.exp(source.gauss(0, scatter))),
                figures(
                    1000 * factor * math.exp(source.gauss(0, 0.04)),
                    p99_us=500 * p99 * math.exp(source.gauss(0, scatter)),
                ),
                order="AB" if source.getrandbits(1) else "BA",
            )
            for index in range(count)
        ]

    return make


@pytest.mark.parametrize("seed", range(4))
def test_a_tail_that_triples_is_a_cost_however_early_the_session_ends(seed: int) -> None:
    proof = conducted(scattered(3.0, 0.1, 1.25, seed))
    assert (proof.verdict, proof.cost) == ("gain-with-cost", "shown")


def test_a_guardrail_at_its_limit_is_rarely_called_kept() -> None:
    """The error that matters: no cost is said where the worsening is just the limit. One-sided 5 % over all looks."""
    kept = sum(conducted(scattered(1.1, 0.05, 1.25, seed)).cost == "none" for seed in range(300))
    assert kept / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_an_undecided_cost_stands_in_the_line_of_the_verdict_and_nothing_is_kept() -> None:
    found = [conducted(scattered(1.05, 0.3, 1.25, seed)) for seed in range(10)]
    proof = next(one for one in found if one.cost == "undecided")
    assert proof.verdict == "gain"
    assert not proof.is_gain
    assert exit_code(proof) == 1
    assert verdict_words(proof)[0] == "gain, cost undecided"
    assert any("not shown to stay within its limit" in line and "p99" in line for line in write_headlines(proof))


@pytest.mark.parametrize("factor", [1.0, 0.8])
def test_a_broken_guardrail_is_in_the_headline_whatever_the_claims_say(factor: float) -> None:
    proof = decide_session(session(noisy_pairs(factor, p99=2.0)))
    assert proof.verdict in ("no-difference", "loss")
    assert proof.cost == "shown"
    assert "at the cost of" in write_headlines(proof)[0]
    assert "p99" in write_headlines(proof)[0]
    assert "at the cost of" in text(proof)


# -- 3: harm that is put aside -----------------------------------------------------------------------------------------


def put_aside(on_a: int, on_b: int, tail: float = 1.0) -> Session:
    pairs = noisy_pairs(1.2, 24)
    for arm, count in (("A", on_a), ("B", on_b)):
        for _ in range(count):
            one = pair(
                len(pairs),
                figures(300 if arm == "A" else 1000, p99_us=500 * (tail if arm == "A" else 1)),
                figures(300 if arm == "B" else 1200, p99_us=500 * (tail if arm == "B" else 1)),
            )
            runs = tuple(replace(each, lamps=("cpu-pressure",) if each.arm == arm else ()) for each in one.runs)
            pairs.append(replace(one, runs=runs, contaminated=True, superseded=True))
    return replace(session(pairs), judged_by="pair")


def test_contamination_of_one_arm_alone_counts_against_its_gain() -> None:
    proof = decide_session(put_aside(0, 11))
    assert not proof.is_gain
    assert any("arm B alone in 11 pairs" in note for note in proof.notes)


@pytest.mark.parametrize(("on_a", "on_b"), [(5, 6), (0, 2), (4, 6), (0, 0)])
def test_contamination_of_both_or_of_few_is_none(on_a: int, on_b: int) -> None:
    assert decide_session(put_aside(on_a, on_b)).verdict == "gain"


@pytest.mark.parametrize(
    ("on_a", "on_b", "tail", "said"), [(0, 1, 10.0, "latency_p99 of"), (2, 3, 10.0, "latency_p99 of"), (3, 1, 10.0, "")]
)
def test_a_gain_must_survive_the_worst_case(on_a: int, on_b: int, tail: float, said: str) -> None:
    """What was put aside fell on arm B more often, by no more than chance may do."""
    proof = decide_session(put_aside(on_a, on_b, tail))
    assert (proof.verdict, proof.is_gain) == (("indicative", False) if said else ("gain", True))
    if said:
        assert "those that were put aside included" in proof.reasons[0]
        assert said in proof.reasons[0]
        assert "if the change caused it" in text(proof)


def test_a_session_goes_on_while_contamination_leans_to_arm_b() -> None:
    calm = noisy_pairs(1.25, 8)
    one = pair(8, 1000, 1250)
    hit = replace(
        one,
        runs=tuple(replace(each, lamps=("cpu-pressure",) * (each.arm == "B")) for each in one.runs),
        contaminated=True,
        superseded=True,
    )
    assert is_settled(session(calm))
    assert not is_settled(replace(session([*calm, hit]), judged_by="pair"))


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 7), (3, 9), (10, 10), (19, 0)])
def test_the_sign_test_is_the_binomial_one(first: int, second: int) -> None:
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert sign_test(first, second) == pytest.approx(float(expected))


# -- 4: below the margin -----------------------------------------------------------------------------------------------


def test_a_sure_gain_that_is_smaller_than_asked_for_says_so_and_is_not_kept() -> None:
    proof = decide_session(session(noisy_pairs(1.03, noise=0.005)))
    assert proof.tendency == "gain"
    assert proof.below_margin
    assert not proof.is_gain
    assert exit_code(proof) == 1
    assert verdict_words(proof)[0] == "gain, below the margin"
    assert any("smaller than the margin of 10 % that was asked for" in line for line in write_headlines(proof))
    asked = decide_session(session(noisy_pairs(1.03, noise=0.005), Claim(WORKLOAD, margin=0.02)))
    assert asked.is_gain
    assert exit_code(asked) == 0
    assert not asked.below_margin


# -- 6: one level for interval and verdict -----------------------------------------------------------------------------


def test_the_interval_and_the_verdict_come_from_one_level() -> None:
    source = random.Random("levels")
    for _ in range(200):
        factor = math.exp(source.choice((0, 0.02, 0.04, 0.06)))
        pairs = noisy_pairs(factor, source.choice((8, 16, 24)), noise=0.06, seed=source.getrandbits(30))
        claim = decide_session(session(pairs)).workloads[0]
        excludes = known(claim.ci95)[0] > 1 or known(claim.ci95)[1] < 1
        assert excludes == (claim.verdict in ("gain", "loss")), claim


@pytest.mark.repeats(1)
@pytest.mark.parametrize("factor", [1.06, 1.0])
def test_the_interval_pays_for_every_look(factor: float) -> None:
    """Coverage of sessions that may end early, nominal 95 %."""
    covered = 0
    for seed in range(400):
        ratio = known(conducted(scattered(1.0, 0.02, factor, seed)).workloads[0].ci95)
        covered += ratio[0] <= factor <= ratio[1]
    assert covered / 400 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)


@pytest.mark.parametrize("seed", range(40))
def test_the_level_of_each_step_decides_as_holm_does(seed: int) -> None:
    source = random.Random(seed)
    p_values = [source.random() ** source.choice((1, 4)) for _ in range(source.randint(1, 9))]
    for tested, p_value in zip(step_down(p_values, 0.05), p_values, strict=True):
        assert tested.is_significant == (tested.p_holm <= 0.05) == (p_value <= tested.level)


def test_two_claims_share_one_level_in_their_intervals() -> None:
    pairs = noisy_pairs(1.04, 16, noise=0.03)
    both = [replace(one, runs=(*one.runs, *(replace(each, workload=OTHER) for each in one.runs))) for one in pairs]
    alone = decide_session(session(pairs)).workloads[0]
    two = decide_session(session(both, Claim(WORKLOAD), Claim(OTHER))).workloads
    assert all(one.ci95 is not None for one in two)
    widths = [math.log(one.ci95[1] / one.ci95[0]) for one in two if one.ci95]
    assert max(widths) > math.log(known(alone.ci95)[1] / known(alone.ci95)[0])


# -- 7: ties -----------------------------------------------------------------------------------------------------------


def test_ties_are_differences_in_the_last_bit_and_no_others() -> None:
    one, other = math.log(1300.7 / 1000.0), math.log(1000.0 / 1300.7)
    values = [one, other, math.nextafter(one, 1.0), math.nextafter(other, 0.0), one * (1 + 1e-15)]
    assert len({abs(value) for value in level_ties(values)}) == 1
    assert [math.copysign(1, value) for value in level_ties(values)] == [math.copysign(1, value) for value in values]
    clean = [math.copysign(one, value) for value in values]
    assert signed_rank(values).p_value == signed_rank(clean).p_value
    assert hodges_lehmann(values, 0.9) == hodges_lehmann(level_ties(values), 0.9)
    values = [0.1, -0.1001, 1e-9, -1e-6, 0.0, 3.5]
    assert level_ties(values) == values
    assert level_ties([]) == []


# -- 10: effects that come late ----------------------------------------------------------------------------------------


def held(late: float, *, arm_a: float = 1.0, noise: float = 0.03, seed: int = 1, count: int = 9) -> Session:
    """A session that shows nothing, whose held arms move to ``late`` (B) and ``arm_a`` (A) in their second half."""
    source = random.Random(seed)
    holds = []
    for arm, end in (("A", arm_a), ("B", late)):
        speeds = [
            1000 * (end if number >= count // 2 else 1.0) * math.exp(source.gauss(0, noise)) for number in range(count)
        ]
        runs: list[FioRun] = [run("A" if arm == "A" else "B", speed) for speed in speeds]
        holds.append(Hold("A" if arm == "A" else "B", tuple(runs)))
    return replace(session(noisy_pairs(1.0)), wants_hold=True, holds=tuple(holds))


@pytest.mark.parametrize("late", [1.5, 0.6])
def test_an_effect_that_comes_late_is_not_called_no_difference(late: float) -> None:
    proof = decide_session(held(late))
    assert proof.verdict == "inconclusive"
    assert any("the effect comes later" in note and "settle time" in note for note in proof.notes)


def test_a_host_that_drifts_in_both_arms_is_no_late_effect() -> None:
    assert decide_session(held(1.4, arm_a=1.4)).verdict == "no-difference"
    assert sum(decide_session(held(1.0, seed=seed)).verdict == "no-difference" for seed in range(60)) >= 57


@pytest.mark.parametrize(
    ("switched", "late", "verdict"),
    [(1.2, 1.2, "gain"), (1.2, 0.8, "inconclusive"), (0.8, 1.5, "inconclusive"), (0.8, 0.8, "loss")],
)
def test_a_difference_is_called_only_in_the_direction_of_the_held_arms(
    switched: float, late: float, verdict: str
) -> None:
    """An effect that comes a turn late counts for the other arm."""
    found = replace(held(late), pairs=tuple(noisy_pairs(switched)), holds_all=True)
    proof = decide_session(found)
    assert proof.verdict == verdict
    assert bool(proof.reasons) == (verdict == "inconclusive")
    steady = tuple(replace(one, runs=one.runs[-3:] * 2) for one in found.holds)
    if verdict in ("gain", "loss"):
        assert not any("comes later" in note for note in decide_session(replace(found, holds=steady)).notes)
    for holds in ((), (replace(found.holds[0], runs=()), found.holds[1])):
        unheld = decide_session(replace(found, holds=holds))
        assert (unheld.verdict, len(unheld.reasons)) == ("inconclusive", 1)
    old = decide_session(replace(found, holds=(), holds_all=False, wants_hold=False))
    assert old.verdict == ("gain" if switched > 1 else "loss"), "a record from before the rule"


def test_without_a_hold_no_difference_is_not_called_where_one_was_wanted() -> None:
    """The byte budget may end a hold before its first run, or soon after."""
    whole = held(1.0)
    assert decide_session(whole).verdict == "no-difference"
    cut = [tuple(replace(one, runs=one.runs[:count]) for one in whole.holds) for count in (0, 2)]
    for holds in ((), *cut):
        proof = decide_session(replace(whole, holds=holds))
        assert proof.verdict == "inconclusive"
        assert any("no room to hold each arm" in note for note in proof.notes)
    old = replace(held(1.0), holds=(), wants_hold=False)
    assert decide_session(old).verdict == "no-difference", "a record from before the rule"


# -- several arms ------------------------------------------------------------------------------------------------------


def of_arms(
    factor: float,
    *,
    p99: float = 1.0,
    control: float = 1.0,
    noise: float = 0.01,
    stalled: int = 0,
    blocks: int = 14,
    seed: int = 0,
) -> Session:
    """Blocks of none and one arm, numbers only; in the first ``stalled`` of them the arm stalls and is put aside."""
    source = random.Random(f"{factor} {p99} {control} {seed}")
    found = []
    for index in range(blocks + stalled):
        is_stalled = index < stalled
        runs, controls = list[FioRun](), list[FioRun]()
        for arm, speed, tail in ((NONE, 1.0, 1.0), ("fast", factor, p99)):
            slow = is_stalled and arm != NONE
            made = figures(
                1000 * speed * math.exp(source.gauss(0, 0.01)) * (0.3 if slow else 1),
                p99_us=500 * tail * (10 if slow else 1),
            )
            runs.append(replace(run(arm, made), lamps=("cpu-pressure",) if slow else ()))
            still = 1e6 * (1 if arm == NONE else control) * math.exp(source.gauss(0, noise))
            controls.append(run(arm, still, NULL))
        found.append(Pair(index, 0, "", tuple(runs), tuple(controls), contaminated=is_stalled, superseded=is_stalled))
    return replace(empty(arms=(NONE, "fast"), blocks=blocks), pairs=tuple(found))


def test_an_arm_that_gains_at_no_cost_and_one_that_only_costs() -> None:
    proof = conclude_session(of_arms(1.25))
    assert (proof.verdict, proof.is_gain, proof.best[WORKLOAD]) == ("gain", True, "fast")
    assert "gain with" not in proof_text(proof, width=100, color=False)
    proof = conclude_session(of_arms(1.0, p99=2.0, blocks=18))
    assert proof.workloads[0].cost == "shown"
    assert "with a cost (p99 latency +100 %)" in " ".join(proof_text(proof, width=100, color=False).split())


@pytest.mark.parametrize(
    ("session_of_arms", "words"),
    [
        (of_arms(1.25, p99=3.0), "gain with a cost (p99 latency +200 %)"),
        (of_arms(1.04), "gain, below the margin"),
        (of_arms(1.25, control=1.25), "the negative control null.4k moved"),
        (of_arms(1.25, stalled=7), "contamination fell on fast alone in 7 pairs"),
        (of_arms(1.25, stalled=5), "a gain must be there with them"),
    ],
)
def test_an_arm_is_no_plain_gain_where_a_sceptic_would_doubt_it(session_of_arms: Session, words: str) -> None:
    proof = conclude_session(session_of_arms)
    assert not proof.is_gain
    assert words in " ".join(proof_text(proof, width=100, color=False).split())
