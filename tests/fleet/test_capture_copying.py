"""What cp says about what it could not copy, in the words of its makers."""

from __future__ import annotations

import pytest

from advisor.snapshot.remote.store import parse_copy_errors
from tests.cases import read_cases

DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "reasons", "pathless"), DATA["words_of_all_makers"])
def test_words_of_all_makers(text: str, reasons: dict[str, str], pathless: str | None) -> None:
    assert parse_copy_errors(text) == (reasons, pathless)
