"""A proof under live traffic that is killed, on the kernel itself: a value of a network namespace of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.transaction.journal import Store
from tests.reach.space import Spaces, can_have_namespaces
from tests.waiting import until, until_unwatched

SETTING = "net.ipv4.tcp_autocorking"
PLACE = "/proc/sys/net/ipv4/tcp_autocorking"


@pytest.fixture
def spaces() -> Iterator[Spaces]:
    if not can_have_namespaces():
        pytest.skip("needs root and network namespaces")
    made = Spaces()
    try:
        yield made
    finally:
        made.remove()


def value_in(spaces: Spaces) -> str:
    return spaces.run("a", f"cat {PLACE}").strip()


@pytest.mark.parametrize("victim", ["session", pytest.param("watchdog", marks=pytest.mark.thorough)])
def test_whichever_of_both_is_killed_the_other_restores_what_was_switched(
    spaces: Spaces, tmp_path: Path, victim: str
) -> None:
    spaces.add("a")
    before = value_in(spaces)
    after = "0" if before == "1" else "1"
    figure = tmp_path / "figure"
    figure.write_text("#!/bin/sh\necho 5\n")
    figure.chmod(0o755)
    state, errors = tmp_path / "state", tmp_path / "errors"
    errors.touch()
    said = os.open(errors, os.O_WRONLY)
    session = subprocess.Popen(
        [
            *(
                "ip",
                "netns",
                "exec",
                spaces.name("a"),
                sys.executable,
                "-m",
                "advisor",
                "prove",
                f"sysctl:{SETTING}={after}",
            ),
            *("--live", "--quick", "--yes", "--seed", "1", "--metric", f"p99=command:{figure}:lower"),
            *("--as-user", "root"),
        ],
        env={**os.environ, "ADVISOR_STATE_DIR": str(state)},
        stdout=said,
        stderr=said,
        start_new_session=True,
    )
    os.close(said)
    try:
        until(lambda: value_in(spaces) == after or session.poll() is not None, "nothing was switched")
        assert session.poll() is None, errors.read_text()
        if victim == "session":
            os.kill(session.pid, signal.SIGKILL)
        else:
            (watching,) = state.glob("transactions/*/watching")
            os.kill(int(watching.read_text().split()[0]), signal.SIGKILL)
            until(lambda: session.poll() is not None, "the session goes on without a watchdog")
            assert "the watchdog of this measurement was killed" in " ".join(errors.read_text().split())
        session.wait()
        until(lambda: value_in(spaces) == before, "the value from before was not restored")
        until_unwatched(Store(str(state)))
    finally:
        session.kill()
        session.wait()
    assert [record.state for record in Store(str(state)).read_records()] == ["rolled-back"]
