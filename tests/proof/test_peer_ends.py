"""Nothing stays open: whoever dies, and in whichever moment, fio ends at both ends and so does its port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .second_host import SecondHost, eventually

_CONTROLLER = """
from advisor.host import live_host
from advisor.proof import fio
from advisor.proof.interrupt import Stop
from advisor.proof.network import NetworkFio
from advisor.proof.peer import SecondHostPeer, Ssh
from advisor.proof.workloads import get_workload
peer = SecondHostPeer("far", "192.0.2.2", "192.0.2.1", "h0", "fio")
fio.run_fio(NetworkFio(live_host(), peer, Ssh()), fio.FioJob(get_workload({name!r}), 3.0, 0, 0), None, Stop())
"""


@contextmanager
def controller(second: SecondHost, code: str) -> Iterator[subprocess.Popen[str]]:
    """The code in a process of its own in ``here``: what a session's own process is."""
    environment = {**os.environ, "PATH": second.search_path}
    words = ["ip", "netns", "exec", second.spaces.name("here"), sys.executable, "-c", code]
    process = subprocess.Popen(
        words, env=environment, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["net.tcp-64k", "net.udp-8k-receive"])
def test_a_session_that_is_killed_leaves_nothing(second: SecondHost, name: str) -> None:
    with controller(second, _CONTROLLER.format(name=name)) as process:
        eventually(lambda: bool(second.processes("fio", "here")) and bool(second.processes("fio")))
        assert second.open_ports("here") | second.open_ports("far")
        process.kill()
    eventually(lambda: second.left_over() == [])
