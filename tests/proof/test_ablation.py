"""Which value of a profile did it: the design, what is switched as one, and what follows from a session."""

from __future__ import annotations

import math
import random
from itertools import combinations

import msgspec
import pytest

from advisor.errors import RefusedError, UsageError
from advisor.host import ReadFile
from advisor.planning.records import Change
from advisor.proof.blocks import (
    MAX_UNITS,
    combination_digits,
    conclude_session,
    design_words,
    draw_combinations,
    group_changes,
    kept_values,
    run_count,
)
from advisor.proof.records import UnswitchedTunable
from advisor.report.proof.result import proof_text
from advisor.tunables import Effect, Risk
from benchmarks.ablation import simulate_session
from tests.golden import assert_golden

# -- the design --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(2, MAX_UNITS + 1))
def test_no_value_shares_a_column_with_another_or_with_a_pair(count: int) -> None:
    names = [f"v{number}" for number in range(count)]
    words = design_words(count)
    runs = draw_combinations(names, words, random.Random(count))
    assert len(runs) == len(set(runs)) == run_count(words) <= 32
    columns = {name: [1 if name in run else -1 for run in runs] for name in names}
    assert all(sum(column) == 0 for column in columns.values())
    products = {pair: multiply(columns[pair[0]], columns[pair[1]]) for pair in combinations(names, 2)}
    assert all(sum(product) == 0 for product in products.values())
    assert all(sum(multiply(product, columns[name])) == 0 for product in products.values() for name in names)
    alike = [(one, other) for one, other in combinations(products, 2) if sum(multiply(products[one], products[other]))]
    assert bool(alike) == (count == 4 or count > 5)


def multiply(one: list[int], other: list[int]) -> list[int]:
    return [first * second for first, second in zip(one, other, strict=True)]


def test_combinations_of_values() -> None:
    names, words, coin = ["a", "b", "c", "d"], design_words(4), random.Random(1)
    seen = {frozenset(draw_combinations(names, words, coin)) for _ in range(40)}
    assert len(seen) == 2, "both halves of all combinations"
    orders = {tuple(draw_combinations(names, words, coin)) for _ in range(10)}
    assert len(orders) == 10
    assert combination_digits(["a", "b", "c"], ("a", "c")) == "101"
    assert combination_digits(["a", "b", "c"], ()) == "none"
    with pytest.raises(UsageError, match="17 values; expected at most 16"):
        design_words(17)


# -- what is switched as one -------------------------------------------------------------------------------------------


def change(tunable: str, takes_effect: Effect = "now", risk: Risk = "none") -> Change:
    return Change(tunable, "1", "2", None, None, risk, takes_effect, "W.", "H.", ("S",), "p", ReadFile("/x"), (), ())


def test_values_that_depend_on_each_other_are_one() -> None:
    units, left_out = group_changes(
        [
            change("sysctl:vm.swappiness"),
            change("sysctl:vm.dirty_ratio"),
            change("sysctl:vm.dirty_background_bytes"),
            change("block:sda:read_ahead_kb"),
            change("block:sdb:read_ahead_kb"),
            change("block:sda:scheduler"),
            change("block:sda:nr_requests"),
            change("block:sdb:nr_requests"),
            change("link:eth0:mtu", risk="link"),
            change("link:eth0:rx", risk="link"),
            change("module:zfs:zfs_arc_max", "reboot"),
        ]
    )
    assert {frozenset(tunables) for tunables in units.values()} == {
        frozenset({"sysctl:vm.swappiness"}),
        frozenset({"sysctl:vm.dirty_ratio", "sysctl:vm.dirty_background_bytes"}),
        # one setting of several devices
        frozenset({"block:sda:read_ahead_kb", "block:sdb:read_ahead_kb"}),
        # a new scheduler resets the depth of its own disk
        frozenset({"block:sda:scheduler", "block:sda:nr_requests"}),
        frozenset({"block:sdb:nr_requests"}),
        # all that interrupts a link
        frozenset({"link:eth0:mtu", "link:eth0:rx"}),
    }
    assert units["sysctl:vm.swappiness"] == ("sysctl:vm.swappiness",)
    assert left_out == (UnswitchedTunable("module:zfs:zfs_arc_max", "it needs a reboot or a rebuild"),)


def test_what_cannot_show_is_left_out_and_one_value_alone_is_refused() -> None:
    two = [change("sysctl:vm.swappiness"), change("sysctl:net.core.rmem_max")]
    with pytest.raises(RefusedError, match=r"expected two values or more .* found sysctl:vm\.swappiness"):
        group_changes(two, {"sysctl:net.core.rmem_max": "nothing crosses the network"})
    with pytest.raises(RefusedError, match="expected two values or more"):
        group_changes([change("sysctl:vm.dirty_bytes"), change("sysctl:vm.dirty_ratio")])


# -- what follows from a session ---------------------------------------------------------------------------------------


def test_an_effect_is_the_mean_of_the_runs_with_it_over_those_without() -> None:
    found = simulate_session([0.2, 0.0, -0.1], 3)
    for one in found.workloads:
        contrasts = []
        for block in found.session.pairs:
            sides: dict[bool, list[float]] = {True: [], False: []}
            for each in block.runs:
                is_on = found.session.is_under(one.arm, each.arm)
                sides[bool(is_on)].append(math.log(each.figures.measures["tps"]))
            contrasts.append(sum(sides[True]) / len(sides[True]) - sum(sides[False]) / len(sides[False]))
        walsh = sorted((a + b) / 2 for at, a in enumerate(contrasts) for b in contrasts[at:])
        middle = len(walsh) // 2
        estimate = walsh[middle] if len(walsh) % 2 else (walsh[middle - 1] + walsh[middle]) / 2
        assert math.log(one.ratio or 0) == pytest.approx(estimate)
        assert one.pairs == 12


@pytest.mark.parametrize("count", [3, 7])
def test_planted_effects_are_found_and_the_others_are_bounded(count: int) -> None:
    found = simulate_session([math.log(1.15), math.log(0.85), *[0.0] * (count - 2)], 11)
    assert [one.verdict for one in found.workloads[:2]] == ["gain", "loss"]
    assert all(one.verdict not in ("gain", "loss") for one in found.workloads[2:])
    assert found.workloads[0].is_plain_gain
    assert "value-0" in kept_values(found)
    assert "value-1" not in kept_values(found)


def test_two_values_that_act_together_alone_are_kept() -> None:
    found = simulate_session([0.0] * 7, 5, pairs={(2, 4): math.log(1.3)})
    assert set(kept_values(found)) == {"value-2", "value-4"}
    assert_golden("ablation", proof_text(found, width=80, color=False))


def test_nothing_is_kept_of_an_invalid_session() -> None:
    sound = simulate_session([0.3, 0.0, 0.0], 2)
    assert "value-0" in kept_values(sound)
    invalid = conclude_session(msgspec.structs.replace(sound.session, faults=("the command failed",)))
    assert kept_values(invalid) == ()
    assert "To prove the values" not in proof_text(invalid, width=80, color=False)
