from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cli.measuring import exit_code
from advisor.host import Host
from advisor.proof.covariates import CalmGate
from advisor.proof.metrics import METRICS
from advisor.proof.own_command import CommandMetric, OwnCommand
from advisor.proof.records import (
    Claim,
    Ended,
    FioRun,
    Guardrail,
    Pair,
    Proof,
    ProofSubject,
    Session,
    Summary,
    Verdict,
    command_subject,
    resolve_subject,
)
from advisor.proof.schedule import MODES
from advisor.proof.scratch import GIB, MIB, Keep
from advisor.proof.session import Settings, prove
from advisor.proof.verdict import decide_session
from advisor.report.proof import format_percent, proof_text
from tests.each import for_each
from tests.proof.conftest import disk, fake_fio, host
from tests.proof.fakes import FakeFio, SpeedToggle
from tests.proof.sessions import WORKLOAD, figures, pair, run, session
from tests.report.pasted import lines_too_wide

__all__ = ["disk", "fake_fio", "host"]

replace = msgspec.structs.replace
OTHER = "infoscale.64k-seq-rw50"
WIDTHS = (40, 60, 80, 100, 120, 160)
SGR = re.compile(r"\x1b\[\d+m")


def pairs(
    factor: float = 1.0, count: int = 24, *, noise: float = 0.04, p99: float = 1.0, seed: int = 2, start: int = 0
) -> tuple[Pair, ...]:
    """Pairs whose arm B is that much faster, and its p99 latency that much higher."""
    source = random.Random(seed)

    def noisy(value: float) -> float:
        return value * math.exp(source.gauss(0, noise))

    made = []
    for index in range(start, start + count):
        before = figures(noisy(1000), p99_us=noisy(500), cpu_us=noisy(20))
        after = figures(noisy(1000 * factor), p99_us=noisy(500 * p99), cpu_us=noisy(20))
        made.append(pair(index, before, after, order="AB" if source.getrandbits(1) else "BA"))
    return tuple(made)


def proof_of(whole: Session, **changes: object) -> Proof:
    return decide_session(replace(whole, **changes))


def extra(made: Sequence[Pair], factor: float) -> tuple[Pair, ...]:
    """The pairs with runs of a second workload."""
    source = random.Random(9)

    def more(arm: str) -> FioRun:
        value = 500 * math.exp(source.gauss(0, 0.04)) * (factor if arm == "B" else 1.0)
        return run("A" if arm == "A" else "B", value, OTHER)

    return tuple(replace(one, runs=(*one.runs, more("A"), more("B"))) for one in made)


def controlled(made: Sequence[Pair], factor: float, every: int = 4) -> tuple[Pair, ...]:
    source = random.Random(2)

    def control() -> tuple[FioRun, FioRun]:
        return run("A", 1e6, "null.4k"), run("B", 1e6 * factor * math.exp(source.gauss(0, 0.01)), "null.4k")

    return tuple(replace(one, control_runs=control()) if one.index % every == 0 else one for one in made)


def sequence() -> tuple[Pair, ...]:
    source = random.Random(8)

    def speed(value: float) -> float:
        return value * math.exp(source.gauss(0, 0.01))

    return tuple(
        Pair(index, 0, "ABA", (run("A", speed(1000)), run("B", speed(1300)), run("A", speed(1000))))
        for index in range(8)
    )


