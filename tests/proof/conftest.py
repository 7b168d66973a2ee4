"""Fixtures of the proof tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from advisor.host import Host

from .fakes import FakeFio, calm_host

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


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"
