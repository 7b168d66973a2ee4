"""What goes wrong in the middle of a run between two hosts is a fault in words, and both ends are ended."""

from __future__ import annotations

import os
import signal
import time

import pytest

from advisor.proof import fio
from advisor.proof.interrupt import Stop, StoppedError
from advisor.proof.process import FioError
from advisor.proof.workloads import get_workload

from .second_host import SSH_SERVERS, SecondHost


def _run(second: SecondHost, name: str, seconds: float, stop: Stop) -> None:
    fio.run_fio(second.runner(), fio.FioJob(get_workload(name), seconds, 0, 0), None, stop)


@pytest.mark.repeats(2)
@pytest.mark.parametrize("name", ["net.tcp-64k", "net.udp-8k-receive"])
@pytest.mark.parametrize("victim", ["fio", "sshd"])
def test_a_peer_that_dies_in_the_middle_is_a_fault(second: SecondHost, name: str, victim: str) -> None:
    def measure() -> str:
        pid = os.fork()
        if pid == 0:
            os._exit(_kill_when_running(second, victim))
        try:
            _run(second, name, 2.0, Stop())
        except FioError as error:
            return error.message
        finally:
            os.waitpid(pid, 0)
        return "no error"

    if victim == "sshd":
        # all sessions of it, the server among them
        try:
            said = second.inside(measure)
        finally:
            second.stop_sshd()
            second.start_sshd()
    else:
        said = second.inside(measure)
    assert said != "no error"


def _kill_when_running(second: SecondHost, victim: str) -> int:
    while not (second.processes("fio") and second.processes("fio", "here")):
        time.sleep(0.02)
    time.sleep(0.2)
    for name in SSH_SERVERS if victim == "sshd" else (victim,):
        for pid in second.processes(name):
            os.kill(pid, signal.SIGKILL)
    return 0


def test_a_signal_ends_both_ends(second: SecondHost) -> None:
    def measure() -> str:
        stop = Stop()
        signal.signal(signal.SIGALRM, stop.request)
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        try:
            _run(second, "net.tcp-64k", 60.0, stop)
        except StoppedError as error:
            return error.message
        return "not stopped"

    assert second.inside(measure) == "stopped by SIGALRM"
    assert second.processes("fio", "here") == []
