"""Devices that are plugged in after a transaction, under a real udev: an NVMe drive and a virtio link, by QEMU's
machine protocol, and another path of a multipath map.

Judged by sysfs and by udev's database, never by our own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cases import cases

from .guest import Machine
from .road import advisor, document, out

CASES = cases(__file__)

pytestmark = pytest.mark.thorough

WANTED = (
    "udev:block:nvme*:scheduler=mq-deadline",
    "udev:block:nvme*:read_ahead_kb>=512",
    "udev:block:sd*/role/multipath-path:nomerges=1",
    "udev:link:virtio_net:txqueuelen=5000",
)
# Two paths to one unit; the kernel's pseudo adapter takes more of them.
PATHS = CASES["PATHS"]
# The kernel finds all three by itself.
APPEARED = CASES["APPEARED"]
TEAR_DOWN = CASES["TEAR_DOWN"]
LOOK = CASES["LOOK"]
RECORDS = CASES["RECORDS"]


@pytest.fixture
def paths(guest: Machine) -> Iterator[Machine]:
    guest.run("rm -rf /var/lib/advisor", timeout=30).check()
    out(guest, PATHS)
    yield guest
    guest.unplug(0)
    guest.unplug(1)
    guest.run(TEAR_DOWN, timeout=120)


def test_a_rule_reaches_a_drive_a_link_and_a_path(paths: Machine) -> None:
    guest = paths
    assert out(guest, "cat /sys/block/sda/holders/*/dm/uuid").startswith("mpath-")
    done = document(guest, "apply", *WANTED, "--yes")
    guest.plug_disk(0, "LAB-HOT")
    guest.plug_link(1, mac="52:54:00:1a:b0:77")
    guest.run(APPEARED, timeout=120).check()
    assert out(guest, LOOK).split() == ["mq-deadline", "512", "1", "5000"]
    assert out(guest, RECORDS).splitlines() == [
        "NOMERGES 0",
        "READ_AHEAD_KB 128",
        "SCHEDULER _none_ mq-deadline",
        "TXQUEUELEN 1000",
    ]
    advisor(guest, "verify")
    # Another event: the record stays, and the value is not set once more.
    out(guest, "echo 2 >/sys/block/sdc/queue/nomerges; udevadm trigger --settle /sys/block/sdc")
    assert "block:sdc:nomerges" in advisor(guest, "verify", code=1).stdout
    out(guest, "echo 1 >/sys/block/sdc/queue/nomerges")
    guest.run(f"sh /var/lib/advisor/transactions/{done['id']}/rollback.sh", timeout=60).check()
    assert out(guest, LOOK).split() == ["none", "128", "0", "1000"]
    assert out(guest, "ls /etc/udev/rules.d").count("89-advisor") == 0
