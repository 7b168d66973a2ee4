"""``advisor fleet verify`` for monitoring and ``advisor fleet compare --probe``, on hosts with an sshd of their own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.hosts import Hosts, Kind, why_not
from tests.report.exposition import samples

ADVISOR = Path(sys.executable).with_name("advisor")
BUSYBOX = shutil.which("busybox")
# The machine's own ping may be of any kind.
PING = {"ping": f'#!/bin/sh\nexec {BUSYBOX} ping "$@"\n'}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Hosts]:
    reason = why_not() or (None if BUSYBOX else "not installed: busybox")
    if reason:
        pytest.skip(reason)
    names = ("node01", "node02", "node03")
    with Hosts(4, **{name: Kind(programs=PING) for name in names}, node04=Kind(fault="refuses")) as made:
        yield made


def test_each_host_is_told_apart_and_the_one_that_refuses_has_no_success(fleet: Hosts, tmp_path: Path) -> None:
    file = tmp_path / "fleet.prom"
    done = fleet.run(ADVISOR, "fleet", "verify", "-i", fleet.inventory(), "--prometheus", file, "--nagios")
    assert done.returncode == 3, done.stdout + done.stderr
    found = samples(file.read_text())
    success = {
        dict(labels)["host"]: value for (name, labels), value in found.items() if name == "advisor_verify_success"
    }
    assert success == {"node01": 1, "node02": 1, "node03": 1, "node04": 0}
    assert found["advisor_transactions_in_force", (("host", "node01"),)] == 0
    assert ("advisor_transactions_in_force", (("host", "node04"),)) not in found
    first, *rest = done.stdout.splitlines()
    assert first.startswith("ADVISOR UNKNOWN - 1 of 4 hosts drifted or unknown: node04: ")
    assert "hosts_failed=1;;;0" in first
    assert [line.split(": ")[0] for line in rest] == ["node04"]
