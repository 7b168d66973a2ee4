"""Profiles: what ships is sound, and what is broken is refused with the place of the fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.errors import AdvisorError, InvalidInputError, UsageError
from advisor.profiles.lint import lint_profile
from advisor.profiles.profile import (
    MAX_PROFILE_BYTES,
    load,
    parameter_values,
    parse_profile,
    profile_paths,
    shipped_directory,
)
from tests.cases import read_cases
from tests.profiles.build import NUMBER, document, toml, wanted, write

SHIPPED = sorted(shipped_directory().glob("*.toml"))


def parsed(**parts: Any) -> Any:
    return parse_profile(toml(document(**parts)), "x.toml")


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(data, "x.toml")
    assert caught.value.message.startswith("x.toml: ")
    return caught.value.message


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_profile_lints_and_cites(path: Path) -> None:
    profile = lint_profile(path)
    assert profile == load(path.stem)
    # One that sets nothing says so.
    assert profile.tunables or profile.summary.startswith("Sets nothing: ")
    for one in profile.tunables:
        assert len(one.why) > 20
        assert len(one.hurts_when) > 20
        assert all(len(source) > 5 for source in one.sources)
    # Its own defaults are values that it takes.
    parameter_values(profile, {})


FOR_ANY_HOST = frozenset({"jumbo-frames", "low-latency", "socket-buffers-8m"})
BY_ITS_DEVICES = frozenset({"cloud-volumes", "ebs-volumes"})
"""What its lines name by ``only``: a host without such a device gets an empty plan."""


def test_a_profile_says_on_which_hosts_it_applies() -> None:
    """Without a condition `advisor recommend` offers a profile on every host."""
    everywhere = {path.stem for path in SHIPPED if not load(path.stem).conditions} - FOR_ANY_HOST - BY_ITS_DEVICES
    assert not everywhere, f"{everywhere}: [[conditions]], or in FOR_ANY_HOST of tests/profiles/test_profiles.py"


def test_what_ships() -> None:
    assert {path.stem for path in SHIPPED} >= {
        "jumbo-frames",
        "llt-highwater-doubled",
        "numa-pinning",
        "socket-buffers-8m",
    }


DATA = read_cases(__file__, document, wanted, NUMBER=NUMBER)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        *DATA["bytes_that_are_no_profile"],
        (b"name = 'caf\xe9'", "not UTF-8 at byte 11"),
        (b"version = " + b"1" * 5000, "digits"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"{a = " * 20_000, "nested too deeply"),
        (b"a = 1\n" + b"a." * 100_000 + b"a = 1", "line 2: nested too deeply"),
    ],
)
def test_bytes_that_are_no_profile(data: bytes, words: str) -> None:
    assert words in refusal(data)


@pytest.mark.parametrize(("parts", "words"), DATA["a_field_that_is_wrong_is_named"])
def test_a_field_that_is_wrong_is_named(parts: dict[str, Any], words: str) -> None:
    assert words in refusal(toml({**document(), **parts}))


PARAMETERS = DATA["PARAMETERS"]


@pytest.mark.parametrize(("parts", "words"), DATA["a_wanted_value_that_is_wrong"])
def test_a_wanted_value_that_is_wrong_is_named(parts: dict[str, Any], words: str) -> None:
    assert words in refusal(toml(document("mine", wanted(**parts), parameters=PARAMETERS)))


def test_a_tunable_stands_once() -> None:
    assert "field tunables[1].tunable: " in refusal(toml(document("mine", wanted(value="1"), wanted(value="2"))))


@pytest.mark.parametrize(("parameter", "words"), DATA["a_parameter_that_is_wrong_is_named"])
def test_a_parameter_that_is_wrong_is_named(parameter: dict[str, Any], words: str) -> None:
    assert words in refusal(toml({**document(), "parameters": {"n": parameter}}))


@pytest.mark.parametrize(("name", "type_"), [("links", "word"), ("units", "integer")])
def test_the_parameters_that_select_are_lists(name: str, type_: str) -> None:
    body = {**document(), "parameters": {name: {"type": type_, "about": "a"}}}
    assert f"field parameters.{name}.type: " in refusal(toml(body))


SETTINGS = parsed(parameters={**PARAMETERS, "w": {"type": "word", "about": "a", "choices": ["x", "y"]}})


@pytest.mark.parametrize(
    ("settings", "words"), [*DATA["a_setting_that_is_wrong"], ({"n": "1" * 5000}, "is not a whole number")]
)
def test_a_setting_that_is_wrong(settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parameter_values(SETTINGS, settings)
    assert words in caught.value.message
    assert len(caught.value.message) < 200
    assert caught.value.exit_code == 2


def test_settings() -> None:
    asked = {"n": "9", "w": "y", "l": " eth1, eth2,,"}
    assert parameter_values(SETTINGS, asked) == {"n": 9, "w": "y", "l": ("eth1", "eth2")}
    assert parameter_values(SETTINGS, {}) == {"n": 5, "w": None, "l": ()}


def test_a_child_has_what_its_parents_say_and_the_last_word(tmp_path: Path) -> None:
    one = wanted(value="{n}")
    own = wanted(tunable="sysctl:vm.dirty_ratio", value="{m}")
    paths = write(
        tmp_path,
        document(
            "base",
            one,
            wanted(tunable="sysctl:vm.dirty_ratio"),
            parameters={"n": NUMBER, "m": NUMBER},
            guards=["llt-memory"],
        ),
        document("child", own, inherits=["base"], parameters={"n": {**NUMBER, "default": 7}}),
    )
    child = load("child", paths)
    assert [(each.tunable, each.value) for each in child.tunables] == [
        ("sysctl:vm.swappiness", "{n}"),
        ("sysctl:vm.dirty_ratio", "{m}"),
    ]
    assert parameter_values(child, {}) == {"n": 7, "m": 5}
    assert child.guards == ("llt-memory",)


def test_of_two_parents_the_later_one_wins(tmp_path: Path) -> None:
    one, two = (document(name, wanted(value=name)) for name in ("one", "two"))
    child = document("child", wanted(tunable="sysctl:vm.dirty_ratio"), inherits=["one", "two"])
    assert [each.value for each in load("child", write(tmp_path, one, two, child)).tunables] == ["two", "10"]


def test_endless_ways_to_one_profile_are_gone_once(tmp_path: Path) -> None:
    both = [[f"l{n}", f"r{n}"] * 500 for n in range(1, 16)]
    floors = [document(f"{side}{n}", inherits=up) for n, up in enumerate(both, 1) for side in "lr" if n < 15]
    top = [document("l15"), document("r15")]
    for number, floor in enumerate(floors):
        floor["inherits"] = both[number // 2 + 1] if number // 2 + 1 < len(both) else ["l15"]
    assert load("l1", write(tmp_path, *floors, *top)).tunables


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        *DATA["inheritance_that_is_broken"],
        (
            [document("a", inherits=["a1"]), *(document(f"a{n}", inherits=[f"a{n + 1}"]) for n in range(1, 40))],
            "a.toml: inherits over more than 16 generations",
        ),
    ],
)
def test_inheritance_that_is_broken(documents: list[dict[str, Any]], words: str, tmp_path: Path) -> None:
    paths = write(tmp_path, *documents)
    with pytest.raises(AdvisorError) as caught:
        load("a", paths)
    assert words in caught.value.message
    with pytest.raises(AdvisorError) as caught:
        lint_profile(paths["a"])
    assert words in caught.value.message
    assert caught.value.exit_code == 2


def test_a_name_that_is_not_there_has_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load("jumbo-frame")
    assert caught.value.hint == "did you mean jumbo-frames?"


def test_a_file_is_named_as_its_profile(tmp_path: Path) -> None:
    path = tmp_path / "yours.toml"
    path.write_bytes(toml(document("mine")))
    said = r"yours\.toml: name is 'mine', the file name says 'yours'"
    with pytest.raises(InvalidInputError, match=said) as caught:
        load("yours", {"yours": path})
    assert caught.value.hint == 'name = "yours" in it, or the file name mine.toml'
    with pytest.raises(InvalidInputError, match=said):
        lint_profile(path)


def test_a_local_profile_hides_a_shipped_one(tmp_path: Path) -> None:
    write(tmp_path, document("jumbo-frames"), document("mine"))
    paths = profile_paths(tmp_path)
    assert paths["jumbo-frames"].parent == paths["mine"].parent == tmp_path
    assert paths["numa-pinning"].parent == shipped_directory()


@pytest.mark.parametrize("size", [MAX_PROFILE_BYTES + 1, 1 << 30])
def test_a_huge_file(size: int, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(InvalidInputError, match="larger than 256 KiB"):
        lint_profile(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nix\.toml: No such file"):
        lint_profile(tmp_path / "nix.toml")
