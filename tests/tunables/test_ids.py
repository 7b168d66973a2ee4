"""Tunable ids: what each names, the values that it takes, and that a hostile one names nothing."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.host import ReadFile, WriteFile
from advisor.tunables import all_kinds, parse_tunable
from advisor.tunables.preflight import ExpandsIds
from tests.cases import cases
from tests.each import for_each
from tests.trees import host_of, make_tree

CASES = cases(__file__)
TOO_LONG = {"sysfs:/sys/a/b": ["x" * 401], "block:a:read_ahead_kb": ["9" * 5000]}


@pytest.mark.parametrize(("identity", "place"), CASES["places"].items())
def test_an_id_is_a_file(identity: str, place: list[str]) -> None:
    one = parse_tunable(identity)
    assert one.id == identity
    assert isinstance(one.probe, ReadFile)
    assert [one.probe.path, one.probe.form][: len(place)] == place
    if not identity.startswith("link:"):
        assert one.make_steps("7") == (() if identity.startswith("file:") else (WriteFile(place[0], "7"),))


@pytest.mark.parametrize("identity", CASES["others"])
def test_other_ids(identity: str) -> None:
    assert parse_tunable(identity).id == identity


@for_each("identity", [*chain(*CASES["refused"].values()), "unit:" + "a" * 248 + ".service:numa"])
def test_an_id_that_is_refused(identity: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable") as caught:
        parse_tunable(identity)
    assert caught.value.hint


@given(
    st.builds(
        "{}:{}{}".format,
        st.sampled_from(sorted(kind.name for kind in all_kinds())),
        st.text(),
        st.sampled_from(["", ":mtu", ":numa"]),
    )
)
def test_any_text(identity: str) -> None:
    try:
        one = parse_tunable(identity)
    except UsageError:
        return
    # The kernel takes a hyphen in the name of a module for an underscore.
    assert one.id == identity or one.id == f"module:{identity[7:].replace('-', '_')}"
    assert one.check_value("\0")
    path = one.probe.path if isinstance(one.probe, ReadFile) else "/"
    assert not {"", ".", ".."} & set(path.split("/")[1:-1])
    assert "\0" not in path


@pytest.mark.parametrize("unit", CASES["this host hangs on"])
def test_a_unit_that_this_host_hangs_on_is_refused(unit: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable here"):
        parse_tunable(f"unit:{unit}:state")


@pytest.mark.parametrize("unit", ["irqbalance.service", "sshguard.service", "sysstat.service", "tuned.service"])
def test_a_unit_of_another_name_is_not(unit: str) -> None:
    assert parse_tunable(f"unit:{unit}:state").id == f"unit:{unit}:state"


@pytest.mark.parametrize(
    ("identity", "good", "bad"),
    [(one, *judged.values()) for one, judged in CASES["values"].items()],
)  # fmt: skip
def test_values_that_can_be(identity: str, good: list[str], bad: list[str]) -> None:
    one = parse_tunable(identity)
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert [value for value in (*bad, *TOO_LONG.get(identity, [])) if not one.check_value(value)] == []


@pytest.mark.parametrize(("written", "meant"), CASES["a hyphen in a module s name is an underscore"])
def test_a_hyphen_in_a_module_s_name_is_an_underscore(written: str, meant: str, tmp_path: Path) -> None:
    one = parse_tunable(written)
    assert one.id == meant
    host = host_of(make_tree(tmp_path, {"sys/module/cpuidle_haltpoll/parameters/force": "N\n"}))
    assert isinstance(one, ExpandsIds)
    assert one.expand_ids(host) == (meant,)
