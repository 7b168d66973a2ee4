"""Hosts that look like one that is held up and are not, or are by something else: what they answer, and what not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.diagnosis.moments import (
    Array,
    Connection,
    Disk,
    FileSystem,
    Link,
    Machine,
    NfsMount,
    Process,
    diagnose_machine,
)


def _drives(*rows: tuple[str, float, float, float]) -> tuple[Disk, ...]:
    """Rotating drives: name, reads a second, wait in ms, busy."""
    return tuple(
        Disk(name, reads, reads / 2, 64, 64, wait, busy=busy, rotational=True, number=f"8:{16 * at}")
        for at, (name, reads, wait, busy) in enumerate(rows)
    )


_CACHE = (
    Disk("sda", 30, 10, 16, 16, 20, busy=0.6, rotational=True),
    Disk("nvme0n1", 900, 500, 16, 16, 0.12, number="259:0"),
)
_EBS = {"/sys/block/nvme1n1/device/model": "Amazon Elastic Block Store"}
_FILER = {"/sys/block/sdaa/device/vendor": "NETAPP", "/sys/block/sdaa/device/model": "LUN C-Mode"}
_ONE_MODEL = {f"/sys/block/sd{letter}/device/model": "ST12000NM" for letter in "abcde"}


def _spread(at: float) -> dict[str, str]:
    text = (
        f"numa_hit {int(20_000 * at)}\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit {int(18_000 * at)}\n"
        f"local_node {int(11_000 * at)}\nother_node {int(9_000 * at)}\n"
    )
    return {f"/sys/devices/system/node/node{node}/numastat": text for node in range(2)}


# fmt: off
QUIET: dict[str, Machine | Callable[[float], Machine]] = {
    "a check of an array that holds nobody up":
        Machine(io_some=0.03, arrays=(Array(action="check", done="100 / 2000"),),
                disks=(*(Disk(name, 300, 0, 512, 16, 40, busy=0.99, rotational=True) for name in ("sda", "sdb")),
                       Disk("md0", 1, 0, below=("sda", "sdb"), number="9:0"))),
    "a card reader without a card":
        Machine(disks=(Disk(), Disk("sdq", 0, 0, errors=1, number="65:0")), extra={"/sys/block/sdq/size": "0\n"}),
    "a full image that is only read":
        Machine(filesystems=(FileSystem(), FileSystem("/recovery", "ext4", used=1000, available=0, grows=0)),
                extra={"/proc/self/mountinfo": "30 1 8:3 / /recovery ro,relatime - ext4 /dev/sda3 ro\n"}),
    "some pauses of a fast link": Machine(links=(Link(tx_bytes=4e9, speed=100_000),), pauses={"rx": 150.0, "tx": 0.0}),
    "a target that polls":
        Machine(user=0.25, processes=(Process(), Process("nvmf_tgt", "spdk.service", cpu=1.0, threads=(0.99, 0.0)))),
    "a heartbeat each 100 ms over a long way":
        Machine(connections=(Connection("198.51.100.7:2380", busy=0.6, rtt=60, least_rtt=55, bytes=2000),)),
    "a connection that was refused once": Machine(tcp={"ListenDrops": 0.1, "ListenOverflows": 0.1, "PassiveOpens": 2}),
    "writeback of what nobody waits for": Machine(
        io_some=0.03, dirty=(30_000, 5_000), disks=(Disk("sda", 1, 140, 4, 512, 280, busy=0.99, rotational=True),)
    ),
    "busy EBS volume that answers in its usual 1 ms":
        Machine(io_some=0.15, disks=(Disk("nvme1n1", 1000, 900, 16, 16, 1.1, busy=0.9, number="259:1"),), extra=_EBS),
    "LUN of an all-flash array at 1.6 ms":
        Machine(io_some=0.15, disks=(Disk("sdaa", 550, 0, 8, 16, 1.7, busy=0.95, number="65:160"),), extra=_FILER),
    "bcache: a rotating drive and its cache are no peers": Machine(
        io_some=0.08, disks=(*_CACHE, Disk("bcache0", 930, 500, 16, 16, 0.7, below=("sda", "nvme0n1"), number="252:0"))
    ),
    "dm-cache: a rotating drive and its cache are no peers": Machine(
        io_some=0.15, disks=(*_CACHE, Disk("dm-3", 930, 500, 16, 16, 0.7, below=("sda", "nvme0n1"), number="253:3"))
    ),
    "one drive of five has more to do": Machine(
        io_some=0.09,
        disks=_drives(*((f"sd{letter}", 20, 13, 0.3) for letter in "abcd"), ("sde", 45, 45, 0.8)),
        extra=_ONE_MODEL,
    ),
    "interleaved memory": lambda at: Machine(nodes=((1, 0), (1, 0)), extra=_spread(1000 + at)),
    "NFS is waited for, and the disk has little to do":
        Machine(io_some=0.6, iowait=0.2, disks=(Disk("nvme0n1", 800, 100, 8, 16, 0.18, busy=0.16, number="259:0"),),
                mounts=(NfsMount(requests=900, rtt_ms=3),)),
    "asynchronous direct reads of 1 MiB": Machine(
        io_some=0.15,
        disks=(Disk("nvme0n1", 900, 0, 1024, 16, 1.3, busy=0.9, number="259:0"),),
        processes=(Process(), Process("scylla", "scylla.service", chars=1e4, read=9.4e8)),
        vm={"pgmajfault": 2},
        extra={"/sys/block/nvme0n1/queue/read_ahead_kb": "1024"},
    ),
    "an NFS server that reads for its clients":
        Machine(io_some=0.15, disks=(Disk("sda", 200, 0, 512, 16, 2, busy=0.6),), vm={"pgmajfault": 2},
                extra={"/sys/block/sda/queue/read_ahead_kb": "1024"}),
}
# fmt: on


@pytest.mark.parametrize("name", QUIET)
def test_nothing_binds(name: str) -> None:
    found = diagnose_machine(QUIET[name])
    assert found.binds == (), [(one.id, one.device, one.share) for one in found.binds]


_OF_FIVE = tuple((f"sd{letter}", 20, 13, 0.3) for letter in "abcd")
_AT_ONE_REQUEST = Disk("nvme1n1", 1100, 0, 16, 16, 0.85, busy=0.95, number="259:1")
_SWAPPED = Disk("nvme0n1", 5000, 0, 8, 16, 0.15, busy=0.8, number="259:0")
_LEAKED = Disk("dm-3", 0, 0, in_flight=2, busy=1.0, number="253:3")
_BUSY = Disk("nvme0n1", 3000, 0, 8, 16, 0.2, busy=0.5, number="259:0")
_PATH, _HEAD = (
    Disk(name, 9000, 0, 64, 16, 5.0, number=f"259:{at}") for at, name in enumerate(("nvme0c1n1", "nvme0n1"))
)
_IMAGE = {
    "/sys/block/loop0/loop/backing_file": "/srv/disk.img\n",
    "/proc/self/mountinfo": "21 1 8:0 / /srv rw - xfs /dev/sda rw\n",
    "/sys/class/block/sda/dev": "8:0",
}
_ON_NVME = {
    **_IMAGE,
    "/proc/self/mountinfo": "21 1 259:0 / /srv rw - xfs /dev/nvme0n1 rw\n",
    "/sys/class/block/nvme0n1/dev": "259:0",
}
_LOOP, _FAST_LOOP = Disk("loop0", 90, 40, 16, 16, 121.0, number="7:0"), Disk("loop0", 5000, 0, 4, 4, 0.15, number="7:0")
_BELOW = Disk("sda", 90, 40, 16, 16, 120.0, rotational=True)


def _threads(*shares: float) -> Machine:
    return Machine(user=0.25, processes=(Process(), Process("java", "app.service", cpu=1.0, threads=shares)))


# What binds, as ID DEVICE; an id alone stands for any device. "…": others may follow.
# fmt: off
BOUND: dict[str, tuple[Machine, str]] = {
    "an EBS volume at one request is not called slow":
        (Machine(io_some=0.9, iowait=0.2, disks=(_AT_ONE_REQUEST,), extra=_EBS), "application.serial"),
    "a local drive of an instance is still measured as one":
        (Machine(io_some=0.9, iowait=0.2, disks=(_AT_ONE_REQUEST,),
                 extra={"/sys/block/nvme1n1/device/model": "Amazon EC2 NVMe Instance Storage"}), "disk.slow"),
    "a slow drive of equal ones is still found":
        (Machine(io_some=0.5, disks=_drives(*_OF_FIVE, ("sde", 15, 60, 0.9)), extra=_ONE_MODEL),
         "disk.slow-member sde …"),
    "few pages from swap":
        (Machine(io_some=0.8, iowait=0.2, disks=(_SWAPPED,), vm={"pswpin": 40, "pswpout": 10}), "application.serial"),
    "pages from swap are what is read":
        (Machine(io_some=0.8, iowait=0.2, disks=(_SWAPPED,), vm={"pswpin": 9000, "pswpout": 9000}), "memory.swap …"),
    "a device whose driver lost count is not what is waited for":
        (Machine(io_some=0.4, iowait=0.2, disks=(_BUSY, _LEAKED)), "application.serial …"),
    "the same beside a quiet drive":
        (Machine(io_some=0.4, iowait=0.2, disks=(Disk("nvme0n1", 30, 0, 8, 16, 0.2, number="259:0"), _LEAKED)),
         "disk.stuck …"),
    "the same with a process that waits":
        (Machine(io_some=0.9, iowait=0.2, disks=(_BUSY, _LEAKED),
                 processes=(Process(), Process("rsync", "", cpu=0, chars=0, read=0, waits_in="io_schedule"))),
         "disk.stuck …"),
    "a multipath drive is named once and by its head":
        (Machine(io_some=0.9, iowait=0.3, disks=(_PATH, _HEAD)), "disk.saturated nvme0n1"),
    "a path without its head": (Machine(io_some=0.9, iowait=0.3, disks=(_PATH,)), "disk.saturated nvme0c1n1"),
    "asynchronous direct writes to a full drive":
        (Machine(io_some=0.02, disks=(Disk("sda", 1, 140, 4, 512, 280, busy=0.99, rotational=True),)),
         "disk.saturated"),
    "the member that a rebuild writes is no slow one":
        (Machine(disks=(*(Disk(name, 300, 0, 512, 16, 9, busy=0.95, rotational=True) for name in ("sda", "sdb")),
                        Disk("sdc", 0, 300, 16, 512, 30, busy=1.0, rotational=True),
                        Disk("md0", 1, 0, below=("sda", "sdb", "sdc"), number="9:0")),
                 arrays=(Array(action="recover", degraded=1, done="100 / 2000"),)), "array.rebuilding"),
    "every full link, but not what lies on it":
        (Machine(links=tuple(Link(name, tx_bytes=1.24e9) for name in ("eth0.100", "eth0", "eth1")),
                 extra={"/sys/class/net/eth0.100/lower_eth0/uevent": ""}),
         "net.link-saturated eth0, net.link-saturated eth1"),
    "threads that share the work of one CPU": (_threads(*[0.1] * 10), ""),
    "one thread that does the work": (_threads(0.97, 0.02, 0.01), "application.single-thread"),
    # A member that is read again for each parity: more requests, each of which takes longer.
    "a slow member that also has more to do":
        (Machine(io_some=0.95,
                 disks=(*(Disk(f"sd{letter}", 100, 100, 4, 4, 1.5, number=f"8:{at}") for at, letter in enumerate("ab")),
                        Disk("sdc", 170, 160, 4, 4, 30, busy=1.0, number="8:32"),
                        Disk("md0", 0, 200, 512, 4, 20, busy=1.0, below=("sda", "sdb", "sdc"), number="9:0"))),
         "disk.slow-member sdc …"),
    # A Smart Array of 2.6: 20 ms are the time of its arm, and no slowness of an unknown medium.
    "a disk whose name has a slash is that of sysfs":
        (Machine(psi=False, iowait=0.3, disks=(Disk("cciss/c0d0", 45, 0, 16, 16, 20, busy=0.9, number="104:0"),),
                 extra={"/sys/block/cciss!c0d0/queue/rotational": "1", "/sys/block/cciss!c0d0/dev": "104:0"}),
         "disk.saturated cciss!c0d0"),
    "a loop device waits for the disk of its file":
        (Machine(io_some=0.9, iowait=0.3, disks=(_BELOW, _LOOP), extra=_IMAGE), "disk.saturated sda"),
    # 8 ms for a request are what the arm of the drive takes, not a slow loop device.
    "a loop device takes the time of the medium below it":
        (Machine(io_some=0.45, disks=(Disk("sda", 60, 0, 16, 16, 8.0, rotational=True),
                                      Disk("loop0", 60, 0, 16, 16, 8.2, number="7:0")), extra=_IMAGE), ""),
    "one request at a time is said of the disk below a loop device":
        (Machine(io_some=0.8, iowait=0.2, disks=(Disk("nvme0n1", 5000, 0, 4, 4, 0.12, number="259:0"), _FAST_LOOP),
                 extra=_ON_NVME), "application.serial nvme0n1"),
    # The drive has nothing to do.
    "a file of a loop device in the page cache":
        (Machine(io_some=0.8, iowait=0.2, disks=(Disk("nvme0n1", number="259:0"), _FAST_LOOP), extra=_ON_NVME),
         "application.serial loop0"),
}
# fmt: on


@pytest.mark.parametrize("name", BOUND)
def test_what_binds(name: str) -> None:
    machine, expected = BOUND[name]
    *wanted, last = expected.removesuffix(" …").split(", ")
    wanted = [*wanted, last] if last else []
    binds = diagnose_machine(machine).binds
    found = [f"{one.id} {one.device}" if " " in text else one.id for one, text in zip(binds, wanted, strict=False)]
    assert found == wanted, [(one.id, one.device, one.share) for one in binds]
    assert expected.endswith("…") or len(binds) == len(wanted), [(one.id, one.device, one.share) for one in binds]


@pytest.mark.parametrize(
    ("name", "speed", "own_file"), [("vnet0", 10, "tun_flags"), ("br-3f2a", 10_000, "bridge/bridge_id")]
)
def test_the_speed_of_a_virtual_link_is_no_limit(name: str, speed: int, own_file: str) -> None:
    """A tap says 10 Mbit/s and the ports of a bridge 10 Gbit/s each, and carry what the CPUs copy."""
    link = Link(name, rx_bytes=3e9, tx_bytes=3e7, speed=speed)
    found = diagnose_machine(Machine(links=(Link(), link), extra={f"/sys/class/net/{name}/{own_file}": "0x1002\n"}))
    assert found.binds == ()
    assert not [one for one in found.near if "link" in one]
