"""What the figures of a trial amount to: guardrails, hosts without a figure, values that did not last."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping

import pytest

from advisor.errors import UsageError
from advisor.fleet.runs.host_trial import TrialResult
from advisor.fleet.runs.journal import Asked, HostDone, read_run
from advisor.fleet.runs.trial_figures import level_of, parse_reading, reading_script
from advisor.fleet.runs.trial_records import HostsAssigned, Phase, PhaseMeasured, TrialJudged
from advisor.fleet.runs.trial_verdict import judge_trial
from advisor.fleet.runs.waves import WaveShape
from advisor.operations.fleet_trials import make_terms
from advisor.proof.host_units import Design
from advisor.report.fleet_trial import fleet_trial_document, fleet_trial_text, trial_design_text
from tests.schemas import judge

DESIGN = Design((tuple(f"node{at:02}" for at in range(1, 15)),))
TERMS = make_terms(["rate=command:a", "p99=command:b:lower:ms"], seed=5)
TREATED = DESIGN.toss(5)
OTHERS = [name for name in DESIGN.hosts if name not in TREATED]


def phase_of(which: Phase, factors: Mapping[str, float], seed: int, lost: Mapping[str, str] = {}) -> PhaseMeasured:
    """Five readings of each host, 2 % of noise; the treated ones times the factor of the metric, ``lost`` none."""
    source = random.Random(f"{which} {seed}")
    figures = {
        metric.name: {
            name: tuple(
                None
                if name in lost
                else 100 * factors.get(metric.name, 1.0) ** (name in TREATED) * source.gauss(1, 0.02)
                for _ in range(TERMS.rounds)
            )
            for name in DESIGN.hosts
        }
        for metric in TERMS.metrics
    }
    return PhaseMeasured(0.0, which, figures, dict(lost))


def verdict_of(
    factors: Mapping[str, float], lost: Mapping[str, str] = {}, not_held: Mapping[str, str] = {}, seed: int = 1
) -> TrialJudged:
    return judge_trial(
        TERMS, DESIGN, TREATED, (phase_of("before", {}, seed), phase_of("after", factors, seed, lost)), not_held
    )


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ({"rate": 1.1}, "gain"),
        ({"rate": 0.9}, "loss"),
        ({}, "no-difference"),
        ({"rate": 1.1, "p99": 1.1}, "gain-with-cost"),
        # What is better is lower: a guardrail that improves costs nothing.
        ({"rate": 1.1, "p99": 0.9}, "gain"),
        ({"rate": 0.9, "p99": 1.1}, "loss"),
    ],
)
def test_the_claim_decides_and_a_guardrail_that_got_worse_is_a_cost(factors: dict[str, float], verdict: str) -> None:
    found = verdict_of(factors)
    assert found.verdict == verdict
    assert [one.is_guardrail for one in found.effects] == [False, True]
    for one in found.effects:
        wanted = factors.get(one.name, 1.0) if one.better == "higher" else 1 / factors.get(one.name, 1.0)
        assert one.low is not None
        assert one.high is not None
        assert one.low < wanted - 1 < one.high


def test_a_large_gain_stands_without_one_host_and_a_small_fleet_with_many_gone_is_undecided() -> None:
    one = verdict_of({"rate": 1.3}, {TREATED[0]: "no answer"})
    assert (one.verdict, one.missing) == ("gain", (TREATED[0],))
    assert f"{TREATED[0]} (treated) gave no figure; the gain stands whatever they would have shown" in one.reasons
    assert one.effects[0].low is None
    many = verdict_of({"rate": 1.3}, dict.fromkeys((*TREATED[:2], OTHERS[0]), "no answer"))
    assert many.verdict == "inconclusive"
    assert many.reasons[0].startswith("undecided: ")
    # Treated hosts that are gone may be the harm that it did.
    assert verdict_of({"rate": 0.7}, {OTHERS[0]: "no answer"}).verdict == "loss"


def test_a_host_whose_values_did_not_last_counts_as_treated_and_is_named() -> None:
    found = verdict_of({"rate": 1.2}, not_held={TREATED[1]: "it has rolled back"})
    assert found.verdict == "gain"
    assert f"{TREATED[1]}: the values did not last (it has rolled back); it counts as treated" in found.reasons
    assert len(found.effects[0].changes) == 14


def test_half_of_the_readings_make_a_figure_and_fewer_do_not() -> None:
    assert level_of((None, None, 1.0, 1.0, 1.0), 5) == 0.0
    assert level_of((None, None, None, 1.0, 1.0), 5) is None
    assert level_of((), 5) is None


def test_the_script_of_a_reading_prints_what_is_read_of_it() -> None:
    terms = make_terms(
        ["tps=regex:tps = ([0-9]+)", "p=command:echo 5; echo noise >&2", "c=counter:exit 3"], "echo tps = 34"
    )
    script = reading_script(terms, "TOKEN")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    found = parse_reading("a banner\n" + done.stdout, "TOKEN")
    assert [(one.output.strip(), one.code) for one in found.values()] == [("tps = 34", 0), ("5", 0), ("", 3)]
    # What broke off is no figure.
    assert [*parse_reading(done.stdout.rpartition("TOKEN end 1")[0], "TOKEN")] == [0]
    slow = make_terms(["p=command:sleep 20"], timeout_seconds=1)
    done = subprocess.run(["/bin/sh", "-c", reading_script(slow, "T")], capture_output=True, text=True, check=False)
    assert parse_reading(done.stdout, "T")[0].code == 124


@pytest.mark.parametrize(
    ("metrics", "command", "blocks", "said"),
    [
        ((), None, "hardware", "expected at least one"),
        (("regex:x",), None, "hardware", "regex cannot be read here"),
        (("command:x",), None, "rack", "expected hardware, none or var=NAME"),
        (("command:x",), None, "var=", "expected hardware, none or var=NAME"),
        (("time",), " ", "none", "no command"),
    ],
)
def test_what_cannot_be_measured_is_an_error_of_the_call(
    metrics: tuple[str, ...], command: str | None, blocks: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        make_terms(metrics, command, blocks=blocks)


def result_of(judged: TrialJudged | None, *hosts: HostDone) -> TrialResult:
    asked = Asked(0.0, "1", ("p",), (), ("h,",), None, 1, 60, WaveShape(), trial=TERMS)
    assigned = HostsAssigned(0.0, DESIGN.blocks, TREATED, 5, 0.034)
    before = phase_of("before", {}, 1)
    run = read_run("0001", (asked, before, assigned, *hosts, *([judged] if judged else [])))
    return TrialResult(None, DESIGN, run, 1)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_pages_and_document_hold_what_was_found(width: int) -> None:
    lost = HostDone(0.0, 1, TREATED[0], "rollback", "unknown", by_hand="ssh root@there sh node.sh rollback")
    result = result_of(verdict_of({"rate": 1.3}, {TREATED[0]: "gone"}), lost)
    page = fleet_trial_text(result, width=width, color=False)
    text = " ".join(page.split())
    assert "Trial 0001 (p): gain." in text
    assert "no figure" in text
    assert "Not known to be back" in text
    assert "ssh root@there sh node.sh rollback" in text
    document = judge(fleet_trial_document(result).decode())
    assert document["verdict"] == "gain"
    assert document["assignments"] == 3432
    assert sum(host["is_treated"] for host in document["hosts"]) == 7
    stopped = " ".join(fleet_trial_text(result_of(None), width=width, color=False).split())
    assert "Trial 0001 (p): stopped." in stopped
    design = " ".join(trial_design_text(DESIGN, TERMS, width=width, color=False).split())
    assert "14 hosts as units: 7 treated by a toss. 3,432 assignments; the smallest p is 0.000583" in design
    assert "Guardrails: p99." in design
