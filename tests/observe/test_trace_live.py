"""The private tracing instance on the running kernel: it is left by nobody, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.errors import AdvisorError, PermissionDeniedError
from advisor.host import trace_instance
from advisor.host.trace_instance import PREFIX, open_trace
from advisor.observe.tracing import EVENTS, trace_requests
from tests.known import known

ROOT = Path(__file__).parents[2]
EVENTS_OF_NOBODY = dict.fromkeys(EVENTS, "dev == 0")
HOLD = (
    "import sys\nfrom advisor.host.trace_instance import open_trace\nfrom advisor.observe.tracing import EVENTS\n"
    "with open_trace(dict.fromkeys(EVENTS, 'dev == 0')):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def can_trace() -> bool:
    try:
        with open_trace(EVENTS_OF_NOBODY):
            return True
    except AdvisorError:
        return False


needs_tracing = pytest.mark.skipif(os.geteuid() != 0 or not can_trace(), reason="needs root and tracefs")


def instance_names() -> set[str]:
    with trace_instance._opened_instances() as directory:
        return {name for name in os.listdir(directory) if name.startswith(PREFIX)}


def started() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert known(process.stdout).readline() == "held\n"
    return process


@needs_tracing
def test_an_instance_is_private_and_goes_with_its_block() -> None:
    before = instance_names()

    def fail_inside() -> None:
        with open_trace(EVENTS_OF_NOBODY) as trace:
            assert len(instance_names() - before) == 1
            assert not any(trace.read_pages())
            assert trace.count_lost() == 0
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert instance_names() <= before


@needs_tracing
def test_the_next_run_removes_what_a_killed_one_left_and_nothing_that_is_used() -> None:
    with started() as used, started() as killed:
        both = instance_names()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert instance_names() == both
        with open_trace(EVENTS_OF_NOBODY):
            left = instance_names() & both
        assert len(left) == len(both) - 1
        used.communicate("")
        assert used.returncode == 0
    assert not instance_names() & left


@needs_tracing
def test_requests_are_seen(tmp_path: Path) -> None:
    events = dict.fromkeys(EVENTS)
    place = tmp_path / "file"
    end = time.monotonic() + 20

    def write_file(_: float) -> None:
        with place.open("wb") as file:
            file.write(os.urandom(65536))
            os.fsync(file.fileno())

    asked: list[int] = []

    def owner_of(pid: int) -> str:
        asked.append(pid)
        return "someone"

    while time.monotonic() < end:
        asked.clear()
        traced = trace_requests(0.2, events, owner_of, sleep=write_file)
        if requests := [one for found in traced.devices.values() for one in found.requests]:
            assert {one.pid for one in requests} <= set(asked) == traced.owners.keys()
            assert all(0 <= one.seconds < 20 and one.size_bytes % 512 == 0 for one in requests)
            return
    pytest.skip("no block device is below the directory of temporary files")


def test_without_root_it_is_refused() -> None:
    code = (
        "import os\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n"
        "from advisor.errors import PermissionDeniedError\nfrom advisor.host.trace_instance import open_trace\n"
        "try:\n    with open_trace({'block/block_rq_issue': None}): print('traced')\n"
        "except PermissionDeniedError as error: print(error.message, '|', error.hint)\n"
    )
    if os.geteuid() != 0:
        with pytest.raises(PermissionDeniedError, match="tracing"), open_trace(EVENTS_OF_NOBODY):
            pass
        return
    # Loaded before the rights go: nobody may not read the package.
    preload = "import ctypes, advisor.errors, advisor.host.trace_instance\n"
    call = [sys.executable, "-c", preload + code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("tracing block requests: ")
    assert "root" in done.stdout
