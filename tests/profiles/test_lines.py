"""A fault in a profile is reported with its file, its line and its field, and no file keeps us waiting."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InvalidInputError
from advisor.profiles.lint import lint_profile
from advisor.profiles.profile import parse_profile, profile_paths
from advisor.profiles.toml_text import line_of, lines_of
from tests.cases import read_cases

DATA = read_cases(__file__)

RICH = DATA["RICH"]

EXPECTED: dict[tuple[str | int, ...], int] = {
    ("name",): 2,
    ("quoted key", "b.c", "d"): 3,
    ("texts",): 4,
    ("texts", 0): 4,
    ("texts", 1): 7,
    ("texts", 2): 8,
    ("texts", 3): 8,
    ("texts", 4, 0): 9,
    ("texts", 4, 1, 0): 9,
    ("texts", 4, 1, 1): 10,
    ("texts", 5, "y", "z"): 10,
    ("empty",): 12,
    ("when",): 13,
    ("ends",): 14,
    ("table",): 16,
    ("table", "sub.one", "key"): 17,
    ("tunables",): 18,
    ("tunables", 0): 18,
    ("tunables", 0, "tunable"): 19,
    ("tunables", 0, "value", "multiply"): 21,
    ("tunables", 1): 22,
    ("tunables", 1, "deep", 0, "k"): 25,
    ("tunables", 1, "deep", 1): 26,
    ("tunables", 1, "deep", 1, "k"): 27,
    ("tunables", 2): 28,
}


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every path of a decoded document."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths_in(inner, (*path, key))


def test_each_key_has_its_line() -> None:
    found = lines_of(RICH)
    assert {path: found.get(path) for path in EXPECTED} == EXPECTED
    assert set(found) == set(paths_in(tomllib.loads(RICH)))
    assert line_of(RICH, ("tunables", 1, "nowhere")) == 22
    assert line_of(RICH, ("nowhere",)) is None
    assert lines_of(RICH.replace("\n", "\r\n")) == found


WORDS = st.sampled_from(["a", "b", '"c d"', "'e.f'", '"\\u00e9\\""', "1", "a.b", "x . y"])
VALUES: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(['"x"', "''", '""', '"""a\n"b" \\""""', "'''\n]'''", "1.5", "true", "07:32:00", '"#"', "[]", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: "[" + ", # c ]\n ".join(some) + "\n]")
        | st.lists(st.tuples(WORDS, inner), max_size=2).map(
            lambda some: "{" + ", ".join(f"{key} = {value}" for key, value in some) + "}"
        )
    ),
    max_leaves=5,
)
STATEMENTS = st.one_of(
    st.tuples(WORDS, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    WORDS.map(lambda word: f"[{word}]"),
    WORDS.map(lambda word: f" [[ {word} ]] # t"),
    st.just("# note = 1"),
)


@settings(deadline=None)
@given(st.lists(STATEMENTS, max_size=8).map("\n".join))
def test_the_same_keys_as_the_decoder_finds(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = lines_of(text)
    assert set(found) == set(paths_in(document))
    lines = text.split("\n")
    for path, number in found.items():
        last = path[-1]
        # A key stands on its line; the decoder itself, given all up to there and a fault, names the same one.
        assert isinstance(last, int) or any(sign in lines[number - 1] for sign in (last, "\\u00e9"))
        broken = "\n".join([*lines[: number - 1], "= fault"])
        with pytest.raises(tomllib.TOMLDecodeError, match=f"line {number},|at end of document"):
            tomllib.loads(broken)


HEAD = b'name = "mine"\ntitle = "t"\nsummary = "s"\nhelps-when = "h"\nhurts-when = "h"\nsources = ["s"]\n'
LINE = b'[[tunables]]\ntunable = "sysctl:vm.swappiness"\nvalue = "10"\nwhy = "w"\nhurts-when = "h"\nsources = ["s"]\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HEAD + b"version = 'one'\n", "line 7: field version: expected a whole number, found a text in quotes"),
        (HEAD + b"\nhepls-when = 'h'\n", "line 8: field hepls-when: unknown field `hepls-when`"),
        (HEAD + LINE + b"colour = 1\n", "line 13: field tunables[0].colour: unknown field `colour`"),
        (HEAD + LINE + b"sense = ['exactly',\n 5]\n", "line 14: field tunables[0].sense[1]: expected a text in quotes"),
        (HEAD + LINE + b"[[tunables]]\ntunable = 'a'\n", "line 13: field tunables[1]: missing required field"),
        (HEAD + LINE + LINE, "line 14: field tunables[1].tunable: sysctl:vm.swappiness is set by an earlier one"),
        (HEAD + b"[parameters.n]\ntype = 'word'\nabout = 5\n", "line 9: field parameters.n.about: expected a text"),
        (HEAD + b"[parameters.n]\ntype = 'word'\nabout = 'a'\ndefault = 5\n", "line 10: field parameters.n.default: "),
        (HEAD + b"[parameters.N]\ntype = 'word'\nabout = 'a'\n", "line 7: field parameters.N: expected lower-case"),
        (HEAD + b"[parameters]\nn = 5\n", "line 8: field parameters.n: expected a table, found a whole number"),
        (HEAD + b"tunables = 5\n", "line 7: field tunables: expected a list, found a whole number"),
        (HEAD + b"proof = {toggle = 'T9',claims=['c'],where='w'}\n", "line 7: field proof.toggle: expected one of T0"),
        (HEAD + b"'a\\nb' = 1\n", "line 7: field a\\nb: unknown field"),
        (HEAD + b"[[conditions]]\nfact = 'a'\nop = 'at-least'\nreason = 'r'\n", "line 7: field conditions[0].value: "),
        (b"\n\ntitle = 'caf\xe9'", "line 3: not UTF-8 at byte 14"),
        (b"a = 1\nb = 'x\0'\n", "line 2: "),
        (b"a = 1\nversion = " + b"1" * 5000, "line 2: "),
        (b"a = 1\nb = " + b"[" * 100_000, "line 2: nested too deeply"),
        (b"", "x.toml: missing required field `name`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_line_and_the_field_are_named(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(data, "x.toml")
    assert words in caught.value.message
    assert caught.value.message.startswith("x.toml: ")


def test_a_nesting_that_the_decoder_just_takes() -> None:
    for depth in range(200, 1000, 25):
        with pytest.raises(InvalidInputError, match=r"unknown field `b`|nested too deeply"):
            parse_profile(HEAD + b"b = " + b"[" * depth + b"]" * depth, "x.toml")


def test_a_fault_of_what_is_inherited_has_no_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(HEAD + b'inherits = ["other"]\n' + LINE.replace(b'"10"', b'"{n}"'))
    (tmp_path / "other.toml").write_bytes(HEAD.replace(b"mine", b"other") + LINE)
    with pytest.raises(InvalidInputError, match=r"mine\.toml with what it inherits: field tunables\[0\]: \{n\} is"):
        lint_profile(tmp_path / "mine.toml")


@pytest.mark.parametrize("kind", ["fifo", "zeros", "directory", "terminal", "loop", "memory"])
def test_what_is_no_file_is_told_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        targets = {"zeros": "/dev/zero", "terminal": "/dev/ptmx", "loop": "mine.toml", "memory": "/proc/self/mem"}
        path.symlink_to(targets[kind])
    with pytest.raises(InvalidInputError, match=r"mine\.toml: ") as caught:
        lint_profile(path)
    words = {"directory": "Is a directory", "loop": "Too many levels", "memory": "Input/output error"}
    assert words.get(kind, "not a regular file") in caught.value.message


def test_the_shipped_ones_have_a_line_for_everything() -> None:
    for path in profile_paths().values():
        text = path.read_text()
        assert set(lines_of(text)) == set(paths_in(tomllib.loads(text)))


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        *DATA["a_fault_is_in_words_with_what_was"],
        (LINE + b"sense = 'atleast'\n", "expected one of exactly, at-least", "did you mean at-least?"),
        (LINE + b"sense = 'at_most'\n", "found 'at_most'", "did you mean at-most?"),
        (LINE + b"hurst-when = 'x'\n", "unknown field `hurst-when`", "did you mean hurts-when?"),
        (LINE + b"for-each = 'disk'\n", "expected one of links", "did you mean disks?"),
        (LINE + b"only = {kind = ['x']}\n", "unknown field `kind`", "did you mean kinds?"),
    ],
)
def test_a_fault_is_in_words_with_what_was_meant(data: bytes, message: str, hint: str | None) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_profile(HEAD + data, "x.toml")
    assert message in caught.value.message
    assert "`str`" not in caught.value.message
    assert caught.value.hint == hint


@pytest.mark.parametrize(("line", "condition", "words"), DATA["lint_knows_what_no_host_takes"])
def test_lint_knows_what_no_host_takes(
    tmp_path: Path, line: tuple[str, ...], condition: tuple[str, str, str], words: str | None
) -> None:
    text = LINE.replace(line[0].encode(), line[1].encode()) if line else LINE
    more = ""
    if condition:
        fact, op, value = condition
        more = f'[[conditions]]\nfact = "{fact}"\nop = "{op}"\nreason = "It must."\n'
        more += f"value = {value}\n" if value else ""
    path = tmp_path / "mine.toml"
    path.write_bytes(HEAD + more.encode() + text)
    if words is None:
        assert lint_profile(path).name == "mine"
        return
    with pytest.raises(InvalidInputError) as caught:
        lint_profile(path)
    assert words in caught.value.message
    # A plan says so as well, and nothing breaks in it.
    parse_profile(path.read_bytes(), "mine.toml")


def test_lint_judges_what_parameters_may_be_and_the_words_of_a_sense(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    place = LINE.replace(b'"10"', b'"{much}"')
    for parameter, words in (
        ('type = "integer"\ndefault = 500', "'500' is refused"),
        ('type = "word"\nchoices = ["keep", "10", "many"]\ndefault = "keep"', "'many' is refused"),
        ('type = "word"\nchoices = ["keep", "10"]\ndefault = "keep"', None),
    ):
        path.write_bytes(HEAD + place + f'[parameters.much]\nabout = "How much."\n{parameter}\n'.encode())
        if words is None:
            lint_profile(path)
            continue
        with pytest.raises(InvalidInputError, match=words):
            lint_profile(path)
    word = LINE.replace(b"vm.swappiness", b"net.core.default_qdisc").replace(b'"10"', b'"fq"')
    path.write_bytes(HEAD + word + b'sense = "at-least"\n')
    with pytest.raises(InvalidInputError, match=r"tunables\[0\]\.sense: at-least needs a number, found 'fq'"):
        lint_profile(path)


@pytest.mark.parametrize(("more", "words"), DATA["a_parameter_that_is_of_no_use"])
def test_a_parameter_that_is_of_no_use_is_named(tmp_path: Path, more: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(HEAD + LINE + more.encode())
    with pytest.raises(InvalidInputError, match=words):
        lint_profile(path)