GAIN = session(pairs(1.3))
TWO = (Claim(WORKLOAD), Claim(OTHER))
PROOFS: dict[str, Proof] = {
    "gain": proof_of(GAIN),
    "kept": replace(proof_of(GAIN), kept=True),
    "latency": decide_session(session(pairs(1.25), Claim(WORKLOAD, "latency_p50"))),
    "cost": decide_session(session(pairs(1.3, p99=1.5))),
    "gain with a loss": decide_session(session(extra(pairs(1.3), 0.7), *TWO)),
    "gain with nothing": decide_session(session(extra(pairs(1.3), 1.0), *TWO)),
    "loss": decide_session(session(pairs(0.8))),
    "no difference": decide_session(session(pairs(1.0))),
    "inconclusive": decide_session(session(pairs(1.02, noise=0.25, seed=4))),
    "quick": decide_session(session(pairs(1.0, 8), mode="quick")),
    "control moved": decide_session(session(controlled(pairs(1.2), 1.15), control="null.4k")),
    "control still": decide_session(session(controlled(pairs(1.2), 1.0), control="null.4k")),
    "fault": proof_of(GAIN, faults=("arm B could not be applied: EIO",), ended="fault"),
    "not restored": proof_of(GAIN, faults=("arm A could not be restored: EIO",), ended="fault", restored=False),
    "forced": proof_of(GAIN, forced=True, gate=CalmGate(("restic is running",), ("io pressure",))),
    "reboot": proof_of(session(sequence()), toggle_class="T3"),
    "three pairs": decide_session(session(pairs(2.0, 3))),
    "one pair": decide_session(session(pairs(2.0, 1))),
    "interrupted": proof_of(session([]), ended="interrupted"),
    "self-test": proof_of(session(pairs(1.0)), self_test=True),
    "self-test, loud": proof_of(session(pairs(1.0, noise=0.25)), self_test=True),
    "self-test failed": proof_of(GAIN, self_test=True),
    "enormous": decide_session(session(pairs(5000.0))),
    "no noise": decide_session(session(pairs(1.0, noise=0.0))),
}


def text_of(proof: Proof, width: int = 100, *, color: bool = False) -> str:
    return proof_text(proof, width=width, color=color)


def words(proof: Proof, width: int = 100) -> str:
    """The text as one line, so that a phrase is found wherever it was wrapped."""
    return " ".join(text_of(proof, width).split())


def lines_of(proof: Proof, start: str, width: int = 100) -> list[str]:
    return [line for line in text_of(proof, width).splitlines() if line.strip().startswith(start)]


# -- every verdict at every width ----------------------------------------------------------------------------------


@for_each("width", WIDTHS)
@for_each("name", PROOFS)
def test_no_line_is_wider_than_the_page_and_colour_changes_no_character(name: str, width: int) -> None:
    plain, colored = (text_of(PROOFS[name], width, color=color) for color in (False, True))
    assert lines_too_wide(plain, width) == []
    assert "\x1b" not in plain
    assert "\n".join(line.rstrip(" ") for line in SGR.sub("", colored).split("\n")) == plain
    assert all(line == line.rstrip() for line in plain.splitlines())
    assert "\n\n\n" not in plain
    assert not re.search(r"\b(nan|inf|None|True|False)\b", plain)


def test_the_matrix_holds_every_verdict() -> None:
    assert {proof.verdict for proof in PROOFS.values()} == set(get_args(Verdict))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("gain", "gain: +28 % IOPS (+24 % to +32 %) on 4 KiB random reads, queue depth 1, 24 pairs, p < 0.0001\n"),
        ("latency", "gain: -19 % p50 latency (-21 % to -16 %) on 4 KiB random reads, queue depth 1, 24 pairs, p"),
        ("cost", "gain with a cost: +28 % IOPS"),
        ("loss", "loss: -21 % IOPS (-24 % to -19 %) on 4 KiB random reads, queue depth 1, 24 pairs, p < 0.0001\n"),
        ("no difference", "no difference: "),
        ("inconclusive", "inconclusive: nothing is shown either way\n"),
        ("control moved", "invalid: nothing follows from these figures: the negative control null.4k moved by +15%"),
        ("fault", "invalid: nothing follows from these figures: arm B could not be applied: EIO\n"),
        ("forced", "indicative, no proof: measured on a busy host by --force\n"),
        ("reboot", "indicative, no proof: the change needs a reboot or a rebuild: it cannot be interleaved\n"),
        ("interrupted", "indicative, no proof: the session was interrupted (and 1 more)\n"),
        ("self-test", "self-test passed: no effect was invented\n"),
        ("self-test, loud", "self-test passed: no effect was invented\n"),
        ("self-test failed", "self-test failed, a false gain: +28 % IOPS"),
    ],
)
def test_the_first_line_is_the_verdict(name: str, start: str) -> None:
    assert text_of(PROOFS[name], 120).startswith(start)


