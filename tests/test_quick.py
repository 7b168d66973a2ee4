"""`pytest -m quick` has tests of every package, and what is named for it exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import QUICK_MODULES, QUICK_PACKAGES, SLOW_MODULES

TESTS = Path(__file__).parent
# Without a test that is quick: virtual machines, random damage, hostile texts on every output, builds of packages.
LEFT_OUT = {"fixtures", "fuzz", "golden", "hostile", "lab", "packages"}


def test_every_package_of_tests_has_quick_ones() -> None:
    packages = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    covered = {*QUICK_PACKAGES, *(name.partition("/")[0] for name in QUICK_MODULES if "/" in name)}
    assert packages == covered | LEFT_OUT


@pytest.mark.parametrize("name", [*QUICK_MODULES, *SLOW_MODULES])
def test_what_is_named_exists(name: str) -> None:
    module, _, function = name.partition("::")
    assert f"def {function}" in (TESTS / module).read_text()


def test_this_is_quick(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("quick")
