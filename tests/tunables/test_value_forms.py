"""Each form of a value is read alike by Python and by the scripts' sh and awk, whatever a file or a command gives.

`TEXTS` has real contents for each form; the examples are these with pieces inserted, removed and exchanged. All
examples of a batch are read by one process of each shell.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.tunables.form_shell import NOTHING, SHELLS, read_by_both

TEXTS = {form: (case["texts"], case.get("arguments", [""])) for form, case in cases(__file__).items()}
"""Form: texts as they occur, and arguments of the form."""

"""Forms whose probes are records of their own: the kernel answers Python by netlink, or several files are read."""

ODD = (
    *(" ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x7f", "\x85", "\xa0", "\u1680", "\u2028", "\u3000"),
    *("é", "１", "٣", "\U0001f600"),
    *["0", "007", "010", "1", "-", "+", "=", ":", ",", ";", ".", "/", "\\", "'", '"', "$x", "`", "%s", "\\n", "*"],
    "9" * 19,
    *("[", "]", "(", ")", "{", "}", "#", "!", "a", "_", "0x1f", "1e3", "inf", "nan"),
)


NEVER_READ = {
    "conf:none",
    "cpf:none/globals",
    "llttab-mtu:c",
    "llttab-mtu:e",
    "timer:highwater",
    "module:zfs",
    "udev-class:ADVISOR_C_3",
}
"""Of `TEXTS`, what is not there or cannot be read."""


def mutated(text: str, edits: list[tuple[int, int, str | None]]) -> str:
    """The text after each edit: a piece inserted, or (None) a part of the text that is there moved."""
    for start, length, piece in edits:
        at = start % (len(text) + 1)
        if piece is None:
            text = text[:at] + text[at + length :] + text[at : at + length] * (length % 3)
        else:
            text = text[:at] + piece + text[at + length % 4 :]
    return text


def examples(form: str) -> st.SearchStrategy[tuple[str, bytes]]:
    texts, arguments = TEXTS[form]
    edit = st.tuples(st.integers(0, 400), st.integers(0, 12), st.none() | st.sampled_from(ODD))
    words = sorted({word for text in texts for word in text.split()})
    known = st.tuples(st.integers(0, 400), st.just(0), st.sampled_from(words or [""]))
    made = st.builds(mutated, st.sampled_from(texts), st.lists(edit | known, max_size=5))
    lines = st.lists(st.lists(st.sampled_from([*words, *ODD[:4]]), max_size=8).map(" ".join), max_size=4)
    made |= lines.map("\n".join)
    named = [f"{form}:{argument}".removesuffix(":") for argument in arguments]
    return st.tuples(st.sampled_from(named), made.map(str.encode))


@pytest.mark.parametrize("form", TEXTS)
def test_the_examples_have_values(form: str, tmp_path: Path) -> None:
    """Two texts that nobody can read agree, too."""
    texts, arguments = TEXTS[form]
    listed = [(f"{form}:{name}".removesuffix(":"), text.encode()) for text in texts for name in arguments]
    for shell in SHELLS:
        found = read_by_both(tmp_path, listed, shell)
        assert all(by_python == by_shell for *_, by_python, by_shell in found)
        assert {name for name, _, by_python, _ in found if by_python not in (NOTHING, "(unset)", "")} >= {
            name for name, _ in listed
        } - NEVER_READ


def check_batch(where: Path, listed: list[tuple[str, bytes]]) -> None:
    for shell in SHELLS:
        for form, text, by_python, by_shell in read_by_both(where, listed, shell):
            assert by_python == by_shell, (shell[0], form, text)


@pytest.mark.parametrize("form", TEXTS)
def test_both_read_the_same(form: str, tmp_path: Path) -> None:
    # A failure names the text; to shrink the whole batch takes minutes.
    @settings(max_examples=3, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.lists(examples(form), min_size=20, max_size=20))
    def check(listed: list[tuple[str, bytes]]) -> None:
        check_batch(tmp_path, listed)

    check()