GAIN_AT_80 = """\
gain: +28 % IOPS (+24 % to +32 %) on 4 KiB random reads, queue depth 1, 24
  pairs, p < 0.0001
storage on /srv (xfs on sda)

Claims: margin ±10 %
  infoscale.4k-rand-r100: 4 KiB random reads, queue depth 1
    IOPS           1,041 → 1,307 IOPS  +28 % (+24 % to +32 %)  gain
    ·░░░░░░░░░│░░░░░░░░░··········├──●───┤·····  p < 0.0001, 24 pairs, MDE 4.5 %
    -10 %     0                           +40 %

Guardrails: what must not get worse by more than 10 %
  infoscale.4k-rand-r100
    p99 latency    495 → 500 us        +0.8 % (-2.3 % to +3.7 %)  limit kept
    ········├─┼●─┤░░░░░░·······················  p = 0.64, 24 pairs
    CPU per I/O    19.9 → 19.9 us      +0.7 % (-2.5 % to +3.5 %)  limit kept
    ········├─┼●─┤░░░░░░·······················  p = 0.66, 24 pairs
    -10 %     0                           +40 %

Control: what the change cannot touch
  null.4k: fio's null engine: touches no storage (negative control)
    IOPS           1.00M → 1.00M IOPS  +0.3 % (-1.4 % to +2.4 %)  did not move
    ·········├●─┤······························  p = 0.69, 6 pairs
    -10 %     0                           +40 %

Explored: not judged
  infoscale.4k-rand-r100
    bandwidth      4.26 → 5.35 MB/s    +28 % (+25 % to +32 %)  not judged
    mean latency   961 → 765 us        -22 % (-24 % to -20 %)  not judged
    p50 latency    961 → 765 us        -22 % (-24 % to -20 %)  not judged
    p95 latency    1,922 → 1,530 us    -22 % (-24 % to -20 %)  not judged
    p99.9 latency  1,981 → 2,001 us    +0.8 % (-2.2 % to +3.7 %)  not judged

before: the host as it was, arm A; after: with the profile, arm B. Medians of
the runs; the change is estimated from the pairs.
├──●──┤ estimate and interval, │ no change, ░ within the margin (guardrail: the
cost allowed); better is to the right, where less is better (latency, CPU, time)
to the left.
p (adjusted for the number of claims) is significant up to 0.0221. MDE: the
smallest effect that these pairs find in 80 % of cases.

Notes
  - the data may be looked at 3 times, so significance is judged at 0.0221 each
    time

Host
  active   arm A is back, the host as it was
  kept     no
  scratch  file removed
  written  1.3 GiB (1,395,864,371 bytes); 8 GiB were allowed

Session
  pairs  24 of at most 24; 1 contaminated by steal, disk, 1 of them repeated
  ended  all pairs were run
  order  14 AB, 11 BA; it may matter (p = 0.0410)
  seed   1
  fio    fio-3.33, runs of 2 s
  begun  2024-05-17T12:00:00+00:00, took 3 min 21 s

To measure again in the same order:
  advisor prove storage --target=/srv --workload=infoscale.4k-rand-r100 --seed=1
"""


def test_a_gain_in_full_at_80_columns() -> None:
    whole = session(controlled(pairs(1.3), 1.0), control="null.4k")
    lit = tuple(replace(one, lamps=("steal", "disk")) for one in pair(3, 900, 910).runs)
    spoiled = Pair(3, 0, "AB", lit, contaminated=True, superseded=True)
    made = proof_of(whole, pairs=(*whole.pairs, spoiled), bytes_written=1_395_864_371, seconds=201.3)
    assert text_of(made, 80) == GAIN_AT_80


def test_at_160_columns_the_figures_of_a_claim_are_one_line() -> None:
    line = lines_of(PROOFS["control still"], "IOPS", 160)[0]
    assert re.fullmatch(
        r"    IOPS +1,041 → 1,206 IOPS  \+18 %   \+14 % to \+22 %    [·░│├─●┤]{44,48}  <0\.0001  24     4\.5 %  gain",
        line,
    )
    assert len(lines_of(PROOFS["control still"], "before → after", 160)) == 1


def test_the_documentation_shows_this_page() -> None:
    page = (Path(__file__).parents[2] / "docs/proof.md").read_text()
    assert GAIN_AT_80[: GAIN_AT_80.index("\n\nGuardrails")] in page


