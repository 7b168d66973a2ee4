"""The remedy of a finding: data, from which its text and its commands follow."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from advisor.rules.rule import (
    Decide,
    PlanProfile,
    Remedy,
    RunShell,
    SetTunable,
    describe_remedy,
    list_commands,
    set_queues,
    set_sysctl,
)
from tests.cases import read_cases

DATA = read_cases(__file__, Decide, PlanProfile, RunShell, set_sysctl)

MIXED: tuple[Remedy, ...] = DATA["MIXED"]


def test_the_command_of_advisor_comes_first_and_survives_a_shell() -> None:
    apply, plan, other = list_commands(MIXED)
    assert shlex.split(apply) == [
        *("advisor", "apply", "sysctl:vm.swappiness<=10"),
        "sysctl:net.ipv4.tcp_rmem=4096 131072 33554432",
    ]
    assert shlex.split(plan) == ["advisor", "plan", "jumbo-frames", "--set", "links=eth0,e;id"]
    assert other == "vmstat 5 3"


def test_the_text_has_a_sentence_for_each_part_in_their_order() -> None:
    assert describe_remedy(MIXED) == (
        "See whether it goes on. Set vm.swappiness to at most 10. Set net.ipv4.tcp_rmem to 4096 131072 33554432. "
        "Ask the owner. Plan the profile jumbo-frames."
    )


@pytest.mark.parametrize(("count", "text"), DATA["devices_that_get_the_same_value"])
def test_devices_that_get_the_same_value_share_a_sentence(count: int, text: str) -> None:
    assert describe_remedy(set_queues([f"sda{number}" for number in range(count)], "scheduler", "none")) == text


def test_what_fix_sets_of_a_profile_is_said() -> None:
    part = PlanProfile("socket-buffers-8m", only=(set_sysctl("net.core.rmem_max", 851_968, "at-least"),))
    assert describe_remedy((part,)) == (
        "Set net.core.rmem_max to at least 851968. The profile socket-buffers-8m sets all that belongs to it."
    )
    assert list_commands((part,)) == (
        "advisor apply 'sysctl:net.core.rmem_max>=851968'",
        "advisor plan socket-buffers-8m",
    )
    assert list_commands((part,), with_parts=False) == ("advisor plan socket-buffers-8m",)


def test_no_remedy_is_no_command_and_no_text() -> None:
    assert (list_commands(()), describe_remedy(())) == ((), "")


def test_a_remedy_survives_json() -> None:
    encoded = msgspec.json.encode(MIXED)
    assert msgspec.json.decode(encoded, type=tuple[Remedy, ...]) == MIXED
    assert msgspec.json.decode(encoded)[1] == {
        **{"kind": "set-tunable", "tunable": "sysctl:vm.swappiness", "value": "10", "operator": "at-most"}
    }
    assert isinstance(MIXED[1], SetTunable)
