"""What TuneD makes of its own profiles on a real kernel, and what our import of them makes there: equal or reported.

`python -m benchmarks.tuned_effect` prints a table and every value that differs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.tuned_effect import State, Tuned, by_tuned, effect, look, said
from tests.importers.tuned_package import NAMES

from .guest import Machine

pytestmark = pytest.mark.thorough

Clean = tuple[State, dict[str, Tuned]]


@pytest.fixture(scope="module")
def tuned(guest: Machine) -> Iterator[Clean]:
    """The guest as it is, and what TuneD makes of each profile: all at once, as its daemon takes long to start."""
    clean = look(guest)
    yield clean, by_tuned(guest, NAMES, clean)
    guest.run("rm -rf /var/lib/advisor /etc/advisor", timeout=30)


@pytest.mark.parametrize("name", NAMES)
def test_an_imported_profile_does_what_tuned_does(guest: Machine, tuned: Clean, name: str) -> None:
    clean, by_name = tuned
    found = effect(guest, name, clean, by_name[name])
    print(said(found))
    assert found.unexplained == {}
    assert found.remains == {}