# -- what each verdict says ----------------------------------------------------------------------------------------


def test_inconclusive_says_what_could_be_seen_and_what_it_takes() -> None:
    proof = PROOFS["inconclusive"]
    claim = proof.workloads[0]
    assert claim.minimum_detectable_effect is not None
    said = words(proof)
    seen = f"{100 * claim.minimum_detectable_effect:.0f} %"
    assert f"24 pairs, effects below {seen} could hardly be seen" in said
    assert f"24 pairs find an effect of {seen} in 80 % of cases" in said
    assert f"to see ±10 % takes about {claim.needed_pairs} pairs (--deep runs 48)" in said


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"needed_pairs": None}, "to see ±10 % takes more than 10,000 pairs: the figures vary too much here"),
        ({"pairs": 48, "needed_pairs": 60}, "to see ±10 % takes about 60 pairs"),
        ({"pairs": 15, "needed_pairs": 9}, "no difference takes at least 16 pairs to say"),
        ({"pairs": 24, "needed_pairs": 9}, "the interval leaves both open, an effect and none beyond ±10 %"),
        (
            {"pairs": 5, "needed_pairs": None, "minimum_detectable_effect": None},
            "with 5 pairs no effect of any size could be significant; how many ±10 % takes is unknown with so few",
        ),
    ],
)
def test_what_more_pairs_would_do(changes: dict[str, object], phrase: str) -> None:
    made = PROOFS["inconclusive"]
    said = words(replace(made, workloads=(replace(made.workloads[0], **changes),)))
    assert phrase in said
    assert ("--deep" in said) == ("--deep" in phrase)


def test_the_level_is_the_session_s_own() -> None:
    assert "p (adjusted for the number of claims) is significant up to 0.05." in words(PROOFS["quick"])


def test_no_difference_names_its_margin() -> None:
    assert re.search(r"on 4 KiB random reads, queue depth 1 is within ±10 %, 24 pairs", words(PROOFS["no difference"]))


def test_a_cost_is_named_beside_the_gain() -> None:
    said = words(PROOFS["cost"])
    assert re.search(r"at the cost of \+5\d % p99 latency \(\+\d\d % to \+\d\d %\) on 4 KiB random reads", said)
    assert "over 10 % worse" in said
    assert lines_of(PROOFS["cost"], "CPU per I/O")[0].endswith("limit kept")


def test_the_claim_with_an_effect_comes_first_and_none_is_left_out() -> None:
    made = PROOFS["gain with nothing"]
    verdict = re.compile(
        r"gain: \+28 % IOPS .*, p < 0\.0001 \+1\.3 % bandwidth .* is within ±10 %, 24 pairs storage on"
    )
    assert verdict.match(words(made))
    assert verdict.match(words(replace(made, workloads=made.workloads[::-1])))


def test_p_is_the_one_that_the_verdict_rests_on() -> None:
    made = PROOFS["gain"]
    claim = replace(made.workloads[0], p_value=0.0123, p_holm=0.0246)
    assert "24 pairs, p = 0.0246" in words(replace(made, workloads=(claim,)))
    assert "0.0123" not in words(replace(made, workloads=(claim,)))


def test_of_an_invalid_session_no_row_claims_anything() -> None:
    for name in ("control moved", "fault"):
        assert lines_of(PROOFS[name], "IOPS")[0].endswith("void")
        assert "limit kept" not in words(PROOFS[name])
        assert "\x1b[32mgain" not in text_of(PROOFS[name], color=True)
        assert "void, nothing follows from them" in words(PROOFS[name])
        assert "- without that the figures would have said: gain" in words(PROOFS[name])


def test_what_is_only_indicative_is_in_brackets() -> None:
    assert lines_of(PROOFS["forced"], "IOPS")[0].endswith("(gain)")
    assert "- the host was busy: restic is running" in words(PROOFS["forced"])
    assert "- unknown: io pressure" in words(PROOFS["forced"])


def test_every_reason_and_every_note_is_told() -> None:
    made = replace(PROOFS["fault"], reasons=("one thing", "another"), notes=("a note", "a second"))
    said = words(made)
    assert all(f"- {text}" in said for text in (*made.reasons, *made.notes))
    assert "one thing (and 1 more)" in said


