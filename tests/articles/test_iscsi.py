"""The figures of the Openfiler iSCSI article (S003), recomputed: rows "003,…" of seed_facts.csv marked as checked.

The article's own measurements that no computation can give are listed in docs/systems/iscsi.md. What is tested of them
here is that they agree with each other: operations, block size and throughput; operations, latency and outstanding
requests; one figure with another.
"""

from __future__ import annotations

from typing import Final

import pytest

from advisor.facts.block.block import SECTOR_BYTES
from advisor.limits.declared import Declared
from advisor.limits.figures import MIB
from advisor.limits.links import PciAndNetwork
from advisor.limits.notes import Measurement, with_observed
from advisor.limits.paths import limits_of
from advisor.limits.records import StoragePath
from advisor.proof.workloads import get_workload
from advisor.reach.echo import echo_data, small_size
from advisor.rules.block import controllers
from advisor.rules.block.controllers import gain_percent
from advisor.rules.judged import judge
from advisor.rules.remote.iscsi import disk_test_bytes
from tests.cases import read_cases
from tests.limits import hosts
from tests.rules.build import array, facts
from tests.rules.cases_iscsi import exports

GB: Final = 1_000_000_000
GIB: Final = 1 << 30

# Latency in ms, IO/s and MB/s of the article's tables, in the order of their lines.
Row = tuple[float, float, float]
PATTERNS: Final = ("iometer.maxtp-r100", "iometer.reallife", "iometer.maxtp-rw50", "iometer.rnd8k-r70")
DATA = read_cases(__file__)

TABLES: Final[dict[str, tuple[Row, Row, Row, Row]]] = DATA["TABLES"]
EVERY: Final = [
    (name, pattern, *row) for name, rows in TABLES.items() for pattern, row in zip(PATTERNS, rows, strict=True)
]


@pytest.mark.parametrize(("row", "pattern", "latency_ms", "iops", "mb_per_s"), EVERY)
def test_s003_operations_times_block_are_the_throughput(
    row: str, pattern: str, latency_ms: float, iops: float, mb_per_s: float
) -> None:
    """All tables: IO/s × the pattern's block. The article's MB are of 2^20 bytes, as IOMETER counts them."""
    (section,) = get_workload(pattern).sections
    assert iops * section.block_bytes / 2**20 == pytest.approx(mb_per_s, abs=0.06)
    # In units of 10^6 bytes it would be 4.9 % more, which no rounding explains.
    if mb_per_s > 100:
        assert iops * section.block_bytes / 1e6 > 1.04 * mb_per_s


def test_s003_the_links_put_right_gave_208_percent_more() -> None:
    """Rows "003,step1" and "003,step2": 128.0 to 394.52 MB/s."""
    before, after = (TABLES[row][0][2] for row in ("003,step1", "003,step2"))
    assert gain_percent(before, after) == 208


def four_paths(measured: float, mtu: int = 9000, links: int = 4) -> StoragePath:
    """The article's four 1 GbE paths, and a measurement in MB/s (10^6 bytes) against them."""
    wires = [hosts.link(f"eth{n}", mtu=mtu, pci=f"0000:0{n}:00.0", addresses=[f"10.0.{n}.2/24"]) for n in range(links)]
    names = [f"sd{'abcd'[n]}" for n in range(links)]
    host = hosts.facts(
        [hosts.disk(name, kind="scsi", transport="iscsi") for name in names],
        [hosts.array("mpatha", "multipath", names)],
        wires,
    )
    found = limits_of(host, PciAndNetwork(portals={"iscsi": tuple(one.name for one in wires)}))
    one = Measurement("iometer.maxtp-r100", "mpatha", "mb_per_s", measured, 1.0)
    (path,) = [one for one in with_observed(found, [one], host, Declared()).paths if one.kind == "storage"]
    return path


@pytest.mark.parametrize(("mtu", "ceiling", "percent"), [(1500, 471, 88), (9000, 495, 84)])
def test_s003_four_links_carry_471_to_495_of_which_394_are_near(mtu: int, ceiling: int, percent: int) -> None:
    """Row "003,ceiling": the article takes about 440 MB/s for four links with iSCSI; the headers leave 471 or 495.

    394.52 of 2^20 bytes are 413.7 of 10^6: 84 to 88 % of that ceiling, 94 % of the article's own.
    """
    path = four_paths(394.52 * MIB, mtu)
    (seen,) = path.observed
    assert (round(seen.ceiling or 0), round(100 * (seen.share or 0))) == (ceiling, percent)
    assert round(100 * 394.52 * MIB / 440) == 94
    assert round(100 * 394.52 / 440) == 90
    assert path.sustained[0].stage == "network"
    assert any("advisor explain iscsi.order" in note for note in path.notes)


def test_s003_128_mb_per_s_are_little_more_than_one_link() -> None:
    """Row "003,step1" against "003,pitfalls": paths in turns of 1,000 requests give what one 1 GbE path gives.

    As the article counts (2^20 bytes) it is 134.2 MB/s: 8 to 14 % above one link, a quarter of four.
    """
    for mtu, percent in ((1500, 114), (9000, 108)):
        (seen,) = four_paths(128.0 * MIB, mtu, links=1).observed
        assert round(100 * (seen.share or 0)) == percent
    (seen,) = four_paths(128.0 * MIB).observed
    assert round(100 * (seen.share or 0)) == 27


def test_s003_a_ping_that_may_not_be_fragmented_has_8972_bytes_of_data() -> None:
    """Row "003,pitfalls": jumbo frames are tested with large pings; 9000 less 20 of IPv4 and 8 of ICMP."""
    token = bytes(8)
    assert len(echo_data(4, 9000, token)) == 8972
    assert len(echo_data(6, 9000, token)) == 8952
    assert small_size(4) < 9000


def test_s003_the_file_of_the_disk_step_and_the_disk_that_holds_it() -> None:
    """Rows "003,rule" and "003,VM disk size": twice the memory, 15 GB besides, counted in blocks of 512 bytes."""
    size = disk_test_bytes(8 * GIB)
    assert size == 16 * GIB
    assert size // SECTOR_BYTES == 33_554_432
    assert 15 * GB + size == pytest.approx(32.2 * GB, abs=0.05 * GB)
    (order,) = [one for one in judge(facts(iscsi=exports("eth1"))) if one.id == "iscsi.order"]
    assert f"--size={2 * 64 * 1024}m" in order.advice


def test_s003_eight_drives_instead_of_four_give_2_percent_and_take_20() -> None:
    """Rows "003,RAID10 x4" and "003,RAID10 x8": 377.79 to 385.3 MB/s, 171.66 to 138.0 IOPS."""
    four, eight = TABLES["003,RAID10 x4"], TABLES["003,RAID10 x8"]
    assert (four[0][2], four[1][1]) == controllers.FOUR_DRIVES
    assert (eight[0][2], eight[1][1]) == controllers.EIGHT_DRIVES
    assert gain_percent(four[0][2], eight[0][2]) == 2
    assert gain_percent(four[1][1], eight[1][1]) == -20
    wide = array("c0/v0", manager="controller", level="raid10", data_disks=4, device="sda", disks=("sda",))
    (found,) = [
        one
        for one in judge(facts(arrays=(wide,), iscsi=exports("eth1", disks=("sda",))))
        if one.id == "controllers.two-small-arrays"
    ]
    assert "+2 %" in found.why
    assert "-20 %" in found.why
    assert found.intent
