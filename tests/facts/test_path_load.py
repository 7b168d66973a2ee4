"""The load of each path of a multipath map: since it was added, and over an interval."""

from __future__ import annotations

from pathlib import Path

from advisor.facts.block.block import PathGroup, over_interval
from advisor.facts.block.dm_text import multipath_groups
from advisor.facts.host_facts import scan
from advisor.host import Host
from tests.articles.openfiler import Machine, initiator
from tests.trees import host_of, make_tree

COUNTS = {"sdb": 4000, "sdc": 3000, "sdd": 2000, "sde": 1000}


def test_groups_and_their_counts() -> None:
    made = initiator(selector="round-robin", per_path=("1000",), groups=2, requests=tuple(COUNTS.values()))
    facts = scan(made.host())
    (array,) = facts.arrays
    assert array.path_groups == (
        PathGroup("round-robin", 1000, ("sdb", "sdc")),
        PathGroup("round-robin", 1000, ("sdd", "sde")),
    )
    assert [(one.group, one.requests, one.seconds) for one in facts.path_load] == [
        (0, {"sdb": 4000, "sdc": 3000}, None),
        (1, {"sdd": 2000, "sde": 1000}, None),
    ]
    assert facts.path_load[0].bytes_moved["sdb"] == 4000 * 64 * 512


def test_a_group_without_all_of_its_counters_is_left_out() -> None:
    made = initiator(requests=(4000, 3000, 2000))
    assert scan(made.host()).path_load == ()


def live(made: Machine, where: Path) -> Host:
    return host_of(make_tree(where, made.files, made.links))


def test_over_an_interval_the_rise_counts(tmp_path: Path) -> None:
    made = initiator(requests=tuple(COUNTS.values()))
    arrays, host = scan(made.host()).arrays, live(made, tmp_path)

    def work(seconds: float) -> None:
        assert seconds == 2.0
        for disk, count in COUNTS.items():
            make_tree(tmp_path, {made.stat(disk, count + 10, 5): made.files[made.stat(disk, count + 10, 5)]})

    (load,) = over_interval(host, arrays, 2.0, work)
    assert load.requests == dict.fromkeys(COUNTS, 15)
    assert load.bytes_moved == dict.fromkeys(COUNTS, 15 * 64 * 512)
    assert load.seconds == 2.0


def test_a_path_that_began_again_says_nothing(tmp_path: Path) -> None:
    made = initiator(requests=tuple(COUNTS.values()))
    arrays, host = scan(made.host()).arrays, live(made, tmp_path)

    def lost(_: float) -> None:
        make_tree(tmp_path, {made.stat("sdb", 1): made.files[made.stat("sdb", 1)]})

    assert over_interval(host, arrays, 2.0, lost) == ()


def test_tables_that_are_cut_give_no_groups() -> None:
    whole = [
        *("2", "queue_if_no_path", "x", "1", "alua", "1", "1", "service-time", "0", "2", "2", "8:16", "1", "1"),
        *("8:32", "1", "1"),
    ]
    assert [one.paths for one in multipath_groups(tuple(whole))] == [(("8:16", ("1", "1")), ("8:32", ("1", "1")))]
    for end in range(len(whole)):
        assert multipath_groups(tuple(whole[:end])) == ()