def test_a_session_without_pairs_has_no_figures_and_no_drawing() -> None:
    text = text_of(PROOFS["interrupted"])
    assert "IOPS of 4 KiB random reads, queue depth 1 was not measured" in text
    assert text.count("no figures  not measured") == 3
    assert not [line for line in text.splitlines() if "·····" in line]
    assert "interrupted by a signal" in text


def test_few_pairs_say_what_their_interval_is_worth() -> None:
    assert "the interval of 3 pairs is no 95 % interval but one of 75 %" in words(PROOFS["three pairs"])
    assert "the interval of 1 pair is no 95 % interval but one of 0 %" in words(PROOFS["one pair"])
    assert "of 93.7 %" in words(decide_session(session(pairs(2.0, 5)))), "93.75 %, and never more than that"
    assert "no 95 %" not in words(PROOFS["gain"])


def test_the_control_is_told_as_it_was_judged() -> None:
    assert lines_of(PROOFS["control moved"], "IOPS")[1].endswith("moved")
    assert lines_of(PROOFS["control still"], "IOPS")[1].endswith("did not move")
    few = decide_session(session(controlled(pairs(1.2), 1.5, every=8), control="null.4k"))
    assert few.control is not None
    assert few.control.pairs == 3
    row = lines_of(few, "IOPS")[1]
    assert row.endswith("control not judged (3 of 6)")
    assert "%" not in row, "no estimate of so few"
    assert "control not judged (3 of 6" in text_of(few, 80).split("\n\n")[0]
    none = decide_session(session(pairs(1.2), control="null.4k"))
    assert re.search(r"no figures +not measured$", lines_of(none, "IOPS")[1])


@pytest.mark.parametrize("width", [80, 160])
def test_what_is_explored_is_marked_in_every_row_and_has_no_p(width: int) -> None:
    made = PROOFS["gain"]
    explored = [line for line in text_of(made, width).splitlines() if line.endswith("not judged")]
    assert len(explored) == len(made.exploratory) + 1
    assert "Explored: not judged" in explored
    assert not [line for line in explored if "p =" in line or "<0.0001" in line]


def test_self_test_says_that_chance_does_this_and_that_nothing_was_changed() -> None:
    assert "about one self-test in twenty does this by chance" in words(PROOFS["self-test failed"])
    assert "one self-test in twenty" not in words(PROOFS["self-test"])
    assert "active the host as it was; nothing was changed" in words(PROOFS["self-test"])
    assert "this host against itself on /srv (xfs on sda)" in words(PROOFS["self-test"])


def test_a_self_test_has_no_cost_but_a_difference_out_of_nothing() -> None:
    costly = proof_of(session(pairs(1.0, p99=1.5)), self_test=True)
    assert (costly.cost, exit_code(costly)) == ("shown", 1)
    assert exit_code(PROOFS["self-test"]) == 0
    said = words(costly)
    assert costly.cost == "shown"
    assert "a false difference: +5" in said
    assert "false difference: latency_p99 of" in said
    for word in ("at the cost of", "10 % worse", "cost: latency", "no effect was invented"):
        assert word not in said


def commanded(figures_of_b: Sequence[float]) -> Proof:
    """A session judged by the figure ``tps`` of a command: always 5 in arm A."""
    command = OwnCommand(("./bench",), (CommandMetric("tps", "regex", "tps = (.*)"),), "/")
    made = [
        Pair(
            index,
            0,
            "AB",
            (
                run("A", replace(figures(1000), measures={"tps": 5.0}), "command"),
                run("B", replace(figures(1000), measures={"tps": of_b}), "command"),
            ),
        )
        for index, of_b in enumerate(figures_of_b)
    ]
    subject = resolve_subject(command_subject("p", command), MODES["default"])
    return decide_session(replace(session(made), subject=subject))


def test_a_figure_that_never_varies_says_nothing_and_asks_for_its_expression() -> None:
    proof = commanded([5.0] * 24)
    (claim,) = proof.workloads
    assert (proof.verdict, claim.verdict, claim.is_constant) == ("inconclusive", "inconclusive", True)
    assert claim.minimum_detectable_effect is None
    said = words(proof)
    assert "tps: all runs gave the same figure; does the expression match the right number?" in said
    assert "is within" not in said
    assert "MDE 0" not in said
    assert not commanded([5.0] * 23 + [5.01]).workloads[0].is_constant
    assert commanded([5.0] * 23 + [5.01]).verdict == "no-difference"


