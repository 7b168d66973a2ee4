"""A control group that is neither a service nor a scope: the command that prints its limit, and who is in it."""

from __future__ import annotations

import shlex

import pytest

from tests.diagnosis.moments import Disk, Group, Machine, Process, diagnose_machine
from tests.known import known

PATH = "/docker/3f2a 1"
LIMITED = Group(path=PATH, throttled=0.9, quota="50000 100000")
HELD = Group(path=PATH, io_some=0.9, read_bytes=10_485_760, io_max="259:0 rbps=10485760 wbps=max riops=max wiops=max")


@pytest.mark.parametrize(
    ("group", "version1", "identity", "file"),
    [
        (LIMITED, False, "cpu.quota", f"{PATH}/cpu.max"),
        (LIMITED, True, "cpu.quota", f"/cpu{PATH}/cpu.cfs_quota_us"),
        (HELD, False, "disk.cgroup-limit", f"{PATH}/io.max"),
        (HELD, True, "disk.cgroup-limit", f"/blkio{PATH}/blkio.throttle.read_bps_device"),
    ],
)
def test_the_command_reads_the_file_that_is_there(group: Group, version1: bool, identity: str, file: str) -> None:
    found = diagnose_machine(
        Machine(psi=not version1, version1=version1, groups=(group,), disks=(Disk(number="259:0"),))
    )
    (bound,) = (one for one in found.binds if one.id == identity)
    assert bound.commands == (f"cat {shlex.quote(f'/sys/fs/cgroup{file}')}",)
    # Nobody is known: no line that says so without a name.
    assert bound.asks is None


def test_the_busiest_process_of_the_group_asks() -> None:
    processes = (
        Process("other", unit="", cpu=0.9, cgroup=f"{PATH}2"),
        Process("idle", unit="", cpu=0.01, cgroup=PATH),
        Process("worker", unit="", cpu=0.4, cgroup=f"{PATH}/inner"),
    )
    found = diagnose_machine(Machine(groups=(LIMITED,), processes=processes))
    (bound,) = (one for one in found.binds if one.id == "cpu.quota")
    assert (known(bound.asks).unit, (known(bound.asks).process or "").partition(" ")[0]) == (None, "worker")
