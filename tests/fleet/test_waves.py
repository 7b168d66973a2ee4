"""Waves: each host once, no two nodes of a failover group together, the order kept, batches bounded."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import RefusedError, UsageError
from advisor.fleet.runs.planning import CapturedHost, plan_fleet
from advisor.fleet.runs.waves import (
    Batch,
    Before,
    Canary,
    Candidate,
    FailoverGroup,
    Waves,
    WaveShape,
    batch_of,
    canary_of,
    make_waves,
)
from advisor.operations.fleet import agree_unasked
from tests.fleet.test_scale import CAPTURE

NAMES = [f"n{number}" for number in range(12)]


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[Candidate], list[Before], Canary, Batch]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    groups = st.lists(st.sampled_from("ABC"), unique=True, max_size=2)
    candidates = [Candidate(name, tuple(FailoverGroup(one, "drawn") for one in draw(groups))) for name in names]
    pairs = draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=10))
    named = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    canary = Canary(tuple(named), len(named)) if named else Canary(count=draw(st.integers(0, 4)))
    batch = draw(
        st.one_of(
            st.just(Batch()), st.builds(Batch, count=st.integers(1, 5)), st.builds(Batch, percent=st.integers(1, 100))
        )
    )
    return candidates, [Before(first, then, "drawn") for first, then in pairs], canary, batch


def made(fleet: tuple[list[Candidate], list[Before], Canary, Batch]) -> Waves:
    candidates, order, canary, batch = fleet
    return make_waves(candidates, order=order, canary=canary, batch=batch)


@given(fleets())
def test_every_host_is_in_exactly_one_wave(fleet: tuple[list[Candidate], list[Before], Canary, Batch]) -> None:
    waves = made(fleet).waves
    assert sorted(name for wave in waves for name in wave.hosts) == sorted(one.name for one in fleet[0])
    assert all(wave.hosts for wave in waves)
    assert [wave.number for wave in waves] == list(range(1, len(waves) + 1))


@given(fleets())
def test_no_two_nodes_of_a_failover_group_are_in_one_wave(
    fleet: tuple[list[Candidate], list[Before], Canary, Batch],
) -> None:
    groups = {one.name: {group.name for group in one.groups} for one in fleet[0]}
    for wave in made(fleet).waves:
        used = [group for name in wave.hosts for group in groups[name]]
        assert len(used) == len(set(used))


def reachable(order: list[Before], names: set[str]) -> dict[str, set[str]]:
    """Who comes somewhere behind each host, by the order; worked out in the plainest way."""
    behind = {name: {one.then for one in order if one.first == name and one.then in names} for name in names}
    for _ in names:
        behind = {name: those.union(*(behind[other] for other in those)) for name, those in behind.items()}
    return behind


@given(fleets())
def test_the_order_holds_but_for_circles_and_named_canaries(
    fleet: tuple[list[Candidate], list[Before], Canary, Batch],
) -> None:
    candidates, order, canary, _ = fleet
    names = {one.name for one in candidates}
    behind, waves = reachable(order, names), made(fleet)
    for one in order:
        if not {one.first, one.then} <= names or one.first == one.then or one.then in canary.names:
            continue
        first, then = waves.numbers().get(one.first), waves.numbers().get(one.then)
        assert first is not None
        assert then is not None
        if one.first in behind[one.then]:
            assert any(one.first in note and "each have to go before the other" in note for note in waves.notes)
        else:
            assert first < then


@given(fleets())
def test_no_wave_is_larger_than_its_batch(fleet: tuple[list[Candidate], list[Before], Canary, Batch]) -> None:
    candidates, _, canary, batch = fleet
    waves = made(fleet).waves
    canaries = [wave for wave in waves if wave.is_canary]
    assert all(len(wave.hosts) <= canary.count for wave in canaries)
    assert set(canary.names) & {one.name for one in candidates} <= {name for wave in canaries for name in wave.hosts}
    for number, wave in enumerate(wave for wave in waves if not wave.is_canary):
        assert len(wave.hosts) <= batch.limit(number, len(candidates))


@given(fleets(), st.randoms(use_true_random=False))
def test_the_order_of_the_constraints_does_not_matter(
    fleet: tuple[list[Candidate], list[Before], Canary, Batch], chance: random.Random
) -> None:
    candidates, order, canary, batch = fleet
    shuffled = chance.sample(order, len(order))
    assert made(fleet).waves == make_waves(candidates, order=shuffled, canary=canary, batch=batch).waves


def hosts(number: int, *groups: FailoverGroup) -> list[Candidate]:
    return [Candidate(f"h{at:02d}", groups) for at in range(number)]


def test_waves_grow_from_one_host_to_all() -> None:
    assert [len(wave.hosts) for wave in make_waves(hosts(40)).waves] == [1, 4, 20, 15]


def test_a_fixed_batch_follows_the_canary() -> None:
    waves = make_waves(hosts(6), batch=batch_of("2"), canary=canary_of(["h03"], [one.name for one in hosts(6)]))
    assert [wave.hosts for wave in waves.waves] == [("h03",), ("h00", "h01"), ("h02", "h04"), ("h05",)]


def test_a_cluster_takes_as_many_waves_as_it_has_nodes() -> None:
    waves = make_waves([*hosts(4, FailoverGroup("cluster 7", "llttab")), Candidate("other")], batch=Batch(count=9))
    assert [len(wave.hosts) for wave in waves.waves] == [1, 2, 1, 1]


def test_a_canary_that_is_told_to_go_early_says_whom_it_overtakes() -> None:
    found = make_waves(hosts(2), order=[Before("h00", "h01", "target first")], canary=Canary(("h01",), 1))
    assert [wave.hosts for wave in found.waves] == [("h01",), ("h00",)]
    assert found.notes == ("h01 was named as a canary, so it goes before h00, which should go first",)


@pytest.mark.parametrize("text", ["0", "101%", "-1", "many", "", "5 %x", "٣", "9" * 40])
def test_a_batch_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--batch"):
        batch_of(text)


def test_a_canary_that_is_no_host_is_refused() -> None:
    with pytest.raises(UsageError, match="--canary z"):
        canary_of(["h01,z"], ["h01"])
    assert canary_of(["3"], ["h01"]) == Canary(count=3)
    assert canary_of(["3"], ["3"]) == Canary(("3",), 1)


def test_a_new_warning_of_one_host_needs_a_person_or_force() -> None:
    captured = [CapturedHost(name, CAPTURE) for name in ("n0", "n1")]
    word = "sysctl:net.ipv4.tcp_window_scaling=0"
    made = plan_fleet(captured, [word], {}, inventory=(), shape=WaveShape())
    assert made.plan("n0").would_report == ("advice.tcp-window-scaling-off",)
    (note,) = (one for one in made.notes if "advice.tcp-window-scaling-off" in one)
    assert note.startswith("n0, n1: ")
    with pytest.raises(RefusedError) as refused:
        agree_unasked(force=False)(made)
    assert refused.value.message.startswith("n0: ")
    assert agree_unasked(force=True)(made)