# -- the host and the session --------------------------------------------------------------------------------------


def test_what_was_done_with_the_host() -> None:
    said = words(proof_of(GAIN, bytes_written=1_395_864_371))
    assert "active arm A is back, the host as it was kept no scratch file removed written 1.3 GiB" in said
    assert "(1,395,864,371 bytes); 8 GiB were allowed" in said
    assert "written nothing" in words(PROOFS["gain"])


def test_a_kept_gain_says_that_b_is_in_force() -> None:
    assert "active arm B, the profile: a gain was to be kept kept yes" in words(PROOFS["kept"])


def test_a_host_that_is_not_as_before_is_said_so() -> None:
    said = words(PROOFS["not restored"])
    assert "arm A could not be restored, see advisor status, then advisor rollback" in said
    assert "arm A is back" not in said


def test_a_scratch_file_that_is_left_is_said_so() -> None:
    left = "the scratch file was not removed: /srv/.advisor-proof-x: Permission denied"
    assert f"scratch {left}" in words(proof_of(GAIN, notes=(left,)))
    without = replace(GAIN, schedule=replace(GAIN.schedule, scratch_bytes=0))
    assert "scratch none was needed" in words(decide_session(without))


def test_contamination_repeats_and_order_are_counted() -> None:
    lit = tuple(replace(one, lamps=("disk",)) for one in pair(0, 900, 900).runs)
    spoiled = Pair(0, 0, "AB", lit, contaminated=True, superseded=True)
    left = replace(spoiled, index=24, superseded=False)
    said = words(proof_of(GAIN, pairs=(spoiled, *GAIN.pairs, left)))
    assert "pairs 25 of at most 24; 2 contaminated by disk, 1 of them repeated" in said
    assert re.search(r"order \d+ AB, \d+ BA; not shown to matter \(p = 0\.\d\d\)", said)
    for p, sign in ((0.0286, "it may matter"), (0.05, "it may matter"), (0.051, "not shown to matter")):
        assert f"; {sign} (p = {p:.4f})" in words(replace(PROOFS["gain"], carry_over_p=p))
    assert "; it matters (p = 0.0010)" in words(replace(PROOFS["gain"], carry_over_p=0.001))
    assert "order 8 ABA" in words(PROOFS["reboot"])


@pytest.mark.parametrize("ended", get_args(Ended))
def test_every_end_has_words(ended: Ended) -> None:
    assert lines_of(proof_of(GAIN, ended=ended), "ended")[0].strip() not in ("ended", f"ended  {ended}")


@pytest.mark.parametrize(
    ("proof", "command"),
    [
        (PROOFS["gain"], f"advisor prove storage --target=/srv --workload={WORKLOAD} --seed=1"),
        (PROOFS["quick"], f"advisor prove storage --target=/srv --workload={WORKLOAD} --quick --seed=1"),
        (PROOFS["self-test"], f"advisor prove --self-test --target=/srv --workload={WORKLOAD} --seed=1"),
        (
            proof_of(GAIN, target="/srv/it's $HOME", toggle_class="T2"),
            f'advisor prove storage --target="/srv/it\'s \\$HOME" --workload={WORKLOAD} --allow-link-flap --seed=1',
        ),
    ],
)
def test_how_to_measure_again(proof: Proof, command: str) -> None:
    assert text_of(proof, 160).endswith(f"  {command}\n")


# -- the drawing ---------------------------------------------------------------------------------------------------


def summary(low: float, ratio: float, high: float, **changes: object) -> Summary:
    made = Summary("made up", "iops", "IOPS", "higher", 1000.0, 1000.0 * ratio, ratio, (low, high), 0.95, ratio - 1)
    return replace(made, p_value=0.01, pairs=24, margin=0.1, verdict="gain", **changes)


def with_claims(*claims: Summary) -> Proof:
    return replace(PROOFS["gain"], workloads=claims, guardrails=(), exploratory=(), control=None)


