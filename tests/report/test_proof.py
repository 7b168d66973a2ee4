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
from advisor.report.proof.result import format_percent, proof_text
from tests.each import for_each
from tests.golden import assert_golden
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


def pages_of_proofs() -> dict[str, Proof]:
    """Return each kind of proof and, where a text depends on one figure, the proofs around its bounds."""
    full = session(controlled(pairs(1.3), 1.0), control="null.4k")
    lit = tuple(replace(one, lamps=("steal", "disk")) for one in pair(3, 900, 910).runs)
    spoiled = Pair(3, 0, "AB", lit, contaminated=True, superseded=True)
    left = replace(spoiled, index=24, superseded=False)
    note = "the scratch file was not removed: /srv/.advisor-proof-x: Permission denied"
    few_controls = session(controlled(pairs(1.2), 1.5, every=8), control="null.4k")
    made = {
        "full": proof_of(full, pairs=(*full.pairs, spoiled), bytes_written=1_395_864_371, seconds=201.3),
        **PROOFS,
        "five pairs": decide_session(session(pairs(2.0, 5))),
        "few control pairs": decide_session(few_controls),
        "no control": decide_session(session(pairs(1.2), control="null.4k")),
        "costly self-test": proof_of(session(pairs(1.0, p99=1.5)), self_test=True),
        "scratch file left": proof_of(GAIN, notes=(note,)),
        "no scratch file": decide_session(replace(GAIN, schedule=replace(GAIN.schedule, scratch_bytes=0))),
        "repeats": proof_of(GAIN, pairs=(spoiled, *GAIN.pairs, left)),
        "odd target": proof_of(GAIN, target="/srv/it's $HOME", toggle_class="T2"),
        "reasons": replace(PROOFS["fault"], reasons=("one thing", "another"), notes=("a note", "a second")),
        "holm": with_claims(replace(PROOFS["gain"].workloads[0], p_value=0.0123, p_holm=0.0246)),
        "one axis": with_claims(summary(1.3, 1.4, 1.5)),
    }
    made |= {f"ended {ended}": proof_of(GAIN, ended=ended) for ended in get_args(Ended)}
    made |= {f"order p {p}": replace(PROOFS["gain"], carry_over_p=p) for p in (0.001, 0.0286, 0.05, 0.051)}
    unclear = PROOFS["inconclusive"]
    for changes in (
        {"needed_pairs": None},
        {"pairs": 48, "needed_pairs": 60},
        {"pairs": 15, "needed_pairs": 9},
        {"pairs": 24, "needed_pairs": 9},
        {"pairs": 5, "needed_pairs": None, "minimum_detectable_effect": None},
    ):
        claim = replace(unclear.workloads[0], **changes)
        made["inconclusive" + "".join(f", {key} {value}" for key, value in changes.items())] = replace(
            unclear, workloads=(claim,)
        )
    gain = PROOFS["gain"]
    for before, after in FIGURES:
        made[f"figures {before} {after}"] = with_claims(replace(gain.workloads[0], before=before, after=after))
    return made


FIGURES = (
    *((970.2, 1464.4), (3.972, 6.0), (999_000.0, 1_200_000.0)),
    *((1_000.0, 5_030_000.0), (20.0, 4e9), (0.00012, 0.5)),
)


def test_the_pages_of_proofs() -> None:
    """Print the first page whole, and of each later page the lines that the page of a gain does not have."""
    made = pages_of_proofs()
    full, gain = text_of(made.pop("full"), 80), set(text_of(PROOFS["gain"], 80).splitlines())
    parts = [f"== full\n{full}"]
    for name, proof in made.items():
        lines = [line for line in text_of(proof, 80).splitlines() if name == "gain" or line not in gain]
        parts.append(f"== {name}\n" + "\n".join(lines))
    assert_golden("proof", "\n".join(parts))


def test_an_invalid_session_claims_nothing_and_a_gain_comes_before_nothing() -> None:
    for name in ("control moved", "fault"):
        assert lines_of(PROOFS[name], "IOPS")[0].endswith("void")
        assert "\x1b[32mgain" not in text_of(PROOFS[name], color=True)
    made = PROOFS["gain with nothing"]
    turned = replace(made, workloads=made.workloads[::-1])
    assert text_of(turned).split("\n\n")[0] == text_of(made).split("\n\n")[0]
    costly = proof_of(session(pairs(1.0, p99=1.5)), self_test=True)
    assert (costly.cost, exit_code(costly), exit_code(PROOFS["self-test"])) == ("shown", 1, 0)


def test_at_160_columns_the_figures_of_a_claim_are_one_line() -> None:
    line = lines_of(PROOFS["control still"], "IOPS", 160)[0]
    assert re.fullmatch(
        r"    IOPS +1,041 → 1,206 IOPS  \+18 %   \+14 % to \+22 %    [·░│├─●┤]{44,48}  <0\.0001  24     4\.5 %  gain",
        line,
    )
    assert len(lines_of(PROOFS["control still"], "before → after", 160)) == 1


# -- what each verdict says ----------------------------------------------------------------------------------------


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


# -- the drawing ---------------------------------------------------------------------------------------------------


def summary(low: float, ratio: float, high: float, **changes: object) -> Summary:
    made = Summary("made up", "iops", "IOPS", "higher", 1000.0, 1000.0 * ratio, ratio, (low, high), 0.95, ratio - 1)
    return replace(made, p_value=0.01, pairs=24, margin=0.1, verdict="gain", **changes)


def with_claims(*claims: Summary) -> Proof:
    return replace(PROOFS["gain"], workloads=claims, guardrails=(), exploratory=(), control=None)


def drawn(proof: Proof, width: int = 80) -> list[str]:
    """The drawings on the page, in order."""
    return re.findall(r"[·░│├─┼●┤<>]{20,}", text_of(proof, width))


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


# -- a real session ------------------------------------------------------------------------------------------------


def test_a_session_conducted_here_is_told_whole(fake_fio: FakeFio, host: Host, disk: Path) -> None:
    chosen = Settings(
        target=str(disk), mode="quick", scratch_bytes=MIB, keep=Keep(0, 0.0), seed=7, byte_budget=GIB, hold_seconds=0.1
    )
    subject = ProofSubject("storage", (Claim(OTHER),), guardrails=(Guardrail(OTHER, "latency_p99"),))
    proof = prove(host, subject, SpeedToggle(fake_fio, 1.4), chosen, runner=fake_fio.runner)
    said = words(proof)
    assert re.match(r"gain: \+\d\d % bandwidth \(\+\d\d % to \+\d\d %\) on 64 KiB sequential half reads", said)
    assert f"{proof.session.bytes_written:,} bytes" in said
    assert f"--target={disk} " in said
    assert "--quick --seed=7 gain: " in said, "the verdict is the last line as well"
