"""Whatever a file, a tool or a user gives: no parser fails but as documented, hangs, or returns another type.

``ADVISOR_FUZZ_EXAMPLES=100000`` makes it a long run. An input that broke a parser goes to ``corpus/NAME/NNN``, where it
stays and is tried with every run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.conform import conforms
from tests.fuzz.targets import Target, samples, targets, uncovered

EXAMPLES: Final = int(os.environ.get("ADVISOR_FUZZ_EXAMPLES", "12"))
CORPUS: Final = Path(__file__).parent / "corpus"
LONGEST_SECONDS: Final = 10
BY_NAME: Final = {target.name: target for target in targets()}

# What parsers stumble over: numbers that are none, or too many; other digits, blanks and line ends; what is not text.
TOKENS: Final = tuple(
    token.encode("utf-8", "surrogateescape")
    for token in (
        *("0", "-1", "+1", "00", "1" * 25, "9" * 5000, "1_0", "1e999", "nan", "-inf", "0x", "0b1", "1.", ".5", "1,5"),
        *("٣", "²", "½", "Ⅷ", "１", "\x1c", "\x1f", "\x85", "\u2028", "\u00a0", "\u200b", "\ufeff", "\ufffd"),
        *("\0", "\udcff", "\udcc3(", "\x7f", "\x1b[31m", "\r", "\r\n", "\n\n\n", "\t", "\v", "\f", " " * 40),
        *("-", "--", ":", "::", "=", "==", ",", ",,", "/", "//", "|", "(", ")", "[", "]", "{", "}", "<", ">", '"', "'"),
        *("#", ";", "\\", "\\\n", "%", "$", "*", "?", "!", "&", "~", ".", "..", "null", "true", "none", "None", "N/A"),
        *(
            "[" * 200,
            "[" * 20_000,
            '{"a":' * 5000,
            "{" * 200,
            "(" * 200,
            '"' * 7,
            "a" * 3000,
            "é",
            "日本",
            "\U0001f600",
            "Z",
            "K",
            "KiB",
            "%s",
        ),
    )
)

_POSITION = st.integers(0, 1 << 14)
_PIECE = st.one_of(st.sampled_from(TOKENS), st.binary(max_size=6), st.text(max_size=4).map(lambda text: text.encode()))


class Change(NamedTuple):
    """One thing that is done to an input at ``place``; what ``length``, ``times`` and ``piece`` mean depends on it."""

    kind: str
    place: int
    length: int = 0
    times: int = 1
    piece: bytes = b""


_CHANGE = st.one_of(
    st.builds(Change, st.just("replace"), _POSITION, st.just(0) | st.integers(1, 30), piece=_PIECE),
    st.builds(Change, st.just("replace"), _POSITION, st.integers(1, 200)),
    st.builds(Change, st.just("repeat"), _POSITION, st.integers(1, 60), st.integers(1, 40)),
    st.builds(Change, st.just("flip"), _POSITION, st.integers(1, 255)),
    st.builds(Change, st.just("swap lines"), _POSITION, _POSITION),
    st.builds(Change, st.just("splice"), _POSITION, _POSITION, st.integers(0, 1000)),
    st.builds(Change, st.just("end"), _POSITION),
)


def changed(data: bytes, change: Change, others: tuple[bytes, ...]) -> bytes:
    """``data`` with one thing done to it."""
    at, length = change.place % (len(data) + 1), change.length
    match change.kind:
        case "replace":
            return data[:at] + change.piece + data[at + length :]
        case "repeat":
            return data[:at] + data[at : at + length] * change.times + data[at:]
        case "flip":
            return data[:at] + bytes(byte ^ length for byte in data[at : at + 1]) + data[at + 1 :]
        case "swap lines":
            lines = data.split(b"\n")
            one, other = change.place % len(lines), length % len(lines)
            lines[one], lines[other] = lines[other], lines[one]
            return b"\n".join(lines)
        case "splice":
            text = others[change.times % len(others)]
            return data[:at] + text[length % (len(text) + 1) :]
    return data[:at]


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Samples of the parser's own tests, changed in a few places; now and then anything at all."""
    own = samples(target.name)

    def made(parts: tuple[bytes, list[Change]]) -> bytes:
        data, changes = parts
        for change in changes:
            data = changed(data, change, own)
        return data[:100_000]

    near = st.tuples(st.sampled_from(own), st.lists(_CHANGE, max_size=5)).map(made)
    return st.one_of(
        near, near, near, near, st.binary(max_size=60), st.text(max_size=40).map(lambda text: text.encode())
    )


@contextmanager
def in_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(target: Target, data: bytes) -> None:
    """Give the target the input, as text where it takes text: as `Host.read` decodes it, and as a file name is."""
    forms: tuple[object, ...] = (data,)
    if target.takes is str:
        forms = (data.decode("utf-8", "replace"), data.decode("utf-8", "surrogateescape"))
    for form in dict.fromkeys(forms):
        with in_time(), suppress(*target.raises):
            found = target.run(form)
            assert target.hint is None or conforms(found, target.hint), f"returned {found!r}"[:2000]


@pytest.mark.parametrize("name", BY_NAME)
def test_a_parser_keeps_its_word(name: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
    @given(inputs(BY_NAME[name]))
    def fuzz(data: bytes) -> None:
        attempt(BY_NAME[name], data)

    fuzz()


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_a_parser(path: Path) -> None:
    attempt(BY_NAME[path.parent.name], path.read_bytes())


def test_every_parser_is_fuzzed() -> None:
    assert uncovered() == []
    assert len(BY_NAME) == len(targets())


@pytest.mark.thorough
def test_every_parser_has_samples_of_its_own() -> None:
    assert [name for name in BY_NAME if not samples(name)] == []