def drawn(proof: Proof, width: int = 80) -> list[str]:
    """The drawings on the page, in order."""
    return re.findall(r"[·░│├─┼●┤<>]{20,}", text_of(proof, width))


def test_interval_band_and_zero_stand_on_one_axis() -> None:
    assert (
        "    ·░░░░░░░░░│░░░░░░░░···············├──────●─────┤  p = 0.0100, 24 pairs\n"
        "    -10 %     0                                +50 %\n"
    ) in text_of(with_claims(summary(1.3, 1.4, 1.5)), 80)


def test_a_change_of_latency_stands_at_its_own_figure() -> None:
    faster, slower = (
        drawn(with_claims(summary(low, ratio, high, metric="latency_p50", unit="us", better="lower")))[0]
        for low, ratio, high in ((0.7, 0.75, 0.8), (1.25, 1.3, 1.4))
    )
    assert faster.index("├") < faster.index("●") < faster.index("┤") < faster.index("│")
    assert slower.index("│") < slower.index("├") < slower.index("●") < slower.index("┤")


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(min_value=0.02, max_value=50), st.floats(min_value=0.99, max_value=1.01)),
        min_size=3,
        max_size=3,
    ).map(sorted),
    st.sampled_from([40, 60, 80, 160]),
)
def test_a_drawing_never_says_more_than_the_interval(values: list[float], width: int) -> None:
    """Where the interval is clear of 0 its drawing is; where it is not, neither is the drawing."""
    low, ratio, high = values
    row, reference = drawn(with_claims(summary(low, ratio, high), summary(1.0, 1.0, 1.0)), width)
    cells = [number for number, sign in enumerate(row) if sign in "├─┼●┤"]
    assert cells == list(range(cells[0], cells[-1] + 1))
    assert "●" in row
    zero = reference.index("●")
    if low > 1:
        assert cells[0] > zero
    elif high < 1:
        assert cells[-1] < zero
    else:
        assert cells[0] <= zero <= cells[-1]


@pytest.mark.parametrize(("low", "ratio", "high"), [(1.001, 1.002, 9.0), (0.1, 0.998, 0.999)])
def test_an_interval_that_just_leaves_out_0_is_drawn_beside_it(low: float, ratio: float, high: float) -> None:
    row = drawn(with_claims(summary(low, ratio, high)))[0]
    assert "│" in row
    assert "┼" not in row


def test_0_is_not_written_over_another_label() -> None:
    scale = lines_of(PROOFS["enormous"], "-10 %", 80)[0]
    assert re.fullmatch(r"    -10 % +×[\d,]+", scale)


def test_a_judged_interval_always_fits() -> None:
    assert drawn(PROOFS["enormous"], 120)[0][-1] == "●"
    for proof in PROOFS.values():
        judged = replace(proof, exploratory=())
        assert not [row for row in drawn(judged, 120) if "<" in row or ">" in row]


def test_an_explored_interval_that_does_not_fit_ends_in_arrows() -> None:
    made = PROOFS["gain"]
    far = replace(made.exploratory[0], ratio=1.1, ci95=(0.01, 90.0))
    row = drawn(replace(made, exploratory=(far,)), 160)[-1]
    assert re.fullmatch("<─+┼─*●─+>", row)


# -- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.38, "+38 %"),
        (-0.2, "-20 %"),
        (0.0994, "+9.9 %"),
        (0.0996, "+10 %"),
        (-0.004, "-0.4 %"),
        (0.0002, "+0.02 %"),
        (0.0, "0 %"),
        (-0.00001, "0 %"),
        (1.05, "+105 %"),
        (11.0, "×12"),
        (4911.0, "×4,912"),
        (-0.995, "×0.005"),
        (math.inf, "?"),
    ],
)
def test_percents(fraction: float, text: str) -> None:
    assert format_percent(fraction) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (970.2, 1464.4, "970 → 1,464"),
        (3.972, 6.0, "3.97 → 6"),
        (999_000.0, 1_200_000.0, "1.00M → 1.20M"),
        (1_000.0, 5_030_000.0, "1,000 → 5,030,000"),
        (20.0, 4e9, "20 → 4e+09"),
        (0.00012, 0.5, "0.00012 → 0.5"),
    ],
)
def test_figures_of_both_arms_are_counted_alike(before: float, after: float, text: str) -> None:
    made = PROOFS["gain"]
    claim = replace(made.workloads[0], before=before, after=after)
    assert f"{text} IOPS" in words(replace(made, workloads=(claim,)))


