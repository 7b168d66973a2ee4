"""Settings of pasted texts, form by form."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import scan
from advisor.importers.pasted.forms import Pasted, read_pasted
from advisor.importers.source import MAX_BYTES, decode
from tests.cases import cases
from tests.importers.hosts import machine

CASES = cases(__file__)


def read(text: str, name: str = "text.txt") -> Pasted:
    host = machine()
    return read_pasted(text, name, host, scan(host))


@pytest.mark.parametrize("name", CASES)
def test_forms(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    found = read(case["text"], case.get("file", "text.txt"))
    assert [[one.line, one.tunable, one.wanted] for one in found.settings] == case["settings"]
    assert found.passed_over == case["passed"]
    if "alike" in case:
        assert [one.line for one in found.alike] == case["alike"]
    assert [one.line for one in found.settings if one.is_container] == case.get("containers", [])


@pytest.mark.parametrize(("data", "word"), [(b"a\n\x7fELF\0\0", "line 2"), (b"x" * (MAX_BYTES + 1), "MiB")])
def test_what_is_no_text_is_refused(data: bytes, word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        decode(data, "given")


def test_texts_of_other_encodings() -> None:
    assert decode("vm.swappiness=1\r\n".encode("utf-16"), "given") == "vm.swappiness=1\n"
    assert decode(b"\xef\xbb\xbfvm.swappiness=1\rx=\xff", "given").startswith("vm.swappiness=1\nx=")
