"""TuneD's INI dialect, and the loader: includes, merging, variables, and texts that mean harm."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.tuned.files import MAX_BYTES, decode_text, installed_profiles, parse_tuned_ini, profile_directories
from advisor.facts.tuned.profile import TunedProfile, load_tuned
from advisor.facts.tuned.regex import UnsafePatternError, search_text
from advisor.host import live_host
from tests.importers.hosts import machine, tuned

TEXT = st.text(alphabet="ab=[]#; \t\n\rDEFAULT>%é\x0b\x85", max_size=60)


@given(TEXT, st.booleans())
def test_ini_is_what_configparser_makes_of_it(text: str, is_variables: bool) -> None:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parser = configparser.ConfigParser(
        delimiters=("="), inline_comment_prefixes=("#"), strict=False, allow_no_value=is_variables
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(f"[headerless]\n{text}" if is_variables else text)
    except (configparser.Error, AttributeError):
        # AttributeError: a line that continues an option without a value.
        with pytest.raises(InvalidInputError):
            parse_tuned_ini(text, "x", is_variables=is_variables)
        return
    expected = {
        "" if name == "headerless" else name: {key: parser.get(name, key, raw=True) for key in parser.options(name)}
        for name in parser.sections()
    }
    found = parse_tuned_ini(text, "x", is_variables=is_variables)
    assert {name: {key: one.value for key, one in options.items()} for name, options in found.items()} == expected


def test_lines_comments_and_what_is_said_twice() -> None:
    sections = parse_tuned_ini("[sysctl]\n# Less swapping.\n# Really.\na=1\n\na = 2\n  3\n", "x.conf")
    option = sections["sysctl"]["a"]
    assert (option.value, option.line, option.earlier) == ("2\n3", 6, ((4, "1"),))
    assert parse_tuned_ini("[s]\n# Why.\na=1\n", "x")["s"]["a"].comment == "Why."
    assert parse_tuned_ini("[s]\n# Not of a.\n\na=1\n", "x")["s"]["a"].comment == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a=1\n", "line 1: a setting before the first section"),
        (b"[a]\nb\n", "line 2: neither a section nor NAME=VALUE: 'b'"),
        (b"[a]\n=b\n", "line 2: a value without a name"),
        (b"[a]\n\xff=1\n", "line 2: not UTF-8"),
        (b"#" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_what_tuned_does_not_load_is_told_by_file_and_line(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^/x/tuned\.conf: ") as caught:
        parse_tuned_ini(decode_text(data, "/x/tuned.conf"), "/x/tuned.conf")
    assert words in caught.value.message


def load(name: str = "mine", **profiles: str) -> TunedProfile:
    host = machine(tuned(**profiles))
    return load_tuned(name, host, host)


def options(profile: TunedProfile, unit: str) -> dict[str, str | None]:
    return {key: option.value for key, option in profile.units[unit].options.items()}


def test_what_a_profile_includes_comes_first_and_is_overridden() -> None:
    found = load(
        mine="[main]\ninclude=base\n[sysctl]\nb=20\nc=30\n", base="[sysctl]\na=1\nb=2\n", other="[sysctl]\nx=1\n"
    )
    assert options(found, "sysctl") == {"a": "1", "b": "20", "c": "30"}
    assert [(one.key, one.why) for one in found.lost] == [("b", "/usr/lib/tuned/mine/tuned.conf line 4 sets it again")]


def test_several_includes_and_one_that_may_be_missing() -> None:
    found = load(mine="[main]\ninclude = one ; two, -three\n", one="[sysctl]\na=1\n", two="[sysctl]\na=2\n")
    assert options(found, "sysctl") == {"a": "2"}


def test_replace_drop_type_and_enabled() -> None:
    base = "[sysctl]\na=1\nb=2\n[vm]\ntransparent_hugepages=never\n[extra]\ntype=sysctl\nx=1\n"
    found = load(
        mine="[main]\ninclude=base\n[sysctl]\ndrop=a\nc=3\n[vm]\nreplace=1\n[extra]\nenabled=0\ntype=sysctl\n",
        base=base,
    )
    assert options(found, "sysctl") == {"b": "2", "c": "3"}
    assert options(found, "vm") == {}
    assert not found.units["extra"].enabled
    assert {(one.unit, one.key) for one in found.lost} >= {("sysctl", "a"), ("vm", "transparent_hugepages")}


def test_a_profile_of_etc_hides_one_of_usr() -> None:
    host = machine({**tuned(mine="[sysctl]\na=1\n"), "/etc/tuned/mine/tuned.conf": "[sysctl]\na=2\n"})
    assert options(load_tuned("mine", host, host), "sysctl") == {"a": "2"}


def test_an_own_profile_may_include_the_one_that_it_hides() -> None:
    own = "[main]\ninclude=mine\n[sysctl]\nb=2\n"
    host = machine({**tuned(mine="[sysctl]\na=1\n"), "/etc/tuned/mine/tuned.conf": own})
    assert options(load_tuned("mine", host, host), "sysctl") == {"a": "1", "b": "2"}


def test_the_newer_layout_and_a_directory_of_ones_own() -> None:
    newer = machine({"/usr/lib/tuned/profiles/a/tuned.conf": "[sysctl]\n", "/usr/lib/tuned/b/tuned.conf": "[sysctl]\n"})
    assert list(installed_profiles(newer)) == ["a"]
    reported = machine(
        {"/etc/tuned/tuned-main.conf": "profile_dirs=/srv/a,/srv/b\n", "/srv/b/x/tuned.conf": "[main]\n"}
    )
    assert profile_directories(reported) == ("/srv/a", "/srv/b")
    assert list(installed_profiles(reported)) == ["x"]


def test_cycles_of_includes_end() -> None:
    found = load(mine="[main]\ninclude=other\n[sysctl]\na=1\n", other="[main]\ninclude=mine\n[sysctl]\nb=2\n")
    assert options(found, "sysctl") == {"b": "2", "a": "1"}


def test_a_missing_include_names_the_line() -> None:
    with pytest.raises(InvalidInputError, match=r"mine/tuned\.conf: line 2: includes 'gone'"):
        load(mine="[main]\ninclude=gone\n")


@pytest.mark.parametrize("name", ["gone", "../../etc/passwd", "-gone", "", "/"])
def test_a_profile_that_is_not_there_is_a_wrong_call(name: str) -> None:
    with pytest.raises(UsageError):
        load(name, mine="[sysctl]\n")


def test_a_thousand_includes_are_too_many() -> None:
    chain = {f"p{number}": f"[main]\ninclude=p{number + 1}\n" for number in range(1000)}
    with pytest.raises(InvalidInputError, match="too many"):
        load("p0", **chain)


def test_variables_from_files_and_in_terms_of_each_other() -> None:
    host = machine(
        {
            **tuned(mine="[variables]\ninclude=/etc/tuned/x.conf\nb=${a}5\n[sysctl]\nv=${b}\nw=${nothing}\n"),
            "/etc/tuned/x.conf": "a=1\nc\n",
        }
    )
    found = load_tuned("mine", host, host)
    assert found.variables.expand("${b}").text == "15"
    assert found.variables.missing("${nothing} ${b}") == ("nothing", "b")


def test_variables_that_name_each_other_do_not_loop_or_swell() -> None:
    doubled = "".join(f"v{number + 1}=${{v{number}}}${{v{number}}}\n" for number in range(60))
    found = load(mine=f"[variables]\nx=${{y}}\ny=${{x}}\nv0=aaaaaaaa\n{doubled}[sysctl]\na=${{v60}}\n")
    assert found.variables.expand("${y}").text == "${y}"
    assert len(found.variables.expand("${v60}").text) < 200_000
    assert found.variables.expand("${v60}").unresolved


def test_an_assertion_that_fails_is_told() -> None:
    found = load(mine="[variables]\na=${f:assertion:the same:1:2}\nb=7\n[sysctl]\nx=${b}\n")
    assert found.failed is not None
    assert "the same" in found.failed
    assert found.variables.expand("${b}").text == "7"


@pytest.mark.parametrize("pattern", ["(a+)+$", "((a*)*)*b", "(?:a{1,9999}){1,9999}", "(", "a" * 3000, "(.*.*.*)+x"])
def test_patterns_that_could_take_for_ever_are_refused(pattern: str) -> None:
    with pytest.raises(UnsafePatternError):
        search_text(pattern, "a" * 5000)


def test_a_search_ends_in_time() -> None:
    with pytest.raises(UnsafePatternError, match="too long"):
        search_text(".*a.*a.*a.*a.*a.*a.*b", "a" * 4000)
    assert search_text("b$", "ab\nc", lines=True)
    assert not search_text("b$", "ab\nc")


def test_devices_that_a_profile_names_are_not_opened(tmp_path: Path) -> None:
    """A pipe stands for one: reading it would wait, and a device may act as soon as it is opened."""
    os.mkfifo(tmp_path / "pipe")
    text = f"[variables]\ninclude={tmp_path}/pipe\n[sysctl]\nvm.swappiness=${{a}}\n"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tuned.conf").write_text(text)
    found = load_tuned("mine", live_host(), machine(), directories=(str(tmp_path),))
    assert found.variables.values == {}
    os.mkfifo(tmp_path / "tuned.conf")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tuned.conf").symlink_to("../tuned.conf")
    with pytest.raises(UsageError):
        load_tuned("other", live_host(), machine(), directories=(str(tmp_path),))
