"""From pairs to a verdict: each row of the table, and what a proof says besides."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from advisor.errors import InvalidInputError, UsageError
from advisor.proof.metrics import METRICS, RunFigures
from advisor.proof.records import Claim, FioRun, Guardrail, Pair, Proof, ProofSubject, claims_for, resolve_subject
from advisor.proof.schedule import MODES
from advisor.proof.verdict import carry_over, decide_session, is_settled, make_sample
from advisor.proof.workloads import UnknownWorkloadError
from tests.known import known

from .sessions import WORKLOAD, figures, pair, run, session

OTHER = "infoscale.4k-rand-w100"
replace = msgspec.structs.replace


def noisy_pairs(
    factor: float, count: int = 24, *, noise: float = 0.04, seed: int = 1, p99: float = 1.0, cpu: float = 1.0
) -> list[Pair]:
    """Pairs whose arm B has that factor; ``p99`` and ``cpu`` are those of arm B relative to A."""
    source = random.Random(seed)
    pairs = []
    for index in range(count):
        before = figures(1000 * math.exp(source.gauss(0, noise)), p99_us=500 * math.exp(source.gauss(0, noise)))
        after = figures(
            1000 * factor * math.exp(source.gauss(0, noise)),
            p99_us=500 * p99 * math.exp(source.gauss(0, noise)),
            cpu_us=20 * cpu * math.exp(source.gauss(0, noise)),
        )
        pairs.append(pair(index, before, after, order="AB" if source.getrandbits(1) else "BA"))
    return pairs


def test_gain() -> None:
    proof = decide_session(session(noisy_pairs(1.2, seed=2)))
    found = proof.workloads[0]
    assert proof.verdict == "gain"
    assert proof.is_gain
    assert found.ratio == pytest.approx(1.2, rel=0.04)
    assert 1 < known(found.ci95)[0] < 1.2 < known(found.ci95)[1]
    assert known(found.p_value) < 0.001
    assert found.pairs == 24


def test_no_difference_and_inconclusive() -> None:
    assert decide_session(session(noisy_pairs(1.0))).verdict == "no-difference"
    assert decide_session(session(noisy_pairs(1.0, 16))).verdict == "no-difference"
    assert decide_session(session(noisy_pairs(1.0, 15))).verdict == "inconclusive"
    proof = decide_session(session(noisy_pairs(1.02, noise=0.25, seed=4)))
    found = proof.workloads[0]
    assert proof.verdict == "inconclusive"
    assert 0.1 < known(found.minimum_detectable_effect) < 0.6
    assert known(found.needed_pairs) > 24


def test_latency_falls_for_a_gain() -> None:
    """A lower median latency is better: ratio below 1, effect above 0."""
    proof = decide_session(session(noisy_pairs(1.25), Claim(WORKLOAD, "latency_p50")))
    found = proof.workloads[0]
    assert proof.verdict == "gain"
    assert (found.metric, found.unit, found.better) == ("latency_p50", "us", "lower")
    assert found.ratio == pytest.approx(0.8, rel=0.04)
    assert known(found.ci95)[0] < known(found.ratio) < known(found.ci95)[1] < 1
    assert found.effect == pytest.approx(0.25, rel=0.2)
    assert known(found.after) < known(found.before)


@pytest.mark.parametrize(("p99", "cpu", "metric"), [(1.4, 1.0, "latency_p99"), (1.0, 1.3, "cpu_per_io")])
def test_a_gain_that_costs(p99: float, cpu: float, metric: str) -> None:
    proof = decide_session(session(noisy_pairs(1.2, p99=p99, cpu=cpu)))
    assert proof.verdict == "gain-with-cost"
    assert not proof.is_gain
    cost = next(item for item in proof.guardrails if item.verdict == "loss")
    assert cost.metric == metric
    assert any(cost.metric in note and "+" in note for note in proof.notes)


def test_a_cost_within_its_limit_is_none() -> None:
    assert decide_session(session(noisy_pairs(1.2, p99=1.07))).verdict == "gain"


def test_a_cost_that_is_only_noise_is_none() -> None:
    source = random.Random(7)
    pairs = [
        pair(index, figures(1000), figures(1200 + index, p99_us=500 * math.exp(source.gauss(0.2, 0.9))))
        for index in range(24)
    ]
    proof = decide_session(session(pairs))
    tail = next(item for item in proof.guardrails if item.metric == "latency_p99")
    assert known(tail.ratio) > 1.1
    assert known(tail.p_value) > 0.05
    assert proof.verdict == "gain"


def test_a_cost_is_not_shown_by_a_p_above_the_level() -> None:
    """Five of six pairs are worse, by far: p = 0.0625."""
    tails = (0.99, 1.3, 1.9, 2.0, 2.2, 3.0)
    pairs = [pair(index, figures(1000), figures(1000, p99_us=500 * tail)) for index, tail in enumerate(tails)]
    proof = decide_session(session(pairs, mode="quick"))
    tail = next(item for item in proof.guardrails if item.metric == "latency_p99")
    assert tail.p_value == pytest.approx(0.0625)
    assert known(tail.ratio) > 1.5
    assert proof.alpha == pytest.approx(0.05)
    assert (tail.status, tail.verdict, proof.cost) == ("undecided", None, "undecided")


def with_second(pairs: list[Pair], factor: float) -> list[Pair]:
    """The same pairs with a second workload of that factor."""
    source = random.Random(9)
    found = []
    for item in pairs:
        more = tuple(
            run(arm, 500 * math.exp(source.gauss(0, 0.04)) * (factor if arm == "B" else 1.0), OTHER)
            for arm in ("A", "B")
        )
        found.append(replace(item, runs=(*item.runs, *more)))
    return found


def test_several_claims_share_one_error_rate() -> None:
    pairs = noisy_pairs(1.055, 24, noise=0.09, seed=3)
    alone = decide_session(session(pairs))
    together = decide_session(session(with_second(pairs, 1.0), Claim(WORKLOAD), Claim(OTHER)))
    first = together.workloads[0]
    assert first.p_value == alone.workloads[0].p_value
    assert first.p_holm == pytest.approx(2 * (first.p_value or 0))
    assert (alone.workloads[0].verdict, first.verdict) == ("gain", "no-difference")


@pytest.mark.parametrize(
    ("factor", "second", "verdict"), [(0.7, "loss", "gain-with-cost"), (1.0, "no-difference", "gain")]
)
def test_a_gain_beside_another_claim(factor: float, second: str, verdict: str) -> None:
    proof = decide_session(session(with_second(noisy_pairs(1.3), factor), Claim(WORKLOAD), Claim(OTHER)))
    assert [item.verdict for item in proof.workloads] == ["gain", second]
    assert proof.verdict == verdict


def controlled(pairs: list[Pair], factor: float) -> list[Pair]:
    source = random.Random(2)
    return [
        replace(
            item,
            control_runs=(
                run("A", 1e6, "null.4k"),
                run("B", 1e6 * factor * math.exp(source.gauss(0, 0.01)), "null.4k"),
            ),
        )
        if item.index % 4 == 3
        else item
        for item in pairs
    ]


def test_a_control_that_moves_and_one_of_few_pairs() -> None:
    moved = decide_session(session(controlled(noisy_pairs(1.2), 1.15), control="null.4k"))
    assert moved.verdict == "invalid"
    assert moved.tendency == "gain"
    assert "null.4k" in moved.reasons[0]
    still = decide_session(session(controlled(noisy_pairs(1.2), 1.0), control="null.4k"))
    assert still.verdict == "gain"
    assert known(still.control).pairs == 6
    proof = decide_session(session(controlled(noisy_pairs(1.2, 8), 1.5), control="null.4k"))
    assert proof.verdict == "indicative"
    assert proof.reasons == ("control not judged (2 of 6 pairs): a gain does not count yet",)
    assert not proof.is_gain
    assert any("control has 2 pairs" in note for note in proof.notes)


def test_pairs_that_were_contaminated() -> None:
    pairs = noisy_pairs(1.2)
    half = [replace(item, contaminated=item.index < 12) for item in pairs]
    more = [replace(item, contaminated=item.index < 13) for item in pairs]
    assert decide_session(session(half)).verdict == "gain"
    proof = decide_session(session(more))
    assert proof.verdict == "gain"
    assert any("13 contaminated pairs are included" in note for note in proof.notes)
    pairs = noisy_pairs(1.2, 8)
    spoiled = pair(8, 1000, 10, contaminated=True)
    assert decide_session(session([*pairs, spoiled])).workloads[0].pairs == 9
    assert decide_session(session([*pairs, replace(spoiled, superseded=True)])).workloads[0].pairs == 8
    assert decide_session(session([*pairs, replace(spoiled, whole=False)])).workloads[0].pairs == 8


@pytest.mark.parametrize(
    ("changes", "word"), [({"toggle_class": "T3"}, "reboot"), ({"ended": "interrupted"}, "interrupted")]
)
def test_what_caps_a_verdict_at_indicative(changes: dict[str, object], word: str) -> None:
    proof = decide_session(replace(session(noisy_pairs(1.2)), **changes))
    assert (proof.verdict, proof.tendency) == ("indicative", "gain")
    assert word in proof.reasons[0]


def test_few_pairs_are_indicative_and_none_have_no_figures() -> None:
    assert decide_session(session(noisy_pairs(2.0, 5))).verdict == "indicative"
    assert decide_session(session(noisy_pairs(2.0, 8))).verdict == "gain"
    proof = decide_session(session([]))
    assert proof.verdict == "indicative"
    assert proof.workloads[0].ratio is None
    assert proof.workloads[0].pairs == 0
    assert msgspec.json.decode(msgspec.json.encode(proof), type=Proof) == proof


def test_an_order_effect_is_indicative() -> None:
    source = random.Random(5)
    pairs = []
    for index in range(24):
        order = "AB" if index % 2 else "BA"
        # whatever runs second is slower: B second loses, B first wins
        factor = 1.2 * (0.9 if order == "AB" else 1.1) * math.exp(source.gauss(0, 0.02))
        pairs.append(pair(index, 1000, 1000 * factor, order=order))
    proof = decide_session(session(pairs))
    assert proof.verdict == "indicative"
    assert "carries over" in proof.reasons[0]


def test_order_does_not_matter_for_plain_noise() -> None:
    source = random.Random(6)
    flagged = sum((carry_over(session(noisy_pairs(1.1, seed=source.randrange(10**6)))) or 1) < 0.01 for _ in range(200))
    assert flagged <= 8


def test_invalid_wins_over_indicative() -> None:
    proof = decide_session(
        replace(session(noisy_pairs(1.2)), ended="interrupted", faults=("arm B could not be applied: x",))
    )
    assert proof.verdict == "invalid"
    assert len(proof.reasons) == 2
    assert proof.reasons[0].startswith("arm B")


def sequence(first: float, changed: float, last: float) -> list[Pair]:
    """A-B-A blocks of eight."""
    source = random.Random(8)

    def block(arm: str, speed: float) -> list[FioRun]:
        return [run(arm, speed * math.exp(source.gauss(0, 0.01))) for _ in range(8)]

    blocks = zip(block("A", first), block("B", changed), block("A", last), strict=True)
    return [Pair(index, 0, "ABA", runs) for index, runs in enumerate(blocks)]


def test_a_sequence_is_compared_with_both_ends_and_must_return() -> None:
    proof = decide_session(replace(session(sequence(1000, 1300, 1000)), toggle_class="T3"))
    assert (proof.verdict, proof.tendency) == ("indicative", "gain")
    assert proof.workloads[0].ratio == pytest.approx(1.3, rel=0.02)
    proof = decide_session(replace(session(sequence(1000, 1300, 1250)), toggle_class="T3"))
    assert proof.verdict == "invalid"
    assert "did not return" in proof.reasons[0]


def test_json_is_the_contract_s() -> None:
    proof = decide_session(session(noisy_pairs(1.2)))
    document = msgspec.json.decode(msgspec.json.encode(proof))
    assert document["schema"] == "advisor.proof/1"
    assert {"profile", "verdict", "workloads", "kept"} <= set(document)
    wanted = {
        "name",
        "metric",
        "unit",
        "before",
        "after",
        "ratio",
        "ci95",
        "p_value",
        "pairs",
        "minimum_detectable_effect",
    }
    (workload,) = document["workloads"]
    assert wanted <= set(workload)
    low, high = workload["ci95"]
    assert low < workload["ratio"] < high
    assert workload["after"] / workload["before"] == pytest.approx(workload["ratio"], rel=0.05)
    assert document["kept"] is False


def test_a_proof_survives_its_json() -> None:
    proof = decide_session(session(controlled(noisy_pairs(1.2, p99=1.4), 1.0), control="null.4k"))
    again = msgspec.json.decode(msgspec.json.encode(proof), type=Proof)
    assert again == proof
    assert decide_session(again.session) == proof


def test_everything_else_is_explored_without_a_p_value() -> None:
    proof = decide_session(session(noisy_pairs(1.2)))
    assert {item.metric for item in proof.exploratory} == {
        *("bandwidth", "latency_mean", "latency_p50", "latency_p95", "latency_p999")
    }
    assert all(item.p_value is None and item.verdict is None for item in proof.exploratory)


def resolved(*claims: Claim, guardrails: tuple[Guardrail, ...] = (), mode: str = "default") -> ProofSubject:
    return resolve_subject(ProofSubject("p", claims, guardrails), MODES[mode])  # type: ignore[index]


def test_defaults_of_a_claim_and_margins_that_a_quick_session_widens() -> None:
    found = resolved(Claim("infoscale.64k-seq-r100"))
    assert found.claims[0] == Claim("infoscale.64k-seq-r100", "bandwidth", "higher", 0.10)
    assert [guardrail.metric for guardrail in found.guardrails] == ["latency_p99", "cpu_per_io"]
    assert resolved(Claim(WORKLOAD), mode="deep").claims[0].margin == 0.05
    assert resolved(Claim(WORKLOAD, margin=0.02), mode="quick").claims[0].margin == 0.10
    assert resolved(Claim(WORKLOAD, margin=0.2), mode="quick").claims[0].margin == 0.2
    assert resolved(Claim(WORKLOAD, margin=0.02)).claims[0].margin == 0.02


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ((), "0 claims"),
        (tuple(Claim(f"beegfs.{name}") for name in ("dd", "iozone-seq", "iozone-rand", "storagebench")), "4 claims"),
        ((Claim(WORKLOAD, direction="lower"),), "lower iops is no gain"),
        ((Claim(WORKLOAD, "latency_p50", "higher"),), "higher latency_p50 is no gain"),
        ((Claim(WORKLOAD, "latency_p999"),), "no claim can be made on latency_p999"),
        ((Claim(WORKLOAD, margin=0.0),), "margin"),
        ((Claim(WORKLOAD, margin=math.nan),), "margin"),
        ((Claim(WORKLOAD, margin=1.0),), "margin"),
        ((Claim(WORKLOAD), Claim(WORKLOAD)), "claimed twice"),
    ],
)
def test_claims_that_cannot_be(claims: tuple[Claim, ...], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        resolved(*claims)


def test_workloads_that_are_named_are_claims_or_unknown() -> None:
    with pytest.raises(UnknownWorkloadError):
        resolved(Claim("nonsense"))
    with pytest.raises(UnknownWorkloadError):
        resolved(Claim(WORKLOAD), guardrails=(Guardrail("nonsense", "iops"),))
    with pytest.raises(UnknownWorkloadError):
        resolve_subject(ProofSubject("p", (Claim(WORKLOAD),), exploratory=("nonsense",)), MODES["default"])
    assert [claim.workload for claim in claims_for([WORKLOAD, OTHER, WORKLOAD])] == [WORKLOAD, OTHER]
    with pytest.raises(UsageError, match="at most 3"):
        claims_for(["iris.ranread", "iris.ranread-10", "iris.ranread-40", WORKLOAD])


def test_figures_in_their_units_and_zeros() -> None:
    found: RunFigures = figures(1000)
    assert found.value("bandwidth") == pytest.approx(4.096)
    assert found.value("latency_p50") == pytest.approx(1000)
    assert found.value("latency_p95") == pytest.approx(2000)
    assert (found.value("latency_p99"), found.value("latency_p999"), found.value("cpu_per_io")) == (500, 2000, 20)
    pairs = [*noisy_pairs(1.2, 8), pair(8, figures(1000, p99_us=0.0), figures(1100))]
    assert len(make_sample(pairs, WORKLOAD, METRICS["latency_p99"]).effects) == 8
    assert len(make_sample(pairs, WORKLOAD, METRICS["iops"]).effects) == 9


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
    assert any("the repeated ones included" in reason for reason in proof.reasons)
    assert proof.workloads[0].pairs == 16


@pytest.mark.parametrize("scatter", [0.02, 0.8])
def test_a_guardrail_that_cannot_be_decided_keeps_no_session_going(scatter: float) -> None:
    source = random.Random(3)

    def of_arm(speed: float) -> RunFigures:
        return figures(speed * math.exp(source.gauss(0, 0.02)), p99_us=500 * math.exp(source.gauss(0, scatter)))

    found = session([pair(index, of_arm(1000), of_arm(1300)) for index in range(8)])
    assert is_settled(found)
    proof = decide_session(replace(found, ended="settled"))
    notes = [note for note in proof.notes if "the session did not go on for it" in note]
    assert len(notes) == (scatter > 0.5)
