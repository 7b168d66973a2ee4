"""Bottlenecks that are really there, on this machine: each is named, whatever else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.diagnosis.live import INJECTIONS, Injection, can_throttle_cpu
from tests.reach.space import can_have_namespaces

pytestmark = [
    # What else runs is seen, too, and may bind first.
    pytest.mark.alone,
    pytest.mark.skipif(
        os.geteuid() != 0 or not can_have_namespaces() or not can_throttle_cpu(),
        reason="makes network namespaces and control groups: needs root",
    ),
]
# What a machine that is busy with other programs hides: a device that waits for a process that waits for a CPU.
HIDDEN_BY_LOAD = {"one request at a time", "IOPS limit of a service", "small send buffer", "small receive window"}
USUAL = {"2 % of the packets are lost", "CPU quota of a service", "process that outgrows its memory limit"}
"""One of each kind of cause: the network, a limit, memory; the others are thorough."""


@pytest.mark.parametrize(
    "injection",
    [pytest.param(one, id=one.name, marks=[pytest.mark.thorough] * (one.name not in USUAL)) for one in INJECTIONS],
)
def test_it_is_named(injection: Injection) -> None:
    with injection.make() as where:
        command = [*where, sys.executable, "-m", "advisor", "why", "--seconds", "3", "--json"]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=root)
    assert done.returncode == 1, done.stderr
    found = {one["id"]: one for one in json.loads(done.stdout)["binds"]}
    if injection.name in HIDDEN_BY_LOAD and "cpu.saturated" in found:
        return
    assert found.keys() & injection.right, found
