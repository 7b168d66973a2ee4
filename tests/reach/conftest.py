"""Namespaces that are gone after the test, whatever happened in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reach.space import Spaces, can_have_namespaces


@pytest.fixture(scope="session")
def _namespaces() -> None:
    if not can_have_namespaces():
        pytest.skip("needs root and network namespaces")


@pytest.fixture
def spaces(_namespaces: None) -> Iterator[Spaces]:
    made = Spaces()
    try:
        yield made
    finally:
        made.remove()
