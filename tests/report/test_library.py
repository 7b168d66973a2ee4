from __future__ import annotations

import msgspec
import pytest

from advisor.profiles.profile import (
    Computed,
    Condition,
    Parameter,
    Profile,
    Wanted,
    load,
    profile_paths,
    shipped_directory,
)
from advisor.profiles.requested import is_line_about
from advisor.report.library import profile_list_text, profile_text
from advisor.report.profile_words import condition_words, fill_template, parameter_words, wanted_value
from tests.report.pasted import lines_too_wide

SHIPPED = profile_paths(local=shipped_directory())
BARE = Profile("bare", "Title", "Summary.", "Helps.", "Hurts.", ("a source",))


def words(text: str) -> str:
    return " ".join(text.split())


def wanted(value: str | Computed = "10", **parts: object) -> Wanted:
    return msgspec.structs.replace(Wanted("sysctl:vm.swappiness", value, "Why.", "Hurts.", ("source",)), **parts)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_profile_is_told_whole(name: str) -> None:
    profile = load(name, SHIPPED)
    text = words(profile_text(profile, width=100, color=False))
    texts = [profile.title, profile.summary, profile.helps_when, profile.hurts_when, profile.notes, *profile.sources]
    texts += [part for one in profile.tunables for part in (one.why, one.hurts_when, *one.sources)]
    texts += [one.about for one in profile.parameters.values()] + [one.reason for one in profile.conditions]
    texts += [profile.proof.where, *profile.proof.claims] if profile.proof else []
    assert [part for part in texts if words(part) not in text] == []


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_profile_keeps_to_the_width(name: str, width: int) -> None:
    text = profile_text(load(name, SHIPPED), width=width, color=False)
    assert lines_too_wide(text, width) == []
    assert "\x1b" not in text


def test_the_list_names_every_profile_with_its_title() -> None:
    profiles = [load(name, SHIPPED) for name in SHIPPED]
    text = profile_list_text(profiles, width=100, color=False)
    for profile in profiles:
        assert f"{profile.name} " in text
        assert words(profile.title) in words(text)
        assert words(profile.summary) in words(text)
    assert profile_list_text([], width=80, color=False) == "There are no profiles.\n"


def test_a_profile_that_declares_little_is_told_all_the_same() -> None:
    text = profile_text(BARE, width=80, color=False)
    assert "Parameters" not in text
    assert "None is declared: advisor prove needs --workload." in text


def test_a_profile_cannot_write_to_the_terminal() -> None:
    hostile = msgspec.structs.replace(BARE, title="\x1b[31mred\nnext", notes="\u202etxt")
    text = profile_text(hostile, width=80, color=False)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "bare: \\x1b[31mred\\nnext\n" in text


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (wanted(), "10"),
        (wanted(sense="at-least"), "at least 10"),
        (wanted("1 2", sense=("at-least", "at-least")), "each field at least 1 2"),
        (wanted("1 2", sense=("keep", "at-most")), "(keep, at-most) 1 2"),
        (wanted(Computed(multiply=2, of="value-before-us")), "2 × the value before advisor first changed it"),
        (wanted(Computed(placement="unit")), "bound to the node of its own devices"),
        (wanted(Computed(placement="cpus"), sense="within"), "within the CPUs of its device's node"),
    ],
)
def test_wanted_values_in_words(one: Wanted, expected: str) -> None:
    assert wanted_value(BARE, one) == expected


def test_places_are_filled_with_defaults_where_there_are_any() -> None:
    parameters = {"a": Parameter("integer", "A.", default=1), "b": Parameter("names", "B.", default=())}
    assert fill_template(msgspec.structs.replace(BARE, parameters=parameters), "{a} {b} {link}") == "1 {b} {link}"


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (Parameter("integer", "A.", 5, 1, 9), "whole number from 1 to 9; default 5"),
        (Parameter("integer", "A.", None, None, 9), "whole number to 9"),
        (Parameter("word", "A.", "x", choices=("x", "y")), "one of x, y; default x"),
        (Parameter("names", "A.", ("eth0", "eth1")), "names, separated by commas; default eth0, eth1"),
    ],
)
def test_parameters_in_words(parameter: Parameter, expected: str) -> None:
    assert parameter_words(parameter) == expected


def test_conditions_in_words() -> None:
    assert condition_words(Condition("llt.running", "is-not", "r", value=False)) == "llt.running is-not false"
    assert condition_words(Condition("llt", "exists", "r")) == "llt exists"


def test_a_line_of_a_profile_is_about_the_tunables_that_its_places_can_become() -> None:
    line = wanted(tunable="link:{link}:mtu")
    assert is_line_about(line, "link:bond0.7:mtu")
    assert not is_line_about(line, "link:eth0:txqueuelen")
    assert not is_line_about(wanted(), "sysctl:vm-swappiness")
