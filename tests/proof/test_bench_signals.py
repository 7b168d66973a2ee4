"""Signals in the midst of a series, sent to a real process that measures one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.proof.archive import SavedBench, load_any
from tests.waiting import PATIENCE_SECONDS

from .fakes import FakeFio, calm_tree

ROOT = Path(__file__).parents[2]
# By name, not from the product: whatever ends a process by default and can be caught in good order.
ENDING = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM),
)
SERIES = """
import sys
from pathlib import Path
from advisor.errors import AdvisorError
from advisor.host import tree_host
from advisor.proof.bench import bench
from advisor.proof.session import Settings
from advisor.proof.scratch import Keep, MIB
from tests.proof.fakes import FakeFio

bin, tree, disk, saved, megabytes = sys.argv[1:]
settings = Settings(target=disk, scratch_bytes=int(megabytes) * MIB, keep=Keep(0, 0.0), byte_budget=1 << 40,
                    save_to=saved)
try:
    bench(tree_host(tree), ("infoscale.4k-rand-r100",), settings, runner=FakeFio.existing(Path(bin)).runner,
          progress=lambda event: print(event.stage, event.pair, flush=True))
except AdvisorError as error:
    print("ended:", error.message, flush=True)
    raise SystemExit(error.exit_code)
"""


@pytest.mark.repeats(3)
@pytest.mark.parametrize(
    ("number", "line"), [*((number, "round 2") for number in ENDING), (signal.SIGTERM, "scratch 0")]
)
def test_any_signal_leaves_no_file_and_keeps_the_partial_result(
    fake_fio: FakeFio, tmp_path: Path, disk: Path, number: signal.Signals, line: str
) -> None:
    fake_fio.plan(sleep=0.1)
    saved = tmp_path / "partial"
    words = [fake_fio.directory, calm_tree(tmp_path / "tree"), disk, saved, 1 if line == "round 2" else 2000]
    process = subprocess.Popen(
        [sys.executable, "-c", SERIES, *map(str, words)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert line in (seen.strip() for seen in process.stdout), "the series ended too early"
    time.sleep(0.05)
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert f"stopped by {number.name}" in output
    assert os.listdir(disk) == []
    partial = load_any(saved)
    assert isinstance(partial, SavedBench)
    assert (partial.bench.quality, partial.bench.series.ended) == ("indicative", "interrupted")
