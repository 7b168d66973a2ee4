"""Fixtures of the proof tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from advisor.host import Host
from tests.reach.space import Spaces, can_have_namespaces

from .fakes import FakeFio, calm_host
from .second_host import SecondHost, eventually, why_not

# a busy machine is no flaw of a law
settings.register_profile("proof", deadline=None)
settings.load_profile("proof")


@pytest.fixture
def fake_fio(tmp_path: Path) -> FakeFio:
    return FakeFio(tmp_path / "bin")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return calm_host(tmp_path / "tree")


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty directory on a real file system; /tmp may be one in memory."""
    place = Path(tempfile.mkdtemp(prefix="advisor-proof-test-", dir="/var/tmp"))
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def second_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondHost]:
    if not can_have_namespaces():
        pytest.skip("needs root and network namespaces")
    missing = why_not()
    if missing:
        pytest.skip(missing)
    spaces = Spaces()
    made = None
    try:
        made = SecondHost(spaces, tmp_path_factory.mktemp("second"))
        yield made
    finally:
        if made is not None:
            made.remove()
        spaces.remove()


@pytest.fixture
def second(second_host: SecondHost) -> Iterator[SecondHost]:
    """The two hosts; nothing may be left of a run at either end."""
    second_host.configure()
    yield second_host
    eventually(lambda: second_host.left_over() == [])
