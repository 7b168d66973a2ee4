"""A series by the real fio on a scratch file of a real file system."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from advisor.host import live_host
from advisor.proof.archive import SavedBench, load_any
from advisor.proof.bench import bench
from advisor.proof.identity import read_identity
from advisor.proof.scratch import GIB, MIB, Keep
from advisor.proof.session import Settings

from .benches import OTHER


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed (package fio)")
def test_the_real_fio_on_this_machine_as_it_is(disk: Path, tmp_path: Path) -> None:
    """Whatever the machine is busy with: the figures are those of the runs, and nothing is left."""
    chosen = Settings(
        target=str(disk),
        mode="quick",
        seconds=0.1,
        scratch_bytes=16 * MIB,
        byte_budget=GIB,
        keep=Keep(0, 0.0),
        force=True,
        save_to=str(tmp_path / "kept"),
    )
    found = bench(live_host(), (OTHER,), chosen)
    assert os.listdir(disk) == []
    assert found.series.host == read_identity(live_host())
    (one,) = found.workloads
    values = [run.figures.iops for each in found.series.rounds for run in each.runs if not each.superseded]
    assert one.runs == len(values) > 0
    assert one.median is not None
    assert min(values) <= one.median <= max(values)
    saved = load_any(tmp_path / "kept")
    assert isinstance(saved, SavedBench)
    assert all('"jobs"' in text for text in saved.fio.values())
