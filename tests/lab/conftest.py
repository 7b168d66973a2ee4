"""The lab's fixtures: one guest for the whole session.

ADVISOR_LAB=off skips the lab's tests. ADVISOR_LAB=required, or CI in the environment, turns "cannot run here"
from a skip into a failure. ADVISOR_LAB_SOCKET=PATH uses the guest that `python -m tests.lab serve --socket
PATH` keeps up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .backend import lab_host
from .guest import CannotRunError, Guest, Machine
from .hardware import STORAGE_HOST
from .serve import ServedGuest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testinfra.host import Host

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a guest; `--dist loadfile` of pytest-xdist keeps a module with one worker and its guest."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("lab")


@pytest.fixture(scope="session")
def guest() -> Iterator[Machine]:
    """A running STORAGE_HOST, shared by all tests of the session: a test restores what it changes."""
    if os.environ.get("ADVISOR_LAB") == "off":
        pytest.skip("the lab is switched off (ADVISOR_LAB=off)")
    served = os.environ.get("ADVISOR_LAB_SOCKET")
    if served:
        yield ServedGuest(Path(served))
        return
    machine = Guest(STORAGE_HOST)
    try:
        machine.boot()
    except CannotRunError as error:
        refuse_to_run(error)
    yield machine
    machine.stop()


def refuse_to_run(error: CannotRunError) -> None:
    """Skip, or fail where a silent skip would hide that nothing was tested."""
    if os.environ.get("CI") or os.environ.get("ADVISOR_LAB") == "required":
        pytest.fail(f"the lab is required and cannot run: {error}", pytrace=False)
    pytest.skip(f"the lab cannot run here: {error}")


@pytest.fixture(scope="session")
def lab(guest: Machine) -> Host:
    """The guest as testinfra sees it."""
    return lab_host(guest)


@pytest.fixture(autouse=True)
def _guest_is_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails between a power cut and the next start must not take the tests after it down."""
    yield
    if "guest" in request.fixturenames:
        machine: Machine = request.getfixturevalue("guest")
        if not machine.is_on:
            machine.boot()


@pytest.fixture(scope="module")
def storage(guest: Machine) -> Iterator[Machine]:
    """The storage host with arrays, a service, LLT and site sysctl files."""
    guest.run(["lab-setup", "md", "degraded", "service", "llt", "sysctl"], timeout=240).check()
    guest.run("rm -rf /var/lib/advisor", timeout=30).check()
    yield guest
    guest.run("rm -rf /etc/systemd/system/demo-storage.service /var/lib/advisor", timeout=30)
    guest.run(["lab-setup", "no-md", "no-llt"], timeout=120).check()
