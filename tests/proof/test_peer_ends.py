"""Nothing stays open: whoever dies, and in whichever moment, fio ends at both ends and so does its port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.known import known

from .second_host import SecondHost, answers, eventually

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
_LISTENER = """
import time
from advisor.proof.interrupt import Stop
from advisor.proof.peer import Ssh
words = ["fio", "--name=x", "--thread", "--ioengine=net", "--protocol=tcp", "--listen", "--rw=read", "--bs=64k"]
with Ssh().started("far", "listen", [*words, "--size=1g"], bound={bound}) as remote:
    print(remote.port(seconds=15, stop=Stop()), flush=True)
    time.sleep(600)
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


def test_a_listener_ends_by_itself_when_the_wire_is_cut(second: SecondHost) -> None:
    """Nothing informs the far end any more; its own time does."""
    try:
        with controller(second, _LISTENER.format(bound=4)) as process:
            assert int(known(process.stdout).readline()) in second.open_ports()
            second.spaces.run("here", "ip link set h0 down")
            eventually(lambda: second.processes("fio") == [] and not second.open_ports(), 20)
            assert process.poll() is None
    finally:
        second.spaces.run("here", "ip link set h0 up")
        eventually(lambda: second.inside(answers), 20)
