"""Texts as TOML: whatever is written is read back by another program's reader as the same text."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.profiles.toml_text import quote_toml
from tests.cases import read_cases


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_is_read_back_as_it_is(text: str) -> None:
    written = quote_toml(text)
    assert tomllib.loads(f"a = {written}\n") == {"a": text}
    assert written.isprintable()


DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "written"), DATA["what_is_not_shown_as_itself"])
def test_what_is_not_shown_as_itself_is_escaped(text: str, written: str) -> None:
    assert quote_toml(text) == written


def test_a_byte_of_a_name_that_is_no_text_is_marked() -> None:
    assert tomllib.loads(f"a = {quote_toml('sd' + chr(0xDCFF))}") == {"a": "sd?"}