# -- whatever a saved proof holds ----------------------------------------------------------------------------------

HOSTILE = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("a /\x1b\n\t\u202e宽\u0301\udcff[]")), max_size=60
)
NUMBERS = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -1.0, 1e-320, 1e308, 1.0]))
SUMMARIES = st.builds(
    Summary,
    name=HOSTILE,
    metric=st.sampled_from(sorted(METRICS)),
    unit=HOSTILE,
    better=st.sampled_from(["higher", "lower"]),
    before=NUMBERS,
    after=NUMBERS,
    ratio=NUMBERS,
    ci95=st.one_of(st.none(), st.tuples(st.floats(), st.floats())),
    confidence=st.one_of(st.none(), st.floats(min_value=0, max_value=1)),
    effect=NUMBERS,
    p_value=st.one_of(st.none(), st.floats(min_value=0, max_value=1)),
    pairs=st.integers(min_value=0, max_value=10**9),
    minimum_detectable_effect=NUMBERS,
    needed_pairs=st.one_of(st.none(), st.integers(min_value=6, max_value=10_000)),
    p_holm=st.one_of(st.none(), st.floats(min_value=0, max_value=1)),
    margin=st.one_of(st.none(), st.floats(min_value=0.001, max_value=0.999)),
    limit=st.one_of(st.none(), st.floats(min_value=0.001)),
    verdict=st.one_of(st.none(), st.sampled_from(get_args(Verdict))),
)
MANY = st.lists(SUMMARIES, max_size=3).map(tuple)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(SUMMARIES, min_size=1, max_size=3).map(tuple),
    MANY,
    MANY,
    st.one_of(st.none(), SUMMARIES),
    st.sampled_from(get_args(Verdict)),
    HOSTILE,
    st.integers(min_value=40, max_value=170),
    st.booleans(),
)
def test_no_proof_breaks_the_page_or_reaches_the_terminal(
    claims: tuple[Summary, ...],
    guardrails: tuple[Summary, ...],
    exploratory: tuple[Summary, ...],
    control: Summary | None,
    verdict: Verdict,
    text: str,
    width: int,
    color: bool,
) -> None:
    base = PROOFS["forced"]
    said = replace(
        base.session, target=text, file_system=text, device=text, fio_version=text, started=text, notes=(text,)
    )
    made = replace(
        base,
        profile=text,
        verdict=verdict,
        workloads=claims,
        guardrails=guardrails,
        exploratory=exploratory,
        control=control,
        reasons=(text,),
        notes=(text,),
        gate=CalmGate((text,), (text,)),
        session=said,
    )
    page = text_of(made, width, color=color)
    lines = (SGR.sub("", page) if color else page).split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines_too_wide("\n".join(lines), width) == []


def test_a_control_that_no_session_can_give_is_shown_all_the_same() -> None:
    made = PROOFS["control still"]
    assert made.control is not None
    odd = replace(made.control, effect=-1.0, p_value=0.0)
    assert "did not move" in words(replace(made, control=odd))


# -- a real session ------------------------------------------------------------------------------------------------


def test_a_session_conducted_here_is_told_whole(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    chosen = Settings(target=str(disk), mode="quick", scratch_bytes=MIB, keep=Keep(0, 0.0), seed=7, byte_budget=GIB)
    subject = ProofSubject("storage", (Claim(OTHER),), guardrails=(Guardrail(OTHER, "latency_p99"),))
    proof = prove(host, subject, SpeedToggle(fake_fio, 1.4), chosen, runner=fake_fio.runner)
    said = words(proof)
    assert re.match(r"gain: \+\d\d % bandwidth \(\+\d\d % to \+\d\d %\) on 64 KiB sequential half reads", said)
    assert f"{proof.session.bytes_written:,} bytes" in said
    assert f"--target={disk} " in said
    assert said.endswith("--quick --seed=7")
